"""The one contract of all methods: what they may know, what they are asked, and who may be told the truth.

    prepare(problem)        make the models; the problem tells shapes and sizes, never a domain
    update(batches, told)   learn from one meta-batch; what was learnt, as a few numbers
    end_epoch()             a pass over the data is over
    predict_each(x)         the answers of all contexts, (N, K, D); of a method with one answer for all, K is 1

A method that declares nothing in `sees` is never told anything. To find every oracle, search for `sees`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from leaflearn.benchmark.methods.optimizers import Optimize, sgd, slow_down
from leaflearn.core.batches import Batches
from leaflearn.core.losses import CrossEntropy, Loss, SquaredError
from leaflearn.core.training import copy_state

ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Problem:
    """What a method may know beforehand.

    Parameters
    ----------
    input_shape, n_outputs, is_classification
        Of the data; outputs are classes, or values a row.
    n_domains
        How many domains there are: the paper tells every method.
    n_steps
        Updates in the whole run, for schedules.
    n_rows
        Rows of the training set, which `Batches.index` counts; None where inputs are drawn anew.
    network
        Makes a network of the problem's size with this many outputs.
    peek
        Draws a meta-batch of that many training rows, or a few more, before learning begins.
    seed
        Of all that the method draws.
    optimizer
        Makes the optimizer of networks' parameters: the same for every method, unless a method names its own.
    slows_down
        Does the learning rate fall to zero over the run, in a straight line?
    """

    input_shape: tuple[int, ...]
    n_outputs: int
    is_classification: bool
    n_domains: int
    n_steps: int
    n_rows: int | None
    network: Callable[[int], nn.Module]
    peek: Callable[[int], Batches]
    seed: int = 0
    optimizer: Optimize = sgd
    slows_down: bool = False

    @property
    def loss(self) -> Loss:
        """Cross-entropy, or squared error."""
        return CrossEntropy() if self.is_classification else SquaredError()


@dataclass(frozen=True)
class OracleInfo:
    """What an oracle is told about a meta-batch: that which it declares in `sees`, and None for the rest."""

    domain: Tensor | None = None  # of each group                              (B,)
    label_sets: Tensor | None = None  # the answer of each domain to each row  (N, n_domains)


class Method(ABC):
    """A learner behind the contract. Subclasses set `name`, and keep all that they learn in `modules`, `optimizers` and `memory`."""

    name: ClassVar[str]
    sees: ClassVar[frozenset[str]] = frozenset()  # of "domain" and "label_set"
    claims: ClassVar[frozenset[str]] = frozenset({"regression", "classification"})
    gives_label_set: ClassVar[bool] = (
        False  # one score a label, of which the best n_domains are the answer
    )

    problem: Problem
    n_updates: int
    generator: torch.Generator

    def prepare(self, problem: Problem) -> None:
        """Make models and optimizers, all randomness from the problem's seed."""
        self.problem, self.n_updates = problem, 0
        self.generator = torch.Generator().manual_seed(problem.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(problem.seed)
            self.build()

    @abstractmethod
    def build(self) -> None:
        """Make what learns; torch's global generator is seeded here."""

    @abstractmethod
    def learn(self, batches: Batches, told: OracleInfo | None) -> dict[str, float]:
        """Learn from one meta-batch."""

    @abstractmethod
    def answer(self, x: Tensor) -> Tensor:
        """The answers of all contexts to a bounded number of rows, (N, K, D): values, or probabilities."""

    def update(self, batches: Batches, told: OracleInfo | None = None) -> dict[str, float]:
        """Learn from one meta-batch."""
        if self.problem.slows_down:
            for optimizer in self.optimizers():
                slow_down(optimizer, 1.0 - self.progress)
        numbers = self.learn(batches, told)
        self.n_updates += 1
        return numbers

    def about(self) -> dict[str, Any]:
        """What a reader of the results should know of how this run was begun; nothing of most methods."""
        return {}

    def end_epoch(self) -> None:  # noqa: B027  # most methods have nothing to do here
        """A pass over the data is over."""

    def predict_each(self, x: Tensor) -> Tensor:
        """The answers of all contexts, a bounded number of rows at a time, (N, K, D)."""
        with torch.no_grad():
            return torch.cat([self.answer(part) for part in x.split(ROWS_AT_ONCE)])

    @property
    def progress(self) -> float:
        """How far the run is, 0 to 1."""
        return min(1.0, self.n_updates / max(1, self.problem.n_steps))

    def parts(self) -> dict[str, Any]:
        """Everything with a `state_dict` that learning changes, by name."""
        return {
            name: part
            for name, part in vars(self).items()
            if hasattr(part, "state_dict") and hasattr(part, "load_state_dict")
        }

    def optimizers(self) -> list[torch.optim.Optimizer]:
        """What steps."""
        return [part for part in vars(self).values() if isinstance(part, torch.optim.Optimizer)]

    def tensors(self) -> dict[str, Tensor]:
        """Plain tensors that learning changes, by name."""
        return {name: part for name, part in vars(self).items() if isinstance(part, Tensor)}

    def state_dict(self) -> dict[str, Any]:
        """Everything that a fresh method, prepared for the same problem, needs to go on from here."""
        return {
            "n_updates": self.n_updates,
            "generator": self.generator.get_state(),
            "parts": {name: copy_state(part.state_dict()) for name, part in self.parts().items()},
            "tensors": {name: tensor.detach().clone() for name, tensor in self.tensors().items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state` was taken."""
        self.n_updates = state["n_updates"]
        self.generator.set_state(state["generator"])
        for name, part in self.parts().items():
            part.load_state_dict(copy_state(state["parts"][name]))
        for name, tensor in state["tensors"].items():
            setattr(self, name, tensor.clone())


def descend(optimizer: torch.optim.Optimizer, value: Tensor) -> float:
    """One step down; the value before it.

    Examples
    --------
    >>> weight = torch.nn.Parameter(torch.ones(1))
    >>> descend(torch.optim.SGD([weight], lr=0.5), weight.square().sum()), weight.item()
    (1.0, 0.0)
    """
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    return float(value.detach())


def as_answers(outputs: Tensor, is_classification: bool) -> Tensor:
    """From what networks say to what is asked for: probabilities instead of logits.

    Examples
    --------
    >>> as_answers(torch.zeros(1, 1, 2), is_classification=True)
    tensor([[[0.5000, 0.5000]]])
    """
    return torch.softmax(outputs, -1) if is_classification else outputs
