"""A checksum of training rows, to check later that the same rows are given again."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def fingerprint(X: Any, *columns: NDArray[Any] | None) -> str:
    """Checksum of inputs (array, sparse matrix or frame) and further columns such as targets.

    Examples
    --------
    >>> rows = np.eye(3)
    >>> fingerprint(rows, np.arange(3)) == fingerprint(rows.copy(), np.arange(3))
    True
    >>> fingerprint(rows, np.arange(3)) == fingerprint(rows[::-1], np.arange(3))
    False
    """
    checksum = hashlib.sha256()
    for part in [*_parts_of(X), *columns]:
        checksum.update(_header(part))
        checksum.update(_content(part))
    return checksum.hexdigest()


def _parts_of(X: Any) -> list[Any]:
    if sparse.issparse(X):
        return [X.data, X.indices, X.indptr]
    if hasattr(X, "iloc"):  # a pandas frame, which may have two columns with one name
        return [np.asarray(X.iloc[:, i]) for i in range(X.shape[1])]
    if hasattr(X, "columns"):  # a frame of another library
        return [np.asarray(X[name]) for name in getattr(X, "column_names", X.columns)]
    return [X]


def _header(part: NDArray[Any] | None) -> bytes:
    """Type and shape: arrays of shapes (2, 3) and (3, 2) may have the same bytes."""
    return b"none" if part is None else f"{part.dtype.kind}{part.shape}".encode()


def _content(part: NDArray[Any] | None) -> Any:
    if part is None:
        return b""
    if part.dtype.kind in "biuf":
        return np.ascontiguousarray(part)  # hashed without a copy
    return "\x1f".join(map(str, part.ravel().tolist())).encode("utf-8", "surrogatepass")
