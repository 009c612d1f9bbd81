"""The engine for networks: contexts are found and learned by gradient steps.

    given    where the surrogate search found contexts that can be trusted, networks learn them
    search   else several starts run side by side, annealed, and the best one is kept
    refresh  and new networks learn the allocation that the search found

While annealing, every model learns a little from every group. Networks memorize the wrong labels
they learn this way: their training error falls to zero, their test error stays high. Refreshed
networks are trained on the right groups only.

All estimators use this engine, and with them the demo and the recovery suite. The benchmark method
`leaf-annealed` learns from a stream and takes steps of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from leaflearn.core.allocation import Annealed, Given, Rule
from leaflearn.core.batches import GroupedExamples
from leaflearn.core.grouped_data import GroupedData
from leaflearn.core.losses import Loss
from leaflearn.core.model_set import Factory, make_model_set
from leaflearn.core.training import NonFiniteLossError, Training
from leaflearn.engines import settings
from leaflearn.engines.fitted_state import EngineResult, FittedState
from leaflearn.engines.local_models import LocalModels, NetworkModels, Scaling
from leaflearn.engines.parameters import Parameters
from leaflearn.engines.progress import ProgressBar
from leaflearn.engines.recipe import (
    Recipe,
    count_epochs,
    count_starts,
    make_factory,
    make_recipe,
    resolve_device,
    resolve_loss,
    resolve_rule,
    seeded,
    to_grouped_tensors,
    train,
    vary_temperature,
)
from leaflearn.initialization.start import (
    describe_selection,
    describe_start,
    trusted_contexts,
)
from leaflearn.initialization.surrogate import Start


def fit_by_gradient(
    parameters: Parameters,
    n_contexts: int,
    data: GroupedData,
    start: Start | None,
    random_state: np.random.RandomState,
) -> EngineResult:
    """Fit networks: meta-batches of groups and an optimizer, several starts side by side.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> group = np.array([0, 0, 1, 1])
    >>> rows = GroupedData(np.zeros((4, 1)), np.zeros((4, 1)), group, np.arange(4), None, 1, False)
    >>> leaf = LeafRegressor(2, max_epochs=2)
    >>> fit_by_gradient(leaf, 2, rows, None, np.random.RandomState(0)).state.scores.shape
    (2, 2)
    """
    device = resolve_device(parameters.device)
    # The default network sees standardized data; a module of the user's sees it as it is.
    is_default = parameters.local_model in (None, "mlp")
    x_scaling = Scaling.of(data.X) if is_default else None
    y_scaling = Scaling.of(data.y) if is_default and not data.is_classifier else None
    tensors = to_grouped_tensors(data, x_scaling, y_scaling, device)
    loss = resolve_loss(parameters.loss, data.is_classifier)
    factory = make_factory(parameters.local_model, data)
    with ProgressBar.of(parameters) as bar:
        recipe = make_recipe(parameters, [*(parameters.callbacks or []), bar])
        contexts = trusted_contexts(parameters, start)
        fit = fit_networks(
            factory, tensors, loss, n_contexts, recipe, random_state, device, contexts
        )
    # In double precision, predictions do not depend on which rows are predicted together.
    modules = [module.double() if is_default else module for module in fit.modules]
    local_models = NetworkModels(modules, loss, x_scaling, y_scaling, data.is_classifier, device)
    state = FittedState(
        local_models,
        fit.scores,
        np.bincount(data.group),
        fit.history,
        fit.restarts,
        fit.best_restart,
        converged=fit.converged,
        constant_loss=loss.of_best_constant(tensors.y),
        init=describe_start(parameters, start, fit.kept_start),
        selection=describe_selection(start),
    )
    return EngineResult(state, partial(_refit_on_rows, local_models, factory, tensors, recipe))


# ---- the stages of a fit -------------------------------------------------------------------------


@dataclass(frozen=True)
class NetworkFit:
    """The start that was kept, and the outcome of the others."""

    modules: list[nn.Module]  # K local models
    scores: NDArray[np.float64]  # summed loss of every model on every group        (m, K)
    history: dict[str, NDArray[Any]]
    restarts: list[dict[str, Any]]  # see `restarts_` of the estimators
    best_restart: int
    converged: bool
    stopped: bool  # by a callback
    error: float  # mean over groups of the mean loss under the best model
    kept_start: bool = False  # whether the given contexts led to this fit


def fit_networks(
    factory: Factory,
    data: GroupedExamples,
    loss: Loss,
    n_contexts: int,
    recipe: Recipe,
    random_state: np.random.RandomState,
    device: str | torch.device = "cpu",
    start: NDArray[np.intp] | None = None,
) -> NetworkFit:
    """Fit `n_contexts` networks from several starts side by side, and keep the best.

    Where contexts (m,) to start from are given, the models learn them first. If too many groups
    leave these contexts, the search runs after all.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from leaflearn.core.losses import SquaredError
    >>> y = torch.tensor([[1.0], [-1.0]]).repeat(4, 1)
    >>> data = GroupedExamples(torch.zeros(8, 1), y, torch.arange(8))
    >>> recipe, random_state = Recipe(max_epochs=5), np.random.RandomState(0)
    >>> fit = fit_networks(lambda: nn.Linear(1, 1), data, SquaredError(), 2, recipe, random_state)
    >>> fit.scores.shape
    (8, 2)
    """
    seed, order_seed = random_state.randint(2**31 - 1, size=2).tolist()
    rule = resolve_rule(recipe.allocation, recipe.temperature, loss, data.y)
    refresh = recipe.refresh and isinstance(rule, Annealed) and n_contexts > 1
    given_share = settings.TRAINING.given_share
    with seeded(seed, device):
        generator = torch.Generator().manual_seed(order_seed)

        def run(rule: Rule, stage: str, n_small: int, label: str | None = None) -> NetworkFit:
            shape = (count_starts(recipe.n_init, factory, n_small), n_contexts)
            models = make_model_set(factory, shape, recipe.stacked, device)
            rule = vary_temperature(rule, recipe, shape[0])
            training = train(models, data, loss, rule, recipe, generator, stage)
            return keep_best(training, label or stage)

        given = None
        if start is not None:
            rule_given = Given(torch.as_tensor(start), until=given_share)
            given = run(rule_given, "training", settings.TRAINING.n_starts_known, "given")
            if given.stopped or _start_holds(given, start, data, loss):
                return replace(given, kept_start=True)
        n_starts = settings.TRAINING.n_starts
        found = run(rule, "search" if refresh else "training", n_starts)
        if refresh and not found.stopped:
            contexts = torch.as_tensor(found.scores.argmin(-1))
            refreshed = run(Given(contexts, until=given_share), "refresh", n_starts)
            found = _choose(found, refreshed, loss.of_best_constant(data.y))
    if given is None:
        return found
    if found.error < given.error:
        return replace(found, restarts=found.restarts + _discarded(given.restarts))
    return replace(given, kept_start=True, restarts=given.restarts + _discarded(found.restarts))


def keep_best(training: Training, stage: str = "training") -> NetworkFit:
    """The start that explains the groups best; `stage` names the stage in `restarts`.

    Examples
    --------
    >>> from leaflearn.core.allocation import Hard
    >>> from leaflearn.core.losses import SquaredError
    >>> data = GroupedExamples(torch.zeros(2, 1), torch.ones(2, 1), torch.arange(2))
    >>> models = make_model_set(lambda: nn.Linear(1, 1), (3, 2))  # three starts of two contexts
    >>> optimizer = torch.optim.SGD(models.parameters(), lr=0.1)
    >>> options = {"max_epochs": 2, "generator": torch.Generator()}
    >>> fit = keep_best(Training(models, data, SquaredError(), Hard(), optimizer, **options).run())
    >>> fit.error == min(start["error"] for start in fit.restarts), len(fit.modules)
    (True, 2)
    """
    scores = training.score_all_groups().cpu().numpy()  #                           (R, m, K)
    sizes = training.data.sizes.cpu().numpy()
    errors = (scores.min(-1) / sizes).mean(-1)  #                                   (R,)
    if not np.isfinite(errors).any():
        raise NonFiniteLossError(
            "The loss became non-finite in the last step; the likely cause is a learning rate that "
            "is too large: lower it."
        )
    best = int(np.nanargmin(np.where(np.isfinite(errors), errors, np.inf)))
    changed = training.columns()["changed"][-1]  #                                  (R,)
    has_converged = changed <= settings.TRAINING.max_changed
    curves = training.columns()["loss"].T  #                                        (R, T)
    restarts = [
        {
            "stage": stage,
            "error": float(error),
            "kept": r == best,
            "n_iter": training.epoch,
            "converged": bool(has_converged[r]),
            "curve": curves[r],
            "contexts": scores[r].argmin(-1),
        }
        for r, error in enumerate(errors)
    ]
    n_contexts = scores.shape[-1]
    return NetworkFit(
        modules=training.models.modules()[best * n_contexts : (best + 1) * n_contexts],
        scores=scores[best],
        history=training.columns(best),
        restarts=restarts,
        best_restart=best,
        converged=bool(has_converged[best]),
        stopped=training.stopped,
        error=float(errors[best]),
    )


def _start_holds(
    fit: NetworkFit, start: NDArray[np.intp], data: GroupedExamples, loss: Loss
) -> bool:
    """Whether the groups kept the contexts (m,) they started in, or left them at no gain."""
    if np.mean(fit.scores.argmin(-1) == start) >= settings.TRAINING.min_kept:
        return True
    cost = np.take_along_axis(fit.scores, start[:, None], 1)[:, 0] - fit.scores.min(-1)  # (m,)
    mean_cost = (cost / data.sizes.cpu().numpy()).mean()
    return bool(mean_cost < settings.TRAINING.max_worsening * loss.of_best_constant(data.y))


def _choose(found: NetworkFit, refreshed: NetworkFit, constant_loss: float) -> NetworkFit:
    """The refreshed models, unless they explain the groups clearly worse; both are recorded."""
    history = {
        name: np.concatenate([found.history[name], refreshed.history[name]])
        for name in found.history
    }
    history["epoch"] = np.arange(1, len(history["epoch"]) + 1)
    keep = refreshed.error - found.error < settings.TRAINING.max_worsening * constant_loss
    return replace(
        refreshed if keep else found,
        history=history,
        restarts=found.restarts + (refreshed.restarts if keep else _discarded(refreshed.restarts)),
        best_restart=found.best_restart,
    )


def _discarded(restarts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Starts of a stage whose models were not used."""
    return [{**start, "kept": False} for start in restarts]


# ---- known contexts ------------------------------------------------------------------------------


def refit_quickly(
    factory: Factory,
    data: GroupedExamples,
    loss: Loss,
    contexts: NDArray[np.intp],
    n_contexts: int,
    recipe: Recipe,
    seed: int,
    device: str | torch.device = "cpu",
) -> list[nn.Module]:
    """New networks for known contexts (m,), in a tenth of the time, to measure held-out losses.

    Examples
    --------
    >>> from leaflearn.core.losses import SquaredError
    >>> data = GroupedExamples(torch.zeros(2, 1), torch.zeros(2, 1), torch.arange(2))
    >>> contexts, recipe = np.array([0, 1]), Recipe(max_epochs=5)
    >>> len(refit_quickly(lambda: nn.Linear(1, 1), data, SquaredError(), contexts, 2, recipe, 0))
    2
    """
    n_epochs = math.ceil(settings.TRAINING.quick_share * count_epochs(recipe, data.n_groups))
    with seeded(seed, device):
        models = make_model_set(factory, (n_contexts,), recipe.stacked, device)
        # Other optimizers than Adam may not tolerate larger steps.
        factor = settings.TRAINING.quick_rate if recipe.optimizer in ("adam", "adamw") else 1.0
        rate = recipe.learning_rate * factor
        quick = replace(recipe, max_epochs=n_epochs, learning_rate=rate, callbacks=())
        generator = torch.Generator().manual_seed(seed)
        rule = Given(torch.as_tensor(contexts))
        return train(models, data, loss, rule, quick, generator, "refit").models.modules()


def _refit_on_rows(
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
    weight = None if data.weight is None else data.weight[rows]
    part = GroupedExamples(data.x[rows], data.y[rows], torch.as_tensor(group), weight)
    modules = refit_quickly(
        factory, part, like.loss, contexts[kept], len(like.models), recipe, seed, like.device
    )
    return replace(like, models=modules)


def fine_tune_networks(
    sets: Sequence[Sequence[nn.Module]],
    data: GroupedExamples,
    loss: Loss,
    starts: NDArray[np.intp],
    recipe: Recipe,
    random_state: np.random.RandomState,
    device: str | torch.device = "cpu",
    until: float | None = None,
) -> list[list[nn.Module]]:
    """Train sets of fitted networks for a short while, side by side, in place.

    Each set starts from contexts (m,) of its own, a row of `starts`, which are held for the share
    `until` of the time.

    Examples
    --------
    >>> from leaflearn.core.losses import SquaredError
    >>> data = GroupedExamples(torch.zeros(2, 1), torch.zeros(2, 1), torch.arange(2))
    >>> sets, starts = [[nn.Linear(1, 1), nn.Linear(1, 1)]], np.array([[0, 1]])
    >>> options = Recipe(max_epochs=2), np.random.RandomState(0)
    >>> (tuned,) = fine_tune_networks(sets, data, SquaredError(), starts, *options)
    >>> len(tuned)
    2
    """
    seed, order_seed = random_state.randint(2**31 - 1, size=2).tolist()
    until = settings.TRAINING.given_share if until is None else until
    shape = (len(sets), len(sets[0]))
    modules = (module for each in sets for module in each)
    steps_per_epoch = math.ceil(data.n_groups / recipe.groups_per_step)
    n_epochs = max(
        settings.TRAINING.fine_tuning_min_epochs,
        math.ceil(settings.TRAINING.fine_tuning_steps / steps_per_epoch),
    )
    short = replace(recipe, max_epochs=min(n_epochs, count_epochs(recipe, data.n_groups)))
    with seeded(seed, device):
        models = make_model_set(lambda: next(modules), shape, recipe.stacked, device)
        generator = torch.Generator().manual_seed(order_seed)
        rule = Given(torch.as_tensor(starts), until)
        train(models, data, loss, rule, short, generator, "fine-tuning")
    tuned = models.modules()
    return [tuned[i : i + shape[1]] for i in range(0, len(tuned), shape[1])]
