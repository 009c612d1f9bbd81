"""Losses for data that are partly wrong: a row that is far off counts, but it cannot have its way.

    GeneralizedCrossEntropy   wrong labels    a row that the model finds absurd has hardly any pull
    Huber                     wrong values    from some distance on, twice as far off pulls no harder

Either is bounded in what matters to the allocation: by how much a single row can prefer one model to another.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

HALVINGS = (
    60  # of the interval in which the best constant lies: more than double precision can tell apart
)


@dataclass(frozen=True)
class GeneralizedCrossEntropy:
    """(1 - p^q) / q of the probability p of the given label: cross-entropy for q near 0, the chance of a wrong answer for q = 1.

    The pull of a row on the model is that of cross-entropy times p^q, so a label that the model finds absurd is not learnt by heart.
    The price: the model's probabilities are surer of themselves than the labels are.

    Parameters
    ----------
    q
        Above 0 and at most 1; 0.7 is what its authors use (Zhang and Sabuncu, 2018).

    Examples
    --------
    >>> import torch
    >>> GeneralizedCrossEntropy(q=1.0)(torch.zeros(1, 2), torch.tensor([1]))
    tensor([0.5000])
    >>> GeneralizedCrossEntropy()(torch.tensor([[0.0, 900.0]]), torch.tensor([0]))  # the worst there is
    tensor([1.4286])
    """

    q: float = 0.7

    def __post_init__(self) -> None:
        if not 0 < self.q <= 1:
            raise ValueError(
                f"q={self.q!r}, but a number above 0 and at most 1 was expected; for q = 0 use CrossEntropy."
            )

    def __call__(self, prediction: Tensor, y: Tensor) -> Tensor:  # (..., N, C), (N,)
        """Loss of every row, shape (..., N)."""
        chosen = y.expand(prediction.shape[:-1])[..., None]
        log_p = torch.log_softmax(prediction, -1).gather(-1, chosen)[..., 0]  #     (..., N)
        return (
            -torch.expm1(self.q * log_p) / self.q
        )  # exact where p is close to 1, finite where it is 0

    def of_best_constant(self, y: Tensor) -> float:
        """The best constant has probabilities in proportion to share^(1 / (1 - q)); for q = 1 all of it goes to the commonest label."""
        share = torch.bincount(y).double() / len(y)
        largest = share.max()
        kept = (
            largest * ((share / largest) ** (1 / (1 - self.q))).sum() ** (1 - self.q)
            if self.q < 1
            else largest
        )
        return float((1 - kept) / self.q)


@dataclass(frozen=True)
class Huber:
    """Squared error near the answer; from `scale` on it grows in a straight line. Averaged over the outputs.

    However far off a row is, it prefers one model to another by at most 2 * scale times the difference of their answers. Unlike a loss that
    levels off, it pulls at every distance, so a model that begins far away still finds its rows.

    Parameters
    ----------
    scale
        In units of the targets. `LeafRegressor` standardises these around its default network, so that 0.1 is a tenth of their spread; for
        a module of your own, which sees the targets as they are, pass `loss=Huber(scale=...)`.

    Examples
    --------
    >>> import torch
    >>> Huber(scale=1.0)(torch.tensor([[0.5], [10.0]]), torch.zeros(2, 1))
    tensor([ 0.2500, 19.0000])
    >>> round(Huber(scale=1.0).of_best_constant(torch.tensor([[0.0], [0.0], [0.0], [9.0]])), 4)  # the best is 1/3
    4.1667
    """

    scale: float = 0.1

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise ValueError(
                f"scale={self.scale!r}, but a positive number, in units of the targets, was expected."
            )

    def __call__(self, prediction: Tensor, y: Tensor) -> Tensor:  # (..., N, D), (N, D)
        """Loss of every row, shape (..., N)."""
        distance = (prediction - y).abs()
        near = distance.clamp(max=self.scale)
        return (near * (2 * distance - near)).mean(-1)  #           (..., N)

    def of_best_constant(self, y: Tensor) -> float:
        """Bisection: the pull of all rows on a constant falls as the constant grows, and is nothing at the best one."""
        y = y.double()
        low, high = y.amin(0), y.amax(0)  #                         (D,)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            is_low = (y - middle).clamp(-self.scale, self.scale).mean(0) > 0
            low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
        return float(self((low + high) / 2, y).mean())
