"""Contexts that are known already: new models learn them again quickly, or the models that are there learn on for a while."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from leaflearn.core.allocation import Given
from leaflearn.core.batches import GroupedExamples
from leaflearn.core.losses import Loss
from leaflearn.core.model_set import Factory, make_model_set
from leaflearn.engines.recipe import GIVEN, Recipe
from leaflearn.engines.training_run import count_epochs, seeded, train

QUICKLY, FASTER = (
    0.1,
    3.0,
)  # share of a stage in which known contexts are learnt again, and how much larger the steps of Adam are then
FURTHER, LEAST_FURTHER = (
    320,
    3,
)  # steps, and passes at least, in which models that are there already learn on


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
    """New local models that learn known contexts (m,) in a tenth of the time, to see what losses rows have that were held out.

    Examples
    --------
    >>> from leaflearn.core.losses import SquaredError
    >>> data = GroupedExamples(torch.zeros(2, 1), torch.zeros(2, 1), torch.arange(2))
    >>> len(refit_quickly(lambda: torch.nn.Linear(1, 1), data, SquaredError(), np.array([0, 1]), 2, Recipe(max_epochs=5), seed=0))
    2
    """
    n_epochs = math.ceil(QUICKLY * count_epochs(recipe, data.n_groups))
    with seeded(seed, device):
        models = make_model_set(factory, (n_contexts,), recipe.stacked, device)
        rate = recipe.learning_rate * (
            FASTER if recipe.optimizer in ("adam", "adamw") else 1.0
        )  # others may not bear larger steps
        quick = replace(recipe, max_epochs=n_epochs, learning_rate=rate, callbacks=())
        return train(
            models,
            data,
            loss,
            Given(torch.as_tensor(contexts)),
            quick,
            torch.Generator().manual_seed(seed),
            "again",
        ).models.modules()


def fine_tune_networks(
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
    >>> (further,) = fine_tune_networks(sets, data, SquaredError(), np.array([[0, 1]]), Recipe(max_epochs=2), np.random.RandomState(0))
    >>> len(further)
    2
    """
    seed, order_seed = random_state.randint(2**31 - 1, size=2).tolist()
    shape = (len(sets), len(sets[0]))
    modules = (module for each in sets for module in each)
    n_epochs = max(
        LEAST_FURTHER, math.ceil(FURTHER / math.ceil(data.n_groups / recipe.groups_per_step))
    )
    short = replace(recipe, max_epochs=min(n_epochs, count_epochs(recipe, data.n_groups)))
    with seeded(seed, device):
        models = make_model_set(lambda: next(modules), shape, recipe.stacked, device)
        generator = torch.Generator().manual_seed(order_seed)
        train(
            models, data, loss, Given(torch.as_tensor(starts), until), short, generator, "further"
        )
    further = models.modules()
    return [further[i : i + shape[1]] for i in range(0, len(further), shape[1])]
