"""How much of the difference between groups is of kind, and how much of degree.

Two groups that are drawn at random are compared on the same rows. Their predictions differ because
they are in different contexts (kind), and because each deviates from its context (degree). By the
law of total variance the two add up:

    Var(f_k(x) + z'u)  =  Var_k(f_k(x))  +  E_k(z' D_k z)

The variance of a row around its group, the noise, comes on top.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaflearn.diagnostics import settings
from leaflearn.effects.group_effects import GroupEffects
from leaflearn.engines.fitted_state import FittedState

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class VarianceShares:
    """Variances of the predictions between groups, and of rows within groups; D targets.

    Parameters
    ----------
    kind
        Variance of the contexts' means, weighted by their priors, shape (D,).
    degree
        Variance of the groups around the means of their contexts, shape (D,).
    noise
        Variance of the rows around their groups, shape (D,).

    Examples
    --------
    >>> shares = VarianceShares(np.array([3.0]), np.array([1.0]), np.array([4.0]))
    >>> shares.kind_share, shares.degree_share, shares.between_share
    (0.75, 0.25, 0.5)
    >>> shares.differs_in_kind, shares.differs_by_degree
    (True, True)
    """

    kind: Floats
    degree: Floats
    noise: Floats

    @property
    def kind_share(self) -> float:
        """Share of the differences between groups that is of kind; 0 where there are none."""
        kind, degree, _ = self._shares_of_total()
        return kind / (kind + degree) if kind + degree > 0 else 0.0

    @property
    def degree_share(self) -> float:
        """Share of the differences between groups that is of degree; 0 where there are none."""
        kind, degree, _ = self._shares_of_total()
        return degree / (kind + degree) if kind + degree > 0 else 0.0

    @property
    def between_share(self) -> float:
        """Share of the groups in the variance of rows whose inputs are the same."""
        kind, degree, _ = self._shares_of_total()
        return kind + degree

    @property
    def differs_in_kind(self) -> bool:
        """Whether the contexts differ by more than a negligible amount."""
        return self._shares_of_total()[0] >= settings.DIAGNOSTICS.min_variance_share

    @property
    def differs_by_degree(self) -> bool:
        """Whether groups of a context differ by more than a negligible amount."""
        return self._shares_of_total()[1] >= settings.DIAGNOSTICS.min_variance_share

    def _shares_of_total(self) -> tuple[float, float, float]:
        """Shares of kind, degree and noise; targets of different units count the same."""
        parts = np.stack([self.kind, self.degree, self.noise])  #                   (3, D)
        total = parts.sum(0)
        kind, degree, noise = (parts / np.where(total > 0, total, 1.0)).mean(1)
        return float(kind), float(degree), float(noise)


def find_variance_shares(state: FittedState, X: Floats | None) -> VarianceShares | None:
    """The variances of a fitted model; None for models without group effects.

    Parameters
    ----------
    state
        A fitted state.
    X
        Inputs on which groups are compared, shape (N, d); None returns None.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, group = rng.normal(size=(1200, 1)), np.repeat(np.arange(60), 20)
    >>> y = X[:, 0] + rng.normal(size=60)[group] + rng.normal(size=1200)
    >>> leaf = LeafRegressor(1, local_model="linear").fit(X, y, groups=group)
    >>> shares = find_variance_shares(leaf.fitted_state_, X)
    >>> shares.kind_share, 0.3 < shares.between_share < 0.7
    (0.0, True)
    """
    means = find_means(state, X)
    if means is None or X is None or state.effects is None:
        return None
    return split_variance(means, state.effects, np.asarray(X, dtype=np.float64))


def find_means(state: FittedState, X: Floats | None) -> Floats | None:
    """Means of every context before group effects are added, (N, K, D); None without effects.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> X, y = np.arange(8.0)[:, None], np.arange(8.0)
    >>> leaf = LeafRegressor(1, local_model="linear").fit(X, y, groups=np.arange(8) // 2)
    >>> find_means(leaf.fitted_state_, X).shape
    (8, 1, 1)
    """
    compute = getattr(state.local_models, "means", None)
    if state.effects is None or X is None or compute is None:
        return None
    return np.asarray(compute(np.asarray(X, dtype=np.float64)))


def split_variance(means: Floats, effects: GroupEffects, X: Floats) -> VarianceShares:
    """The variances from the contexts' means (N, K, D) and the effects on the same rows.

    Examples
    --------
    Two contexts with means -1 and 1, and offsets with a variance of 0.5.

    >>> from leaflearn.moments.features import FeatureMap
    >>> X = np.array([[-1.0], [1.0]])
    >>> features, columns = FeatureMap.of(X), np.array([0])
    >>> roots, noise, priors = np.full((2, 1, 1, 1), 0.5), np.full((2, 1), 2.0), np.full(2, 0.5)
    >>> effects = GroupEffects.without_groups(features, columns, roots, noise, priors)
    >>> shares = split_variance(np.tile([[[-1.0], [1.0]]], (2, 1, 1)), effects, X)
    >>> shares.kind, shares.degree, shares.noise
    (array([1.]), array([0.5]), array([2.]))
    """
    priors = effects.priors / effects.priors.sum()
    center = np.einsum("k,nkd->nd", priors, means)
    kind = np.einsum("k,nkd->nd", priors, np.square(means - center[:, None])).mean(0)
    rooted = np.einsum("nq,kdqr->nkdr", effects.design(X), effects.roots)
    spread = np.square(rooted).sum(-1).mean(0) * effects.noise  #                   (K, D)
    return VarianceShares(kind, priors @ spread, priors @ effects.noise)
