"""The gradient engine: the loop over meta-batches, its history, and when it stops.

    for each epoch: for each meta-batch: step; then record, tell the callbacks, and look whether the objective has levelled off

A `Training` can be stopped after any epoch, its state taken (`state_dict`) and put back into a fresh one, which then goes on exactly as the
first would have.
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

from leaflearn.core.algorithm import score, score_rows, step, sum_rows_by_group
from leaflearn.core.allocation import Rule, constant_from, contexts_of, temperature_of
from leaflearn.core.batches import GroupedExamples
from leaflearn.core.losses import Loss
from leaflearn.core.model_set import ModelSet

ROWS_AT_ONCE = 8192  # when every group is scored: bounds the memory, not the result

LOW_RATE = 0.1  # of the first learning rate: from here on a plateau counts

Schedule = Callable[[float], float]  # progress 0..1 -> factor on the learning rate
SCHEDULES: dict[str, Schedule] = {
    "constant": lambda _: 1.0,
    "linear": lambda progress: 1.0 - progress,
    "cosine": lambda progress: 0.5 * (1.0 + math.cos(math.pi * progress)),
}


class NonFiniteLossError(ValueError):
    """The loss became infinite or not a number, so there is nothing to learn from."""


class Callback:
    """Something to do as training goes on; override what you need. A true answer ends the training after this epoch.

    Examples
    --------
    >>> class StopAtOnce(Callback):
    ...     def on_epoch(self, training):
    ...         return True
    """

    def on_step(self, training: Training) -> bool | None:
        """After every optimizer step; `training.last` holds the scores, weights and objective."""

    def on_epoch(self, training: Training) -> bool | None:
        """After every epoch; `training.history` and `training.contexts` are up to date."""


class Training:
    """LEAF by gradient descent.

    Parameters
    ----------
    models, data, loss, rule, optimizer
        The parts: who learns, from what, by which measure, with which allocation, moved how.
    max_epochs
        Length of the run; temperatures and learning rates fall towards its end.
    groups_per_step
        Groups in a meta-batch (B in the paper).
    rows_per_group
        At most this many rows of a group in a step, drawn anew each epoch; None for all.
    schedule
        Factor on the learning rate as a function of progress, or its name in `SCHEDULES`.
    tol, n_iter_no_change
        Stop when the objective has not fallen by a share `tol` for that many epochs, once temperature and learning rate have come down.
    max_grad_norm
        Clip each model's gradient to this norm; None leaves it alone.
    trim
        Share of each group's rows, those with the largest loss, that its score leaves out.
    stage
        A name that tells callbacks which of several trainings this is.

    Examples
    --------
    >>> import torch
    >>> from leaflearn.core.allocation import Hard
    >>> from leaflearn.core.losses import SquaredError
    >>> from leaflearn.core.model_set import make_model_set
    >>> data = GroupedExamples(torch.zeros(4, 1), torch.tensor([[1.0], [1.0], [-1.0], [-1.0]]), torch.tensor([0, 0, 1, 1]))
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
        self.models, self.data, self.loss, self.rule, self.optimizer = (
            models,
            data,
            loss,
            rule,
            optimizer,
        )
        self.max_epochs, self.groups_per_step, self.rows_per_group = (
            max_epochs,
            groups_per_step,
            rows_per_group,
        )
        self.schedule = SCHEDULES[schedule] if isinstance(schedule, str) else schedule
        self.tol, self.n_iter_no_change, self.max_grad_norm, self.trim = (
            tol,
            n_iter_no_change,
            max_grad_norm,
            trim,
        )
        self.generator = generator or torch.Generator().manual_seed(0)
        self.callbacks, self.stage = callbacks, stage
        self.epoch = 0
        self.stopped = False  # by a callback
        self.n_steps = 0
        self.history: dict[str, list[Any]] = {}
        *restarts, _ = models.shape
        self.contexts = torch.full(
            (*restarts, data.n_groups), -1
        )  # each group's context when last seen, (..., m)
        self._base_rates = [float(group["lr"]) for group in optimizer.param_groups]

    @property
    def steps_per_epoch(self) -> int:
        return math.ceil(self.data.n_groups / self.groups_per_step)

    @property
    def progress(self) -> float:
        """How far the run is, 0 to 1."""
        return self.n_steps / (self.steps_per_epoch * self.max_epochs)

    def run(self) -> Training:
        """Train to the end, to the plateau, or until a callback says stop."""
        self.stopped = False
        while self.epoch < self.max_epochs and not self.has_levelled_off() and not self.stopped:
            self.stopped = self.run_epoch()
        return self

    def run_epoch(self) -> bool:
        """Every group once; True if a callback wants to stop."""
        began, before, value = (
            time.perf_counter(),
            self.contexts.clone(),
            torch.zeros(self.models.shape[:-1], dtype=torch.float64),
        )
        stop = False
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
            stop |= self._tell("on_step")
        self.epoch += 1
        self._record(
            value, (self.contexts != before).double().mean(-1), time.perf_counter() - began
        )
        return stop | self._tell("on_epoch")

    def has_levelled_off(self) -> bool:
        """Has the best restart's objective stood still for `n_iter_no_change` epochs, with the rule settled?"""
        if self.n_iter_no_change is None:
            return False
        settled = [
            np.nanmin(value)
            for value in self.history.get("loss", [])[
                math.ceil(self.max_epochs * self._constant_from) :
            ]
        ]
        if len(settled) <= self.n_iter_no_change:
            return False
        old, new = settled[: -self.n_iter_no_change], settled[-self.n_iter_no_change :]
        return bool(min(new) >= min(old) - self.tol * abs(min(old)))

    @cached_property
    def _constant_from(self) -> float:
        """The progress from which a plateau means something: under a falling temperature the objective is a moving target, and what a high
        learning rate cannot improve a lower one still can."""
        low = max(LOW_RATE, self.schedule(1.0))
        rate = next(i / 100 for i in range(101) if i == 100 or self.schedule(i / 100) <= low)
        return max(constant_from(self.rule), rate)

    def score_all_groups(self) -> Tensor:
        """Summed loss of every model on every group of the training set, shape (..., m, K)."""
        return score_groups(self.models, self.data, self.loss, self.trim)

    def columns(self, restart: int | None = None) -> dict[str, NDArray[Any]]:
        """The history as arrays of equal length; of one restart where there are several."""
        columns = {name: np.array(values) for name, values in self.history.items()}
        if restart is not None:
            columns = {
                name: column[:, restart] if name in ("loss", "changed", "usage") else column
                for name, column in columns.items()
            }
        return columns

    def state_dict(self) -> dict[str, Any]:
        """Everything that a fresh `Training` of the same parts needs to go on from here."""
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
        """Go on from where `state` was taken."""
        self.models.load_state_dict(state["models"])
        self.optimizer.load_state_dict(copy_state(state["optimizer"]))
        self.generator.set_state(state["generator"])
        self.epoch, self.n_steps, self.contexts = (
            state["epoch"],
            state["n_steps"],
            state["contexts"].clone(),
        )
        self.history = {name: list(values) for name, values in state["history"].items()}

    def _tell(self, event: str) -> bool:
        answers = [
            getattr(callback, event)(self) for callback in self.callbacks
        ]  # every callback hears of it, then one may stop
        return any(answers)

    def _set_learning_rate(self) -> None:
        factor = self.schedule(self.progress)
        for group, rate in zip(self.optimizer.param_groups, self._base_rates, strict=True):
            group["lr"] = rate * factor

    def _record(self, value: Tensor, changed: Tensor, seconds: float) -> None:
        n_contexts = self.models.shape[-1]
        usage = torch.stack(
            [(self.contexts == k).double().mean(-1) for k in range(n_contexts)], -1
        )  # (..., K)
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
        if torch.isfinite(
            value
        ).any():  # a restart that diverged loses against the others; only the last one ends the fit
            return
        if self.n_steps == 1:
            cause = "local models that predict non-finite values before any learning: look at their initial weights and the scale of X"
        else:
            rate = self._base_rates[0]
            cause = f"a learning rate that is too large (it is {rate:g}) or targets of a large scale: lower the one or standardise the other"
        raise NonFiniteLossError(
            f"The loss became non-finite at step {self.n_steps} (epoch {self.epoch + 1}); the likely cause is {cause}."
        )


def score_groups(models: ModelSet, data: GroupedExamples, loss: Loss, trim: float = 0.0) -> Tensor:
    """Summed loss of every model on every group, a bounded number of rows at a time, shape (..., m, K).

    Examples
    --------
    >>> import torch
    >>> from leaflearn.core.losses import SquaredError
    >>> from leaflearn.core.model_set import make_model_set
    >>> data = GroupedExamples(torch.zeros(3, 1), torch.zeros(3, 1), torch.tensor([0, 1, 1]))
    >>> score_groups(make_model_set(lambda: torch.nn.Linear(1, 1), (4,)), data, SquaredError()).shape
    torch.Size([2, 4])
    """
    if trim:  # which rows of a group are the worst shows only when all of them are there
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
    """A deep copy of nested states, detached from the graph.

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
