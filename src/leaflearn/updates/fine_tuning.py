"""Short further training of fitted local models, and the comparison of sets of contexts.

Several sets of the same size are trained side by side. Each starts with given contexts, which are
held for a while; then groups may change contexts. Sets are compared by the loss of each row in the
context that the other rows of its group choose, as when contexts are counted before a fit.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from leaflearn.core.allocation import Given
from leaflearn.core.grouped_data import GroupedData, position_in_group, sum_by_group
from leaflearn.core.training import Callback
from leaflearn.engines.gradient import fine_tune_networks, fit_networks, refit_quickly
from leaflearn.engines.local_models import LocalModels, NetworkModels, RefittedModels
from leaflearn.engines.parameters import Parameters
from leaflearn.engines.recipe import Recipe, make_factory, make_recipe, to_grouped_tensors
from leaflearn.engines.refit import Refitted, make_local_model, refit, targets_of, with_sizes
from leaflearn.engines.settings import TRAINING
from leaflearn.initialization.n_contexts import CandidateCount, is_significantly_better
from leaflearn.updates import settings

Floats = NDArray[np.float64]


class Candidate(NamedTuple):
    """A set of local models, and the context in which each group starts, (m,)."""

    local_models: LocalModels
    contexts: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class FineTuned:
    """A candidate after fine-tuning, and the losses of the rows that it is judged by."""

    local_models: LocalModels
    losses: Floats  #                                                           (N, K)

    def count(self, data: GroupedData) -> CandidateCount:
        """The losses of groups, and of rows whose context the rest of their group chooses."""
        weight = np.ones(len(data.y)) if data.weight is None else data.weight
        losses = self.losses * weight[:, None]
        mass = np.bincount(data.group, weight)
        scores = sum_by_group(losses, data.group)  #                            (m, K)
        by_others = (scores[data.group] - losses).argmin(1)  #                  (N,)
        size = np.bincount(data.group)
        # Scaled so that the mean over the rows of a group is the weighted mean.
        own = losses[np.arange(len(by_others)), by_others] * (size / mass)[data.group]
        held_out = np.full((len(size), size.max()), np.nan)  #                  (m, n)
        held_out[data.group, position_in_group(data.group)] = own
        held_out[size == 1] = np.nan
        return CandidateCount(self.losses.shape[1], float(np.mean(scores.min(1) / mass)), held_out)


def is_better(more: CandidateCount, fewer: CandidateCount) -> bool:
    """Whether more contexts predict held-out rows significantly better than fewer.

    Examples
    --------
    >>> three, two = (CandidateCount(k, e, np.full((9, 2), e)) for k, e in ((3, 0.010), (2, 0.011)))
    >>> is_better(three, two)
    False
    """
    if not np.isfinite(more.held_out).any():
        return more.error * settings.UPDATES.single_row_gain < fewer.error
    return not np.isfinite(fewer.error) or is_significantly_better(more, fewer)


def fine_tune(
    parameters: Parameters,
    candidates: Sequence[Candidate],
    data: GroupedData,
    random_state: np.random.RandomState,
    until: float = TRAINING.given_share,
    callbacks: Sequence[Callback] = (),
) -> list[FineTuned]:
    """Fine-tune each candidate; its contexts are held for the share `until` of the time."""
    first = candidates[0].local_models
    if isinstance(first, RefittedModels):
        return [
            _fine_tune_refitted(parameters, one, data, random_state, until) for one in candidates
        ]
    recipe = make_recipe(parameters, callbacks)
    n_parameters = sum(p.numel() for module in first.models for p in module.parameters())
    at_once = max(1, settings.UPDATES.max_parameters // max(1, n_parameters))
    parts = [candidates[i : i + at_once] for i in range(0, len(candidates), at_once)]
    return [
        tuned
        for part in parts
        for tuned in _fine_tune_networks(part, data, recipe, random_state, until)
    ]


def fit_new_models(
    parameters: Parameters,
    like: LocalModels,
    data: GroupedData,
    contexts: NDArray[np.intp],
    random_state: np.random.RandomState,
    quickly: bool = False,
) -> LocalModels:
    """New local models of the same kind for groups whose contexts (m,) are known.

    `quickly` trains networks for a short while only, to measure the losses of held-out rows.
    """
    n_contexts = int(contexts.max()) + 1
    if isinstance(like, RefittedModels):
        return _fitted(like, _refit(parameters, like, data, contexts, n_contexts, random_state))
    assert isinstance(like, NetworkModels)
    tensors = to_grouped_tensors(data, like.x_scaling, like.y_scaling, like.device)
    recipe = replace(make_recipe(parameters), allocation=Given(torch.as_tensor(contexts)))
    factory = make_factory(parameters.local_model, data)
    if quickly:
        seed = int(random_state.randint(2**31 - 1))
        modules = refit_quickly(
            factory, tensors, like.loss, contexts, n_contexts, recipe, seed, like.device
        )
    else:
        fit = fit_networks(
            factory, tensors, like.loss, n_contexts, recipe, random_state, like.device
        )
        modules = fit.modules
    is_default = parameters.local_model in (None, "mlp")
    return replace(like, models=[module.double() if is_default else module for module in modules])


def _fine_tune_networks(
    candidates: Sequence[Candidate],
    data: GroupedData,
    recipe: Recipe,
    random_state: np.random.RandomState,
    until: float,
) -> list[FineTuned]:
    models = [c.local_models for c in candidates if isinstance(c.local_models, NetworkModels)]
    first, starts = models[0], np.stack([c.contexts for c in candidates])
    tensors = to_grouped_tensors(data, first.x_scaling, first.y_scaling, first.device)
    # The default networks predict in double precision and are trained in single precision.
    is_default = first.x_scaling is not None
    sets = [[copy.deepcopy(module) for module in each.models] for each in models]
    if is_default:
        sets = [[module.float() for module in modules] for modules in sets]
    sets = fine_tune_networks(
        sets, tensors, first.loss, starts, recipe, random_state, first.device, until
    )
    if is_default:
        sets = [[module.double() for module in modules] for modules in sets]
    tuned = [replace(first, models=modules) for modules in sets]
    return [FineTuned(each, each.losses(data.X, data.y)) for each in tuned]


def _fine_tune_refitted(
    parameters: Parameters,
    candidate: Candidate,
    data: GroupedData,
    random_state: np.random.RandomState,
    until: float,
) -> FineTuned:
    like, n_contexts = candidate.local_models, len(candidate.local_models.models)
    assert isinstance(like, RefittedModels)
    found = _refit(
        parameters,
        like,
        data,
        candidate.contexts,
        n_contexts,
        random_state,
        until,
        settings.UPDATES.max_refits,
        parameters.out_of_fold,
    )
    models = _fitted(like, found)
    try:
        contexts = np.asarray(found.contexts)
        losses = _losses_out_of_fold(parameters, models, data, contexts, random_state)
    except ValueError:  # a local model that cannot be fitted on fewer rows is judged in sample
        losses = models.losses(data.X, data.y)
    return FineTuned(models, losses)


def _losses_out_of_fold(
    parameters: Parameters,
    models: RefittedModels,
    data: GroupedData,
    contexts: NDArray[np.intp],
    random_state: np.random.RandomState,
) -> Floats:
    """Loss of every row under models fitted without its group, (N, K).

    The only group of a context is judged in sample.
    """
    losses = models.losses(data.X, data.y)
    n_contexts = losses.shape[1]
    position = position_in_group(contexts, random_state.permutation(len(contexts)))
    fold = (position % settings.UPDATES.n_folds)[data.group]  #                 (N,)
    for held in np.unique(fold) if len(contexts) > 1 else ():
        rows, judged = np.flatnonzero(fold != held), data.take(np.flatnonzero(fold == held))
        if not len(rows):
            continue
        part, left = data.take(rows).renumbered()
        refitted = _refit(parameters, models, part, contexts[left], n_contexts, random_state)
        others = _fitted(models, refitted)
        is_fitted = np.flatnonzero(np.bincount(contexts[left], minlength=n_contexts))
        losses[np.ix_(fold == held, is_fitted)] = others.losses(judged.X, judged.y)[:, is_fitted]
    return losses


def _refit(
    parameters: Parameters,
    like: RefittedModels,
    data: GroupedData,
    contexts: NDArray[np.intp],
    n_contexts: int,
    random_state: np.random.RandomState,
    until: float = np.inf,
    max_iter: int = 1,
    out_of_fold: bool | str = False,
) -> Refitted:
    return refit(
        make_local_model(parameters.local_model),
        data.X,
        targets_of(data),
        data.group,
        like.row_losses,
        Given(torch.as_tensor(contexts), until),
        n_contexts,
        n_init=1,
        start=contexts,
        max_iter=max_iter,
        out_of_fold=out_of_fold,
        trim=parameters.trim,
        sample_weight=data.weight,
        take=_safe_indexing,
        rng=np.random.default_rng(random_state.randint(2**31 - 1)),
    )


def _fitted(like: RefittedModels, found: Refitted) -> RefittedModels:
    return replace(like, fitted=with_sizes(found))
