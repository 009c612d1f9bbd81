"""The parts that an experiment is put together from, each made by a function that the settings name and whose arguments they give."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.domains import DomainSet
from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.benchmark.methods import METHODS, Method
from leaflearn.benchmark.methods.optimizers import OPTIMIZERS, Optimize
from leaflearn.engines.networks import convnet, mlp

Settings = dict[str, Any]


def flat_mlp(
    input_shape: tuple[int, ...], n_outputs: int, hidden: tuple[int, ...] = (32, 32, 32, 32, 32)
) -> nn.Sequential:
    """Linear layers behind inputs of any shape.

    Examples
    --------
    >>> len(flat_mlp((3, 8, 8), 18, hidden=[64]))
    4
    """
    layers = mlp(int(np.prod(input_shape)), n_outputs, tuple(hidden))
    return (
        layers if len(input_shape) == 1 else nn.Sequential(nn.Flatten(), *layers)
    )  # plain layers can be stacked, and are then quicker


NETWORKS: dict[str, Callable[..., nn.Module]] = {"mlp": flat_mlp, "convnet": convnet}
TABLES: dict[str, Mapping[str, Any]] = {
    "dataset": DATASETS,
    "network": NETWORKS,
    "optimizer": OPTIMIZERS,
    "method": METHODS,
}
GIVEN = {
    "network": {"input_shape", "n_outputs"},
    "optimizer": {"parameters"},
    "sampler": {"domains", "random_state"},
}  # never by settings


def make_domains(settings: Settings) -> DomainSet:
    """The data set.

    Examples
    --------
    >>> make_domains({"name": "functions"}).names
    ('absolute', 'sine', 'logarithm')
    """
    return DATASETS[settings["name"]](**_arguments(settings))


def make_network(settings: Settings, input_shape: tuple[int, ...]) -> Callable[[int], nn.Module]:
    """What makes a network with that many outputs.

    Weights of convolutions lie with the channels next to each other, which is faster: for all methods alike, so that their times compare.

    Examples
    --------
    >>> make_network({"name": "mlp", "hidden": [8]}, (2,))(3)[-1]
    Linear(in_features=8, out_features=3, bias=True)
    """

    def make(n_outputs: int) -> nn.Module:
        network = NETWORKS[settings["name"]](input_shape, n_outputs, **_arguments(settings))
        laid_out: nn.Module = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return laid_out

    return make


def make_optimizer(settings: Settings) -> Optimize:
    """What makes the optimizer of some parameters.

    Examples
    --------
    >>> make_optimizer({"name": "sgd", "learning_rate": 0.1})(nn.Linear(1, 1).parameters()).defaults["lr"]
    0.1
    """
    return partial(OPTIMIZERS[settings["name"]], **_arguments(settings))


def make_learner(settings: Settings) -> Method:
    """The method.

    Examples
    --------
    >>> make_learner({"name": "leaf", "n_contexts": 4}).n_contexts
    4
    """
    return METHODS[settings["name"]](**_arguments(settings))


def check_part(part: str, settings: Settings) -> None:
    """Refuse a name that is not in the part's table, and an argument that what it names does not take.

    Examples
    --------
    >>> check_part("method", {"name": "leaf", "gate": "switch"})
    Traceback (most recent call last):
    ...
    ValueError: method 'leaf' does not take `gate`; it takes n_contexts.
    """
    name = settings.get("name", part)
    if part != "sampler" and name not in TABLES[part]:
        raise ValueError(
            f"{part} {name!r} is not known; choose one of {', '.join(sorted(TABLES[part]))}."
        )
    made_by: Any = BilevelSampler if part == "sampler" else TABLES[part][name]
    taken = set(inspect.signature(getattr(made_by, "factory", made_by)).parameters) - GIVEN.get(
        part, set()
    )
    for key in _arguments(settings):
        if key not in taken:
            raise ValueError(
                f"{part} {name!r} does not take `{key}`; it takes {', '.join(sorted(taken)) or 'nothing'}."
            )


def _arguments(settings: Settings) -> Settings:
    return {key: value for key, value in settings.items() if key != "name"}
