"""Sums of products of features and targets, one matrix per group.

Ridge regressions, group effects, marginal likelihoods and held-out errors of linear models depend
on the rows of a group only through these sums. They are computed in one pass over the rows, in
pieces if need be, and the sums of two parts of a group add up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaflearn.moments.features import ROWS_AT_ONCE

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# Small groups with few columns are multiplied all at once, padded with zeros.
MAX_PADDED_ROWS, MAX_PADDED_COLUMNS = 100, 24


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
        return cls.of_rows(lambda rows: rows, features, y, group, n_groups, weight)

    @classmethod
    def of_rows(
        cls,
        make_features: Callable[[Floats], Floats],
        X: Floats,
        y: Floats,
        group: Ints,
        n_groups: int,
        weight: Floats | None = None,
    ) -> GroupMoments:
        """The same for features that are made from inputs (N, d), some thousand rows at a time."""
        counts = np.bincount(group, minlength=n_groups)
        by_size = np.argsort(counts, kind="stable")  # so that groups of a block are of one size
        rank = np.empty(n_groups, dtype=np.intp)
        rank[by_size] = np.arange(n_groups)
        order = np.argsort(rank[group], kind="stable")
        products = np.zeros((0, 0, 0))
        for start in range(0, max(len(order), 1), ROWS_AT_ONCE):
            rows = order[start : start + ROWS_AT_ONCE]
            columns = np.concatenate([make_features(X[rows]), y[rows]], 1)  #       (n, P)
            if not start:
                P = columns.shape[1]
                products = np.zeros((n_groups, P, P))
            left = columns if weight is None else columns * weight[rows, None]
            own = group[rows]
            firsts = np.flatnonzero(np.r_[True, own[1:] != own[:-1]])[: len(own)]
            sizes = np.diff(np.r_[firsts, len(own)])  # a group may go on in the next block
            _add_products(products, own[firsts], left, columns, firsts, sizes)
        return cls(products, np.bincount(group, weight, n_groups).astype(np.float64), y.shape[1])

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


def _add_products(
    products: Floats, groups: Ints, left: Floats, right: Floats, firsts: Ints, sizes: Ints
) -> None:
    """Add products of slices of the rows, which begin at `firsts`, to those of their groups."""
    is_small = (sizes <= MAX_PADDED_ROWS) & (right.shape[1] <= MAX_PADDED_COLUMNS)
    for g in np.flatnonzero(~is_small):
        rows = slice(firsts[g], firsts[g] + sizes[g])
        products[groups[g]] += left[rows].T @ right[rows]
    if is_small.any():
        longest = int(sizes[is_small].max())
        is_own = np.arange(longest) < sizes[is_small, None]  #                      (m, longest)
        at = np.where(is_own, firsts[is_small, None] + np.arange(longest), 0)
        # Only one side has to be zero in the rows that are none.
        padded = np.swapaxes(left[at] * is_own[..., None], 1, 2)
        products[groups[is_small]] += padded @ right[at]
