"""Sums of products of features and targets, one matrix per group.

Ridge regressions, group effects, marginal likelihoods and held-out errors of linear models depend
on the rows of a group only through these sums. They are computed in one pass over the rows, in
pieces if need be, and the sums of two parts of a group add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class GroupMoments:
    """Sums over the rows of each group; m groups, F features, D targets, P = F + D.

    Parameters
    ----------
    products
        Sums of `[features, targets]' [features, targets]`, shape (m, P, P).
    sizes
        Number of rows of each group, or sum of their weights, shape (m,).
    n_targets
        Number of targets, which are the last columns.

    Examples
    --------
    >>> features, y = np.ones((3, 1)), np.array([[1.0], [2.0], [4.0]])
    >>> moments = GroupMoments.of(features, y, np.array([0, 1, 1]), 2)
    >>> moments.xy[:, :, 0].tolist(), moments.sizes.tolist()
    ([[1.0], [6.0]], [1.0, 2.0])
    """

    products: Floats  #                                                             (m, P, P)
    sizes: Floats  #                                                                (m,)
    n_targets: int = 1

    @classmethod
    def of(
        cls, features: Floats, y: Floats, group: Ints, n_groups: int, weight: Floats | None = None
    ) -> GroupMoments:
        """Sum over rows: features (N, F), targets (N, D), groups 0..m-1 and weights (N,)."""
        order = np.argsort(group, kind="stable")
        columns = np.concatenate([features, y], 1)[order]  #                        (N, P)
        left = columns if weight is None else columns * weight[order, None]
        ends = np.cumsum(np.bincount(group, minlength=n_groups))
        products = np.zeros((n_groups, columns.shape[1], columns.shape[1]))
        for g, (start, end) in enumerate(zip(np.r_[0, ends[:-1]], ends, strict=True)):
            products[g] = left[start:end].T @ columns[start:end]
        sizes = np.bincount(group, weight, minlength=n_groups).astype(np.float64)
        return cls(products, sizes, y.shape[1])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.products.shape[1] - self.n_targets

    @property
    def xx(self) -> Floats:
        """Products of the features, (m, F, F)."""
        return self.products[:, : self.n_features, : self.n_features]

    @property
    def xy(self) -> Floats:
        """Products of features and targets, (m, F, D)."""
        return self.products[:, : self.n_features, self.n_features :]

    def target(self, d: int) -> GroupMoments:
        """The same with one of the targets only."""
        return self.targets(np.array([d]))

    def targets(self, chosen: Ints) -> GroupMoments:
        """The same with some of the targets only."""
        if np.array_equal(chosen, np.arange(self.n_targets)):
            return self
        kept = np.concatenate([np.arange(self.n_features), self.n_features + chosen])
        return GroupMoments(self.products[:, kept][:, :, kept], self.sizes, len(chosen))

    def take(self, groups: Ints) -> GroupMoments:
        """Some of the groups."""
        return GroupMoments(self.products[groups], self.sizes[groups], self.n_targets)

    def sum(self, weight: Floats) -> Floats:
        """Products summed over the groups, with a weight for each, (P, P)."""
        P = self.products.shape[1]
        return (weight @ self.products.reshape(len(weight), -1)).reshape(P, P)

    def __add__(self, other: GroupMoments) -> GroupMoments:
        """The moments of the rows of both, group by group."""
        return GroupMoments(
            self.products + other.products, self.sizes + other.sizes, self.n_targets
        )

    def reduced(self, columns: Ints, coefficients: Floats) -> GroupMoments:
        """Moments of some features and of the residuals of means with these coefficients (F, D)."""
        F, q, D = self.n_features, len(columns), self.n_targets
        to = np.zeros((F + D, q + D))
        to[columns, np.arange(q)] = 1.0
        to[:F, q:] = -coefficients.reshape(F, D)
        to[F:, q:] = np.eye(D)
        return GroupMoments(to.T @ self.products @ to, self.sizes, D)

    def residual(self, coefficients: Floats) -> Floats:
        """Products of the effects' columns with residuals; see `effects`.

        For coefficients (F,) of one target: sums of `x r` and of `r r`, shape (m, F + 1).
        """
        last = np.append(-coefficients, 1.0)
        products = self.products @ last  #                                          (m, P)
        return np.concatenate([products[:, :-1], (products @ last)[:, None]], 1)
