"""Tables in the hands of other libraries, as a frame of pandas: polars, pyarrow, Hugging Face data sets, or a mapping of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

KINDS = "a frame of pandas or polars, a table of pyarrow, a Hugging Face data set, or a mapping from names to columns"


def to_frame(table: Any, what: str = "the table") -> Any:
    """The table as a frame of pandas whose rows are numbered from 0.

    No library is imported for it: whatever says the names of its columns, and gives a column by its name, is a table.

    Parameters
    ----------
    table
        A frame of pandas, which keeps its columns as they are; or anything with `column_names`, `columns` or `keys()` whose
        `table[name]` is a column.
    what
        What it is called in errors.

    Returns
    -------
    pandas.DataFrame
        The same columns in the same order.

    Examples
    --------
    >>> to_frame({"site": ["A", "B"], "length": np.array([1.5, 2.5])})
      site  length
    0    A     1.5
    1    B     2.5
    """
    import pandas  # type: ignore[import-untyped]

    if isinstance(table, pandas.DataFrame):
        return table.reset_index(drop=True)
    columns = {str(name): _to_series(table[name], str(name)) for name in _names(table, what)}
    lengths = {name: len(column) for name, column in columns.items()}
    for name, length in lengths.items():
        first, n_rows = next(iter(lengths.items()))
        if length != n_rows:
            raise ValueError(
                f"Column {name!r} of {what} has {length:,} rows, but column {first!r} has {n_rows:,}; give all equally many."
            )
    return pandas.DataFrame(columns)


def _names(table: Any, what: str) -> list[Any]:
    """The names of the columns; where a table has `column_names`, its `columns` may be the columns themselves."""
    for verb in ("collect", "compute"):  # of polars and dask
        if hasattr(table, verb):
            raise TypeError(
                f"{what} is lazy and does not hold its columns yet; call its {verb}() first."
            )
    names = getattr(table, "column_names", None)
    if isinstance(names, Mapping):  # a Hugging Face data set with a training and a test part
        raise TypeError(
            f"{what} has several parts ({', '.join(map(repr, names))}); take one of them."
        )
    names = getattr(table, "columns", None) if names is None else names
    names = table.keys() if names is None and isinstance(table, Mapping) else names
    if names is None or not hasattr(table, "__getitem__"):
        raise TypeError(f"{what} is of the type {type(table).__name__}, but {KINDS} was expected.")
    return list(names)


def _to_series(column: Any, name: str) -> Any:
    import pandas

    if isinstance(column, pandas.Series):
        return column.reset_index(drop=True)  # else pandas would match rows by their numbers
    try:
        return column.to_pandas()  # polars can do that where pyarrow is there
    except (AttributeError, ImportError):
        values = column.detach().cpu() if hasattr(column, "detach") else column  # a tensor of torch
    values = (
        values.to_numpy()
        if hasattr(values, "to_numpy")
        else np.asarray(values)
        if hasattr(values, "__array__")
        else list(values)
    )
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise ValueError(
            f"Column {name!r} has shape {values.shape}, but one value for each row was expected."
        )
    return pandas.Series(values)
