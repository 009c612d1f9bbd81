"""What a column of a table holds: numbers, dates, categories, free text, or nothing to learn from.

The kind of a column is the kind of nearly all of its cells. The few cells that are something else
are treated as missing, with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.messages import TableWarning, UnreadableCells
from leaflearn.tabular import settings

LARGEST = 1e100  # squares and sums of larger numbers may overflow
DATE_FORMATS = (
    "ISO8601",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%m/%d/%Y",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%d-%m-%Y",
    "%d %B %Y",
    "%d %b %Y",
    "%B %d, %Y",
    "%b %d, %Y",
)

# Forms of columns, as model folders store them; `Column.reason` has the words to show.
CONSTANT = "the same everywhere"
ROW_NUMBERS = "numbers of the rows"
RARE = ("a different text in every row", "a text of its own in nearly every row")
ITEM = "names the items"
DESCRIBED = "names items that other columns describe well enough"
NOT_INFORMATIVE = "tells nothing of the target"
OF_ANSWERS = "tells of the answer or the group, not of the item"
_REASONS = {
    CONSTANT: "constant",
    ROW_NUMBERS: "row numbers",
    RARE[1]: "a different text in nearly every row",
    NOT_INFORMATIVE: "not associated with the target",
    OF_ANSWERS: "about the answer or the group, not the item",
}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """What a column holds.

    Parameters
    ----------
    name
        Its name in the table.
    kind
        `"number"`, `"date"`, `"category"`, `"text"`, or `"nothing"` if it is left out.
    form
        How dates are written, or why the column is left out, as model folders store it.
    values
        The values of a category that get a feature each; the empty one stands for missing values.

    Examples
    --------
    >>> Column("site", "category", values=("A", "B")).kind
    'category'
    """

    name: str
    kind: str
    form: str = ""
    values: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Why the column is left out."""
        return _REASONS.get(self.form, self.form)


def find_kind(column: Any, name: str) -> Column:
    """Determine what a column of pandas holds.

    Examples
    --------
    >>> import pandas
    >>> find_kind(pandas.Series(["2024-01-05", "2024-02-07", None]), "day")
    Column(name='day', kind='date', form='ISO8601', values=())
    >>> find_kind(pandas.Series([f"customer{i}" for i in range(50)]), "id").form
    'a different text in every row'
    """
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return _kind_of_numbers(np.asarray(column, dtype=np.float64), name)
    present = column.dropna()
    if not len(present):
        return Column(name, "nothing", "empty")
    if str(column.dtype) == "category":
        return _kind_of_texts(present, name, len(column))
    if column.dtype.kind in "mMc" or _is_numeric(column):
        return _kind_of_numeric(column, present, name)
    sample = present.iloc[:: max(1, len(present) // settings.TABLES.sampled_cells)]
    if len(sample.map(str).unique()) == 1 and len(present.map(str).unique()) == 1:
        return Column(name, "nothing", CONSTANT)
    if 1.0 - np.isnan(parse_numbers(sample)).mean() >= settings.TABLES.kind_share:
        return _kind_of_numeric(column, present, name)
    form = find_date_format(sample)
    return Column(name, "date", form) if form else _kind_of_texts(present, name, len(column))


def find_row_numbers(frame: Any, names: Sequence[str]) -> list[Column]:
    """Which of these columns number the rows of a table as it was read.

    Once rows are left out, such as those without a target, their numbers have gaps and look like
    any other number.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"id": range(1, 31), "age": [20, 50, 40] * 10})
    >>> [column.name for column in find_row_numbers(frame, ["id", "age"])]
    ['id']
    >>> find_kind(frame["id"][frame["age"] > 20], "id").kind
    'number'
    """
    kinds = (find_kind(frame[name], name) for name in names if may_be_row_numbers(frame[name]))
    return [column for column in kinds if column.form == ROW_NUMBERS]


def may_be_row_numbers(column: Any) -> bool:
    """Whether the first and the last cell are as far apart as the rows; a quick first look.

    Examples
    --------
    >>> import pandas
    >>> may_be_row_numbers(pandas.Series(["3", "4", "5"])), may_be_row_numbers(pandas.Series(["a"]))
    (True, False)
    """
    if not len(column):
        return False
    ends = read_numbers(column.iloc[[0, -1]])
    return bool(ends[1] - ends[0] == len(column) - 1)


def read_columns(frame: Any, columns: Sequence[Column]) -> Floats:
    """The numbers and dates of several columns, shape (N, n_columns); see `read_column`.

    Numeric columns without infinite values are read together, which is fast for thousands of them.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"a": [1, 2], "b": ["3", None]})
    >>> read_columns(frame, [Column("a", "number"), Column("b", "number")])
    array([[ 1.,  3.],
           [ 2., nan]])
    """
    types = dict(frame.dtypes)
    values = np.empty((len(frame), len(columns)))
    is_plain = [
        column.kind == "number"
        and isinstance(types[column.name], np.dtype)
        and types[column.name].kind in "biuf"
        for column in columns
    ]
    plain = [i for i, known in enumerate(is_plain) if known]
    values[:, plain] = frame[[columns[i].name for i in plain]].to_numpy(dtype=np.float64)
    for i, column in enumerate(columns):
        if not is_plain[i] or not np.nanmax(np.abs(values[:, i]), initial=0.0) <= LARGEST:
            values[:, i] = read_column(frame, column)
    return values


def read_column(frame: Any, column: Column) -> Floats:
    """The numbers of a column, or its dates as days, shape (N,).

    Other cells are missing, with a warning. Infinite numbers are an error.

    Examples
    --------
    >>> import pandas
    >>> read_column(pandas.DataFrame({"a": [1.0, float("inf")]}), Column("a", "number"))
    Traceback (most recent call last):
    ...
    ValueError: Column 'a' holds an infinite number in row 2; correct it, or leave the column out.
    """
    cells = frame[column.name]
    values = read_dates(cells, column.form) if column.kind == "date" else read_numbers(cells)
    refuse_infinite(values, cells, "correct it, or leave the column out")
    unreadable = np.flatnonzero(np.isnan(values) & ~np.asarray(cells.isna(), dtype=bool))
    if len(unreadable):
        first = int(unreadable[0])
        text, row = shorten_cell(cells, first), row_of(cells, first)
        message = UnreadableCells(column.name, column.kind, text, row, len(unreadable))
        warnings.warn(TableWarning(message), stacklevel=2)
    return values


# ---- cells --------------------------------------------------------------------------------------


def read_numbers(column: Any) -> Floats:
    """A column of pandas as numbers, NaN where there is none, shape (N,).

    Examples
    --------
    >>> import pandas
    >>> read_numbers(pandas.Series(["1.5", None, "x"]))
    array([1.5, nan, nan])
    """
    if column.dtype.kind == "m":
        return np.asarray(column.dt.total_seconds(), dtype=np.float64)
    if column.dtype.kind == "c":
        return np.asarray(column.to_numpy().real, dtype=np.float64)
    if column.dtype.kind in "biuf" and isinstance(column.dtype, np.dtype):
        return np.asarray(column, dtype=np.float64)
    return parse_numbers(column)


def parse_numbers(column: Any) -> Floats:
    """Cells of any type as numbers, NaN where they are not numbers, shape (N,).

    Examples
    --------
    >>> import pandas
    >>> parse_numbers(pandas.Series([True, " 2 ", [3]]))
    array([ 1.,  2., nan])
    """
    import pandas  # type: ignore[import-untyped]

    plain = column.astype(object).where(column.notna(), np.nan)
    plain = plain.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
    try:
        return np.asarray(pandas.to_numeric(plain, errors="coerce"), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # cells such as lists
        return np.asarray(pandas.to_numeric(plain.map(str), errors="coerce"), dtype=np.float64)


def read_texts(column: Any) -> list[str]:
    """A column as texts, empty where values are missing.

    Examples
    --------
    >>> import pandas
    >>> read_texts(pandas.Series(["a", None, 3]))
    ['a', '', '3']
    """
    return [
        "" if missing else to_name(cell)
        for cell, missing in zip(column.tolist(), column.isna(), strict=True)
    ]


def read_dates(column: Any, form: str) -> Floats:
    """A column of dates as days since 1970, NaN where there is none, shape (N,).

    Examples
    --------
    >>> import pandas
    >>> read_dates(pandas.Series(["1970-01-03 12:00", None]), "ISO8601")
    array([2.5, nan])
    """
    if str(column.dtype).startswith(("datetime64", "timestamp")):
        return _to_days(column)
    days = _parse_dates(column.map(str), form if form in DATE_FORMATS else "ISO8601")
    return np.where(column.isna(), np.nan, days)


def find_date_format(cells: Any) -> str:
    """The format of nearly all of these texts as dates; empty if they are not dates.

    Examples
    --------
    >>> import pandas
    >>> find_date_format(pandas.Series(["31.12.2023", "01.02.2024"]))
    '%d.%m.%Y'
    """
    texts, min_share = cells.map(str), settings.TABLES.kind_share
    has_digits = texts.str.contains(r"\d", regex=True).mean() >= min_share
    if not has_digits or texts.str.len().median() < 6:
        return ""
    shares = {form: float(np.isfinite(_parse_dates(texts, form)).mean()) for form in DATE_FORMATS}
    best = max(shares, key=lambda form: shares[form])
    return best if shares[best] >= min_share else ""


def to_name(cell: Any) -> str:
    """A cell as text: whole numbers have no decimal point, also if their column has missing values.

    Examples
    --------
    >>> to_name(7.0), to_name("7.0")
    ('7', '7.0')
    """
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return str(cell)


def refuse_infinite(values: Floats, cells: Any, advice: str) -> None:
    """Raise an error that names the first row with an infinite or overly large number.

    Examples
    --------
    >>> import pandas
    >>> cells = pandas.Series([1.0, np.nan], name="a")
    >>> refuse_infinite(np.array([1.0, np.nan]), cells, "correct it")
    """
    if len(values) and not np.nanmax(np.abs(values), initial=0.0) <= LARGEST:
        first = int(np.flatnonzero(np.abs(values) > LARGEST)[0])
        kind = (
            "an infinite number"
            if np.isinf(values[first])
            else f"the number {values[first]:.3g}, which is too large,"
        )
        raise ValueError(
            f"Column {cells.name!r} holds {kind} in row {row_of(cells, first)}; {advice}."
        )


def describe_cell(cells: Any, place: int) -> str:
    """The content of a cell, and its row.

    Examples
    --------
    >>> import pandas
    >>> describe_cell(pandas.Series(["a", "b"]), 1)
    "'b' in row 2"
    """
    return f"{shorten_cell(cells, place)!r} in row {row_of(cells, place)}"


def shorten_cell(cells: Any, place: int) -> str:
    """The content of a cell, at most 40 characters of it.

    Examples
    --------
    >>> import pandas
    >>> shorten_cell(pandas.Series(["a", "b"]), 1)
    'b'
    """
    text = str(cells.iloc[place])
    return text if len(text) <= 40 else f"{text[:40]}..."


def row_of(cells: Any, place: int) -> int:
    """The number of a row in the table that was read, counted from 1, even if rows were left out.

    Examples
    --------
    >>> import pandas
    >>> row_of(pandas.Series(["a", "b", "c"]).iloc[1:], 0)
    2
    """
    return int(cells.index[place]) + 1


def _parse_dates(texts: Any, form: str) -> Floats:
    import pandas

    try:
        return _to_days(
            pandas.to_datetime(texts.str.strip(), format=form, errors="coerce", utc=True)
        )
    except (ValueError, OverflowError, TypeError):
        return np.full(len(texts), np.nan)


def _to_days(dates: Any) -> Floats:
    import pandas

    dates = pandas.Series(dates)
    dates = dates.dt.tz_localize("UTC") if dates.dt.tz is None else dates.dt.tz_convert("UTC")
    return np.asarray(
        (dates - pandas.Timestamp("1970-01-01", tz="UTC")) / pandas.Timedelta(days=1),
        dtype=np.float64,
    )


# ---- kinds --------------------------------------------------------------------------------------


def _is_numeric(column: Any) -> bool:
    from pandas.api import types  # type: ignore[import-untyped]

    return bool(types.is_numeric_dtype(column) or types.is_datetime64_any_dtype(column))


def _kind_of_numeric(column: Any, present: Any, name: str) -> Column:
    if str(column.dtype).startswith(("datetime64", "timestamp")):
        if present.nunique() > 1:
            return Column(name, "date", "as it is")
        return Column(name, "nothing", CONSTANT)
    return _kind_of_numbers(read_numbers(column), name)


def _kind_of_numbers(values: Floats, name: str) -> Column:
    known = values[~np.isnan(values)]
    if not len(known):
        return Column(name, "nothing", "empty")
    if known.min() == known.max():
        return Column(name, "nothing", CONSTANT)
    if _are_row_numbers(values):
        return Column(name, "nothing", ROW_NUMBERS)
    return Column(name, "number")


def _are_row_numbers(values: Floats) -> bool:
    if len(values) < settings.TABLES.min_row_numbers or not np.isfinite(values).all():
        return False
    begins_as_usual = values[0] in (0.0, 1.0) or (
        len(values) >= settings.TABLES.min_shifted_row_numbers and values[0] == np.round(values[0])
    )
    return bool(begins_as_usual and np.array_equal(values, np.arange(len(values)) + values[0]))


def _kind_of_texts(present: Any, name: str, n_rows: int) -> Column:
    limits = settings.TABLES
    texts = present.astype(object).map(to_name)
    counts = texts.value_counts()
    sample = texts.iloc[:: max(1, len(texts) // limits.sampled_cells)]
    is_prose = (
        sample.str.split().str.len().median() >= limits.prose_words
        or sample.str.len().median() >= limits.prose_characters
    )
    if len(counts) > limits.max_values and is_prose and sample.nunique() > 1:
        return Column(name, "text")
    n_missing = n_rows - len(present)
    common = sorted(
        str(value)
        for value, count in counts.iloc[: limits.max_values].items()
        if count >= max(2, limits.min_value_share * n_rows)
    )
    if not common:
        return Column(name, "nothing", RARE[0] if counts.iloc[0] == 1 else RARE[1])
    if n_missing >= limits.min_missing_share * n_rows and n_missing > 1:
        return Column(name, "category", values=("", *common))
    # If there are only two values, one feature represents both.
    is_binary = len(counts) == len(common) == 2 and not n_missing
    return Column(name, "category", values=tuple(common[1:] if is_binary else common))
