"""A small table with two contexts, and group names with special characters."""

import numpy as np
import pandas

SPECIAL_NAMES = [
    "<script>alert(1)</script>",
    "[red]x[/red]",
    "=cmd()",
    "שלום",
    "🙂",
    "two\nlines",
    "\x1b[31mred",
    "a,b;c|d",
    "12",
    "\u202eabc",
]


def make_table(names=SPECIAL_NAMES, n_rows=8, seed=0):
    """The effect of every third source has the opposite sign."""
    rng = np.random.default_rng(seed)
    source = np.repeat(np.arange(len(names)), n_rows)
    table = pandas.DataFrame(
        {
            "source": np.array(names, dtype=object)[source],
            "dose": rng.normal(size=len(source)).round(3),
        }
    )
    table["effect"] = (
        np.where(source % 3 == 0, -1.0, 1.0) * table["dose"] + 0.05 * rng.normal(size=len(source))
    ).round(4)
    return table
