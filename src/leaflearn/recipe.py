"""The default way to fit networks: find the contexts, then learn them.

    start    contexts read off the conflict itself, before anything is trained (`conflict/`); where they can be trusted, models learn them
    search   else several starts side by side, annealed; the one that explains the groups best is kept
    refresh  and new local models learn from its allocation

While annealing, every model learns a little from every group, and a network that has learned wrong answers by heart does not forget them:
its training error falls to nothing, its test error stays high. New models never see the wrong answers.

Estimators and experiments alike come through here, so a better default is made in one place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leaflearn.core.allocation import RULES, Annealed, Given, Rule, make_rule
from leaflearn.core.batches import GroupedExamples
from leaflearn.core.losses import CrossEntropy, Loss
from leaflearn.core.model_set import STACK_BELOW, Factory, ModelSet, make_model_set
from leaflearn.core.robust_losses import GeneralizedCrossEntropy
from leaflearn.core.training import Callback, NonFiniteLossError, Schedule, Training

SMALL_STARTS = 4  # starts of small networks, which run side by side and cost little more than one
SMALL_FITS = 2  # the same, where the contexts are known and only the weights are chance
STEPS = 2000  # of each stage, on a small task; a larger one gets MIN_EPOCHS
MIN_EPOCHS = 20
GIVEN = 0.3  # share of the refresh for which the allocation is held; then it is hard and may still mend itself
STILL = 0.01  # share of groups that may have moved in the last epoch of a converged run
WORSE = 0.01  # of the best constant's loss: how much worse fresh models may explain the groups
QUICKLY, FASTER = 0.1, 3.0  # share of a stage in which known contexts are learnt again, and how much larger the steps of Adam are then
FURTHER, LEAST_FURTHER = 320, 3  # steps, and passes at least, in which models that are there already learn on
HOTTER = 2.0  # times the temperature of the first start has every second one
KEPT = 0.9  # share of groups that must end in the context they started in; else the start was not a good one

MakeOptimizer = Callable[..., torch.optim.Optimizer]
OPTIMIZERS: dict[str, MakeOptimizer] = {
    "adam": partial(torch.optim.Adam, fused=True),
    "adamw": partial(torch.optim.AdamW, fused=True),
    "sgd": partial(torch.optim.SGD, momentum=0.9, weight_decay=1e-4, fused=True),  # the paper's, in regression
}


class RecoveryWarning(UserWarning):
    """The fit may not be right: the contexts that were found, or what was learnt in them."""


@dataclass(frozen=True)
class Recipe:
    """How to fit: every choice in one place, `"auto"` where the data decide.

    Examples
    --------
    >>> Recipe(max_epochs=5).allocation
    'annealed'
    """

    allocation: str | Rule = "annealed"
    temperature: float | str = "auto"
    n_init: int | str = "auto"
    optimizer: str | MakeOptimizer = "adamw"
    learning_rate: float = 0.003
    schedule: str | Schedule = "cosine"
    max_epochs: int | str = "auto"
    groups_per_step: int = 32
    rows_per_group: int | None = 32
    max_grad_norm: float | None = None
    trim: float = 0.0
    tol: float = 1e-4
    n_iter_no_change: int | None = 20
    refresh: bool = True
    stacked: bool | None = None
    callbacks: Sequence[Callback] = ()


@dataclass(frozen=True)
class Fit:
    """The start that was kept, and what became of the others."""

    modules: list[nn.Module]  # K local models
    scores: NDArray[np.float64]  # summed loss of every model on every group        (m, K)
    history: dict[str, NDArray[Any]]
    restarts: list[dict[str, Any]]  # of every start: error, kept, n_iter, converged, its curve of losses, and its contexts (m,)
    best_restart: int
    converged: bool
    stopped: bool  # by a callback
    error: float  # mean over groups of the mean loss under the best model
    kept_start: bool = False  # the contexts that were given to start from led here


def fit_networks(
    factory: Factory,
    data: GroupedExamples,
    loss: Loss,
    n_contexts: int,
    recipe: Recipe,
    random_state: np.random.RandomState,
    device: str | torch.device = "cpu",
    start: NDArray[np.intp] | None = None,
) -> Fit:
    """Fit `n_contexts` local models made by `factory`, from several starts side by side, and keep the best.

    Where contexts (m,) to start from are given, the models learn them first; if they do not hold, the search begins after all.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from leaflearn.core.losses import SquaredError
    >>> data = GroupedExamples(torch.zeros(8, 1), torch.tensor([[1.0], [-1.0]]).repeat(4, 1), torch.arange(8))
    >>> fit = fit_networks(lambda: torch.nn.Linear(1, 1), data, SquaredError(), 2, Recipe(max_epochs=5), np.random.RandomState(0))
    >>> fit.scores.shape
    (8, 2)
    """
    seed, order_seed = random_state.randint(2**31 - 1, size=2).tolist()
    rule = resolve_rule(recipe.allocation, recipe.temperature, loss, data.y)
    twice = recipe.refresh and isinstance(rule, Annealed) and n_contexts > 1
    with seeded(seed, device):
        generator = torch.Generator().manual_seed(order_seed)

        def run(rule: Rule, stage: str, small_starts: int = SMALL_STARTS) -> Fit:
            shape = (_count_starts(recipe.n_init, factory, small_starts), n_contexts)
            models = make_model_set(factory, shape, recipe.stacked, device)
            return _keep_best(_train(models, data, loss, _vary(rule, recipe, shape[0]), recipe, generator, stage))

        started = None if start is None else run(Given(torch.as_tensor(start), until=GIVEN), "training", SMALL_FITS)
        if started is not None and start is not None and (started.stopped or _holds(started, start, data, loss)):
            return replace(started, kept_start=True)
        found = run(rule, "search" if twice else "training")
        if twice and not found.stopped:
            fresh = run(Given(torch.as_tensor(found.scores.argmin(-1)), until=GIVEN), "refresh")
            found = _choose(found, fresh, loss.of_best_constant(data.y))
    return found if started is None or found.error < started.error else replace(started, kept_start=True)


def _train(
    models: ModelSet, data: GroupedExamples, loss: Loss, rule: Rule, recipe: Recipe, generator: torch.Generator, stage: str
) -> Training:
    return Training(
        models,
        data,
        loss,
        rule,
        _make_optimizer(recipe, models.parameters()),
        max_epochs=_count_epochs(recipe, data.n_groups),
        groups_per_step=recipe.groups_per_step,
        rows_per_group=recipe.rows_per_group,
        schedule=recipe.schedule,
        tol=recipe.tol,
        n_iter_no_change=recipe.n_iter_no_change,
        max_grad_norm=recipe.max_grad_norm,
        trim=recipe.trim,
        generator=generator,
        callbacks=recipe.callbacks,
        stage=stage,
    ).run()


def learn_again(
    factory: Factory,
    data: GroupedExamples,
    loss: Loss,
    contexts: NDArray[np.intp],
    n_contexts: int,
    recipe: Recipe,
    seed: int,
    device: str | torch.device = "cpu",
) -> list[nn.Module]:
    """New local models that learn known contexts (m,) in a tenth of the time, to see what losses rows have that were held out.

    Examples
    --------
    >>> from leaflearn.core.losses import SquaredError
    >>> data = GroupedExamples(torch.zeros(2, 1), torch.zeros(2, 1), torch.arange(2))
    >>> len(learn_again(lambda: torch.nn.Linear(1, 1), data, SquaredError(), np.array([0, 1]), 2, Recipe(max_epochs=5), seed=0))
    2
    """
    n_epochs = math.ceil(QUICKLY * _count_epochs(recipe, data.n_groups))
    with seeded(seed, device):
        models = make_model_set(factory, (n_contexts,), recipe.stacked, device)
        rate = recipe.learning_rate * (FASTER if recipe.optimizer in ("adam", "adamw") else 1.0)  # others may not bear larger steps
        quick = replace(recipe, max_epochs=n_epochs, learning_rate=rate, callbacks=())
        return _train(
            models, data, loss, Given(torch.as_tensor(contexts)), quick, torch.Generator().manual_seed(seed), "again"
        ).models.modules()


def continue_networks(
    sets: Sequence[Sequence[nn.Module]],
    data: GroupedExamples,
    loss: Loss,
    starts: NDArray[np.intp],
    recipe: Recipe,
    random_state: np.random.RandomState,
    device: str | torch.device = "cpu",
    until: float = GIVEN,
) -> list[list[nn.Module]]:
    """Let sets of local models learn on for a short while, side by side; the modules themselves may change.

    Each set has contexts (m,) of its own to begin with, a row of `starts`, which hold for the share `until` of the time.

    Examples
    --------
    >>> from leaflearn.core.losses import SquaredError
    >>> data = GroupedExamples(torch.zeros(2, 1), torch.zeros(2, 1), torch.arange(2))
    >>> sets = [[torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)]]
    >>> (further,) = continue_networks(sets, data, SquaredError(), np.array([[0, 1]]), Recipe(max_epochs=2), np.random.RandomState(0))
    >>> len(further)
    2
    """
    seed, order_seed = random_state.randint(2**31 - 1, size=2).tolist()
    shape = (len(sets), len(sets[0]))
    modules = (module for each in sets for module in each)
    n_epochs = max(LEAST_FURTHER, math.ceil(FURTHER / math.ceil(data.n_groups / recipe.groups_per_step)))
    short = replace(recipe, max_epochs=min(n_epochs, _count_epochs(recipe, data.n_groups)))
    with seeded(seed, device):
        models = make_model_set(lambda: next(modules), shape, recipe.stacked, device)
        generator = torch.Generator().manual_seed(order_seed)
        _train(models, data, loss, Given(torch.as_tensor(starts), until), short, generator, "further")
    further = models.modules()
    return [further[i : i + shape[1]] for i in range(0, len(further), shape[1])]


def _vary(rule: Rule, recipe: Recipe, n_starts: int) -> Rule:
    """A temperature that was left to us is not the same for all starts: which one the data want shows in the end."""
    if not isinstance(rule, Annealed) or recipe.temperature != "auto" or n_starts == 1:
        return rule
    return Annealed(rule.start * torch.tensor([1.0, HOTTER]).repeat(n_starts)[:n_starts, None, None], rule.until)


def _holds(started: Fit, start: NDArray[np.intp], data: GroupedExamples, loss: Loss) -> bool:
    """Did the groups stay in the contexts (m,) that they started in, or move only where it makes no difference?"""
    if np.mean(started.scores.argmin(-1) == start) >= KEPT:
        return True
    moved = np.take_along_axis(started.scores, start[:, None], 1)[:, 0] - started.scores.min(-1)  # what it costs to stay  (m,)
    return bool((moved / data.sizes.cpu().numpy()).mean() < WORSE * loss.of_best_constant(data.y))


def _choose(found: Fit, fresh: Fit, unit: float) -> Fit:
    """The fresh models, unless they explain the groups clearly worse; the history tells of both stages."""
    history = {name: np.concatenate([found.history[name], fresh.history[name]]) for name in found.history}
    history["epoch"] = np.arange(1, len(history["epoch"]) + 1)
    kept = fresh if fresh.error - found.error < WORSE * unit else found
    return replace(kept, history=history, restarts=found.restarts, best_restart=found.best_restart)


def resolve_rule(allocation: str | Rule, temperature: float | str, loss: Loss, y: Tensor) -> Rule:
    """The rule by its name, with the temperature that fits the data where it is "auto".

    Annealing starts at half the loss of the best constant prediction. The other rules have the paper's temperatures: 1 for cross-entropy,
    0.1 for squared error (Appendix D).

    Examples
    --------
    >>> import torch
    >>> from leaflearn.core.losses import SquaredError
    >>> resolve_rule("annealed", "auto", SquaredError(), torch.tensor([[0.0], [2.0]]))
    Annealed(start=0.5, until=0.75)
    """
    if not isinstance(allocation, str):
        return allocation
    if allocation not in RULES:
        raise ValueError(f"allocation={allocation!r} is not known; choose one of {', '.join(map(repr, RULES))}, or pass a rule object.")
    if isinstance(temperature, str):
        if allocation == "annealed":
            temperature = 0.5 * loss.of_best_constant(y) or 1.0  # constant targets cost nothing: any temperature will do
        else:
            temperature = 1.0 if isinstance(loss, CrossEntropy | GeneralizedCrossEntropy) else 0.1
    return make_rule(allocation, temperature)


@contextmanager
def seeded(seed: int, device: str | torch.device = "cpu") -> Iterator[None]:
    """Seed torch's global generator, which layers and dropout draw from, and give it back as it was.

    Examples
    --------
    >>> with seeded(0):
    ...     _ = torch.rand(1)
    """
    with torch.random.fork_rng(devices=[device] if torch.device(device).type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def _count_starts(n_init: int | str, factory: Factory, small_starts: int) -> int:
    if not isinstance(n_init, str):
        return n_init
    return small_starts if sum(p.numel() for p in factory().parameters()) <= STACK_BELOW else 1


def _count_epochs(recipe: Recipe, n_groups: int) -> int:
    if not isinstance(recipe.max_epochs, str):
        return recipe.max_epochs
    steps_per_epoch = math.ceil(n_groups / recipe.groups_per_step)
    return max(MIN_EPOCHS, math.ceil(STEPS / steps_per_epoch))


def _make_optimizer(recipe: Recipe, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    make = OPTIMIZERS[recipe.optimizer] if isinstance(recipe.optimizer, str) else recipe.optimizer
    return make(parameters, lr=recipe.learning_rate)


def _keep_best(training: Training) -> Fit:
    scores = training.score_all_groups().cpu().numpy()  #                                                   (R, m, K)
    sizes = training.data.sizes.cpu().numpy()
    errors = (scores.min(-1) / sizes).mean(-1)  #                                                           (R,)
    if not np.isfinite(errors).any():
        raise NonFiniteLossError(
            "The loss became non-finite in the last step; the likely cause is a learning rate that is too large: lower it."
        )
    best = int(np.nanargmin(np.where(np.isfinite(errors), errors, np.inf)))
    still = training.columns()["changed"][-1] <= STILL  #                                                   (R,)
    n_contexts = scores.shape[-1]
    curves = training.columns()["loss"].T  #                                                                (R, T)
    history = training.columns(best)
    return Fit(
        modules=training.models.modules()[best * n_contexts : (best + 1) * n_contexts],
        scores=scores[best],
        history=history,
        restarts=[
            {
                "error": float(error),
                "kept": r == best,
                "n_iter": training.epoch,
                "converged": bool(still[r]),
                "curve": curves[r],
                "contexts": scores[r].argmin(-1),
            }
            for r, error in enumerate(errors)
        ],
        best_restart=best,
        converged=bool(still[best]),
        stopped=training.stopped,
        error=float(errors[best]),
    )
