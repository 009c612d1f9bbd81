"""Finding the allocation with local models in closed form: many starts at once, annealed, in about a second.

This is LEAF with models that need no training. What it finds is a start for the real ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from leaflearn.conflict.smoothers import GroupTable, leave_group_out

SOFT_ROUNDS, HARD_ROUNDS = 30, 20
START_TEMPERATURES = (0.5, 0.25)  # of the targets' variance, in turn over the starts
RIDGE = 0.1  # of the loss so far: models are held down less as the contexts come apart
LEAST_LOSS = 1e-5  # of the targets' variance: below, ridges no longer matter


@dataclass(frozen=True, eq=False)
class Found:
    """What several starts have come to."""

    contexts: Tensor  # best model of each group                                (R, m)
    losses: Tensor  # mean loss of every model on groups that it has not seen   (R, K, m)
    error: Tensor  # mean over groups of the best model's loss                  (R,)
    held_out: Tensor  # loss of each row in the context that the others of its group chose; nan where there are none (R, m, n)
    row_losses: Tensor  #                                                       (R, K, m, n)


def search(table: GroupTable, n_contexts: int, n_starts: int, generator: torch.Generator) -> Found:
    """Allocate the groups from `n_starts` random starts. Targets are expected to have variance 1 in all.

    Examples
    --------
    >>> import numpy as np
    >>> y = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]], dtype=torch.float64).repeat(5, 1)
    >>> table = GroupTable.of(torch.ones(20, 1, dtype=torch.float64), y, np.arange(20) // 2)
    >>> search(table, 2, 4, torch.Generator().manual_seed(0)).error.min() < 1e-9
    tensor(True)
    """
    n_groups = len(table.y)
    weights = torch.softmax(2 * torch.randn(n_starts, n_contexts, n_groups, generator=generator, dtype=table.y.dtype), 1)
    start = torch.tensor([START_TEMPERATURES[r % len(START_TEMPERATURES)] for r in range(n_starts)], dtype=table.y.dtype)
    loss = torch.full((n_starts,), 0.5, dtype=table.y.dtype)
    before: Tensor | None = None
    for round_ in range(SOFT_ROUNDS + HARD_ROUNDS):
        rows = leave_group_out(table, weights, RIDGE * loss.clamp(min=LEAST_LOSS))  #           (R, K, m, n)
        mean = rows.sum(-1) / table.sizes  #                                                    (R, K, m)
        loss = mean.amin(1).mean(-1)
        if round_ < SOFT_ROUNDS:
            weights = torch.softmax(-mean / (start * (1 - round_ / SOFT_ROUNDS))[:, None, None], 1)
            continue
        contexts = mean.argmin(1)
        if before is not None and torch.equal(contexts, before):
            break
        weights, before = harden(contexts, n_contexts, table.y.dtype), contexts
    return Found(mean.argmin(1), mean, loss, hold_rows_out(rows, table), rows)


def harden(contexts: Tensor, n_contexts: int, dtype: torch.dtype) -> Tensor:
    """Contexts (R, m) as weights (R, K, m).

    Examples
    --------
    >>> harden(torch.tensor([[1, 0]]), 2, torch.float32)
    tensor([[[0., 1.],
             [1., 0.]]])
    """
    return one_hot(contexts, n_contexts).transpose(1, 2).to(dtype)


def hold_rows_out(rows: Tensor, table: GroupTable) -> Tensor:
    """From losses of rows (R, K, m, n) to the loss of each row in the context that the other rows of its group choose, shape (R, m, n).

    This is what tells how many contexts there are: a superfluous one fits its groups better by chance, and foretells nothing.

    Examples
    --------
    >>> import numpy as np
    >>> table = GroupTable.of(torch.ones(2, 1), torch.zeros(2, 1), np.array([0, 0]))
    >>> hold_rows_out(torch.tensor([[[[0.0, 5.0]], [[1.0, 2.0]]]]), table)  # by the second row the group is in context 1, by the first in 0
    tensor([[[1., 5.]]])
    """
    others = rows.sum(-1, keepdim=True) - rows
    chosen = torch.gather(rows, 1, others.argmin(1, keepdim=True))[:, 0]  #                     (R, m, n)
    can_tell = (table.weight > 0) & (table.sizes > 1)[:, None]
    return torch.where(can_tell, chosen, torch.nan)
