"""Which columns have group effects: those that the restricted likelihood asks for, one by one.

The first is the constant. Then the column is added whose variance the likelihood asks for most, as
long as that lowers minus twice the log-likelihood by more than twice the number of new variances.
An input that has effects may also have them on hat functions, so that groups may deviate from their
context along a curve; the knots are quantiles of the input.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from leaflearn.effects import settings
from leaflearn.effects.restricted_likelihood import (
    MixedModel,
    RestrictedLikelihood,
    fit_mixed_model,
    without_columns,
)
from leaflearn.moments.features import FeatureMap
from leaflearn.moments.group_moments import GroupMoments

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def find_varying(moments: GroupMoments, n_linear: int) -> Ints:
    """Features that vary within groups, among the first `n_linear` without the constant.

    Examples
    --------
    >>> features = np.array([[1.0, 5.0, 0.0], [1.0, 5.0, 1.0], [1.0, 7.0, 0.0]])
    >>> moments = GroupMoments.of(features, np.zeros((3, 1)), np.array([0, 0, 1]), 2)
    >>> find_varying(moments, 3)
    array([2])
    """
    sums = moments.products[:, 0, :n_linear]  # of the rows of each group           (m, n_linear)
    squares = np.diagonal(moments.products, axis1=1, axis2=2)[:, :n_linear]
    within = (squares - sums**2 / np.maximum(moments.sizes, 1e-300)[:, None]).sum(0)
    total = squares.sum(0) - sums.sum(0) ** 2 / moments.sizes.sum()
    varies = within > settings.EFFECTS.min_varying_share * np.maximum(total, 1e-300)
    varies[0] = False
    return np.flatnonzero(varies & (within > 1e-9 * moments.sizes.sum()))


def choose_columns(
    moments: GroupMoments,
    is_shrunk: NDArray[np.bool_],
    candidates: Ints,
    start: MixedModel | None = None,
) -> MixedModel:
    """The model with the columns that the likelihood asks for, beginning with the constant.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, group = rng.normal(size=(600, 3)), np.repeat(np.arange(60), 10)
    >>> y = x[:, 0] * rng.normal(size=60)[group] + rng.normal(0, 0.3, 600)
    >>> features = np.c_[np.ones(600), x]
    >>> moments = GroupMoments.of(features, y[:, None], group, 60)
    >>> choose_columns(moments, np.zeros(4, dtype=bool), np.array([1, 2, 3])).columns
    array([0, 1])
    """
    limits = settings.EFFECTS
    first = np.array([0], dtype=np.intp)
    model = fit_mixed_model(moments, first, is_shrunk) if start is None else start
    while len(model.columns) <= limits.max_slopes:
        left = np.setdiff1d(candidates, model.columns)
        if not len(left):
            break
        asked = RestrictedLikelihood(moments, np.concatenate([model.columns, left]), is_shrunk)
        scores = asked.score_columns(model)[len(model.columns) :]
        best = int(np.argmax(scores))
        if not scores[best] > limits.min_score:
            break
        columns = np.append(model.columns, left[best])
        root = np.zeros((len(columns), len(columns)))
        root[:-1, :-1] = np.diag(np.diag(model.root))
        root[-1, -1] = limits.start_deviation / 3
        more = fit_mixed_model(
            moments, columns, is_shrunk, start=replace(model, columns=columns, root=root)
        )
        if not more.criterion < model.criterion - limits.min_improvement:
            break
        model = more
    return _correlate(moments, is_shrunk, model)


def add_hats(features: FeatureMap, X: Floats, model: MixedModel) -> FeatureMap:
    """Features with hat functions of the inputs that have effects, those with the largest first."""
    limits = settings.EFFECTS
    order = np.argsort(-np.diag(model.covariance))
    inputs = [int(model.columns[j]) - 1 for j in order if 0 < model.columns[j] < features.n_linear]
    shares = (np.arange(limits.n_knots) + 1) / (limits.n_knots + 1)
    chosen: list[int] = []
    knots: list[float] = []
    for j in inputs:
        z = (X[:, j] - features.center[j]) / features.scale[j]
        quantiles = np.unique(np.quantile(z, shares))
        is_inside = (quantiles > features.low[j]) & (quantiles < features.high[j])
        has_values = len(np.unique(z)) >= limits.min_hat_values and is_inside.all()
        if has_values and len(chosen) + len(quantiles) <= limits.max_hats:
            knots += quantiles.tolist()
            chosen += [j] * len(quantiles)
    return replace(features, hat_input=np.array(chosen, dtype=np.intp), hat_knot=np.array(knots))


def _correlate(
    moments: GroupMoments, is_shrunk: NDArray[np.bool_], model: MixedModel
) -> MixedModel:
    """Without effects that came out as zero, and with correlations of few effects if they help."""
    limits = settings.EFFECTS
    deviation = np.diag(model.root)
    kept = deviation**2 * np.diag(moments.products.sum(0))[model.columns] > limits.min_total
    if not kept.all():
        model = without_columns(model, kept)
        model = fit_mixed_model(moments, model.columns, is_shrunk, start=model)
    if 1 < len(model.columns) <= limits.max_correlated:
        full = fit_mixed_model(moments, model.columns, is_shrunk, full=True, start=model)
        n_more = full.n_parameters - model.n_parameters
        if full.criterion < model.criterion - 2 * n_more:
            return full
    return model
