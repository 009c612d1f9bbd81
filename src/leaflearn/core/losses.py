"""Losses of single rows, and the loss of the best constant prediction.

A loss takes predictions (..., N, D) and targets and returns one number per row, (..., N). The
leading dimensions are models and restarts.

    SquaredError              regression
    Huber                     regression with outliers: linear for large residuals
    CrossEntropy              classification
    GeneralizedCrossEntropy   classification with wrong labels: bounded

The two robust losses limit by how much a single row can favour one model over another, so that a
few wrong rows do not decide the context of their group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

BISECTION_STEPS = 60  # halve an interval until it is below double precision


class Loss(Protocol):
    """The interface of a loss."""

    def __call__(self, prediction: Tensor, y: Tensor) -> Tensor:
        """Loss of every row, shape (..., N)."""

    def of_best_constant(self, y: Tensor) -> float:
        """Mean loss of the best constant prediction, the unit of temperatures."""


@dataclass(frozen=True)
class SquaredError:
    """Squared error, averaged over the outputs.

    Examples
    --------
    >>> import torch
    >>> SquaredError()(torch.tensor([[1.0, 3.0]]), torch.tensor([[1.0, 1.0]]))
    tensor([2.])
    >>> SquaredError().of_best_constant(torch.tensor([[0.0], [2.0]]))
    1.0
    """

    def __call__(self, prediction: Tensor, y: Tensor) -> Tensor:  # (..., N, D), (N, D)
        return (prediction - y).square().mean(-1)  #                (..., N)

    def of_best_constant(self, y: Tensor) -> float:
        return float(y.double().var(0, correction=0).mean())


@dataclass(frozen=True)
class Huber:
    """Squared error for residuals up to `scale`, linear beyond; averaged over the outputs.

    A row can favour one model over another by at most 2 * scale times the difference of their
    predictions. Unlike bounded losses, the gradient does not vanish for large residuals, so a
    model that starts far from its rows can still learn them.

    Parameters
    ----------
    scale
        In units of the targets. `LeafRegressor` standardizes the targets for its default network,
        so 0.1 is a tenth of their standard deviation. A module of your own is trained on the
        targets as they are; pass `loss=Huber(scale=...)`.

    Examples
    --------
    >>> import torch
    >>> Huber(scale=1.0)(torch.tensor([[0.5], [10.0]]), torch.zeros(2, 1))
    tensor([ 0.2500, 19.0000])
    >>> y = torch.tensor([[0.0], [0.0], [0.0], [9.0]])  # the best constant is 1/3
    >>> round(Huber(scale=1.0).of_best_constant(y), 4)
    4.1667
    """

    scale: float = 0.1

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise ValueError(
                f"scale={self.scale!r} was given, but a positive number, in units of the targets, "
                "was expected."
            )

    def __call__(self, prediction: Tensor, y: Tensor) -> Tensor:  # (..., N, D), (N, D)
        """Loss of every row, shape (..., N)."""
        distance = (prediction - y).abs()
        near = distance.clamp(max=self.scale)
        return (near * (2 * distance - near)).mean(-1)  #           (..., N)

    def of_best_constant(self, y: Tensor) -> float:
        """Found by bisection: the derivative of the loss is monotone in the constant."""
        y = y.double()
        low, high = y.amin(0), y.amax(0)  #                         (D,)
        for _ in range(BISECTION_STEPS):
            middle = (low + high) / 2
            is_low = (y - middle).clamp(-self.scale, self.scale).mean(0) > 0
            low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
        return float(self((low + high) / 2, y).mean())


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy of logits and class numbers.

    Examples
    --------
    >>> import torch
    >>> CrossEntropy()(torch.zeros(1, 2), torch.tensor([1]))
    tensor([0.6931])
    >>> round(CrossEntropy().of_best_constant(torch.tensor([0, 1])), 4)
    0.6931
    """

    def __call__(self, prediction: Tensor, y: Tensor) -> Tensor:  # (..., N, C), (N,)
        return -_log_probability(prediction, y)  #                  (..., N)

    def of_best_constant(self, y: Tensor) -> float:
        return float(torch.special.entr(torch.bincount(y).double() / len(y)).sum())


@dataclass(frozen=True)
class GeneralizedCrossEntropy:
    """(1 - p^q) / q, where p is the probability of the given label.

    It approaches cross-entropy as q goes to 0, and is the probability of an error for q = 1. The
    gradient of a row is that of cross-entropy times p^q, so rows whose label is very unlikely
    under the model are not memorized. In return, the probabilities of the model are overconfident.

    Parameters
    ----------
    q
        Above 0 and at most 1; 0.7 is the value of Zhang and Sabuncu (2018).

    Examples
    --------
    >>> import torch
    >>> GeneralizedCrossEntropy(q=1.0)(torch.zeros(1, 2), torch.tensor([1]))
    tensor([0.5000])
    >>> GeneralizedCrossEntropy()(torch.tensor([[0.0, 900.0]]), torch.tensor([0]))  # the maximum
    tensor([1.4286])
    """

    q: float = 0.7

    def __post_init__(self) -> None:
        if not 0 < self.q <= 1:
            raise ValueError(
                f"q={self.q!r} was given, but a number above 0 and at most 1 was expected; for "
                "q = 0 use CrossEntropy."
            )

    def __call__(self, prediction: Tensor, y: Tensor) -> Tensor:  # (..., N, C), (N,)
        """Loss of every row, shape (..., N)."""
        log_p = _log_probability(prediction, y)  #                  (..., N)
        return -torch.expm1(self.q * log_p) / self.q  # exact for p near 1, finite for p = 0

    def of_best_constant(self, y: Tensor) -> float:
        """The best probabilities are proportional to share^(1 / (1 - q)).

        For q = 1 the most frequent label has probability 1.
        """
        share = torch.bincount(y).double() / len(y)
        largest = share.max()
        if self.q < 1:
            power = 1 / (1 - self.q)
            kept = largest * ((share / largest) ** power).sum() ** (1 - self.q)
        else:
            kept = largest
        return float((1 - kept) / self.q)


def _log_probability(logits: Tensor, y: Tensor) -> Tensor:
    """Log-probability of the given classes, shape (..., N)."""
    chosen = y.expand(logits.shape[:-1])[..., None]
    return torch.log_softmax(logits, -1).gather(-1, chosen)[..., 0]


LOSSES: dict[str, type[Loss]] = {
    "squared": SquaredError,
    "robust": Huber,
    "cross-entropy": CrossEntropy,
    "gce": GeneralizedCrossEntropy,
}
