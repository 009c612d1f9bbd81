"""A map of the groups in two dimensions: contexts are clouds, and groups are points in them.

All groups predict the same rows. The first coordinate of a group is its mean prediction, and the
second the slope of its predictions along one input: the input along which groups differ most. Both
are linear in the predictions, so that the effects' covariance gives each cloud its shape, whatever
the local models are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaflearn.diagnostics import settings
from leaflearn.diagnostics.variance_shares import find_means, split_variance
from leaflearn.engines.fitted_state import FittedState

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class GroupMap:
    """Places of groups and contexts; m groups, K contexts.

    Parameters
    ----------
    points
        Mean prediction and slope of each group, shape (m, 2).
    contexts
        The context of each group, shape (m,).
    centers
        Where a group without effects would be in each context, shape (K, 2).
    covariances
        Of the groups around the center of their context, shape (K, 2, 2).
    input
        The input of the slope, in units of its standard deviation; -1 if no slopes differ.
    output
        The target that is drawn: the one in which groups differ most.

    Examples
    --------
    >>> cloud = np.diag([4.0, 1.0])[None]
    >>> drawn = GroupMap(np.zeros((1, 2)), np.zeros(1, int), np.zeros((1, 2)), cloud, 0, 0)
    >>> drawn.ellipse(0).max(0).round(1), drawn.has_slopes
    (array([4., 2.]), True)
    """

    points: Floats
    contexts: Ints
    centers: Floats
    covariances: Floats
    input: int
    output: int

    @property
    def has_slopes(self) -> bool:
        """Whether slopes differ; otherwise groups differ in their mean prediction only."""
        return self.input >= 0

    @property
    def deviations(self) -> Floats:
        """How each group deviates from its context, (m, 2)."""
        return self.points - self.centers[self.contexts]

    def ellipse(self, context: int, n_deviations: float = 2.0) -> Floats:
        """The outline of a cloud, that many standard deviations from its center, (101, 2)."""
        angle = np.linspace(0, 2 * np.pi, 101)
        values, vectors = np.linalg.eigh(self.covariances[context])
        circle = np.stack([np.cos(angle), np.sin(angle)], 1)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(self.centers[context] + n_deviations * circle @ root.T)


def map_groups(state: FittedState, X: Floats | None) -> GroupMap | None:
    """The map of a fitted model; None without group effects.

    Parameters
    ----------
    state
        A fitted state, with the effects of its groups.
    X
        Inputs on which groups are compared, shape (N, d).

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, group = rng.normal(size=(1200, 2)), np.repeat(np.arange(60), 20)
    >>> y = X[:, 1] * rng.normal(size=60)[group] + 0.1 * rng.normal(size=1200)
    >>> leaf = LeafRegressor(1, local_model="linear").fit(X, y, groups=group)
    >>> drawn = map_groups(leaf.fitted_state_, X)
    >>> drawn.points.shape, drawn.input
    ((60, 2), 1)
    """
    if X is not None:
        rng = np.random.default_rng(0)
        chosen = np.sort(rng.permutation(len(X))[: settings.DIAGNOSTICS.max_mapped_rows])
        X = np.asarray(X, dtype=np.float64)[chosen]
    means, effects = find_means(state, X), state.effects
    if means is None or effects is None or X is None or not len(effects.effects):
        return None
    shares = split_variance(means, effects, X)
    output = int((shares.kind + shares.degree).argmax())
    # Least squares of predictions on a constant and the standardized inputs: centered inputs make
    # the first coefficient the mean prediction.
    spread = X.std(0)
    standard = (X - X.mean(0)) / np.where(spread > 0, spread, 1.0)
    solve = np.linalg.pinv(np.column_stack([np.ones(len(X)), standard]))  #         (1 + d, N)
    priors = effects.priors / effects.priors.sum()
    centers = means[:, :, output].T @ solve.T  #                                    (K, 1 + d)
    design = solve @ effects.design(X)  #                                           (1 + d, q)
    rooted = design @ effects.roots[:, output]  #                                   (K, 1 + d, q)
    within = np.square(rooted).sum(-1) * effects.noise[:, output, None]
    variance = priors @ (np.square(centers - priors @ centers) + within)  #         (1 + d,)
    slope = int(variance[1:].argmax()) if len(variance) > 1 else -1
    total = float((shares.kind + shares.degree + shares.noise)[output])
    if slope >= 0 and variance[1 + slope] < settings.DIAGNOSTICS.min_variance_share * total:
        slope = -1
    drawn = np.array([0, max(slope, 0) + 1 if len(variance) > 1 else 0])
    own = rooted[:, drawn]
    covariances = (own @ np.swapaxes(own, 1, 2)) * effects.noise[:, output, None, None]
    contexts = state.contexts
    shift = effects.effects[np.arange(len(contexts)), contexts, output] @ design[drawn].T
    points = centers[:, drawn][contexts] + shift
    return GroupMap(points, contexts, centers[:, drawn], covariances, slope, output)
