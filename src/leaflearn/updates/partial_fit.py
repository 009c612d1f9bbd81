"""`partial_fit`: contexts are updated with new groups, and opened where none explains them.

A small group can hardly show that its context is new, so a low threshold selects the candidates:
every group that is explained somewhat badly. Together they must then show it. A new model is fitted
on half of their rows, and has to predict the other half significantly better than the known
contexts do. Groups of known contexts do not pass this test, because the known models were fitted on
more rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from leaflearn.core.grouped_data import GroupedData, sum_by_group
from leaflearn.engines.fitted_state import FittedState
from leaflearn.engines.local_models import LocalModels
from leaflearn.engines.parameters import Parameters
from leaflearn.engines.settings import HELD_OUT
from leaflearn.initialization.features import as_numbers
from leaflearn.initialization.n_contexts import CandidateCount, is_significantly_better
from leaflearn.initialization.start import find_start
from leaflearn.updates import settings
from leaflearn.updates.arrival import ContextUpdate, join_groups
from leaflearn.updates.closed_form_groups import add_groups
from leaflearn.updates.fine_tuning import Candidate, fine_tune, fit_new_models
from leaflearn.updates.prune_merge import trim_rows, with_fine_tuned
from leaflearn.updates.replay_buffer import fill_replay_buffer, stored_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]


class _Opened(NamedTuple):
    """Contexts that were opened."""

    local_models: LocalModels  #                                                C
    contexts: Ints  # of the candidate groups, -1 for the others                (s,)
    losses: list[Floats]  # on rows that were held out                          C arrays


@dataclass(frozen=True, eq=False)
class _Arrival:
    """All groups, known and new."""

    groups: NDArray[Any]  # labels                                              (m,)
    state: FittedState  # extended to all groups
    data: GroupedData  # the replay buffer and the new rows
    is_known: Flags  #                                                          (m,)
    may_be_new: Flags  # new groups, and groups that no context explained       (m,)


def update_contexts(
    state: FittedState,
    parameters: Parameters,
    groups: NDArray[Any],
    rows: GroupedData,
    labels: NDArray[Any],
) -> ContextUpdate:
    """Update the contexts with new rows; see `LeafRegressor.partial_fit`.

    Parameters
    ----------
    state, parameters
        The fitted state, and the estimator's parameters.
    groups
        Labels of the groups of the state, shape (m,).
    rows, labels
        New rows, and the labels of their groups; a known label adds rows to its group.
    """
    random_state = check_random_state(parameters.random_state)
    if state.effects is not None:
        return add_groups(state, groups, rows, labels, random_state)
    arrival = _receive(state, parameters, groups, rows, labels)
    state, n_known = arrival.state, arrival.state.n_contexts
    data, numbers = arrival.data.renumbered()
    candidates = _find_candidates(state, parameters, data, arrival.may_be_new[numbers])  # (m',)
    opened = _open(state, parameters, data, candidates, random_state)
    start = state.contexts[numbers]
    before = np.where(arrival.is_known[numbers], start, -1)
    if opened is None:
        start[candidates] = -1
    else:
        state = state.with_new_contexts(opened.local_models, opened.losses)
        start[candidates] = np.where(opened.contexts >= 0, opened.contexts + n_known, -1)
    is_unexplained = np.zeros(len(arrival.groups), dtype=bool)
    is_unexplained[numbers[start < 0]] = True
    state = replace(state, is_unexplained=is_unexplained)
    state = _learn(state, parameters, data, numbers, before, start, n_known, random_state)
    state = state.ordered_by_usage()
    rng = np.random.default_rng(random_state.randint(2**31 - 1))
    buffer = fill_replay_buffer(arrival.data, state.contexts, rng)
    return ContextUpdate(replace(state, replay_buffer=buffer), arrival.groups, arrival.data)


def _receive(
    state: FittedState,
    parameters: Parameters,
    known: NDArray[Any],
    rows: GroupedData,
    labels: NDArray[Any],
) -> _Arrival:
    """Number all groups, and score the new rows under the known contexts."""
    buffer = stored_rows(state)
    groups, old, place = join_groups(known, labels)
    m = len(groups)
    new_rows = replace(rows, group=place[rows.group])
    sizes = np.bincount(new_rows.group, minlength=m)
    scores = np.zeros((m, state.n_contexts))
    losses = state.local_models.losses(rows.X, rows.y)
    scores[place] = sum_by_group(trim_rows(losses, rows.group, parameters.trim), rows.group)
    scores[old] += state.scores
    sizes[old] += state.sizes
    is_known, may_be_new = np.zeros((2, m), dtype=bool)
    is_known[old], may_be_new[old], may_be_new[place] = True, state.is_unexplained, True
    data = replace(buffer, group=old[buffer.group]).join(new_rows)
    # Groups that no context explains are determined again below.
    extended = replace(state, scores=scores, sizes=sizes, is_unexplained=np.zeros(m, dtype=bool))
    return _Arrival(groups, extended, data, is_known, may_be_new)


def _find_candidates(
    state: FittedState, parameters: Parameters, data: GroupedData, may_be_new: Flags
) -> Flags:
    """Groups that may be new and are explained badly, or somewhat badly if they are small, (m,)."""
    losses = state.local_models.losses(data.X, data.y)
    best = sum_by_group(trim_rows(losses, data.group, parameters.trim), data.group).argmin(1)
    novelty = state.held_out.novelty(losses, data.group, best)
    is_small = np.bincount(data.group) < settings.UPDATES.n_small_group
    threshold = np.where(is_small, settings.UPDATES.small_group_novelty, HELD_OUT.novelty_limit)
    return np.asarray(may_be_new & (novelty > threshold))


def _open(
    state: FittedState,
    parameters: Parameters,
    data: GroupedData,
    candidates: Flags,
    random_state: np.random.RandomState,
) -> _Opened | None:
    """New contexts for the candidates, where they predict held-out rows significantly better."""
    rows = np.flatnonzero(candidates[data.group])
    # Sorted by group, so that every second row is half of each group.
    rows = rows[np.argsort(data.group[rows], kind="stable")]
    part, _ = data.take(rows).renumbered()
    if len(rows) < settings.UPDATES.min_new_rows:
        return None
    contexts = _split(part, random_state)
    losses = _losses_of_half(state, parameters, part, contexts, random_state)
    is_needed = np.array([is_significantly_better(new, known) for new, known in losses])
    if not is_needed.any():
        return None
    contexts = np.where(is_needed, np.cumsum(is_needed) - 1, -1)[contexts]  #   (s,)
    learned, numbers = part.take(np.flatnonzero(contexts[part.group] >= 0)).renumbered()
    local_models = fit_new_models(
        parameters, state.local_models, learned, contexts[numbers], random_state
    )
    held_out = [
        np.sort(new.held_out.ravel())
        for (new, _), needed in zip(losses, is_needed, strict=True)
        if needed
    ]
    return _Opened(local_models, contexts, held_out)


def _split(part: GroupedData, random_state: np.random.RandomState) -> Ints:
    """Contexts among the candidates: one, unless they conflict with each other, (s,)."""
    one = np.zeros(int(part.group.max()) + 1, dtype=np.intp)
    x = as_numbers(part.X)
    if x is None or len(one) < 2:
        return one
    try:
        seed = int(random_state.randint(2**31 - 1))
        start = find_start(x, part.y, part.group, None, part.n_classes, seed)
    except (torch.linalg.LinAlgError, ValueError):
        return one
    is_large = np.bincount(start.contexts[part.group]).min() >= settings.UPDATES.min_new_rows
    return start.contexts if start.is_trusted and is_large else one


def _losses_of_half(
    state: FittedState,
    parameters: Parameters,
    part: GroupedData,
    contexts: Ints,
    random_state: np.random.RandomState,
) -> list[tuple[CandidateCount, CandidateCount]]:
    """For each candidate context, the losses of every second row.

    First under a new model fitted on the other rows, then under the best known context.
    """
    is_judged = np.arange(len(part.y)) % 2 == 1
    learned, numbers = part.take(np.flatnonzero(~is_judged)).renumbered()
    judged = part.take(np.flatnonzero(is_judged))
    models = fit_new_models(
        parameters, state.local_models, learned, contexts[numbers], random_state, quickly=True
    )
    new = models.losses(judged.X, judged.y)
    known = state.local_models.losses(part.X, part.y)
    scores = sum_by_group(trim_rows(known, part.group, parameters.trim), part.group)
    best = scores.argmin(1)[judged.group]
    known = known[is_judged]
    pairs = []
    for c in range(int(contexts.max()) + 1):
        rows = np.flatnonzero(contexts[judged.group] == c)
        under_new = new[rows, c] if c < new.shape[1] else np.full(len(rows), np.inf)
        under_known = known[rows, best[rows]]
        # Every row counts as a group of its own, since there may be one group only.
        pairs.append((_count(2, under_new), _count(1, under_known)))
    return pairs


def _count(n_contexts: int, losses: Floats) -> CandidateCount:
    return CandidateCount(n_contexts, float(np.mean(losses)), losses[:, None])


def _learn(
    state: FittedState,
    parameters: Parameters,
    data: GroupedData,
    numbers: Ints,
    before: Ints,
    start: Ints,
    n_known: int,
    random_state: np.random.RandomState,
) -> FittedState:
    """Fine-tune on the groups that have a context; a new context that loses all its groups goes."""
    learned, own = data.take(np.flatnonzero(start[data.group] >= 0)).renumbered()
    if not len(own):
        return state
    candidates, callbacks = [Candidate(state.local_models, start[own])], parameters.callbacks or ()
    (tuned,) = fine_tune(parameters, candidates, learned, random_state, callbacks=callbacks)
    state = with_fine_tuned(state, tuned, before[own], learned, numbers[own], parameters.trim)
    for k in range(state.n_contexts - 1, n_known - 1, -1):
        if state.usage[k] == 0:
            state = state.without(k)
    n_new = state.n_contexts - n_known
    order = state.context_order[:n_known]
    return replace(state, context_order=np.append(order, order.max() + 1 + np.arange(n_new)))
