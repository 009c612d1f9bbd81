"""Cholesky factors of many small matrices at once.

A library routine that is called once per matrix spends most of its time on the calls when matrices
have a few rows. Here the matrices lie along the last axis, and every step of the elimination is one
operation on all of them: about eight times as fast for matrices of 9 x 9.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class InverseFactors:
    """Factors of `A^-1 = W' diag(1 / pivots) W` for n positive definite matrices.

    Parameters
    ----------
    lower
        W, lower triangles with ones on the diagonal, shape (q, q, ...).
    pivots
        Their product is the determinant, shape (q, ...).

    Examples
    --------
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> factors = InverseFactors.of(A[:, :, None])
    >>> factors.log_determinant.round(3), np.log(5).round(3)
    (array([1.609]), np.float64(1.609))
    >>> half = factors.whiten(np.array([[1.0], [0.0]]))
    >>> factors.unwhiten(half / factors.pivots)[:, 0], factors.diagonal[:, 0]
    (array([ 0.6, -0.2]), array([0.6, 0.4]))
    """

    lower: Floats
    pivots: Floats

    @classmethod
    def of(cls, matrices: Floats) -> InverseFactors:
        """Factor matrices of shape (q, q, ...); no pivoting, as they are positive definite."""
        q = len(matrices)
        rows = np.zeros((q, 2 * q, *matrices.shape[2:]))  # [A, I], turned into [triangle, W]
        rows[:, :q] = matrices
        pivots = np.empty(matrices.shape[1:])
        for k in range(q):
            rows[k, q + k] = 1.0
            pivots[k] = rows[k, k]
            if k + 1 < q:
                factor = rows[k + 1 :, k] / pivots[k]
                end = q + k + 1  # W is zero to the right
                rows[k + 1 :, k + 1 : end] -= factor[:, None] * rows[k, None, k + 1 : end]
        return cls(rows[:, q:], pivots)

    @property
    def log_determinant(self) -> Floats:
        """Log determinants of the matrices, (...)."""
        return np.asarray(np.log(self.pivots).sum(0))

    @property
    def diagonal(self) -> Floats:
        """Diagonals of the inverses, (q, ...)."""
        return np.asarray((self.lower**2 / self.pivots[:, None]).sum(0))

    def whiten(self, vectors: Floats) -> Floats:
        """W v for vectors (q, ...), which may have further axes where the matrices have 1."""
        out = vectors.copy()
        for j in range(len(vectors) - 1):
            out[j + 1 :] += self.lower[j + 1 :, j] * vectors[j]
        return out

    def unwhiten(self, vectors: Floats) -> Floats:
        """W' v for vectors (q, ...)."""
        out = vectors.copy()
        for k in range(1, len(vectors)):
            out[:k] += self.lower[k, :k] * vectors[k]
        return out
