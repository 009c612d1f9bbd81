"""`prune` and `merge`: which contexts are superfluous, and where their groups go.

rarely used   their groups go to the next best contexts
redundant     without it, and after fine-tuning the others, the groups are explained as well

With too many local models, one function may be split into pieces that each cover a part of it. Then
no piece can simply be removed: its groups have to train the model that takes them over. So each
context is left out in turn and the others are fine-tuned; all contexts together are fine-tuned for
as long, as a control. On the three functions the loss rises at most 1.5 times without a superfluous
context, and a thousand times without a needed one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from leaflearn.core.algorithm import trim_groups
from leaflearn.core.grouped_data import GroupedData, sum_by_group
from leaflearn.engines.fitted_state import FittedState
from leaflearn.engines.parameters import Parameters
from leaflearn.engines.settings import TRAINING
from leaflearn.updates import settings
from leaflearn.updates.closed_form_contexts import leave_out, merge_pair
from leaflearn.updates.fine_tuning import Candidate, FineTuned, fine_tune, is_better
from leaflearn.updates.replay_buffer import stored_rows

Ints = NDArray[np.intp]


def prune(
    state: FittedState, parameters: Parameters, min_usage: float | str, redundant: bool
) -> FittedState:
    """The contexts that are needed; see `LeafRegressor.prune`."""
    state = _drop_rarely_used(state, min_usage)
    random_state = check_random_state(parameters.random_state)
    while redundant and state.n_contexts > 1:
        if state.effects is not None:
            smaller = leave_out(state)
        else:
            smaller = _leave_out_and_fine_tune(state, parameters, random_state)
        if smaller is None:
            break
        state = _drop_rarely_used(smaller, min_usage)
    return state


def _leave_out_and_fine_tune(
    state: FittedState, parameters: Parameters, random_state: np.random.RandomState
) -> FittedState | None:
    """The state without its most redundant context, or None where all are needed."""
    data, numbers = stored_rows(state).renumbered()
    scores, each = state.scores[numbers], np.arange(state.n_contexts)
    candidates = [
        Candidate(
            state.local_models.reordered(np.delete(each, k)), np.delete(scores, k, 1).argmin(1)
        )
        for k in each
    ]
    return _best_smaller(state, parameters, candidates, each.tolist(), data, numbers, random_state)


def merge(
    state: FittedState, parameters: Parameters, first: int | None, second: int | None
) -> FittedState:
    """These two contexts made one, or all pairs that do not conflict; see `LeafRegressor.merge`."""
    random_state = check_random_state(parameters.random_state)
    if first is not None and second is not None:
        pair = min(first, second), max(first, second)
        return _merge_one(state, parameters, [pair], random_state, always=True) or state
    smaller: FittedState | None = state
    while smaller is not None and smaller.n_contexts > 1:
        state = smaller
        pairs = list(combinations(range(state.n_contexts), 2))
        smaller = _merge_one(state, parameters, pairs, random_state)
    return state if smaller is None else smaller


def _merge_one(
    state: FittedState,
    parameters: Parameters,
    pairs: Sequence[tuple[int, int]],
    random_state: np.random.RandomState,
    always: bool = False,
) -> FittedState | None:
    """Merge the best of these pairs into the model of its first; None where all pairs conflict."""
    if state.effects is not None:
        return merge_pair(state, pairs, always)
    data, numbers = stored_rows(state).renumbered()
    contexts, each = state.contexts[numbers], np.arange(state.n_contexts)
    candidates = [
        Candidate(
            state.local_models.reordered(np.delete(each, gone)),
            _renumber(np.where(contexts == gone, kept, contexts), gone),
        )
        for kept, gone in pairs
    ]
    # A piece of one function may hold groups of another, so that groups may move unless `always`.
    until = np.inf if always else TRAINING.given_share
    gone = [gone for _, gone in pairs]
    return _best_smaller(
        state, parameters, candidates, gone, data, numbers, random_state, until, always
    )


def _drop_rarely_used(state: FittedState, min_usage: float | str) -> FittedState:
    """Remove contexts one after the other, the least used first; their groups go to the others."""
    share = settings.UPDATES.min_usage_share
    while state.n_contexts > 1:
        limit = share / state.n_contexts if isinstance(min_usage, str) else min_usage
        usage = state.usage
        least = int(state.n_contexts - 1 - usage[::-1].argmin())  # the last of equals
        if usage[least] >= limit and usage[least] > 0:
            break
        state = state.without(least)
    return state


def _best_smaller(
    state: FittedState,
    parameters: Parameters,
    candidates: Sequence[Candidate],
    gone: Sequence[int],
    data: GroupedData,
    numbers: Ints,
    random_state: np.random.RandomState,
    until: float = TRAINING.given_share,
    always: bool = False,
) -> FittedState | None:
    """The smaller set that explains the groups best, or None where the present one is better.

    `gone` is the context that each candidate lacks, `numbers` are the groups of the data.
    """
    before = state.contexts[numbers]
    tuned = fine_tune(parameters, candidates, data, random_state, until)
    counts = [each.count(data) for each in tuned]
    best = int(np.argmin(np.nan_to_num([count.error for count in counts], nan=np.inf)))
    if not always:
        present = [Candidate(state.local_models, before)]
        (control,) = fine_tune(parameters, present, data, random_state, until)
        if is_better(control.count(data), counts[best]):
            return None
    lost = gone[best]
    moved = mean_by_group(tuned[best].losses, data, parameters.trim).argmin(1)[before == lost]
    # Groups outside the replay buffer follow the majority of those inside.
    heir = int(np.bincount(moved, minlength=state.n_contexts - 1).argmax())
    smaller = state.without(lost, into=heir + (heir >= lost) if len(moved) else None)
    before = _renumber(np.where(before == lost, -1, before), lost)
    return with_fine_tuned(smaller, tuned[best], before, data, numbers, parameters.trim)


def with_fine_tuned(
    state: FittedState,
    tuned: FineTuned,
    before: Ints,
    data: GroupedData,
    numbers: Ints,
    trim: float,
) -> FittedState:
    """The state with fine-tuned local models; a model whose groups stayed the same is kept.

    `numbers` (m',) are the groups in the data, and `before` (m',) their contexts so far, -1 for new
    groups; `trim` is the share of its worst rows that the score of a group leaves out.
    """
    K = state.n_contexts
    means = mean_by_group(tuned.losses, data, trim)  #                          (m', K)
    was = np.eye(K + 1, dtype=bool)[before][:, :-1]
    now = np.eye(K, dtype=bool)[means.argmin(1)]
    n_changed, n_now = np.sum(was != now, 0), np.maximum(np.sum(now, 0), 1)
    has_changed = n_changed > TRAINING.max_changed * n_now  #                   (K,)
    scores = state.scores.copy()
    scores[np.ix_(numbers, has_changed)] = means[:, has_changed] * state.sizes[numbers, None]
    chosen = np.arange(K) + K * has_changed
    local_models = state.local_models.joined(tuned.local_models).reordered(chosen)
    return replace(state, local_models=local_models, scores=scores)


def mean_by_group(
    losses: NDArray[np.float64], data: GroupedData, trim: float = 0.0
) -> NDArray[np.float64]:
    """Mean loss of every context on every group, weighted inside the group, (m, K).

    The share `trim` of a group's worst rows is left out.

    Examples
    --------
    >>> x, group, weight = np.zeros((2, 1)), np.array([0, 0]), np.array([1.0, 3.0])
    >>> rows = GroupedData(x, x, group, np.arange(2), weight, 1, False)
    >>> mean_by_group(np.array([[4.0], [8.0]]), rows)
    array([[7.]])
    """
    weight = np.ones(len(data.y)) if data.weight is None else data.weight
    losses = trim_rows(losses, data.group, trim)
    mass = np.bincount(data.group, weight)[:, None]
    return sum_by_group(losses * weight[:, None], data.group) / mass


def trim_rows(losses: NDArray[np.float64], group: Ints, trim: float) -> NDArray[np.float64]:
    """The losses (N, K) with 0 for the share `trim` of each group's worst rows.

    Examples
    --------
    >>> trim_rows(np.array([[1.0], [9.0]]), np.array([0, 0]), trim=0.5)
    array([[1.],
           [0.]])
    """
    n_groups = int(group.max()) + 1
    return trim_groups(torch.as_tensor(losses.T), torch.as_tensor(group), n_groups, trim).numpy().T


def _renumber(contexts: Ints, gone: int) -> Ints:
    """Numbers of contexts after one was removed."""
    return contexts - (contexts > gone)
