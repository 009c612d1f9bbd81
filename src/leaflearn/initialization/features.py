"""Inputs as numeric columns, and as features in which a linear model is a smooth function.

`as_numbers` turns any inputs into numbers, `Projection` standardizes them or reduces them to their
principal directions, and `RandomFourierFeatures` adds cosines of random frequency and phase. Their
sum approximates any smooth function, and its coefficients are the solution of one small system of
equations. The search chooses their scale.

Only the search uses these features. Local models are trained on the inputs as they are given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from leaflearn.initialization import settings

SPARSE_COLUMNS_AT_ONCE = 10_000  # random directions for a million columns do not fit into memory


def as_numbers(X: Any) -> NDArray[np.floating] | None:
    """Return the inputs as finite numbers, shape (N, ...); None if there are no values.

    Missing values are replaced by the mean of their column. Each frequent value of a text column
    becomes an indicator column. A wide sparse matrix is projected onto random directions.

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


@dataclass(frozen=True, eq=False)
class Projection:
    """A linear map of the inputs to a few columns of comparable size.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0, 5.0], [2.0, 5.0]])
    >>> Projection.of(x)(x)
    tensor([[-1.,  0.],
            [ 1.,  0.]], dtype=torch.float64)
    """

    mean: Tensor  #                                                                 (n_columns,)
    directions: Tensor  #                                                           (n_columns, d)

    @classmethod
    def of(cls, x: NDArray[np.floating]) -> Projection:
        """Standardize each column if there are few, else take the first principal directions.

        All principal directions are in units of the first one's standard deviation.
        """
        n_directions = settings.SEARCH.features.n_principal_directions
        table = _flatten(x)
        mean = table.mean(0)
        centred = table - mean
        if table.shape[1] <= n_directions:
            scale = centred.std(0, correction=0)
            return cls(mean, torch.diag(torch.where(scale > 1e-12, 1 / scale, 0.0)))
        if table.shape[1] <= len(table):
            values, vectors = torch.linalg.eigh(centred.T @ centred / len(table))
            top = vectors[:, -n_directions:].flip(-1)
        else:  # fewer rows than columns: the matrix of the rows' products is the smaller one
            values, rows = torch.linalg.eigh(centred @ centred.T / len(table))
            top = centred.T @ rows[:, -n_directions:].flip(-1)
            top = top / top.norm(dim=0).clamp(min=1e-12)
        return cls(mean, top / values[-1].clamp(min=1e-12).sqrt())

    def __call__(self, x: NDArray[np.floating]) -> Tensor:
        """Map the inputs (N, ...) to columns (N, d)."""
        return (_flatten(x) - self.mean) @ self.directions


@dataclass(frozen=True, eq=False)
class RandomFourierFeatures:
    """An intercept, the columns themselves, and random cosines of them.

    Examples
    --------
    >>> z = torch.zeros(4, 2, dtype=torch.float64)
    >>> RandomFourierFeatures.of(z, 0.5, torch.Generator().manual_seed(0))(z).shape
    torch.Size([4, 53])
    """

    directions: Tensor  #                                                           (d, n_features)
    phases: Tensor  #                                                               (n_features,)
    spread: Tensor

    @classmethod
    def of(cls, z: Tensor, scale: float, generator: torch.Generator) -> RandomFourierFeatures:
        """Draw features of the columns `z` (N, d) with length `scale` in units of their spread."""
        n_features = settings.SEARCH.features.n_fourier_features
        spread = z.var(0, correction=0).sum().sqrt().clamp(min=1e-12)
        directions = torch.randn(z.shape[1], n_features, generator=generator, dtype=z.dtype)
        phases = torch.rand(n_features, generator=generator, dtype=z.dtype)
        return cls(directions / (scale * spread), phases * 2 * torch.pi, spread)

    def __call__(self, z: Tensor) -> Tensor:
        """Compute the features of the rows, (N, F)."""
        cosines = torch.cos(z @ self.directions + self.phases)
        cosines = cosines * (2 / len(self.phases)) ** 0.5  # together about as large as the constant
        return torch.cat([torch.ones_like(z[:, :1]), z / self.spread, cosines], 1)


def _from_sparse(X: Any) -> NDArray[np.floating]:
    n_directions = settings.SEARCH.features.n_sparse_directions
    if X.shape[1] <= n_directions:
        return np.asarray(X.toarray(), dtype=np.float64)
    rng, columns = np.random.default_rng(0), X.tocsc()
    projected = np.zeros((X.shape[0], n_directions))
    for start in range(0, X.shape[1], SPARSE_COLUMNS_AT_ONCE):
        part = columns[:, start : start + SPARSE_COLUMNS_AT_ONCE]
        projected += part @ rng.normal(size=(part.shape[1], n_directions))
    return projected / n_directions**0.5


def _from_column(column: NDArray[Any]) -> NDArray[np.floating]:
    """Turn one column into one or more numeric columns, shape (N, d)."""
    try:
        numbers = column.astype(np.float64)[:, None]
        if column.dtype.kind in "mM":  # as a number, a missing date is far from all others
            numbers[np.isnat(column)] = np.nan
    except (TypeError, ValueError):
        return _from_text(column)
    finite = np.isfinite(numbers)
    return np.where(finite, numbers, numbers[finite].mean() if finite.any() else 0.0)


def _from_text(column: NDArray[Any]) -> NDArray[np.floating]:
    _, code, count = np.unique(column.astype(str), return_inverse=True, return_counts=True)
    max_values = settings.SEARCH.features.max_text_values
    frequent = np.sort(np.argsort(-count, kind="stable")[:max_values])
    return (code[:, None] == frequent).astype(np.float64)


def _flatten(x: NDArray[np.floating]) -> Tensor:
    return torch.as_tensor(np.asarray(x).reshape(len(x), -1), dtype=torch.float64)
