"""Rows of inputs as JSON and arrays: numpy arrays, sparse matrices, frames of pandas and polars.

They are restored in the same container. Frames are stored column by column, each with the name of
its type. The index of pandas frames is not stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from leaflearn.persistence.values import Arrays, from_json, to_json

SPARSE = {
    kind.__name__: kind
    for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array)
}
NUMBER_TYPES = (
    *("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
    *("Float32", "Float64"),
)
POLARS_TYPES = (*NUMBER_TYPES, "Boolean", "String", "Categorical", "Date", "Null")
PANDAS_TYPES = (*NUMBER_TYPES, "object", "str", "string", "boolean")  # and numpy's, and categories


def table_to_json(table: Any, arrays: Arrays, name: str) -> Any:
    """Rows in any of the containers as JSON; larger arrays of numbers are put into `arrays`.

    Examples
    --------
    >>> arrays = {}
    >>> table_to_json(sparse.csr_matrix(np.eye(2)), arrays, "X")["kind"]
    'csr_matrix'
    """
    kind = type(table).__name__
    if isinstance(table, np.ndarray):
        return {"kind": "ndarray", "values": to_json(table, arrays, name=name)}
    if sparse.issparse(table) and kind in SPARSE:
        parts = {
            part: to_json(getattr(table, part), arrays, name=f"{name}.{part}")
            for part in ("data", "indices", "indptr")
        }
        return {"kind": kind, "shape": list(table.shape), **parts}
    library = type(table).__module__.partition(".")[0]
    if library == "polars":
        columns = [_polars_column(table[column]) for column in table.columns]
        return {"kind": "polars", "names": list(table.columns), "columns": columns}
    if library == "pandas":
        columns = [
            _pandas_column(table.iloc[:, i], arrays, f"{name}.{i}") for i in range(table.shape[1])
        ]
        names = to_json(table.columns.tolist(), name=f"the columns of {name}")
        return {"kind": "pandas", "names": names, "rows": len(table), "columns": columns}
    raise ValueError(
        f"{name} is a {kind}, which a model folder cannot hold; use an array, a sparse matrix, or "
        "a frame of pandas or polars."
    )


def table_from_json(content: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Restore the rows.

    Examples
    --------
    >>> arrays = {}
    >>> table_from_json(table_to_json(np.eye(2), arrays, "X"), arrays)
    array([[1., 0.],
           [0., 1.]])
    """
    kind = content["kind"]
    if kind == "ndarray":
        return from_json(content["values"], arrays)
    if kind in SPARSE:
        parts = tuple(from_json(content[part], arrays) for part in ("data", "indices", "indptr"))
        matrix = SPARSE[kind](parts, shape=tuple(content["shape"]))
        matrix.check_format(full_check=True)  # compiled code uses the indices unchecked
        return matrix
    if kind == "polars":
        import polars

        return polars.DataFrame(
            [_to_polars(*pair) for pair in zip(content["names"], content["columns"], strict=True)]
        )
    if kind != "pandas":
        raise ValueError(f"tables of kind {kind} are not supported")
    import pandas  # type: ignore[import-untyped]

    columns = [_to_pandas(column, arrays) for column in content["columns"]]
    frame = pandas.DataFrame(dict(enumerate(columns)), index=range(content["rows"]))
    frame.columns = from_json(content["names"])
    return frame


def _pandas_column(column: Any, arrays: Arrays, name: str) -> dict[str, Any]:
    dtype, label = column.dtype, f"column {column.name!r}"
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return {"type": "numpy", "values": to_json(column.to_numpy(), arrays, name=name)}
    if str(dtype) == "category":
        categories = _pandas_column(
            dtype.categories.to_series(name=column.name), arrays, f"{name}.categories"
        )
        return {
            "type": "category",
            "values": to_json(column.cat.codes.to_numpy(), arrays, name=name),
            "categories": categories,
            "ordered": bool(dtype.ordered),
        }
    if str(dtype) not in PANDAS_TYPES:
        raise ValueError(
            f"{label} is of type {dtype}, which a model folder cannot hold; turn it into numbers, "
            "text, dates or categories."
        )
    values = column.tolist()
    if str(dtype) != "object":  # in object columns, None and NaN differ
        pairs = zip(values, column.isna().tolist(), strict=True)
        values = [None if is_missing else value for value, is_missing in pairs]
    return {"type": str(dtype), "values": to_json(values, name=label)}


def _to_pandas(content: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    import pandas

    kind, values = content["type"], from_json(content["values"], arrays)
    if kind == "numpy":
        return values
    if kind == "category":
        return pandas.Categorical.from_codes(
            values,
            pandas.Index(_to_pandas(content["categories"], arrays)),
            ordered=content["ordered"],
        )
    if kind not in PANDAS_TYPES:
        raise ValueError(f"columns of type {kind} are not supported")
    if kind == "object":
        column = np.empty(len(values), dtype=object)
        column[:] = values
        return pandas.Series(column, dtype=object)  # without dtype, pandas infers text
    return pandas.array(values, dtype=kind)


def _polars_column(column: Any) -> dict[str, Any]:
    kind, label = str(column.dtype), f"column {column.name!r}"
    if kind not in POLARS_TYPES:
        raise ValueError(
            f"{label} is of type {kind}, which a model folder cannot hold; turn it into numbers, "
            "text, dates or categories."
        )
    return {"type": kind, "values": to_json(column.to_list(), name=label)}


def _to_polars(name: str, content: Any) -> Any:
    import polars

    if content["type"] not in POLARS_TYPES:
        raise ValueError(f"columns of type {content['type']} are not supported")
    return polars.Series(name, from_json(content["values"]), dtype=getattr(polars, content["type"]))
