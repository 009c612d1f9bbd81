"""The optimizers of the paper's tasks and their learning rate schedule.

The task chooses the optimizer, so that all methods of a table use the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import nn
from torch.optim import Optimizer

Optimize = Callable[[Iterable[nn.Parameter]], Optimizer]


def sgd(
    parameters: Iterable[nn.Parameter],
    learning_rate: float = 0.05,
    momentum: float = 0.9,
    weight_decay: float = 1e-4,
) -> Optimizer:
    """The optimizer of the paper's three functions.

    Examples
    --------
    >>> sgd(nn.Linear(1, 1).parameters()).defaults["momentum"]
    0.9
    """
    return torch.optim.SGD(
        parameters, lr=learning_rate, momentum=momentum, weight_decay=weight_decay
    )


def adam(
    parameters: Iterable[nn.Parameter],
    learning_rate: float = 0.002,
    beta1: float = 0.5,
    beta2: float = 0.999,
) -> Optimizer:
    """The optimizer of the paper's image tasks.

    Examples
    --------
    >>> adam(nn.Linear(1, 1).parameters()).defaults["betas"]
    (0.5, 0.999)
    """
    return torch.optim.Adam(parameters, lr=learning_rate, betas=(beta1, beta2))


OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {"sgd": sgd, "adam": adam}


def slow_down(optimizer: Optimizer, share: float) -> None:
    """Set the learning rate to a share of its initial value.

    Examples
    --------
    >>> optimizer = sgd(nn.Linear(1, 1).parameters(), learning_rate=0.4)
    >>> slow_down(optimizer, 0.5), slow_down(optimizer, 0.25)
    (None, None)
    >>> optimizer.param_groups[0]["lr"]
    0.1
    """
    for group in optimizer.param_groups:
        group["lr"] = share * group.setdefault("initial_lr", group["lr"])
