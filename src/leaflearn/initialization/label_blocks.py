"""Contexts of single rows, found from the labels, where every context has labels of its own.

A model of all labels learns p(y|x), the average of the contexts' probabilities. The labels of one
context together have the same probability for every x: the share of that context. So a block of
labels whose probabilities sum to a constant is a context, and the covariance of the probabilities
over the inputs is enough to find the blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from leaflearn.initialization import settings
from leaflearn.initialization.features import Projection, RandomFourierFeatures
from leaflearn.initialization.surrogate import Start, choose_rows


def start_from_labels(
    x: NDArray[np.floating],
    y: NDArray[np.generic],
    group: NDArray[np.intp],
    n_contexts: int | None,
    n_classes: int,
    seed: int,
) -> Start:
    """Find contexts of groups of one row by their labels. Arguments as in `find_start`.

    Examples
    --------
    Labels 0 and 1 depend on the first column, labels 2 and 3 on the second one.

    >>> rng = np.random.default_rng(0)
    >>> x, is_first = rng.normal(size=(2000, 2)), rng.integers(2, size=2000)
    >>> y = np.where(is_first, x[:, 0] > 0, 2 + (x[:, 1] > 0)).astype(int)
    >>> start = start_from_labels(x, y, np.arange(2000), None, n_classes=4, seed=0)
    >>> bool(start.block[0] == start.block[1] != start.block[2] == start.block[3])
    True
    """
    setting = settings.SEARCH.label_blocks
    generator, rng = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    project = Projection.of(x[choose_rows(group, rng)[0]])
    rows = np.sort(rng.permutation(len(group))[: setting.max_rows])
    parts = np.array_split(rows, -(-len(rows) // settings.SEARCH.max_rows))  # images need memory
    z = torch.cat([project(x[part]) for part in parts])
    labels = one_hot(torch.as_tensor(y[rows]), n_classes).to(z.dtype)
    features = RandomFourierFeatures.of(z, setting.scale, generator)(z)
    covariance = np.atleast_2d(np.cov(predict_left_out(features, labels).numpy().T))
    tried, chosen = _make_blocks(covariance, n_contexts, rng)
    contexts = np.empty(len(group), dtype=np.intp)
    contexts[group] = chosen.block[y]
    reason = (
        "the probabilities of each context's labels sum to a constant, but for "
        f"{100 * chosen.worst:.2g} % of their variance"
    )
    is_trusted = chosen.n_blocks > 1 and chosen.worst < setting.max_mass_variance
    return Start(
        "labels",
        contexts,
        chosen.worst,
        is_trusted,
        reason,
        block=chosen.block,
        mass_variance={b.n_blocks: b.worst for b in sorted(tried, key=lambda b: b.n_blocks)},
    )


def predict_left_out(features: Tensor, y: Tensor) -> Tensor:
    """Predict `y` (N, C) by ridge regression on the features (N, F), each row without itself.

    Examples
    --------
    >>> y = torch.tensor([[0.0], [3.0]])
    >>> predict_left_out(torch.ones(2, 1), y).ravel().round(decimals=3)
    tensor([1.5000, 0.0000])
    """
    ridge = settings.SEARCH.label_blocks.ridge
    normal = features.T @ features + ridge * torch.eye(features.shape[1], dtype=features.dtype)
    root = torch.linalg.cholesky(normal)
    predicted = features @ torch.cholesky_solve(features.T @ y, root)
    half = torch.linalg.solve_triangular(root, features.T, upper=False)
    leverage = half.square().sum(0)[:, None]  #                                     (N, 1)
    return (predicted - leverage * y) / (1 - leverage)


def partition_labels(
    covariance: NDArray[np.float64], n_blocks: int, generator: np.random.Generator
) -> tuple[NDArray[np.intp], float]:
    """The block of each label, shape (C,), and how much the mass of the worst block varies.

    The mass of a block is the sum of its labels' probabilities. Its variance is given in units of
    the sum of its labels' variances: 0 is a constant mass, 1 that of unrelated labels. In absolute
    units, a block of one rare label would look constant. Labels are moved between blocks until no
    move helps, from many random partitions.

    Parameters
    ----------
    covariance
        Covariance of the labels' probabilities over the inputs, shape (C, C).
    n_blocks
        The number of blocks.
    generator
        Draws the random partitions.

    Examples
    --------
    Two pairs of labels, each of which share a constant probability:

    >>> covariance = np.array([[1.0, -1, 0, 0], [-1, 1, 0, 0], [0, 0, 1, -1], [0, 0, -1, 1]])
    >>> block, worst = partition_labels(covariance, 2, np.random.default_rng(0))
    >>> bool(block[0] == block[1] != block[2] == block[3]), worst
    (True, 0.0)
    """
    best: tuple[float, float, NDArray[np.intp]] | None = None
    for _ in range(settings.SEARCH.label_blocks.n_starts):
        block = generator.integers(n_blocks, size=len(covariance))
        cost = _improve(covariance, block, n_blocks, generator)
        if best is None or cost.sum() < best[0]:
            best = (float(cost.sum()), float(cost.max()), block.copy())
    assert best is not None
    return best[2], best[1]


class _Blocks(NamedTuple):
    n_blocks: int
    block: NDArray[np.intp]  # of each label                                        (C,)
    worst: float  # how much the mass of the worst block varies


def _make_blocks(
    covariance: NDArray[np.float64], n_contexts: int | None, rng: np.random.Generator
) -> tuple[list[_Blocks], _Blocks]:
    """All partitions that were tried, and the one to use.

    If true blocks are joined, their mass is still constant; if one is cut in two, it is not. So the
    largest number of blocks with constant masses is the right one. If more contexts are requested,
    the others stay empty.
    """
    setting = settings.SEARCH.label_blocks
    n_classes, largest = len(covariance), setting.max_mass_variance_to_count

    def partition(n_blocks: int) -> _Blocks:
        return _Blocks(n_blocks, *partition_labels(covariance, n_blocks, rng))

    if n_contexts is None:
        tried = [_Blocks(1, np.zeros(n_classes, dtype=np.intp), 0.0)]  # all labels sum to one
        tried += [partition(n) for n in range(2, min(settings.SEARCH.max_contexts, n_classes) + 1)]
        constant = [blocks for blocks in tried if blocks.worst < largest]
        return tried, max(constant, key=lambda blocks: blocks.n_blocks)
    tried = [partition(n_contexts)]
    while tried[-1].worst >= largest and tried[-1].n_blocks > 2:
        tried.append(partition(tried[-1].n_blocks - 1))
    asked, fewer = tried[0], tried[-1]
    was_cut = fewer.worst < largest and asked.worst > setting.min_cut_ratio * fewer.worst
    return tried, fewer if was_cut else asked


def _improve(
    covariance: NDArray[np.float64],
    block: NDArray[np.intp],
    n_blocks: int,
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """Move labels between blocks, in place, until no move helps; return the cost of each block."""
    member = np.eye(n_blocks)[block]  #                                             (C, K)
    variance = np.diag(covariance)
    moved = True
    while moved:
        moved = False
        for label in generator.permutation(len(block)):
            member[label] = 0.0
            mass = np.einsum("ck,cd,dk->k", member, covariance, member)  # without the label  (K,)
            total = variance @ member
            grown = mass + 2 * covariance[label] @ member + variance[label]  # with the label (K,)
            without, with_ = _cost(mass, total), _cost(grown, total + variance[label])
            best = int(np.argmin(with_ - without))
            moved |= best != block[label] and bool(
                (with_ - without)[best] < (with_ - without)[block[label]] - 1e-12
            )
            block[label] = best
            member[label, best] = 1.0
    return _cost(np.einsum("ck,cd,dk->k", member, covariance, member), variance @ member)


def _cost(mass: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variance of each block's mass over its labels' variances; an empty block costs most."""
    return np.where(total > 0, mass / np.where(total > 0, total, 1.0), 2.0)
