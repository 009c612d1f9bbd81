"""Small fitted table models for the tests of the report, with hostile names.

Each is fitted once; tests that change one change a copy.
"""

from functools import cache

import numpy as np
import pandas

from leaflearn.tabular.table_model import TableModel

NASTY = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script>",
    "</title></style></svg>",
    "مجموعة abc",
    "\u202eevil",
    "👩‍🔬 🚀",
    "two\nlines",
    "$x^2$ & 'quoted' \\n",
    "--> ]]> {{7*7}}",
    "sep\u2028arated",
    'style="fill: red" id="groups"',
)
GROUP, DOSE, KIND, DAY, EFFECT = (
    '"><img src=x onerror=alert(1)>',
    "<script>alert(1)</script>",
    "</script>",
    "يوم\u202e",
    "<b>effect</b>\n",
)
KINDS = ("<i>a</i>", 'b" onload="alert(1)', "$\\bad{$")
TAME = {GROUP: "site", DOSE: "dose", KIND: "kind", DAY: "day", EFFECT: "effect"}


def make_table(tame: bool = False) -> pandas.DataFrame:
    """Twelve groups of ten rows in two contexts with opposite slopes; some cells are missing."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(12), 10)
    dose, kind = rng.normal(5.0, 2.0, 120), rng.choice(3, 120)
    sign = np.where(group < 5, -1.0, 1.0)
    table = pandas.DataFrame(
        {
            GROUP: np.array(NASTY, dtype=object)[group],
            DOSE: dose.round(2),
            KIND: np.array(KINDS, dtype=object)[kind],
        }
    )
    table[DAY] = pandas.Series(
        pandas.Timestamp("2024-01-01") + pandas.to_timedelta(rng.integers(0, 200, 120), unit="D")
    ).dt.strftime("%Y-%m-%d")
    table[EFFECT] = (sign * (dose - 5.0 + (kind == 1)) + rng.normal(0.0, 0.1, 120)).round(3)
    table.loc[::9, DOSE] = np.nan
    if tame:
        table = table.rename(columns=TAME)
        table["site"] = [f"site {i + 1}" for i in group]
    return table


@cache
def fit_quantity(tame: bool = False) -> tuple[TableModel, pandas.DataFrame]:
    """A regression, with a column of each kind that has a curve."""
    table = make_table(tame)
    names = [TAME[column] if tame else column for column in (EFFECT, GROUP, DOSE, KIND, DAY)]
    model = TableModel(names[0], names[1], contexts=2, local_model="linear", features=names[2:])
    return model.fit(table), table


@cache
def fit_label() -> tuple[TableModel, pandas.DataFrame]:
    """A classification with hostile labels."""
    table = make_table()
    table[EFFECT] = np.where(table[EFFECT] > 0.3, "<u>yes</u>", '"no"')
    return TableModel(EFFECT, GROUP, contexts=2, local_model="linear", features=[DOSE, KIND]).fit(
        table
    ), table
