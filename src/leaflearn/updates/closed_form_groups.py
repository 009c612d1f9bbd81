"""`partial_fit` for models in closed form: effects of new groups, and of known ones with more rows.

Sums over the rows of a group determine its effects and its context, and add up over calls. So known
groups are updated exactly, as if all their rows had come at once. Classes have no such sums: groups
whose rows are all stored are computed again from them; for others, the effects so far enter as a
normal distribution, which the new rows narrow. Means and variances stay as they are. Groups that no
context explains open a new one if a context that is fitted to half of them explains the other half
much better than the known contexts do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from leaflearn.core.grouped_data import GroupedData
from leaflearn.effects.group_effects import LogisticEffects
from leaflearn.engines.fitted_state import FittedState
from leaflearn.engines.settings import CLOSED_FORM, HELD_OUT
from leaflearn.initialization.settings import STRUCTURE
from leaflearn.updates import settings
from leaflearn.updates.arrival import ContextUpdate, JoinedGroups, join_groups
from leaflearn.updates.closed_form_means import (
    fit_context,
    mean_one,
    models_of,
    place_context,
    score_context,
)
from leaflearn.updates.replay_buffer import fill_replay_buffer, stored_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]


def add_groups(
    state: FittedState,
    groups: NDArray[Any],
    rows: GroupedData,
    labels: NDArray[Any],
    random_state: np.random.RandomState,
) -> ContextUpdate:
    """Add rows to known groups and new groups to the contexts; see `LeafRegressor.partial_fit`.

    Parameters
    ----------
    state
        The fitted state, with group effects.
    groups
        Labels of the groups of the state, shape (m,).
    rows, labels
        New rows, and the labels of their groups; a known label adds rows to its group.
    random_state
        Chooses the rows of the replay buffer.
    """
    joined = join_groups(groups, labels)
    buffer = stored_rows(state)
    stored = replace(buffer, group=joined.known[buffer.group], weight=mean_one(buffer.weight))
    data = stored.join(replace(rows, group=joined.arrived[rows.group]))
    may_be_new = np.zeros(len(joined.labels), dtype=bool)
    may_be_new[joined.known] = state.is_unexplained
    may_be_new[joined.arrived] = True
    if isinstance(state.effects, LogisticEffects):
        state = _with_answers(state, state.effects, joined, rows, data)
    else:
        state = _with_rows(state, joined, rows)
    candidates = may_be_new & (_novelty(state, data) > HELD_OUT.novelty_limit)
    state = _open(state, data, candidates).ordered_by_usage()
    rng = np.random.default_rng(random_state.randint(2**31 - 1))
    kept = fill_replay_buffer(data, state.contexts, rng)
    return ContextUpdate(replace(state, replay_buffer=kept), joined.labels, data)


def _with_rows(state: FittedState, joined: JoinedGroups, rows: GroupedData) -> FittedState:
    """All groups with their effects and scores, from the sums of old and new rows."""
    models, effects = models_of(state)
    assert effects.sums is not None
    m, old, arrived = len(joined.labels), joined.known, joined.arrived
    given, n_arrived = models.means_and_targets(rows.X, rows.y), len(arrived)
    added, _ = effects.of_groups(np.asarray(rows.X), *given, rows.group, n_arrived)
    assert added.sums is not None
    products, sums = (
        np.zeros((m, *values.shape[1:])) for values in (effects.products, effects.sums)
    )
    sizes = np.zeros(m, dtype=np.intp)
    products[old], sums[old], sizes[old] = effects.products, effects.sums, state.sizes
    products[arrived] += added.products
    sums[arrived] += added.sums
    sizes[arrived] += np.bincount(rows.group, minlength=n_arrived)
    _, before = effects.from_sums(effects.products, effects.sums, state.sizes.astype(np.float64))
    found, scores = effects.from_sums(products, sums, sizes.astype(np.float64))
    # With weights of rows, sizes are rounded; only what the new rows add is taken from here.
    scores[old] += state.scores - before
    nothing = np.zeros(m, dtype=bool)
    return replace(state, effects=found, scores=scores, sizes=sizes, is_unexplained=nothing)


def _with_answers(
    state: FittedState,
    effects: LogisticEffects,
    joined: JoinedGroups,
    rows: GroupedData,
    data: GroupedData,
) -> FittedState:
    """The same for classes; `data` holds the stored rows as well."""
    models, _ = models_of(state)
    m, old = len(joined.labels), joined.known
    group = joined.arrived[rows.group]
    n_new = np.bincount(group, minlength=m)
    found, products = (
        np.zeros((m, *values.shape[1:])) for values in (effects.effects, effects.products)
    )
    scores = np.tile(-np.log(effects.priors), (m, 1))
    sizes = n_new.copy()
    found[old], products[old], scores[old] = effects.effects, effects.products, state.scores
    sizes[old] += state.sizes
    before = replace(effects, effects=found, products=products)
    given = models.means_and_targets(rows.X, rows.y)
    after, added = before.with_further_rows(np.asarray(rows.X), *given, group)
    scores = scores + added
    # The weights of stored rows have another unit than in the fit, so they are not used again.
    is_complete = (n_new > 0) & (np.bincount(data.group, minlength=m) == sizes)
    if data.weight is None and is_complete.any():
        at_hand = data.take(np.flatnonzero(is_complete[data.group]))
        given = models.means_and_targets(at_hand.X, at_hand.y)
        exact, from_rows = effects.of_groups(np.asarray(at_hand.X), *given, at_hand.group, m)
        after.effects[is_complete] = exact.effects[is_complete]
        after.products[is_complete] = exact.products[is_complete]
        scores[is_complete] = from_rows[is_complete]
    nothing = np.zeros(m, dtype=bool)
    return replace(state, effects=after, scores=scores, sizes=sizes, is_unexplained=nothing)


def _novelty(state: FittedState, data: GroupedData) -> Floats:
    """How improbable the rows at hand of each group are in its context, (m,)."""
    models, effects = models_of(state)
    present, numbers = data.renumbered()
    given = models.means_and_targets(present.X, present.y)
    novelty = np.zeros(len(state.scores))
    effects = replace(effects, effects=effects.effects[numbers], products=effects.products[numbers])
    novelty[numbers] = effects.novelty(
        np.asarray(present.X), *given, present.group, state.contexts[numbers]
    )
    return novelty


def _open(state: FittedState, data: GroupedData, candidates: Flags) -> FittedState:
    """The state with a new context, if the candidates agree on one; else they are unexplained."""
    state = replace(state, is_unexplained=candidates)
    rows = np.flatnonzero(candidates[data.group])
    n_groups = int(candidates.sum())
    if n_groups < CLOSED_FORM.min_chosen_groups or len(rows) < settings.UPDATES.min_new_rows:
        return state
    part, numbers = data.take(rows).renumbered()
    models, effects = models_of(state)
    given, weight = models.means_and_targets(part.X, part.y), mean_one(part.weight)
    _, scores = effects.of_groups(np.asarray(part.X), *given, part.group, len(numbers), weight)
    nearest = np.eye(state.n_contexts)[scores.sum(0).argmin()]
    share = n_groups / len(state.scores)
    fold, under_new = np.arange(len(numbers)) % 2, np.empty(len(numbers))
    for half in (0, 1):
        learned, _ = part.take(np.flatnonzero(fold[part.group] != half)).renumbered()
        judged, _ = part.take(np.flatnonzero(fold[part.group] == half)).renumbered()
        context = fit_context(state, learned, nearest, keep_variances=True)
        under_new[fold == half] = -score_context(state, context, judged, share)
    gain = under_new - logsumexp(-scores, axis=1)
    context = fit_context(state, part, nearest, keep_variances=True)
    # The candidates were selected because they are improbable. So a gain on held-out groups is not
    # enough: it has to pay for the context as when contexts are counted before a fit.
    cost = context.n_parameters * np.log(len(state.scores)) + STRUCTURE.min_margin
    if 2 * gain.sum() <= cost:
        return state
    priors = np.append((1 - share) * effects.priors, share)
    state = place_context(state, context, state.n_contexts, data, priors)
    still = np.zeros_like(candidates)
    novelty = _novelty(state, data.take(rows))
    still[numbers] = novelty[numbers] > HELD_OUT.novelty_limit
    return replace(state, is_unexplained=still)
