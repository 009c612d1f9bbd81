"""Local models that are there already learn on for a short while, and are judged: is one set of contexts better than another?

Several sets of the same size learn side by side. Each begins with contexts that are given for a while and is then free to move groups.
Judged is by the loss of each row in the context that the other rows of its group choose, as when contexts are counted before a fit.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from leaflearn.core.allocation import Given
from leaflearn.core.grouped_data import GroupedData, position_in_group, sum_by_group
from leaflearn.core.training import Callback
from leaflearn.engines import GIVEN, Recipe, fine_tune_networks, fit_networks, refit_quickly
from leaflearn.engines.local_models import LocalModels, NetworkModels, RefittedModels
from leaflearn.engines.network_parts import as_grouped, make_factory, make_recipe
from leaflearn.engines.novelty import sum_by_group
from leaflearn.engines.refit import make_local_model, targets_of, with_sizes
from leaflearn.engines.refitting import Refitted, refit
from leaflearn.initialization.n_contexts import CandidateCount, is_significantly_better

REFITS = 4  # of scikit-learn models at most
FOLDS = 3  # of the groups, when scikit-learn models are judged on groups that they have not seen
AT_ONCE = 20_000_000  # parameters of networks that learn side by side; more sets take turns
TWICE = (
    2.0  # groups of one row choose no context for another row: there a context must halve the loss
)

Floats = NDArray[np.float64]


class Candidate(NamedTuple):
    """Local models, and the context in which each group begins, (m,)."""

    local_models: LocalModels
    contexts: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class FineTuned:
    """What became of a try: the models, and the losses of the rows by which it is judged."""

    local_models: LocalModels
    losses: Floats  #                                                           (N, K)

    def count(self, examples: GroupedData) -> CandidateCount:
        """How well the groups are explained, and how well the other rows of its group foretell a row."""
        weight = np.ones(len(examples.y)) if examples.weight is None else examples.weight
        losses = self.losses * weight[:, None]
        mass = np.bincount(examples.group, weight)
        scores = sum_by_group(losses, examples.group)  #                         (m, K)
        chosen = (scores[examples.group] - losses).argmin(1)  # by the others    (N,)
        size = np.bincount(examples.group)
        held_out = np.full((len(size), size.max()), np.nan)  #                   (m, n)
        told = (
            losses[np.arange(len(chosen)), chosen] * (size / mass)[examples.group]
        )  # so that a line's mean is weighted
        held_out[examples.group, position_in_group(examples.group)] = told
        held_out[size == 1] = np.nan
        return CandidateCount(self.losses.shape[1], float(np.mean(scores.min(1) / mass)), held_out)


def is_better(more: CandidateCount, fewer: CandidateCount) -> bool:
    """Are more contexts worth it?

    Examples
    --------
    >>> is_better(CandidateCount(3, 0.010, np.full((9, 2), 0.010)), CandidateCount(2, 0.011, np.full((9, 2), 0.011)))
    False
    """
    if not np.isfinite(more.held_out).any():
        return more.error * TWICE < fewer.error
    return not np.isfinite(fewer.error) or is_significantly_better(more, fewer)


def fine_tune(
    estimator: Any,
    tries: Sequence[Candidate],
    examples: GroupedData,
    random_state: np.random.RandomState,
    until: float = GIVEN,
    callbacks: Sequence[Callback] = (),
) -> list[FineTuned]:
    """Let each try learn on from the examples; its contexts are held for the share `until` of the time."""
    if isinstance(tries[0].local_models, RefittedModels):
        return [_retrain_refitted(estimator, one, examples, random_state, until) for one in tries]
    recipe = make_recipe(estimator, callbacks)
    at_once = max(
        1,
        AT_ONCE
        // max(
            1,
            sum(p.numel() for module in tries[0].local_models.models for p in module.parameters()),
        ),
    )
    parts = [tries[i : i + at_once] for i in range(0, len(tries), at_once)]
    return [
        trial
        for part in parts
        for trial in _retrain_networks(part, examples, recipe, random_state, until)
    ]


def _retrain_networks(
    tries: Sequence[Candidate],
    examples: GroupedData,
    recipe: Recipe,
    random_state: np.random.RandomState,
    until: float,
) -> list[FineTuned]:
    models = [one.local_models for one in tries if isinstance(one.local_models, NetworkModels)]
    first, starts = models[0], np.stack([one.contexts for one in tries])
    data = as_grouped(examples, first.x_scaling, first.y_scaling, first.device)
    is_own = (
        first.x_scaling is not None
    )  # the default networks answer in double precision, and learn in single
    sets = [
        [
            copy.deepcopy(module).float() if is_own else copy.deepcopy(module)
            for module in each.models
        ]
        for each in models
    ]
    sets = fine_tune_networks(
        sets, data, first.loss, starts, recipe, random_state, first.device, until
    )
    found = [
        replace(first, models=[module.double() if is_own else module for module in modules])
        for modules in sets
    ]
    return [FineTuned(each, each.losses(examples.X, examples.y)) for each in found]


def fit_new_models(
    estimator: Any,
    like: LocalModels,
    examples: GroupedData,
    contexts: NDArray[np.intp],
    random_state: np.random.RandomState,
    quickly: bool = False,
) -> LocalModels:
    """New local models of the same kind for groups whose contexts (m,) are known; quickly, if only to see what losses unseen rows have."""
    n_contexts = int(contexts.max()) + 1
    if isinstance(like, RefittedModels):
        return _fitted(like, _refit(estimator, like, examples, contexts, n_contexts, random_state))
    assert isinstance(like, NetworkModels)
    data = as_grouped(examples, like.x_scaling, like.y_scaling, like.device)
    recipe = replace(make_recipe(estimator), allocation=Given(torch.as_tensor(contexts)))
    factory = make_factory(estimator.local_model, examples)
    if quickly:
        seed = int(random_state.randint(2**31 - 1))
        modules = refit_quickly(
            factory, data, like.loss, contexts, n_contexts, recipe, seed, like.device
        )
    else:
        modules = fit_networks(
            factory, data, like.loss, n_contexts, recipe, random_state, like.device
        ).modules
    return replace(
        like,
        models=[module.double() if estimator.local_model is None else module for module in modules],
    )


def _retrain_refitted(
    estimator: Any,
    one: Candidate,
    examples: GroupedData,
    random_state: np.random.RandomState,
    until: float,
) -> FineTuned:
    like, n_contexts = one.local_models, len(one.local_models.models)
    assert isinstance(like, RefittedModels)
    found = _refit(
        estimator,
        like,
        examples,
        one.contexts,
        n_contexts,
        random_state,
        until,
        REFITS,
        estimator.out_of_fold,
    )
    models = _fitted(like, found)
    try:
        losses = _losses_out_of_fold(
            estimator, models, examples, np.asarray(found.contexts), random_state
        )
    except (
        ValueError
    ):  # a local model that cannot learn from fewer rows is judged on those that it knows
        losses = models.losses(examples.X, examples.y)
    return FineTuned(models, losses)


def _losses_out_of_fold(
    estimator: Any,
    models: RefittedModels,
    examples: GroupedData,
    contexts: NDArray[np.intp],
    random_state: np.random.RandomState,
) -> Floats:
    """Loss of every row under models that have not seen its group, (N, K); the only group of a context is judged by those who have."""
    losses = models.losses(examples.X, examples.y)
    n_contexts = losses.shape[1]
    fold = (position_in_group(contexts, random_state.permutation(len(contexts))) % FOLDS)[
        examples.group
    ]  # of each row, (N,)
    for held in np.unique(fold) if len(contexts) > 1 else ():
        rows, judged = np.flatnonzero(fold != held), examples.take(np.flatnonzero(fold == held))
        if not len(rows):
            continue
        part, left = examples.take(rows).renumbered()
        others = _fitted(
            models, _refit(estimator, models, part, contexts[left], n_contexts, random_state)
        )
        has_learnt = np.flatnonzero(np.bincount(contexts[left], minlength=n_contexts))
        losses[np.ix_(fold == held, has_learnt)] = others.losses(judged.X, judged.y)[:, has_learnt]
    return losses


def _refit(
    estimator: Any,
    like: RefittedModels,
    examples: GroupedData,
    contexts: NDArray[np.intp],
    n_contexts: int,
    random_state: np.random.RandomState,
    until: float = np.inf,
    max_iter: int = 1,
    out_of_fold: Any = False,
) -> Refitted:
    return refit(
        make_local_model(estimator.local_model),
        examples.X,
        targets_of(examples),
        examples.group,
        like.row_losses,
        Given(torch.as_tensor(contexts), until),
        n_contexts,
        n_init=1,
        start=contexts,
        max_iter=max_iter,
        out_of_fold=out_of_fold,
        trim=estimator.trim,
        sample_weight=examples.weight,
        take=_safe_indexing,
        rng=np.random.default_rng(random_state.randint(2**31 - 1)),
    )


def _fitted(like: RefittedModels, found: Refitted) -> RefittedModels:
    return replace(like, fitted=with_sizes(found))
