"""The stages of a fit: learn contexts that were given, where they hold; else search for them, and let fresh models learn what was found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from leaflearn.core.allocation import Annealed, Given, Rule
from leaflearn.core.batches import GroupedExamples
from leaflearn.core.losses import Loss
from leaflearn.core.model_set import Factory, make_model_set
from leaflearn.engines.outcome import Fit, keep_best
from leaflearn.engines.recipe import (
    GIVEN,
    SMALL_FITS,
    SMALL_STARTS,
    Recipe,
    count_starts,
    resolve_rule,
    vary,
)
from leaflearn.engines.training_run import seeded, train

WORSE = 0.01  # of the best constant's loss: how much worse fresh models may explain the groups
KEPT = 0.9  # share of groups that must end in the context they started in; else the start was not a good one


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

        def run(
            rule: Rule, stage: str, small_starts: int = SMALL_STARTS, called: str | None = None
        ) -> Fit:
            shape = (count_starts(recipe.n_init, factory, small_starts), n_contexts)
            models = make_model_set(factory, shape, recipe.stacked, device)
            return keep_best(
                train(models, data, loss, vary(rule, recipe, shape[0]), recipe, generator, stage),
                called or stage,
            )

        started = (
            None
            if start is None
            else run(Given(torch.as_tensor(start), until=GIVEN), "training", SMALL_FITS, "given")
        )
        if (
            started is not None
            and start is not None
            and (started.stopped or _holds(started, start, data, loss))
        ):
            return replace(started, kept_start=True)
        found = run(rule, "search" if twice else "training")
        if twice and not found.stopped:
            fresh = run(Given(torch.as_tensor(found.scores.argmin(-1)), until=GIVEN), "refresh")
            found = _choose(found, fresh, loss.of_best_constant(data.y))
    if started is None:
        return found
    if found.error < started.error:
        return replace(found, restarts=found.restarts + _left(started.restarts))
    return replace(started, kept_start=True, restarts=started.restarts + _left(found.restarts))


def _holds(started: Fit, start: NDArray[np.intp], data: GroupedExamples, loss: Loss) -> bool:
    """Did the groups stay in the contexts (m,) that they started in, or move only where it makes no difference?"""
    if np.mean(started.scores.argmin(-1) == start) >= KEPT:
        return True
    moved = np.take_along_axis(started.scores, start[:, None], 1)[:, 0] - started.scores.min(
        -1
    )  # what it costs to stay  (m,)
    return bool((moved / data.sizes.cpu().numpy()).mean() < WORSE * loss.of_best_constant(data.y))


def _choose(found: Fit, fresh: Fit, unit: float) -> Fit:
    """The fresh models, unless they explain the groups clearly worse; the history and the starts tell of both stages."""
    history = {
        name: np.concatenate([found.history[name], fresh.history[name]]) for name in found.history
    }
    history["epoch"] = np.arange(1, len(history["epoch"]) + 1)
    kept = fresh if fresh.error - found.error < WORSE * unit else found
    restarts = found.restarts + (fresh.restarts if kept is fresh else _left(fresh.restarts))
    return replace(kept, history=history, restarts=restarts, best_restart=found.best_restart)


def _left(restarts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Starts of a stage that led nowhere: none of them was kept in the end."""
    return [{**start, "kept": False} for start in restarts]
