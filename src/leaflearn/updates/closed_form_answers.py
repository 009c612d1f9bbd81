"""Contexts of classes with group effects: one fitted to some rows, and known groups moved into it.

Answers have no sums that determine the effects of their group. Groups whose rows are all at hand
are computed from them. What is known of other groups is a normal distribution of their effects: it
is narrowed by further rows, and moved where the mean of a context changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from leaflearn.core.grouped_data import GroupedData
from leaflearn.effects.group_effects import LogisticEffects
from leaflearn.effects.logistic import (
    Answers,
    LogisticFit,
    fit_by_laplace,
    fit_logistic,
    working_moments,
)
from leaflearn.effects.restricted_likelihood import MixedModel, fit_with_variances
from leaflearn.engines.closed_form import ClosedFormModels
from leaflearn.engines.fitted_state import FittedState
from leaflearn.engines.settings import CLOSED_FORM
from leaflearn.moments.group_moments import GroupMoments
from leaflearn.updates import settings

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]


class Correction(NamedTuple):
    """What is added to known log-odds of one target, and the moments that it was fitted to."""

    model: MixedModel
    moments: GroupMoments


def fit_corrections(
    models: ClosedFormModels,
    effects: LogisticEffects,
    data: GroupedData,
    share: Floats,
    weight: Floats | None,
    keep_variances: bool,
) -> list[Correction]:
    """Corrections of the known log-odds for the groups of some rows, by target.

    Parameters
    ----------
    models, effects
        The known contexts.
    data
        Rows of the groups of the context, which are numbered without gaps.
    share
        Weights of the known contexts in the log-odds that are corrected, shape (K,).
    weight
        Weights of the rows, with a mean of 1, shape (N,).
    keep_variances
        Whether effects keep the variances of the known context that weighs most; contexts of few
        groups always do.
    """
    X, nearest = np.asarray(data.X, dtype=np.float64), int(share.argmax())
    means, targets = models.means_and_targets(X, data.y)
    offset, design = np.einsum("k,nkd->nd", share, means), models.features(X)
    is_shrunk = np.arange(design.shape[1]) >= models.features.n_linear
    n_groups, found = int(data.group.max()) + 1, []
    for d in range(targets.shape[1]):
        answers = Answers.of(targets[:, d], data.group, n_groups, weight)
        own_design, own_offset = design[answers.order], offset[answers.order, d]
        like = MixedModel(effects.columns, np.zeros(len(is_shrunk)), effects.roots[nearest, d], 1.0)
        fit = _fit_target(answers, own_design, own_offset, like, is_shrunk, keep_variances)
        moments = working_moments(answers, own_design, fit.eta, own_offset)
        found.append(Correction(fit.model, moments))
    return found


def _fit_target(
    answers: Answers,
    design: Floats,
    offset: Floats,
    like: MixedModel,
    is_shrunk: Flags,
    keep_variances: bool,
) -> LogisticFit:
    """The correction of one target; see `_fit_target` in `closed_form_means.py`."""
    columns, start = like.columns, LogisticFit(like, offset)
    if answers.weight.sum() < CLOSED_FORM.rows_per_coefficient * (~is_shrunk).sum():
        kept = columns if len(columns) else np.array([0], dtype=np.intp)
        own, none = np.arange(len(columns)), np.zeros(len(kept), dtype=bool)
        few = replace(start, model=replace(like, columns=own, coefficients=np.zeros(len(kept))))
        how = own, none, None, False, few, True, None, offset
        found = fit_logistic(answers, design[:, kept], *how)
        coefficients = like.coefficients.copy()
        coefficients[kept] = found.model.coefficients
        return replace(found, model=replace(like, coefficients=coefficients))
    if not keep_variances and answers.n_groups >= CLOSED_FORM.groups_per_variance * len(columns):
        is_full = bool(np.tril(like.root, -1).any())
        like_start = None, is_full, start
        return fit_by_laplace(answers, design, columns, is_shrunk, *like_start, offset=offset)
    if is_shrunk.any():
        # The smoothness is chosen around the known log-odds, which are near those of the context.
        moments = working_moments(answers, design, offset, offset)
        tried = [replace(like, smoothness=g) for g in settings.UPDATES.smoothness]
        fits = [fit_with_variances(moments, each, is_shrunk, noise=1.0) for each in tried]
        start = replace(start, model=min(fits, key=lambda model: model.criterion))
    return fit_logistic(answers, design, columns, is_shrunk, None, False, start, True, None, offset)


def move_groups(
    state: FittedState,
    changed: LogisticEffects,
    new: ClosedFormModels,
    k: int,
    data: GroupedData,
    weight: Floats | None,
) -> tuple[LogisticEffects, Floats]:
    """The effects of all groups in a new context too, and their scores in it.

    Parameters
    ----------
    state
        The state before, with the effects of all groups in the known contexts.
    changed
        The variances and priors of all contexts, the new one included.
    new
        The local models of all contexts, the new one included.
    k
        The number of the new context; it may replace a known one.
    data
        Rows at hand, with the numbers of the state's groups.
    weight
        Weights of the rows, with a mean of 1, shape (N,).

    Returns
    -------
    effects
        `changed` with the effects of all groups in all contexts.
    scores
        Scores of all groups in context k, shape (m,).
    """
    m, X = len(state.scores), np.asarray(data.X, dtype=np.float64)
    means, targets = new.means_and_targets(X, data.y)
    one = replace(changed, roots=changed.roots[[k]], priors=np.ones(1))
    moved, scores = _carry_over(state, one, new, k, X)
    exact, from_rows = one.of_groups(X, means[:, [k]], targets, data.group, m, weight)
    is_complete = np.bincount(data.group, minlength=m) == state.sizes
    moved.effects[is_complete] = exact.effects[is_complete]
    moved.products[is_complete] = exact.products[is_complete]
    scores[is_complete] = from_rows[is_complete, 0]
    known = state.effects
    assert known is not None
    effects, products = (
        np.concatenate([values[:, :k], own, values[:, k + 1 :]], 1)
        for values, own in ((known.effects, moved.effects), (known.products, moved.products))
    )
    both = replace(changed, effects=effects, products=products)
    return both, scores - np.log(changed.priors[k])


def _carry_over(
    state: FittedState, one: LogisticEffects, new: ClosedFormModels, k: int, X: Floats
) -> tuple[LogisticEffects, Floats]:
    """Effects of all groups in a new context, and scores (m,), from those in their own context.

    As a function of the effects, the log-likelihood of a group's rows is replaced by a parabola at
    the effects in its own context. Another mean moves it, as far as the columns that have effects
    can express the difference.
    """
    models, effects, own = state.local_models, state.effects, state.contexts
    assert isinstance(models, ClosedFormModels)
    assert isinstance(effects, LogisticEffects)
    m, (D, q) = len(own), one.roots.shape[1:3]
    means, z = models.means(X), effects.design(X)
    likelihood = (state.scores[np.arange(m), own] + np.log(effects.priors[own])) / -one.evidence
    found, products = np.zeros((m, 1, D, q)), np.zeros((m, 1, D, q, q))
    for origin in np.unique(own):
        groups = np.flatnonzero(own == origin)
        shift, left = closest_effects(z, means[:, origin] - new.means(X)[:, k])
        told = (expit(means[:, origin]) * expit(-means[:, origin])).mean(0)  #  (D,)
        for d in range(D):
            before, after = effects.roots[origin, d], one.roots[0, d]
            known, precision = effects.effects[groups, origin, d], effects.products[groups, origin]
            products[groups, 0, d] = precision = precision[:, d]
            back = np.linalg.pinv(before)
            scaled = known @ back.T  #                                          (m', q)
            slope = scaled @ back  # of the log-likelihood, at its own effects
            # Effects in the new context are the known ones plus `shift` where nothing is shrunk.
            target = known + shift[:, d]
            pull = slope + np.einsum("mqr,mr->mq", precision, target)
            inner = np.eye(q) + after.T @ precision @ after
            v = np.linalg.solve(inner, (pull @ after)[..., None])[..., 0]
            found[groups, 0, d] = v @ after.T
            away = found[groups, 0, d] - target
            bend = np.einsum("mq,mqr,mr->m", away, precision, away)
            likelihood[groups] += (slope * away).sum(1) - 0.5 * bend
            likelihood[groups] += 0.5 * ((scaled**2).sum(1) - (v**2).sum(1))
            likelihood[groups] += (
                0.5 * np.linalg.slogdet(np.eye(q) + before.T @ precision @ before)[1]
            )
            likelihood[groups] -= 0.5 * np.linalg.slogdet(inner)[1]
            likelihood[groups] -= 0.5 * state.sizes[groups] * told[d] * left[d]
    return replace(one, effects=found, products=products), -one.evidence * likelihood


def closest_effects(z: Floats, difference: Floats) -> tuple[Floats, Floats]:
    """The effects (q, D) that express a function (N, D) best, and the mean square left, (D,).

    Examples
    --------
    >>> z = np.array([[1.0, -1.0], [1.0, 1.0]])
    >>> closest_effects(z, np.array([[0.0], [2.0]]))[0].round(3).ravel()
    array([1., 1.])
    """
    shift: Floats = np.zeros((z.shape[1], difference.shape[1]))
    if z.shape[1]:
        shift = np.asarray(np.linalg.lstsq(z, difference, rcond=None)[0], float)
    return shift, np.square(difference - z @ shift).mean(0)
