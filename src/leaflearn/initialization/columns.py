"""Whatever X is, as a table of numbers that smooth models can read. It serves the search only: local models see X as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

MOST_DIRECTIONS = 100  # that a sparse matrix with more columns is thrown onto
COLUMNS_AT_ONCE = (
    10_000  # of a sparse matrix: directions for a million columns would not fit into memory
)
MOST_VALUES = 20  # of a column of text that get a column each; the others have zeros in all of them


def as_numbers(X: Any) -> NDArray[np.floating] | None:
    """The inputs as finite numbers, shape (N, ...); None where there is nothing to read.

    Holes are filled with the mean of their column. Each common value of a column of text becomes a column of zeros and ones. A wide
    sparse matrix is thrown onto random directions.

    Examples
    --------
    >>> as_numbers([[1.0, np.nan], [3.0, 4.0]])
    array([[1., 4.],
           [3., 4.]])
    >>> as_numbers(np.array([["a", 1], ["b", 2]], dtype=object))
    array([[1., 0., 1.],
           [0., 1., 2.]])
    """
    if sparse.issparse(X):
        return _from_sparse(X)
    if hasattr(X, "iloc"):
        columns = [np.asarray(X.iloc[:, j]) for j in range(X.shape[1])]
    else:
        array = X.detach().cpu().numpy() if hasattr(X, "detach") else np.asarray(X)
        if array.dtype.kind in "fiub" and np.isfinite(array).all():
            return np.asarray(array) if array.size else None
        columns = list(array.reshape(len(array), -1).T)
    parts = [_from_column(column) for column in columns]
    table = np.concatenate(parts, axis=1) if parts else np.empty((0, 0))
    return table if table.size else None


def _from_sparse(X: Any) -> NDArray[np.floating]:
    if X.shape[1] <= MOST_DIRECTIONS:
        return np.asarray(X.toarray(), dtype=np.float64)
    rng, columns, thrown = (
        np.random.default_rng(0),
        X.tocsc(),
        np.zeros((X.shape[0], MOST_DIRECTIONS)),
    )
    for start in range(0, X.shape[1], COLUMNS_AT_ONCE):
        part = columns[:, start : start + COLUMNS_AT_ONCE]
        thrown += part @ rng.normal(size=(part.shape[1], MOST_DIRECTIONS))
    return thrown / MOST_DIRECTIONS**0.5


def _from_column(column: NDArray[Any]) -> NDArray[np.floating]:
    """One column as one or several, shape (N, d)."""
    try:
        numbers = column.astype(np.float64)[:, None]
        if column.dtype.kind in "mM":  # a date that is missing would be a number far away
            numbers[np.isnat(column)] = np.nan
    except (TypeError, ValueError):
        return _from_text(column)
    finite = np.isfinite(numbers)
    return np.where(finite, numbers, numbers[finite].mean() if finite.any() else 0.0)


def _from_text(column: NDArray[Any]) -> NDArray[np.floating]:
    _, code, count = np.unique(column.astype(str), return_inverse=True, return_counts=True)
    common = np.sort(np.argsort(-count, kind="stable")[:MOST_VALUES])
    return (code[:, None] == common).astype(np.float64)
