"""Cells of a column as numbers, days and names, and how to speak of a cell that is none of these."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

NEARLY_ALL = 0.9  # of the cells
LARGEST = 1e100  # beyond it squares and sums overflow
DATE_FORMATS = ("ISO8601", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%m/%d/%Y", "%m/%d/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%d/%m/%Y",
                "%d/%m/%Y %H:%M", "%d/%m/%Y %H:%M:%S", "%d-%m-%Y", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y")  # fmt: skip

Floats = NDArray[np.float64]


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
    """Cells of any type as numbers, NaN where they are none, shape (N,).

    Examples
    --------
    >>> import pandas
    >>> parse_numbers(pandas.Series([True, " 2 ", [3]]))
    array([ 1.,  2., nan])
    """
    import pandas  # type: ignore[import-untyped]

    plain = column.astype(object).where(
        column.notna(), np.nan
    )  # whatever type it had, and a hole is a hole
    plain = plain.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
    try:
        return np.asarray(pandas.to_numeric(plain, errors="coerce"), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # cells that are no cells, such as lists
        return np.asarray(pandas.to_numeric(plain.map(str), errors="coerce"), dtype=np.float64)


def find_date_format(cells: Any) -> str:
    """How nearly all of these texts are written as dates; empty where they are none.

    Examples
    --------
    >>> import pandas
    >>> find_date_format(pandas.Series(["31.12.2023", "01.02.2024"]))
    '%d.%m.%Y'
    """
    texts = cells.map(str)
    if (
        not texts.str.contains(r"\d", regex=True).mean() >= NEARLY_ALL
        or texts.str.len().median() < 6
    ):
        return ""
    shares = {form: float(np.isfinite(_parse_dates(texts, form)).mean()) for form in DATE_FORMATS}
    best = max(shares, key=lambda form: shares[form])
    return best if shares[best] >= NEARLY_ALL else ""


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
    return np.where(
        column.isna(),
        np.nan,
        _parse_dates(column.map(str), form if form in DATE_FORMATS else "ISO8601"),
    )


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


def to_name(cell: Any) -> str:
    """A cell as text: a whole number without its decimal point, whether its column has holes or not.

    Examples
    --------
    >>> to_name(7.0), to_name("7.0")
    ('7', '7.0')
    """
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return str(cell)


def refuse_infinite(values: Floats, cells: Any, cure: str) -> None:
    """Raise one sentence that names the first row with a number that is infinite, or as good as that.

    Examples
    --------
    >>> import pandas
    >>> refuse_infinite(np.array([1.0, np.nan]), pandas.Series([1.0, np.nan], name="a"), "correct it")
    """
    if len(values) and not np.nanmax(np.abs(values), initial=0.0) <= LARGEST:
        first = int(np.flatnonzero(np.abs(values) > LARGEST)[0])
        kind = (
            "an infinite number"
            if np.isinf(values[first])
            else f"the number {values[first]:.3g}, which is too large,"
        )
        raise ValueError(
            f"Column {cells.name!r} holds {kind} in row {row_of(cells, first)}; {cure}."
        )


def describe_cell(cells: Any, place: int) -> str:
    """What is in a cell, and in which row.

    Examples
    --------
    >>> import pandas
    >>> describe_cell(pandas.Series(["a", "b"]), 1)
    "'b' in row 2"
    """
    text = str(cells.iloc[place])
    shown = text if len(text) <= 40 else f"{text[:40]}..."
    return f"{shown!r} in row {row_of(cells, place)}"


def row_of(cells: Any, place: int) -> int:
    """The number of a row, counted from 1 in the table that was read, also where some of its rows were left out.

    Examples
    --------
    >>> import pandas
    >>> row_of(pandas.Series(["a", "b", "c"]).iloc[1:], 0)
    2
    """
    return int(cells.index[place]) + 1
