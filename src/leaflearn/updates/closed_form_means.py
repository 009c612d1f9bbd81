"""One context of a model in closed form, fitted again or for the first time from some rows.

Its mean is that of known contexts plus a correction, which is linear in the same features and
shrunk where they are smooth, so that few rows suffice. Boosted columns keep their coefficients:
trees predict the rows that they were fitted to too well to weigh them anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leaflearn.core.grouped_data import GroupedData
from leaflearn.effects.group_effects import GroupEffects, LogisticEffects
from leaflearn.effects.restricted_likelihood import MixedModel, fit_mixed_model, fit_with_variances
from leaflearn.engines.closed_form import ClosedFormModels
from leaflearn.engines.fitted_state import FittedState
from leaflearn.engines.settings import CLOSED_FORM
from leaflearn.moments.group_moments import GroupMoments
from leaflearn.updates import settings
from leaflearn.updates.closed_form_answers import closest_effects, fit_corrections, move_groups

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class NewContext:
    """The mean, the variances of effects and the noise of one context."""

    coefficients: Floats  #                                                     (F, D)
    roots: Floats  #                                                            (D, q, q)
    noise: Floats  #                                                            (D,)
    n_parameters: float  # shrunk ones counted in part


def models_of(state: FittedState) -> tuple[ClosedFormModels, GroupEffects]:
    """The local models and the effects of a state in closed form."""
    assert isinstance(state.local_models, ClosedFormModels)
    assert state.effects is not None
    if state.effects.sums is None and not isinstance(state.effects, LogisticEffects):
        raise ValueError(
            "the model was saved by a version that did not store the sums of its groups, so it "
            "cannot be updated; fit again."
        )
    return state.local_models, state.effects


def fit_context(
    state: FittedState, data: GroupedData, share: Floats, keep_variances: bool = False
) -> NewContext:
    """Fit a context to the groups of some rows.

    Parameters
    ----------
    state
        The known contexts.
    data
        Rows of the groups of the context, which are numbered without gaps.
    share
        Weights of the known contexts in the mean that is corrected; they sum to 1. Shape (K,).
    keep_variances
        Whether effects and noise keep the variances of the known context that weighs most.
    """
    models, effects = models_of(state)
    if isinstance(effects, LogisticEffects):
        return _fit_log_odds(models, effects, data, share, keep_variances)
    nearest, F = int(share.argmax()), models.features.n_features
    residual = np.einsum("k,nkd->nd", share, models.residuals(data.X, data.y))
    design = models.features(np.asarray(data.X, dtype=np.float64))
    n_groups = int(data.group.max()) + 1
    moments = GroupMoments.of(
        design, residual / models.scale, data.group, n_groups, mean_one(data.weight)
    )
    is_shrunk = np.arange(F) >= models.features.n_linear
    fits = [
        _fit_target(
            moments.target(d), effects.columns, effects.roots[nearest, d], is_shrunk, keep_variances
        )
        for d in range(moments.n_targets)
    ]
    coefficients = np.einsum("k,kfd->fd", share, models.coefficients)
    coefficients[:F] += np.stack([fit.coefficients for fit in fits], 1) * models.scale
    noise = np.array([fit.noise for fit in fits]) * models.scale**2
    n_means = sum(_count_coefficients(fit, moments, is_shrunk) for fit in fits)
    n_parameters = n_means + len(fits) * (len(effects.columns) + 1) + 1
    return NewContext(
        coefficients,
        np.stack([fit.root for fit in fits]),
        effects.noise[nearest] if keep_variances else noise,
        effects.evidence * n_parameters,
    )


def score_context(
    state: FittedState, context: NewContext, data: GroupedData, prior: float
) -> Floats:
    """Minus the log of prior times marginal likelihood of each group of the rows, (m,)."""
    models, effects = models_of(state)
    one = replace(models, coefficients=context.coefficients[None])
    alone = replace(
        effects,
        roots=context.roots[None],
        noise=context.noise[None],
        priors=np.array([prior]),
    )
    given, n_groups = one.means_and_targets(data.X, data.y), int(data.group.max()) + 1
    weight = mean_one(data.weight)
    return alone.of_groups(data.X, *given, data.group, n_groups, weight)[1][:, 0]


def place_context(
    state: FittedState, context: NewContext, k: int, data: GroupedData, priors: Floats
) -> FittedState:
    """The state with this context in place of context k, or behind all others.

    The effects and scores of groups whose rows are all in `data` are exact. For other groups, the
    difference between the mean of their former context and the new one is replaced by the closest
    function of the columns that have effects; with classes, the likelihood of their rows is also
    replaced by a normal one.

    Parameters
    ----------
    state, context
        The known contexts, and the new one.
    k
        Its number; the number of known contexts adds it.
    data
        Rows at hand, with the numbers of the state's groups.
    priors
        Shares of all contexts, the new one included.
    """
    models, effects = models_of(state)
    new = replace(models, coefficients=_put(models.coefficients, context.coefficients, k))
    changed = replace(
        effects,
        roots=_put(effects.roots, context.roots, k),
        noise=_put(effects.noise, context.noise, k),
        priors=priors,
    )
    if isinstance(changed, LogisticEffects):
        scores = np.empty((len(state.scores), len(priors)))
        weight = mean_one(data.weight)
        changed, scores[:, k] = move_groups(state, changed, new, k, data, weight)
    else:
        sums = _sums_in(state, new, k, data)  #                                 (m, D, q + 1)
        assert effects.sums is not None
        moved = np.moveaxis(_put(np.moveaxis(effects.sums, 1, 0), sums, k), 0, 1)
        changed, scores = changed.from_sums(effects.products, moved, state.sizes.astype(np.float64))
    others = np.delete(np.arange(len(priors)), k)
    known = np.arange(state.n_contexts)[: len(others)] if k == state.n_contexts else others
    shift = np.log(effects.priors[known]) - np.log(priors[others])
    scores[:, others] = state.scores[:, known] + shift
    if k == state.n_contexts:
        state = state.with_new_contexts(
            replace(models, coefficients=context.coefficients[None]), [np.empty(0)]
        )
    return replace(state, local_models=new, effects=changed, scores=scores)


def mean_one(weight: Floats | None) -> Floats | None:
    """Weights of rows with a mean of 1, as in a fit.

    Examples
    --------
    >>> mean_one(np.array([1.0, 3.0]))
    array([0.5, 1.5])
    """
    return None if weight is None else weight / weight.mean()


def _fit_log_odds(
    models: ClosedFormModels,
    effects: LogisticEffects,
    data: GroupedData,
    share: Floats,
    keep_variances: bool,
) -> NewContext:
    """The same for classes; their noise is 1, which is no parameter."""
    weight, F = mean_one(data.weight), models.features.n_features
    found = fit_corrections(models, effects, data, share, weight, keep_variances)
    coefficients = np.einsum("k,kfd->fd", share, models.coefficients)
    coefficients[:F] += np.stack([model.coefficients for model, _ in found], 1)
    is_shrunk = np.arange(F) >= models.features.n_linear
    n_means = sum(_count_coefficients(*each, is_shrunk) for each in found)
    n_parameters = n_means + len(found) * len(effects.columns) + 1
    return NewContext(
        coefficients,
        np.stack([model.root for model, _ in found]),
        np.ones(len(found)),
        effects.evidence * n_parameters,
    )


def _fit_target(
    target: GroupMoments,
    columns: Ints,
    root: Floats,
    is_shrunk: NDArray[np.bool_],
    keep_variances: bool,
) -> MixedModel:
    """The correction of a mean for one target; see `_fit_context` in `engines/closed_form.py`."""
    like = MixedModel(columns, np.zeros(len(is_shrunk)), root, 1.0)
    if target.sizes.sum() < CLOSED_FORM.rows_per_coefficient * (~is_shrunk).sum():
        kept = columns if len(columns) else np.array([0], dtype=np.intp)
        few = replace(like, columns=np.arange(len(columns)))
        found = fit_with_variances(target.reduced(kept, like.coefficients), few)
        like.coefficients[kept] = found.coefficients
        return replace(found, columns=columns, coefficients=like.coefficients)
    n_groups = len(target.sizes)
    if not keep_variances and n_groups >= CLOSED_FORM.groups_per_variance * len(columns):
        is_full = bool(np.tril(root, -1).any())
        return fit_mixed_model(target, columns, is_shrunk, full=is_full)
    tried = settings.UPDATES.smoothness if is_shrunk.any() else (1.0,)
    return min(
        (fit_with_variances(target, replace(like, smoothness=g), is_shrunk) for g in tried),
        key=lambda model: model.criterion,
    )


def _count_coefficients(
    fit: MixedModel, moments: GroupMoments, is_shrunk: NDArray[np.bool_]
) -> float:
    """Coefficients of a mean, shrunk ones counted in part."""
    n_fixed = np.count_nonzero(fit.coefficients[~is_shrunk])
    if not is_shrunk.any() or not fit.coefficients[is_shrunk].any():
        return float(n_fixed)
    normal = moments.xx.sum(0)[np.ix_(is_shrunk, is_shrunk)]
    ridge = np.eye(len(normal)) / fit.smoothness
    return n_fixed + float(np.trace(np.linalg.solve(normal + ridge, normal)))


def _sums_in(state: FittedState, new: ClosedFormModels, k: int, data: GroupedData) -> Floats:
    """Sums of `z r` and `r r` of all groups in context k of new models, (m, D, q + 1)."""
    models, effects = models_of(state)
    assert effects.sums is not None
    m, own = len(state.scores), state.contexts
    X = np.asarray(data.X, dtype=np.float64)
    difference = models.means(X) - new.means(X)[:, [k]]  #                      (N, K, D)
    sums, q = effects.sums[np.arange(m), own], len(effects.columns)
    z, zz = effects.design(X), effects.products
    for origin in np.unique(own):
        groups = np.flatnonzero(own == origin)
        shift, left = closest_effects(z, difference[:, origin])
        zr, added = sums[groups, :, :q], np.einsum("mqr,rd->mdq", zz[groups], shift)
        square = sums[groups, :, q] + np.einsum("qd,mdq->md", shift, 2 * zr + added)
        sums[groups, :, :q] = zr + added
        sums[groups, :, q] = square + state.sizes[groups, None] * left
    means, targets = new.means_and_targets(data.X, data.y)
    one = effects.take_contexts(np.array([0]))
    rows = X, means[:, [k]], targets, data.group
    at_hand, _ = one.of_groups(*rows, m, mean_one(data.weight))
    assert at_hand.sums is not None
    is_complete = np.bincount(data.group, minlength=m) == state.sizes
    sums[is_complete] = at_hand.sums[is_complete, 0]
    return sums


def _put(values: Floats, value: Floats, k: int) -> Floats:
    """The array with this entry in place k, which may be the next one."""
    return np.concatenate([values[:k], value[None], values[k + 1 :]])
