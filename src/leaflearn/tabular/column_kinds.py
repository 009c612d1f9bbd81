"""What a column of a table holds: numbers, dates, categories or free text; or nothing that could be learnt from.

A column is what nearly all of its cells are. The few that are something else count as missing, with a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.tabular.cells import (
    LARGEST,
    NEARLY_ALL,
    describe_cell,
    find_date_format,
    parse_numbers,
    read_dates,
    read_numbers,
    refuse_infinite,
    to_name,
)
from leaflearn.tabular.text_encoding import warn

MOST_VALUES = 20  # of a category that are told apart; the rest is one
COMMON = 0.01  # of the rows: what a value of a category has to have, and two rows at least
MANY_HOLES = 0.05  # of the rows: from here on a hole may say something by itself
MANY_WORDS, LONG = 4, 30  # in the middle one of the texts: what makes it prose
LOOKED_AT = 2000  # cells that decide what a column holds
FEWEST_ROW_NUMBERS = (
    20  # whole numbers 1, 2, 3, ... that are at least so many are taken for row numbers
)
MANY_ROW_NUMBERS = 200  # from which they may begin anywhere; fewer may be years
ROW_NUMBERS = "numbers of the rows"
RARE = ("a different text in every row", "a text of its own in nearly every row")
LEAVE_OUT = "correct it, or leave the column out"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """What a column holds.

    Parameters
    ----------
    name
        Its name in the table.
    kind
        `"number"`, `"date"`, `"category"`, `"text"`, or `"nothing"`, where it is left out.
    form
        How dates are written; why it is left out.
    values
        The values of a category that are told apart; the empty one stands for holes.

    Examples
    --------
    >>> Column("site", "category", values=("A", "B")).kind
    'category'
    """

    name: str
    kind: str
    form: str = ""
    values: tuple[str, ...] = ()


def find_kind(column: Any, name: str) -> Column:
    """Look at a column of pandas and say what it holds.

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
    there = column.dropna()
    if not len(there):
        return Column(name, "nothing", "empty")
    if str(column.dtype) == "category":
        return _as_text(there, name, len(column))
    if column.dtype.kind in "mMc" or _is_numeric(column):
        return _as_number(column, there, name)
    few = there.iloc[:: max(1, len(there) // LOOKED_AT)]
    if len(few.map(str).unique()) == 1 and len(there.map(str).unique()) == 1:
        return Column(name, "nothing", "the same everywhere")
    if 1.0 - np.isnan(parse_numbers(few)).mean() >= NEARLY_ALL:
        return _as_number(column, there, name)
    form = find_date_format(few)
    return Column(name, "date", form) if form else _as_text(there, name, len(column))


def _is_numeric(column: Any) -> bool:
    from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype  # type: ignore[import-untyped]

    return bool(is_numeric_dtype(column) or is_datetime64_any_dtype(column))


def _as_number(column: Any, there: Any, name: str) -> Column:
    if str(column.dtype).startswith(("datetime64", "timestamp")):
        return (
            Column(name, "date", "as it is")
            if there.nunique() > 1
            else Column(name, "nothing", "the same everywhere")
        )
    return _kind_of_numbers(read_numbers(column), name)


def _kind_of_numbers(values: Floats, name: str) -> Column:
    known = values[~np.isnan(values)]
    if not len(known):
        return Column(name, "nothing", "empty")
    if known.min() == known.max():
        return Column(name, "nothing", "the same everywhere")
    return (
        Column(name, "nothing", ROW_NUMBERS) if _are_row_numbers(values) else Column(name, "number")
    )


def _are_row_numbers(values: Floats) -> bool:
    if len(values) < FEWEST_ROW_NUMBERS or not np.isfinite(values).all():
        return False
    is_usual = values[0] in (0.0, 1.0) or (
        len(values) >= MANY_ROW_NUMBERS and values[0] == np.round(values[0])
    )
    return bool(is_usual and np.array_equal(values, np.arange(len(values)) + values[0]))


def _as_text(there: Any, name: str, n_rows: int) -> Column:
    texts = there.astype(object).map(to_name)
    counts = texts.value_counts()
    middle = texts.iloc[:: max(1, len(texts) // LOOKED_AT)]
    is_prose = (
        middle.str.split().str.len().median() >= MANY_WORDS or middle.str.len().median() >= LONG
    )
    if len(counts) > MOST_VALUES and is_prose and middle.nunique() > 1:
        return Column(name, "text")
    missing = n_rows - len(there)
    common = sorted(
        str(value)
        for value, count in counts.iloc[:MOST_VALUES].items()
        if count >= max(2, COMMON * n_rows)
    )
    if not common:
        return Column(name, "nothing", RARE[0] if counts.iloc[0] == 1 else RARE[1])
    if missing >= MANY_HOLES * n_rows and missing > 1:
        return Column(name, "category", values=("", *common))
    # Of two values that are all there are, one tells the other.
    return Column(
        name,
        "category",
        values=tuple(common[1:] if len(counts) == len(common) == 2 and not missing else common),
    )


def read_texts(column: Any) -> list[str]:
    """A column as texts, empty where there is none.

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


def read_column(frame: Any, column: Column) -> Floats:
    """The numbers or dates of a column, with a warning for cells that are none, and an error for those that are infinite, shape (N,).

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
    refuse_infinite(values, cells, LEAVE_OUT)
    strange = np.flatnonzero(np.isnan(values) & ~np.asarray(cells.isna(), dtype=bool))
    if len(strange):
        others = (
            f", nor are {len(strange) - 1} other cells; they count"
            if len(strange) > 1
            else "; it counts"
        )
        warn(
            f"Column {column.name!r} holds {column.kind}s, but {describe_cell(cells, strange[0])} is none{others} as missing."
        )
    return values


def read_columns(frame: Any, columns: Sequence[Column]) -> Floats:
    """Numbers and dates of several columns, as `read_column` reads one, shape (N, n_columns); thousands of plain ones take no time.

    Examples
    --------
    >>> import pandas
    >>> read_columns(pandas.DataFrame({"a": [1, 2], "b": ["3", None]}), [Column("a", "number"), Column("b", "number")])
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
