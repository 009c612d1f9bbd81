"""The interface of all methods: what they may see, and how they learn and predict.

    prepare(problem)              create the models; the problem has shapes and sizes, no domains
    update(batches, oracle_info)  learn from one meta-batch; return a few numbers for the records
    end_epoch()                   called after each pass over the data
    predict_each(x)               predictions of all contexts, (N, K, D); K is 1 for a single model

A method receives information about the domains only if it declares it in `sees`. To find all
oracles, search for `sees`.
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
    """What a method may know before training.

    Parameters
    ----------
    input_shape, n_outputs, is_classification
        Of the data; outputs are classes, or values per row.
    n_domains
        Number of domains, which the paper gives to every method.
    n_steps
        Updates in the whole run, for schedules.
    n_rows
        Rows of the training set, which `Batches.index` refers to; None if inputs are drawn from an
        unlimited source.
    network
        Creates a network for the problem's inputs with this many outputs.
    peek
        Draws a meta-batch of at least this many training rows before training starts.
    seed
        Seed of all random numbers of the method.
    optimizer
        Creates the optimizer of the networks' parameters. It is the same for every method, unless a
        method uses its own.
    slows_down
        Whether the learning rate decreases linearly to zero over the run.
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
    """What an oracle sees of a meta-batch; fields that it does not declare in `sees` are None."""

    domain: Tensor | None = None  # of each group                                            (B,)
    label_sets: Tensor | None = None  # target of each row in each domain           (N, n_domains)


class Method(ABC):
    """A learner with the interface of this module.

    Subclasses implement `build`, `learn` and `answer`. They keep their networks, optimizers and
    tensors as attributes, which are saved and restored.
    """

    name: ClassVar[str]
    sees: ClassVar[frozenset[str]] = frozenset()  # "domain", "label_set" or both, for oracles
    claims: ClassVar[frozenset[str]] = frozenset({"regression", "classification"})
    gives_label_set: ClassVar[bool] = False  # one score per label; the best n_domains are predicted

    problem: Problem
    n_updates: int
    generator: torch.Generator

    def prepare(self, problem: Problem) -> None:
        """Create models and optimizers, with all random numbers from the problem's seed."""
        self.problem, self.n_updates = problem, 0
        self.generator = torch.Generator().manual_seed(problem.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(problem.seed)
            self.build()

    @abstractmethod
    def build(self) -> None:
        """Create the models; torch's global generator is seeded."""

    @abstractmethod
    def learn(self, batches: Batches, oracle_info: OracleInfo | None) -> dict[str, float]:
        """Learn from one meta-batch."""

    @abstractmethod
    def answer(self, x: Tensor) -> Tensor:
        """Predict values or probabilities of some rows with all contexts, (N, K, D)."""

    def update(self, batches: Batches, oracle_info: OracleInfo | None = None) -> dict[str, float]:
        """Learn from one meta-batch."""
        if self.problem.slows_down:
            for optimizer in self.optimizers():
                slow_down(optimizer, 1.0 - self.progress)
        numbers = self.learn(batches, oracle_info)
        self.n_updates += 1
        return numbers

    def about(self) -> dict[str, Any]:
        """Return facts about this run for the results; most methods have none."""
        return {}

    def end_epoch(self) -> None:  # noqa: B027  # most methods do nothing here
        """Called after each pass over the data."""

    def predict_each(self, x: Tensor) -> Tensor:
        """Predict with all contexts in blocks of rows, (N, K, D)."""
        with torch.no_grad():
            return torch.cat([self.answer(part) for part in x.split(ROWS_AT_ONCE)])

    @property
    def progress(self) -> float:
        """Completed share of the run, 0 to 1."""
        return min(1.0, self.n_updates / max(1, self.problem.n_steps))

    def parts(self) -> dict[str, Any]:
        """Attributes with a `state_dict`, by name."""
        return {
            name: part
            for name, part in vars(self).items()
            if hasattr(part, "state_dict") and hasattr(part, "load_state_dict")
        }

    def optimizers(self) -> list[torch.optim.Optimizer]:
        """Attributes that are optimizers."""
        return [part for part in vars(self).values() if isinstance(part, torch.optim.Optimizer)]

    def tensors(self) -> dict[str, Tensor]:
        """Attributes that are plain tensors, by name."""
        return {name: part for name, part in vars(self).items() if isinstance(part, Tensor)}

    def state_dict(self) -> dict[str, Any]:
        """Everything that a new method, prepared for the same problem, needs to resume the run."""
        return {
            "n_updates": self.n_updates,
            "generator": self.generator.get_state(),
            "parts": {name: copy_state(part.state_dict()) for name, part in self.parts().items()},
            "tensors": {name: tensor.detach().clone() for name, tensor in self.tensors().items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from `state`."""
        self.n_updates = state["n_updates"]
        self.generator.set_state(state["generator"])
        for name, part in self.parts().items():
            part.load_state_dict(copy_state(state["parts"][name]))
        for name, tensor in state["tensors"].items():
            setattr(self, name, tensor.clone())


def descend(optimizer: torch.optim.Optimizer, value: Tensor) -> float:
    """Take one gradient step and return the value before it.

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
    """Convert network outputs to predictions: logits to probabilities in classification.

    Examples
    --------
    >>> as_answers(torch.zeros(1, 1, 2), is_classification=True)
    tensor([[[0.5000, 0.5000]]])
    """
    return torch.softmax(outputs, -1) if is_classification else outputs
