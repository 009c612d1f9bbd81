"""The parameters of an estimator that engines, starts and updates read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from leaflearn.core.allocation import Rule
from leaflearn.core.losses import Loss
from leaflearn.core.training import Callback, Schedule

MakeOptimizer = Callable[..., torch.optim.Optimizer]


class Parameters(Protocol):
    """The constructor parameters of `LeafRegressor` and `LeafClassifier`, which describe each."""

    n_contexts: int | str
    local_model: Any
    group_effects: str | None
    allocation: str | Rule
    temperature: float | str
    init: str
    n_init: int | str
    loss: str | Loss
    optimizer: str | MakeOptimizer
    learning_rate: float
    schedule: str | Schedule
    max_epochs: int | str
    groups_per_step: int
    rows_per_group: int | None
    max_grad_norm: float | None
    trim: float
    tol: float
    n_iter_no_change: int | None
    refresh: bool
    out_of_fold: bool | str
    callbacks: Sequence[Callback] | None
    device: str
    random_state: Any
    verbose: int
