"""Training by gradient descent: the loop over meta-batches, its history, and when it stops.

    for each epoch:
        for each meta-batch:
            step, call the callbacks
        record the history, call the callbacks
        stop if the objective has reached a plateau

A `Training` can be stopped after any epoch. Its `state_dict` can be loaded into a new `Training`,
which then continues exactly as the first one would have.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leaflearn.core import settings
from leaflearn.core.algorithm import score, score_rows, step, sum_rows_by_group
from leaflearn.core.allocation import Rule, constant_from, contexts_of, temperature_of
from leaflearn.core.batches import GroupedExamples
from leaflearn.core.losses import Loss
from leaflearn.core.model_set import ModelSet

ROWS_AT_ONCE = 8192  # to bound the memory when all groups are scored; the result does not change

Schedule = Callable[[float], float]  # progress 0..1 -> factor on the learning rate
SCHEDULES: dict[str, Schedule] = {
    "constant": lambda _: 1.0,
    "linear": lambda progress: 1.0 - progress,
    "cosine": lambda progress: 0.5 * (1.0 + math.cos(math.pi * progress)),
}


class NonFiniteLossError(ValueError):
    """The loss became infinite or NaN in all restarts."""


class Callback:
    """Base class of callbacks. If a method returns True, the training ends after this epoch.

    Examples
    --------
    >>> class StopAtOnce(Callback):
    ...     def on_epoch(self, training):
    ...         return True
    """

    def on_step(self, training: Training) -> bool | None:
        """Called after every step; `training.last` has the scores, weights and objective."""

    def on_epoch(self, training: Training) -> bool | None:
        """Called after every epoch; `training.history` and `training.contexts` are up to date."""


class Training:
    """LEAF by gradient descent.

    Parameters
    ----------
    models
        The local models.
    data
        The training set.
    loss
        Loss of each row.
    rule
        Allocation rule.
    optimizer
        Optimizer of the parameters of `models`.
    max_epochs
        Maximum number of epochs. Temperature and learning rate follow the share of it that is
        completed.
    groups_per_step
        Number of groups in a meta-batch (B in the paper).
    rows_per_group
        Maximum number of rows of a group in a step, sampled again in each epoch; None for all.
    schedule
        Factor of the learning rate as a function of progress, or its name in `SCHEDULES`.
    tol, n_iter_no_change
        Stop when the objective has not fallen by a share of `tol` for `n_iter_no_change` epochs,
        after temperature and learning rate have come down; None to run all epochs.
    max_grad_norm
        Clip the gradient of each model to this norm; None for no clipping.
    trim
        Share of the rows of each group that its score leaves out, those with the largest losses.
    generator
        Source of randomness; by default one with seed 0.
    callbacks
        Called after every step and every epoch.
    stage
        Name of this training, for callbacks of several trainings.

    Examples
    --------
    >>> import torch
    >>> from leaflearn.core.allocation import Hard
    >>> from leaflearn.core.losses import SquaredError
    >>> from leaflearn.core.model_set import make_model_set
    >>> y, group = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]]), torch.tensor([0, 0, 1, 1])
    >>> data = GroupedExamples(torch.zeros(4, 1), y, group)
    >>> models = make_model_set(lambda: torch.nn.Linear(1, 1), (2,))
    >>> optimizer = torch.optim.SGD(models.parameters(), lr=0.1)
    >>> training = Training(models, data, SquaredError(), Hard(), optimizer, max_epochs=50).run()
    >>> sorted(training.history)
    ['changed', 'epoch', 'learning_rate', 'loss', 'seconds', 'temperature', 'usage']
    """

    def __init__(
        self,
        models: ModelSet,
        data: GroupedExamples,
        loss: Loss,
        rule: Rule,
        optimizer: torch.optim.Optimizer,
        *,
        max_epochs: int,
        groups_per_step: int = 32,
        rows_per_group: int | None = None,
        schedule: str | Schedule = "constant",
        tol: float = 1e-4,
        n_iter_no_change: int | None = None,
        max_grad_norm: float | None = None,
        trim: float = 0.0,
        generator: torch.Generator | None = None,
        callbacks: Sequence[Callback] = (),
        stage: str = "training",
    ) -> None:
        self.models, self.data, self.loss, self.rule = models, data, loss, rule
        self.optimizer, self.max_epochs = optimizer, max_epochs
        self.groups_per_step, self.rows_per_group = groups_per_step, rows_per_group
        self.schedule = SCHEDULES[schedule] if isinstance(schedule, str) else schedule
        self.tol, self.n_iter_no_change = tol, n_iter_no_change
        self.max_grad_norm, self.trim = max_grad_norm, trim
        self.generator = generator or torch.Generator().manual_seed(0)
        self.callbacks, self.stage = callbacks, stage
        self.epoch = 0
        self.stopped = False  # by a callback
        self.n_steps = 0
        self.history: dict[str, list[Any]] = {}
        *restarts, _ = models.shape
        # The context of each group in its last step, -1 before.
        self.contexts = torch.full((*restarts, data.n_groups), -1)  #               (..., m)
        self._base_rates = [float(group["lr"]) for group in optimizer.param_groups]

    @property
    def steps_per_epoch(self) -> int:
        return math.ceil(self.data.n_groups / self.groups_per_step)

    @property
    def progress(self) -> float:
        """Completed share of the run, 0 to 1."""
        return self.n_steps / (self.steps_per_epoch * self.max_epochs)

    def run(self) -> Training:
        """Train until `max_epochs`, a plateau of the objective, or a callback ends it."""
        self.stopped = False
        while self.epoch < self.max_epochs and not self.has_reached_plateau() and not self.stopped:
            self.stopped = self.run_epoch()
        return self

    def run_epoch(self) -> bool:
        """Train on every group once; True if a callback ends the training."""
        began, before, stop = time.perf_counter(), self.contexts.clone(), False
        value = torch.zeros(self.models.shape[:-1], dtype=torch.float64)  #         (...)
        for batches in self.data.meta_batches(
            self.groups_per_step, self.generator, self.rows_per_group
        ):
            self._set_learning_rate()
            self.last = step(
                self.models,
                batches,
                self.loss,
                self.rule,
                self.optimizer,
                self.progress,
                self.generator,
                self.max_grad_norm,
                self.trim,
            )
            self.n_steps += 1
            self._refuse_non_finite(self.last.value)
            self.contexts[..., batches.group_id] = contexts_of(
                self.rule, self.last.scores, self.last.weights
            ).cpu()
            value += self.last.value.cpu() * (batches.n_groups / self.data.n_groups)
            stop |= self._notify("on_step")
        self.epoch += 1
        changed = (self.contexts != before).double().mean(-1)  #                    (...)
        self._record(value, changed, time.perf_counter() - began)
        return stop | self._notify("on_epoch")

    def has_reached_plateau(self) -> bool:
        """Whether the objective of the best restart has not fallen for `n_iter_no_change` epochs.

        Epochs count only after temperature and learning rate have come down.
        """
        if self.n_iter_no_change is None:
            return False
        first = math.ceil(self.max_epochs * self._constant_from)
        values = [np.nanmin(value) for value in self.history.get("loss", [])[first:]]
        if len(values) <= self.n_iter_no_change:
            return False
        old, new = values[: -self.n_iter_no_change], values[-self.n_iter_no_change :]
        return bool(min(new) >= min(old) - self.tol * abs(min(old)))

    @cached_property
    def _constant_from(self) -> float:
        """The progress after which a plateau counts.

        While the temperature falls, the objective itself changes. While the learning rate is high,
        a lower one may still improve the objective.
        """
        low = max(settings.CORE.plateau_rate, self.schedule(1.0))
        rate = next(i / 100 for i in range(101) if i == 100 or self.schedule(i / 100) <= low)
        return max(constant_from(self.rule), rate)

    def score_all_groups(self) -> Tensor:
        """Summed loss of every model on every group of the training set, shape (..., m, K)."""
        return score_groups(self.models, self.data, self.loss, self.trim)

    def columns(self, restart: int | None = None) -> dict[str, NDArray[Any]]:
        """The history as arrays of equal length; with `restart`, of that restart only."""
        columns = {name: np.array(values) for name, values in self.history.items()}
        if restart is not None:
            columns = {
                name: column[:, restart] if name in ("loss", "changed", "usage") else column
                for name, column in columns.items()
            }
        return columns

    def state_dict(self) -> dict[str, Any]:
        """A copy of the state that a new `Training` with the same parameters continues from."""
        return {
            "models": {name: copy_state(value) for name, value in self.models.state_dict().items()},
            "optimizer": copy_state(self.optimizer.state_dict()),
            "generator": self.generator.get_state(),
            "epoch": self.epoch,
            "n_steps": self.n_steps,
            "contexts": self.contexts.clone(),
            "history": {name: list(values) for name, values in self.history.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state that `state_dict` returned."""
        self.models.load_state_dict(state["models"])
        self.optimizer.load_state_dict(copy_state(state["optimizer"]))
        self.generator.set_state(state["generator"])
        self.epoch, self.n_steps = state["epoch"], state["n_steps"]
        self.contexts = state["contexts"].clone()
        self.history = {name: list(values) for name, values in state["history"].items()}

    def _notify(self, event: str) -> bool:
        # Call all callbacks, even if the first one ends the training.
        answers = [getattr(callback, event)(self) for callback in self.callbacks]
        return any(answers)

    def _set_learning_rate(self) -> None:
        factor = self.schedule(self.progress)
        for group, rate in zip(self.optimizer.param_groups, self._base_rates, strict=True):
            group["lr"] = rate * factor

    def _record(self, value: Tensor, changed: Tensor, seconds: float) -> None:
        shares = [(self.contexts == k).double().mean(-1) for k in range(self.models.shape[-1])]
        usage = torch.stack(shares, -1)  #                                          (..., K)
        row = {
            "epoch": self.epoch,
            "loss": value.numpy(),
            "changed": changed.numpy(),
            "usage": usage.numpy(),
            "temperature": temperature_of(self.rule, self.progress),
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "seconds": seconds,
        }
        for name, entry in row.items():
            self.history.setdefault(name, []).append(entry)

    def _refuse_non_finite(self, value: Tensor) -> None:
        if torch.isfinite(value).any():  # a restart may diverge as long as another one does not
            return
        if self.n_steps == 1:
            cause = "local models whose initial predictions are not finite"
            advice = "check their initial weights and the scale of X"
        else:
            rate = self._base_rates[0]
            cause = f"a learning rate that is too large (it is {rate:g}) or a large scale of y"
            advice = "lower the learning rate or standardize y"
        raise NonFiniteLossError(
            f"The loss became non-finite at step {self.n_steps} (epoch {self.epoch + 1}); "
            f"the likely cause is {cause}: {advice}."
        )


def score_groups(models: ModelSet, data: GroupedExamples, loss: Loss, trim: float = 0.0) -> Tensor:
    """Summed loss of every model on every group, shape (..., m, K).

    At most `ROWS_AT_ONCE` rows are scored at a time, to bound the memory.

    Examples
    --------
    >>> import torch
    >>> from leaflearn.core.losses import SquaredError
    >>> from leaflearn.core.model_set import make_model_set
    >>> data = GroupedExamples(torch.zeros(3, 1), torch.zeros(3, 1), torch.tensor([0, 1, 1]))
    >>> models = make_model_set(lambda: torch.nn.Linear(1, 1), (4,))
    >>> score_groups(models, data, SquaredError()).shape
    torch.Size([2, 4])
    """
    if trim:  # a group can only be trimmed with the losses of all its rows
        rows = [
            score_rows(models, chunk, loss).cpu().double() for chunk in data.chunks(ROWS_AT_ONCE)
        ]
        weight = None if data.whole_weight is None else data.whole_weight.cpu()
        return sum_rows_by_group(torch.cat(rows, -1), data.group.cpu(), data.n_groups, weight, trim)
    *restarts, n_contexts = models.shape
    total = torch.zeros(*restarts, data.n_groups, n_contexts, dtype=torch.float64)
    for chunk in data.chunks(ROWS_AT_ONCE):
        total[..., chunk.group_id, :] += score(models, chunk, loss).cpu()
    return total


def copy_state(value: Any) -> Any:
    """A deep copy of nested states, detached from the autograd graph.

    Examples
    --------
    >>> state = {"weight": torch.ones(1)}
    >>> copied = copy_state(state)
    >>> _ = state["weight"].zero_()
    >>> copied["weight"].item()
    1.0
    """
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: copy_state(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [copy_state(entry) for entry in value]
    return value
