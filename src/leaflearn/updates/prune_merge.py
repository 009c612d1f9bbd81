"""Which contexts are superfluous, and what becomes of their groups.

too little used    their groups go to the next best contexts
redundant          without it, and after a short training of the others, the groups are explained as well as before

With too many local models one function may be cut into pieces, none of which covers it. Then no piece can simply go: its groups have to
teach the model that takes them over. So each context is left out in turn, the others learn on, and beside them all together learn on for
as long. On three functions the loss rises at most 1.5 times without a superfluous context, and a thousand times without a needed one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from leaflearn.core.algorithm import trim_groups
from leaflearn.core.grouped_data import GroupedData, sum_by_group
from leaflearn.engines.novelty import HeldOut
from leaflearn.engines import CONVERGED, GIVEN
from leaflearn.engines.local_models import LocalModels
from leaflearn.updates.fine_tuning import Candidate, FineTuned, fine_tune, is_better

LITTLE = 0.1  # of a fair share of the groups


@dataclass(frozen=True, eq=False)
class ContextSet:
    """The contexts of an estimator, on the way to becoming fewer or more.

    Examples
    --------
    >>> from leaflearn.engines.local_models import RefittedModels
    >>> scores = np.array([[0.1, 0.2, 9.0], [0.2, 0.1, 9.0], [9.0, 9.0, 0.1], [9.0, 9.0, 0.1]])
    >>> three = ContextSet(RefittedModels([None] * 3, None), scores, HeldOut.unknown(3), np.arange(3))
    >>> three.without(1).contexts, three.without(1).origin
    (array([0, 0, 1, 1]), array([0, 2]))
    """

    local_models: LocalModels
    scores: NDArray[np.float64]  # summed loss of every model on every group        (m, K)
    held_out: HeldOut
    origin: NDArray[np.intp]  # where each context stood before, -1 for new ones    (K,)

    @classmethod
    def of(cls, estimator: Any) -> ContextSet:
        """The contexts as they stand."""
        return cls(
            estimator._local_models,
            estimator._scores,
            estimator._held_out,
            np.arange(estimator.n_contexts_),
        )

    def __len__(self) -> int:
        return self.scores.shape[1]

    @property
    def contexts(self) -> NDArray[np.intp]:
        """The context of each group, (m,)."""
        return self.scores.argmin(1)

    @property
    def usage(self) -> NDArray[np.float64]:
        """Share of groups in each context, (K,)."""
        return np.bincount(self.contexts, minlength=len(self)) / len(self.scores)

    def without(self, gone: int, into: int | None = None) -> ContextSet:
        """One context less. Its groups go where they are explained next best, or all to the context `into`."""
        scores, losses, left = (
            self.scores.copy(),
            list(self.held_out.losses),
            np.delete(np.arange(len(self)), gone),
        )
        if into is not None:
            scores[:, into] = scores[:, [into, gone]].min(1)
            losses[into] = np.sort(np.concatenate([losses[into], losses[gone]]))
        is_lost = np.isinf(scores[:, left]).all(
            1
        )  # groups that are not in memory, which contexts that opened later know nothing of
        scores[is_lost] = scores[is_lost, gone, None]
        held_out = replace(self.held_out, losses=[losses[k] for k in left])
        return ContextSet(
            self.local_models.reordered(left), scores[:, left], held_out, self.origin[left]
        )

    def after_fine_tuning(
        self,
        trial: FineTuned,
        before: NDArray[np.intp],
        examples: GroupedData,
        numbers: NDArray[np.intp],
        sizes: NDArray[np.intp],
        trim: float = 0.0,
    ) -> ContextSet:
        """The same contexts with the models of the trial; a model whose groups have stayed the same stays as it is.

        `before` (m',) are the contexts of the groups in the examples, -1 where they are new to all; `numbers` says which groups these are,
        `sizes` (m,) how many rows all groups have, `trim` what share of its worst rows the score of a group leaves out.
        """
        means = mean_by_group(trial.losses, examples, trim)  #                       (m', K)
        was, now = (
            np.eye(len(self) + 1, dtype=bool)[before][:, :-1],
            np.eye(len(self), dtype=bool)[means.argmin(1)],
        )
        has_changed = np.sum(was != now, 0) > CONVERGED * np.maximum(np.sum(now, 0), 1)  # (K,)
        scores = self.scores.copy()
        scores[np.ix_(numbers, has_changed)] = means[:, has_changed] * sizes[numbers, None]
        chosen = np.arange(len(self)) + len(self) * has_changed
        return replace(
            self,
            local_models=self.local_models.joined(trial.local_models).reordered(chosen),
            scores=scores,
        )


def mean_by_group(
    losses: NDArray[np.float64], examples: GroupedData, trim: float = 0.0
) -> NDArray[np.float64]:
    """Mean loss of every context on every group, weighted inside the group, (m, K); the share `trim` of its worst rows costs nothing.

    Examples
    --------
    >>> rows = GroupedData(np.zeros((2, 1)), np.zeros((2, 1)), np.array([0, 0]), np.arange(2), np.array([1.0, 3.0]), 1, False)
    >>> mean_by_group(np.array([[4.0], [8.0]]), rows)
    array([[7.]])
    """
    weight = np.ones(len(examples.y)) if examples.weight is None else examples.weight
    group = torch.as_tensor(examples.group)
    losses = trim_groups(torch.as_tensor(losses.T), group, int(group.max()) + 1, trim).numpy().T
    return (
        sum_by_group(losses * weight[:, None], examples.group)
        / np.bincount(examples.group, weight)[:, None]
    )


def prune(estimator: Any, min_usage: float | str, redundant: bool) -> ContextSet:
    """The contexts that are needed."""
    found = _drop_little_used(ContextSet.of(estimator), min_usage)
    random_state = check_random_state(estimator.random_state)
    while redundant and len(found) > 1:
        examples, numbers = stored_rows(estimator).renumbered()
        scores, each = found.scores[numbers], np.arange(len(found))
        tries = [
            Candidate(
                found.local_models.reordered(np.delete(each, k)), np.delete(scores, k, 1).argmin(1)
            )
            for k in each
        ]
        smaller = _best_smaller(
            estimator, found, tries, each.tolist(), examples, numbers, random_state, GIVEN
        )
        if smaller is None:
            break
        found = _drop_little_used(smaller, min_usage)
    return found


def merge(estimator: Any, first: int | None, second: int | None) -> ContextSet:
    """The contexts with these two made one; or with all made one that do not conflict."""
    found = ContextSet.of(estimator)
    random_state = check_random_state(estimator.random_state)
    if first is not None and second is not None:
        return (
            _merge_one(
                estimator,
                found,
                [(min(first, second), max(first, second))],
                random_state,
                always=True,
            )
            or found
        )
    smaller: ContextSet | None = found
    while smaller is not None and len(smaller) > 1:
        found = smaller
        smaller = _merge_one(
            estimator, found, list(combinations(range(len(found)), 2)), random_state
        )
    return found if smaller is None else smaller


def _merge_one(
    estimator: Any,
    found: ContextSet,
    pairs: Sequence[tuple[int, int]],
    random_state: np.random.RandomState,
    always: bool = False,
) -> ContextSet | None:
    """The contexts after the best of these pairs became one, in the model of the first; None where each pair conflicts."""
    examples, numbers = stored_rows(estimator).renumbered()
    contexts, each = found.contexts[numbers], np.arange(len(found))
    tries = [
        Candidate(
            found.local_models.reordered(np.delete(each, gone)),
            _renumbered(np.where(contexts == gone, kept, contexts), gone),
        )
        for kept, gone in pairs
    ]
    until = (
        np.inf if always else GIVEN
    )  # a piece of one function may hold some groups of another, which had better leave
    return _best_smaller(
        estimator,
        found,
        tries,
        [gone for _, gone in pairs],
        examples,
        numbers,
        random_state,
        until,
        always,
    )


def stored_rows(estimator: Any) -> GroupedData:
    """The rows to learn from, or an error that says that there are none."""
    memory: GroupedData | None = getattr(estimator, "replay_buffer_", None)
    if memory is None:
        raise ValueError(
            "replay_buffer_ is empty, so there are no rows from which contexts could learn on; fit again."
        )
    return memory


def _drop_little_used(found: ContextSet, min_usage: float | str) -> ContextSet:
    """One after the other, the least used first: each leaves its groups to those that remain."""
    while len(found) > 1:
        limit = LITTLE / len(found) if isinstance(min_usage, str) else min_usage
        least = int(len(found) - 1 - found.usage[::-1].argmin())  # of equals the last
        if found.usage[least] >= limit and found.usage[least] > 0:
            break
        found = found.without(least)
    return found


def _best_smaller(
    estimator: Any, found: ContextSet, tries: Sequence[Candidate], gone: Sequence[int], examples: GroupedData, numbers: NDArray[np.intp],
    random_state: np.random.RandomState, until: float, always: bool = False,
) -> ContextSet | None:  # fmt: skip
    """The smaller set that explains the groups best, unless the present one is better; `gone` says which context each try is without."""
    before = found.contexts[numbers]
    trials = fine_tune(estimator, tries, examples, random_state, until)
    counts = [trial.count(examples) for trial in trials]
    best = int(np.argmin(np.nan_to_num([count.error for count in counts], nan=np.inf)))
    if not always:
        (control,) = fine_tune(
            estimator, [Candidate(found.local_models, before)], examples, random_state, until
        )
        if is_better(control.count(examples), counts[best]):
            return None
    moved = mean_by_group(trials[best].losses, examples, estimator.trim).argmin(1)[
        before == gone[best]
    ]
    heir = int(
        np.bincount(moved, minlength=len(found) - 1).argmax()
    )  # takes over most; groups that are not in memory follow them
    smaller = found.without(gone[best], into=heir + (heir >= gone[best]) if len(moved) else None)
    before = _renumbered(np.where(before == gone[best], -1, before), gone[best])
    return smaller.after_fine_tuning(
        trials[best], before, examples, numbers, estimator._sizes, estimator.trim
    )


def _renumbered(contexts: NDArray[np.intp], gone: int) -> NDArray[np.intp]:
    """Numbers of contexts when one has left."""
    return contexts - (contexts > gone)
