"""Per-example losses, one number a row, and what the best constant prediction would cost.

A loss takes predictions (..., N, D) and targets and returns (..., N): the leading dimensions are models and restarts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from leaflearn.core.robust_losses import GeneralizedCrossEntropy, Huber


class Loss(Protocol):
    """What the algorithm asks of a loss."""

    def __call__(self, prediction: Tensor, y: Tensor) -> Tensor:
        """Loss of every row, shape (..., N)."""

    def of_best_constant(self, y: Tensor) -> float:
        """Mean loss of the best constant prediction: the unit in which temperatures are given."""


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
class CrossEntropy:
    """Cross-entropy of logits against class numbers.

    Examples
    --------
    >>> import torch
    >>> CrossEntropy()(torch.zeros(1, 2), torch.tensor([1]))
    tensor([0.6931])
    >>> round(CrossEntropy().of_best_constant(torch.tensor([0, 1])), 4)
    0.6931
    """

    def __call__(self, prediction: Tensor, y: Tensor) -> Tensor:  # (..., N, C), (N,)
        chosen = y.expand(prediction.shape[:-1])[..., None]
        return -torch.log_softmax(prediction, -1).gather(-1, chosen)[..., 0]  # (..., N)

    def of_best_constant(self, y: Tensor) -> float:
        share = torch.bincount(y).double() / len(y)
        return float(torch.special.entr(share).sum())


LOSSES: dict[str, type[Loss]] = {
    "squared": SquaredError,
    "robust": Huber,
    "cross-entropy": CrossEntropy,
    "gce": GeneralizedCrossEntropy,
}
