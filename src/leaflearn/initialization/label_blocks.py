"""Which labels belong together, read off how much probability each takes: for single rows, where domains have labels of their own.

A model of all labels at once learns p(y|x), the average of the domains' answers. The labels of one domain together take the same share of
it whatever x is, namely how often that domain comes up. So labels whose probabilities sum to a constant make up a domain, and all that is
needed is the covariance of the probabilities over the inputs.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

N_STARTS = 30
RIDGE = 1.0


def predict_left_out(features: Tensor, y: Tensor) -> Tensor:
    """What a ridge regression of `y` (N, C) on the features (N, F) answers to each row when it has not seen that row, shape (N, C).

    Examples
    --------
    >>> predict_left_out(torch.ones(2, 1), torch.tensor([[0.0], [3.0]])).ravel().round(decimals=3)
    tensor([1.5000, 0.0000])
    """
    normal = features.T @ features + RIDGE * torch.eye(features.shape[1], dtype=features.dtype)
    root = torch.linalg.cholesky(normal)
    answers = features @ torch.cholesky_solve(features.T @ y, root)
    own = (
        torch.linalg.solve_triangular(root, features.T, upper=False).square().sum(0)[:, None]
    )  #  (N, 1)
    return (answers - own * y) / (1 - own)


def partition_labels(
    covariance: NDArray[np.float64], n_blocks: int, generator: np.random.Generator
) -> tuple[NDArray[np.intp], float]:
    """The block of each label, shape (C,), and how much the mass of the worst block varies.

    0 is not at all, 1 as much as if its labels had nothing in common. Labels are moved from block to block for as long as that helps, from
    many random partitions. A block's variance is counted in units of the sum of its labels' variances; otherwise a block of one rare label
    would look constant.

    Parameters
    ----------
    covariance
        Of the labels' probabilities over the inputs, shape (C, C).
    n_blocks
        How many blocks to make.
    generator
        Where the random partitions come from.

    Examples
    --------
    Two and two labels that take probability from each other:

    >>> covariance = np.array([[1.0, -1, 0, 0], [-1, 1, 0, 0], [0, 0, 1, -1], [0, 0, -1, 1]])
    >>> block, worst = partition_labels(covariance, 2, np.random.default_rng(0))
    >>> bool(block[0] == block[1] != block[2] == block[3]), worst
    (True, 0.0)
    """
    best: tuple[float, float, NDArray[np.intp]] | None = None
    for _ in range(N_STARTS):
        block = generator.integers(n_blocks, size=len(covariance))
        cost = _improve(covariance, block, n_blocks, generator)
        if best is None or cost.sum() < best[0]:
            best = (float(cost.sum()), float(cost.max()), block.copy())
    assert best is not None
    return best[2], best[1]


def _improve(
    covariance: NDArray[np.float64],
    block: NDArray[np.intp],
    n_blocks: int,
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """Move labels between blocks, in place, until no move helps; what each block costs in the end."""
    member = np.eye(n_blocks)[block]  #                                          (C, K)
    variance = np.diag(covariance)
    moved = True
    while moved:
        moved = False
        for label in generator.permutation(len(block)):
            member[label] = 0.0
            mass, total = (
                np.einsum("ck,cd,dk->k", member, covariance, member),
                variance @ member,
            )  # without the label  (K,)
            grown = (
                mass + 2 * covariance[label] @ member + variance[label]
            )  # with it                                 (K,)
            without, with_ = _cost(mass, total), _cost(grown, total + variance[label])
            best = int(np.argmin(with_ - without))
            moved |= best != block[label] and bool(
                (with_ - without)[best] < (with_ - without)[block[label]] - 1e-12
            )
            block[label] = best
            member[label, best] = 1.0
    return _cost(np.einsum("ck,cd,dk->k", member, covariance, member), variance @ member)


def _cost(mass: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variance of each block's mass over the variances of its labels; an empty block costs more than any other."""
    return np.where(total > 0, mass / np.where(total > 0, total, 1.0), 2.0)
