"""One training as a recipe has it: how long, with which optimizer, and with chance that can be repeated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from leaflearn.core.allocation import Rule
from leaflearn.core.batches import GroupedExamples
from leaflearn.core.losses import Loss
from leaflearn.core.model_set import ModelSet
from leaflearn.core.training import Training
from leaflearn.engines.recipe import OPTIMIZERS, Recipe

STEPS = 2000  # of each stage, on a small task; a larger one gets MIN_EPOCHS
MIN_EPOCHS = 20


def train(
    models: ModelSet,
    data: GroupedExamples,
    loss: Loss,
    rule: Rule,
    recipe: Recipe,
    generator: torch.Generator,
    stage: str,
) -> Training:
    """Train the models on the data by the rule; callbacks read the name of the stage.

    Examples
    --------
    >>> from leaflearn.core.allocation import Hard
    >>> from leaflearn.core.losses import SquaredError
    >>> from leaflearn.core.model_set import make_model_set
    >>> data = GroupedExamples(torch.zeros(2, 1), torch.zeros(2, 1), torch.arange(2))
    >>> models = make_model_set(lambda: torch.nn.Linear(1, 1), (2,))
    >>> train(models, data, SquaredError(), Hard(), Recipe(max_epochs=5), torch.Generator(), "training").epoch
    5
    """
    return Training(
        models,
        data,
        loss,
        rule,
        _make_optimizer(recipe, models.parameters()),
        max_epochs=count_epochs(recipe, data.n_groups),
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


def count_epochs(recipe: Recipe, n_groups: int) -> int:
    """How many passes over the groups a stage takes: as many as were asked for, else enough for a number of steps.

    Examples
    --------
    >>> [count_epochs(Recipe(), n_groups) for n_groups in (32, 64, 6400)]
    [2000, 1000, 20]
    """
    if not isinstance(recipe.max_epochs, str):
        return recipe.max_epochs
    steps_per_epoch = math.ceil(n_groups / recipe.groups_per_step)
    return max(MIN_EPOCHS, math.ceil(STEPS / steps_per_epoch))


def _make_optimizer(recipe: Recipe, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    make = OPTIMIZERS[recipe.optimizer] if isinstance(recipe.optimizer, str) else recipe.optimizer
    return make(parameters, lr=recipe.learning_rate)


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
