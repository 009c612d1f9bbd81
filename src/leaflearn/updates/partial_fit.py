"""Learning from groups that come in later: known contexts learn on, and one opens where none explains them.

Is a group new? Small ones can hardly tell, so for them suspicion is cheap: whatever is explained somewhat badly is set aside. Then the
suspects must prove it together. A new model learns from half of their rows, and the other half decides: it has to be explained clearly
better than by the known contexts. Suspects of known contexts cannot do that, because those were learnt from more rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from leaflearn.core.grouped_data import (
    GroupedData,
    encode_groups,
    find_groups,
    join,
    renumber,
    take,
)
from leaflearn.diagnostics import settings as diagnostic_settings
from leaflearn.diagnostics.novelty import sum_by_group
from leaflearn.engines.local_models import LocalModels
from leaflearn.estimators.validation import check_rows, check_X
from leaflearn.initialization.columns import as_numbers
from leaflearn.initialization.n_contexts import CandidateCount, is_significantly_better
from leaflearn.initialization.start import find_start
from leaflearn.updates.fine_tuning import Candidate, fine_tune, fit_new_models
from leaflearn.updates.prune_merge import ContextSet, stored_rows
from leaflearn.updates.replay_buffer import fill_replay_buffer

SMALL = 4  # groups with fewer rows cannot prove alone that they are new
SUSPICIOUS = 1.0  # novelty from which such a group may be new: of known sources one in six is above
LEAST_ROWS = 20  # from which a context can be learnt


class _Opened(NamedTuple):
    """Contexts that open: their models, their groups among the suspects (-1 for the others), and losses on rows they had not seen."""

    local_models: LocalModels  #                                                C
    contexts: NDArray[np.intp]  #                                               (s,)
    losses: list[NDArray[np.float64]]  #                                        C arrays


@dataclass(frozen=True, eq=False)
class _Arrival:
    """All groups, known and new: their labels, and what is known of them before anything is learnt."""

    groups: NDArray[Any]  # labels                                              (m,)
    rows: GroupedData  # the new ones; groups are numbered as above
    memory: GroupedData  # numbered likewise
    scores: NDArray[np.float64]  #                                              (m, K)
    sizes: NDArray[np.intp]  #                                                  (m,)
    is_known: NDArray[np.bool_]  #                                              (m,)
    may_be_new: NDArray[np.bool_]  # they arrive, or none explained them before (m,)


def update_contexts(estimator: Any, X: Any, y: Any, groups: Any) -> None:
    """Learn from new rows, with a fitted estimator."""
    random_state = check_random_state(estimator.random_state)
    arrival = _receive(estimator, X, y, groups)
    examples, numbers = renumber(join(arrival.memory, arrival.rows))
    found = replace(ContextSet.of(estimator), scores=arrival.scores)
    suspects = _find_suspects(estimator, examples, arrival.may_be_new[numbers])  # (m',) bool
    opened = _open(estimator, examples, suspects, random_state)
    before = np.where(arrival.is_known[numbers], found.contexts[numbers], -1)
    start = found.contexts[numbers]
    if opened is not None:
        found = _with_opened(found, opened)
        start[suspects] = np.where(
            opened.contexts >= 0, opened.contexts + estimator.n_contexts_, -1
        )
    else:
        start[suspects] = -1
    is_aside = np.zeros(len(arrival.groups), dtype=bool)
    is_aside[numbers[start < 0]] = True
    found = _learn(estimator, found, examples, numbers, before, start, arrival, random_state)
    estimator.groups_, estimator._sizes, estimator._is_unexplained = (
        arrival.groups,
        arrival.sizes,
        is_aside,
    )
    estimator.replay_buffer_ = join(arrival.memory, arrival.rows)
    estimator._replace_contexts(found)
    rng = np.random.default_rng(random_state.randint(2**31 - 1))
    estimator.replay_buffer_ = fill_replay_buffer(
        estimator.replay_buffer_, estimator.contexts_, rng
    )


def _receive(estimator: Any, X: Any, y: Any, groups: Any) -> _Arrival:
    """Check the new rows, and number all groups."""
    memory = stored_rows(estimator)
    X = check_X(estimator, X, reset=False, engine=estimator._engine)
    target = estimator._check_y(y, reset=False)
    check_rows(X, target)
    _refuse_new_labels(estimator, y, target)
    labels, group = encode_groups(
        _number_rows(estimator, len(target)) if groups is None else groups, len(target)
    )
    known = estimator.groups_
    strangers = labels[find_groups(labels, known) < 0]
    everybody, number = encode_groups(_join_labels(known, strangers), len(known) + len(strangers))
    place = find_groups(labels, everybody)  #                                   (labels,)
    rows = GroupedData(
        X,
        target,
        place[group],
        np.arange(len(target)),
        None,
        memory.n_outputs,
        memory.is_classifier,
    )
    sizes = np.bincount(rows.group, minlength=len(everybody))
    scores = np.zeros((len(everybody), estimator.n_contexts_))
    scores[place] = sum_by_group(
        estimator._trimmed(estimator._local_models.losses(X, target), group), group
    )
    old = number[: len(known)]
    scores[old] += estimator._scores
    sizes[old] += estimator._sizes
    is_known, may_be_new = np.zeros((2, len(everybody)), dtype=bool)
    is_known[old], may_be_new[old], may_be_new[place] = True, estimator._is_unexplained, True
    return _Arrival(
        everybody,
        rows,
        replace(memory, group=old[memory.group]),
        scores,
        sizes,
        is_known,
        may_be_new,
    )


def _refuse_new_labels(estimator: Any, y: Any, target: NDArray[Any]) -> None:
    if hasattr(estimator, "classes_") and (target < 0).any():
        stranger = np.asarray(y).tolist()[int(np.argmax(target < 0))]
        raise ValueError(
            f"y holds {stranger!r}, a label that was not there before; known are {estimator.classes_.tolist()}. "
            "Name all labels with classes= in the first call of partial_fit."
        )


def _number_rows(estimator: Any, n_rows: int) -> NDArray[Any]:
    """Labels for rows that are groups of their own: the next numbers, where groups have numbers."""
    if estimator.groups_.dtype.kind not in "iu":
        raise ValueError(
            "groups is None, but the groups of this model have names; say with groups= which row belongs to which group."
        )
    return np.arange(n_rows) + int(estimator.groups_.max()) + 1


def _join_labels(known: NDArray[Any], strangers: NDArray[Any]) -> Any:
    if known.dtype.kind == strangers.dtype.kind != "O" or not len(strangers):
        return np.concatenate(
            [known, strangers.astype(known.dtype) if not len(strangers) else strangers]
        )
    return [*known.tolist(), *strangers.tolist()]  # numpy would make text of numbers beside names


def _find_suspects(
    estimator: Any, examples: GroupedData, may_be_new: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Which of the groups that may be new are explained badly, or, where they are small, somewhat badly, (m,)."""
    losses = estimator._local_models.losses(examples.X, examples.y)
    best = sum_by_group(estimator._trimmed(losses, examples.group), examples.group).argmin(1)
    novelty = estimator._held_out.novelty(losses, examples.group, best)
    limit = diagnostic_settings.DIAGNOSTICS.novelty_limit
    return np.asarray(
        may_be_new & (novelty > np.where(np.bincount(examples.group) < SMALL, SUSPICIOUS, limit))
    )


def _open(
    estimator: Any,
    examples: GroupedData,
    suspects: NDArray[np.bool_],
    random_state: np.random.RandomState,
) -> _Opened | None:
    """New contexts for the suspects, where they prove to need them."""
    rows = np.flatnonzero(suspects[examples.group])
    rows = rows[
        np.argsort(examples.group[rows], kind="stable")
    ]  # group by group, so that every second row is half of each
    part, _ = renumber(take(examples, rows))
    if len(rows) < LEAST_ROWS:
        return None
    contexts = _split(part, random_state)
    losses = _losses_of_half(estimator, part, contexts, random_state)
    is_needed = np.array([is_significantly_better(new, known) for new, known in losses])
    if not is_needed.any():
        return None
    contexts = np.where(is_needed, np.cumsum(is_needed) - 1, -1)[contexts]  # (s,)
    learns, numbers = renumber(take(part, np.flatnonzero(contexts[part.group] >= 0)))
    local_models = fit_new_models(
        estimator, estimator._local_models, learns, contexts[numbers], random_state
    )
    return _Opened(
        local_models,
        contexts,
        [
            np.sort(new.held_out.ravel())
            for (new, _), needed in zip(losses, is_needed, strict=True)
            if needed
        ],
    )


def _split(part: GroupedData, random_state: np.random.RandomState) -> NDArray[np.intp]:
    """How many contexts there are among the suspects: one, unless the conflict between them tells of more, (s,)."""
    one = np.zeros(int(part.group.max()) + 1, dtype=np.intp)
    x = as_numbers(part.X)
    if x is None or len(one) < 2:
        return one
    try:
        n_classes = part.n_outputs if part.is_classifier else 0
        start = find_start(
            x, part.y, part.group, None, n_classes, int(random_state.randint(2**31 - 1))
        )
    except (torch.linalg.LinAlgError, ValueError):
        return one
    n_rows = np.bincount(start.contexts[part.group])
    return start.contexts if start.is_trusted and n_rows.min() >= LEAST_ROWS else one


def _losses_of_half(
    estimator: Any,
    part: GroupedData,
    contexts: NDArray[np.intp],
    random_state: np.random.RandomState,
) -> list[tuple[CandidateCount, CandidateCount]]:
    """Of each possible context: the losses of every second row under a new model of the others, and under the best known context."""
    is_judged = np.arange(len(part.y)) % 2 == 1
    learns, numbers = renumber(take(part, np.flatnonzero(~is_judged)))
    judged = take(part, np.flatnonzero(is_judged))
    new = fit_new_models(
        estimator, estimator._local_models, learns, contexts[numbers], random_state, quickly=True
    ).losses(judged.X, judged.y)
    known = estimator._local_models.losses(part.X, part.y)
    best = sum_by_group(estimator._trimmed(known, part.group), part.group).argmin(1)[judged.group]
    known = known[is_judged]
    pairs = []
    for c in range(int(contexts.max()) + 1):
        rows = np.flatnonzero(contexts[judged.group] == c)
        columns = (
            new[rows, c] if c < new.shape[1] else np.full(len(rows), np.inf),
            known[rows, best[rows]],
        )
        # Every row counts as a group of its own here: there may be one group only.
        pairs.append(
            (
                CandidateCount(2, float(np.mean(columns[0])), columns[0][:, None]),
                CandidateCount(1, float(np.mean(columns[1])), columns[1][:, None]),
            )
        )
    return pairs


def _with_opened(found: ContextSet, opened: _Opened) -> ContextSet:
    """The contexts and the new ones, which nothing is known of on groups that are not in memory."""
    n_new = len(opened.losses)
    return ContextSet(
        found.local_models.joined(opened.local_models),
        np.hstack([found.scores, np.full((len(found.scores), n_new), np.inf)]),
        replace(found.held_out, losses=[*found.held_out.losses, *opened.losses]),
        np.append(found.origin, np.full(n_new, -1)),
    )


def _learn(
    estimator: Any,
    found: ContextSet,
    examples: GroupedData,
    numbers: NDArray[np.intp],
    before: NDArray[np.intp],
    start: NDArray[np.intp],
    arrival: _Arrival,
    random_state: np.random.RandomState,
) -> ContextSet:
    """Let the models learn on from the groups that have a context; a new one that has lost them all closes again."""
    learns, own = renumber(take(examples, np.flatnonzero(start[examples.group] >= 0)))
    if not len(own):
        return found
    tries = [Candidate(found.local_models, start[own])]
    (trial,) = fine_tune(
        estimator, tries, learns, random_state, callbacks=estimator.callbacks or ()
    )
    found = found.after_fine_tuning(
        trial, before[own], learns, numbers[own], arrival.sizes, estimator.trim
    )
    for k in np.flatnonzero((found.origin < 0) & (found.usage == 0))[::-1]:
        found = found.without(int(k))
    return found
