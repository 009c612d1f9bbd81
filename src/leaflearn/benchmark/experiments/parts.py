"""The parts of an experiment; settings give the name of the function that makes each part,
and its arguments.
"""

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
    """Linear layers for inputs of any shape.

    Examples
    --------
    >>> len(flat_mlp((3, 8, 8), 18, hidden=[64]))
    4
    """
    layers = mlp(int(np.prod(input_shape)), n_outputs, tuple(hidden))
    if len(input_shape) == 1:
        return layers  # without a flattening layer they can be stacked, which is faster
    return nn.Sequential(nn.Flatten(), *layers)


NETWORKS: dict[str, Callable[..., nn.Module]] = {"mlp": flat_mlp, "convnet": convnet}
TABLES: dict[str, Mapping[str, Any]] = {
    "dataset": DATASETS,
    "network": NETWORKS,
    "optimizer": OPTIMIZERS,
    "method": METHODS,
}
# Arguments that settings never give.
GIVEN = {
    "network": {"input_shape", "n_outputs"},
    "optimizer": {"parameters"},
    "sampler": {"domains", "random_state"},
}


def make_domains(settings: Settings) -> DomainSet:
    """Make the data set.

    Examples
    --------
    >>> make_domains({"name": "functions"}).names
    ('absolute', 'sine', 'logarithm')
    """
    return DATASETS[settings["name"]](**_arguments(settings))


def make_network(settings: Settings, input_shape: tuple[int, ...]) -> Callable[[int], nn.Module]:
    """A function that makes a network with a given number of outputs.

    The weights of convolutions have the channels-last layout, which is faster. It is the same for
    all methods, so that their times are comparable.

    Examples
    --------
    >>> make_network({"name": "mlp", "hidden": [8]}, (2,))(3)[-1]
    Linear(in_features=8, out_features=3, bias=True)
    """

    def make(n_outputs: int) -> nn.Module:
        network = NETWORKS[settings["name"]](input_shape, n_outputs, **_arguments(settings))
        module: nn.Module = network.to(  # type: ignore[call-overload]
            memory_format=torch.channels_last
        )
        return module

    return make


def make_optimizer(settings: Settings) -> Optimize:
    """A function that makes an optimizer of given parameters.

    Examples
    --------
    >>> make = make_optimizer({"name": "sgd", "learning_rate": 0.1})
    >>> make(nn.Linear(1, 1).parameters()).defaults["lr"]
    0.1
    """
    return partial(OPTIMIZERS[settings["name"]], **_arguments(settings))


def make_learner(settings: Settings) -> Method:
    """Make the method.

    Examples
    --------
    >>> make_learner({"name": "leaf", "n_contexts": 4}).n_contexts
    4
    """
    return METHODS[settings["name"]](**_arguments(settings))


def check_part(part: str, settings: Settings) -> None:
    """Refuse an unknown name, and an argument that the named function does not take.

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
                f"{part} {name!r} does not take `{key}`; "
                f"it takes {', '.join(sorted(taken)) or 'nothing'}."
            )


def _arguments(settings: Settings) -> Settings:
    return {key: value for key, value in settings.items() if key != "name"}
