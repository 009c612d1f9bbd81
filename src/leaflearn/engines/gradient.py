"""The engine for networks: from an estimator's parameters and checked examples to networks that were trained by gradient steps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from leaflearn.core.batches import GroupedExamples
from leaflearn.core.grouped_data import GroupedData
from leaflearn.core.model_set import Factory
from leaflearn.engines import Recipe, fit_networks, refit_quickly
from leaflearn.engines.fitted_state import Fitting
from leaflearn.engines.local_models import LocalModels, NetworkModels, Scaling
from leaflearn.engines.network_parts import (
    as_grouped,
    make_factory,
    make_recipe,
    resolve_device,
    resolve_loss,
)
from leaflearn.engines.progress import ProgressBar
from leaflearn.initialization.start import (
    Start,
    describe_selection,
    describe_start,
    trusted_contexts,
)


def fit_by_gradient(
    estimator: Any, examples: GroupedData, start: Start | None, random_state: np.random.RandomState
) -> Fitting:
    """Networks: meta-batches of groups and an optimizer, several starts side by side.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> leaf = LeafRegressor(2, max_epochs=2)
    >>> leaf.n_contexts_ = 2
    >>> rows = GroupedData(np.zeros((4, 1)), np.zeros((4, 1)), np.array([0, 0, 1, 1]), np.arange(4), None, 1, False)
    >>> fit_by_gradient(leaf, rows, None, np.random.RandomState(0)).scores.shape
    (2, 2)
    """
    device = resolve_device(estimator.device)
    # The default network stands between two scalings; a module of the user's sees the data in the user's units.
    is_own = estimator.local_model is None
    x_scaling = Scaling.of(examples.X) if is_own else None
    y_scaling = Scaling.of(examples.y) if is_own and not examples.is_classifier else None
    data = as_grouped(examples, x_scaling, y_scaling, device)
    loss = resolve_loss(estimator.loss, examples.is_classifier)
    factory = make_factory(estimator.local_model, examples)
    with ProgressBar.of(estimator) as bar:
        recipe = make_recipe(estimator, [*(estimator.callbacks or []), bar])
        contexts = trusted_contexts(estimator, start)
        fit = fit_networks(
            factory, data, loss, estimator.n_contexts_, recipe, random_state, device, contexts
        )
    # In double precision the answer for a row does not depend on the rows that are asked with it.
    modules = [module.double() if is_own else module for module in fit.modules]
    local_models = NetworkModels(
        modules, loss, x_scaling, y_scaling, examples.is_classifier, device
    )
    return Fitting(
        local_models,
        fit.scores,
        fit.history,
        fit.restarts,
        fit.best_restart,
        fit.converged,
        constant_loss=loss.of_best_constant(data.y),
        refit_quickly=partial(_refit_quickly, local_models, factory, data, recipe),
        init=describe_start(estimator, start, fit.kept_start),
        selection=describe_selection(start),
    )


def _refit_quickly(
    like: NetworkModels,
    factory: Factory,
    data: GroupedExamples,
    recipe: Recipe,
    rows: NDArray[np.intp],
    contexts: NDArray[np.intp],
    seed: int,
) -> LocalModels:
    """New networks for the contexts (m,) from some of the rows."""
    kept, group = np.unique(data.group.numpy()[rows], return_inverse=True)
    part = GroupedExamples(
        data.x[rows],
        data.y[rows],
        torch.as_tensor(group),
        None if data.weight is None else data.weight[rows],
    )
    return replace(
        like,
        models=refit_quickly(
            factory, part, like.loss, contexts[kept], len(like.models), recipe, seed, like.device
        ),
    )
