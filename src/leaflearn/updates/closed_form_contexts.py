"""`prune` and `merge` for models in closed form: contexts are compared by the density of groups.

A smaller set of contexts is the present one without a context, whose groups go to others, which are
fitted again with them. It is as good if the log density of the stored groups falls by no more than
the parameters of a context cost by the Bayesian information criterion, as when contexts are counted
before a fit (`initialization/structure.py`).

Contexts of classes share their variances of effects, so that none differs from another in spread
alone (`engines/answers.py`). They keep these variances, except where a merge is requested: then
what distinguished the contexts becomes an effect of their groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from leaflearn.core.grouped_data import GroupedData
from leaflearn.effects.group_effects import LogisticEffects
from leaflearn.engines.fitted_state import FittedState
from leaflearn.initialization.settings import STRUCTURE
from leaflearn.updates.closed_form_means import (
    NewContext,
    fit_context,
    mean_one,
    models_of,
    place_context,
    score_context,
)
from leaflearn.updates.replay_buffer import stored_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class _Smaller:
    """The present contexts without one of them."""

    gone: int
    changed: dict[int, NewContext]  # contexts that received groups
    priors: Floats  # zero for the context that is gone                         (K,)
    loss: float  # fall of twice the log density beyond what a context costs


def leave_out(state: FittedState) -> FittedState | None:
    """The state without its most redundant context, or None where all are needed."""
    stored = _Stored(state, isinstance(state.effects, LogisticEffects))
    candidates = []
    for gone in range(state.n_contexts):
        others = np.where(np.arange(state.n_contexts) == gone, np.inf, stored.scores)
        to = np.where(stored.contexts == gone, others.argmin(1), stored.contexts)
        candidates.append(stored.without(gone, to))
    return _best(state, candidates, always=False)


def merge_pair(
    state: FittedState, pairs: Sequence[tuple[int, int]], always: bool
) -> FittedState | None:
    """The state with the best of these pairs made one context, or None where all conflict.

    With `always`, pairs that conflict are merged too.
    """
    stored = _Stored(state, isinstance(state.effects, LogisticEffects) and not always)
    candidates = [
        stored.without(gone, np.where(stored.contexts == gone, kept, stored.contexts))
        for kept, gone in pairs
    ]
    return _best(state, candidates, always)


class _Stored:
    """The rows of the replay buffer, and how well the present contexts explain its groups."""

    def __init__(self, state: FittedState, keep_variances: bool) -> None:
        self.state, self.keep_variances = state, keep_variances
        models, self.effects = models_of(state)
        self.data, numbers = stored_rows(state).renumbered()
        self.contexts = state.contexts[numbers]  #                              (m',)
        given = models.means_and_targets(self.data.X, self.data.y)
        weight = mean_one(self.data.weight)
        _, self.scores = self.effects.of_groups(
            self.data.X, *given, self.data.group, len(numbers), weight
        )
        # Contexts that were fitted to all rows explain the stored ones a little less well than
        # contexts that are fitted to these; sets are compared on equal terms.
        refitted = self.scores.copy()
        self.n_parameters = np.zeros(state.n_contexts)
        for k in np.unique(self.contexts):
            context = self._fit(self.contexts == k, self.contexts)
            refitted[:, k] = score_context(state, context, self.data, self.effects.priors[k])
            self.n_parameters[k] = context.n_parameters
        self.control = max(self.scores, refitted, key=_density)

    def without(self, gone: int, to: Ints) -> _Smaller:
        """Without one context, its groups in the contexts `to`, (m',)."""
        received = np.bincount(to[self.contexts == gone], minlength=self.state.n_contexts)
        priors = np.where(np.arange(len(received)) == gone, 0.0, self.effects.priors)
        scores = self.control + np.log(self.effects.priors)
        changed = {}
        if received.any():
            priors = priors + self.effects.priors[gone] * received / received.sum()
        priors = priors / priors.sum()
        for k in np.flatnonzero(received):
            changed[int(k)] = self._fit(to == k, self.contexts)
            scores[:, k] = score_context(self.state, changed[int(k)], self.data, 1.0)
        left = np.flatnonzero(priors)
        fall = _density(self.control) - _density(scores[:, left] - np.log(priors[left]))
        cost = self.n_parameters[gone] * np.log(len(self.contexts)) + STRUCTURE.min_margin
        return _Smaller(gone, changed, priors, 2 * fall - cost)

    def _fit(self, is_member: NDArray[np.bool_], before: Ints) -> NewContext:
        share = np.bincount(before[is_member], minlength=self.state.n_contexts) / is_member.sum()
        part, _ = self.data.take(np.flatnonzero(is_member[self.data.group])).renumbered()
        return fit_context(self.state, part, share, self.keep_variances)


def _best(state: FittedState, candidates: Sequence[_Smaller], always: bool) -> FittedState | None:
    """The state of the candidate that loses least, unless all lose too much."""
    best = min(candidates, key=lambda candidate: candidate.loss)
    if best.loss > 0 and not always:
        return None
    data: GroupedData = stored_rows(state)
    for k, context in best.changed.items():
        # The context that is gone keeps a tiny share until it is taken out.
        state = place_context(state, context, k, data, np.maximum(best.priors, 1e-12))
    return state.take_contexts(np.delete(np.arange(state.n_contexts), best.gone))


def _density(scores: Floats) -> float:
    """Log density of all groups under the mixture of contexts, from scores (m, K)."""
    return float(logsumexp(-scores, axis=1).sum())
