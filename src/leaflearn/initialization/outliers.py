"""Rows that do not belong to their group: found, and kept from deciding.

A group may hold a few rows of another context. Squared errors let one such row outvote the others, in the choice of the context and in what
the models learn. Here the loss of a row is bounded, so that a row that is far off counts as far off and no more.
"""

from __future__ import annotations

import torch
from torch import Tensor

from leaflearn.initialization.search import LEAST_LOSS, RIDGE, SearchResult, harden
from leaflearn.initialization.smoothers import GroupTable, leave_group_out

ROUNDS = 25
TIGHTENING = 0.6  # share of the rounds over which the bound comes down
BOUND = 20.0  # times the median loss of a row: further off is far off
BETTER = 10.0  # times better must another context explain a stranger
MANY = 0.03  # share of strangers above which they are dealt with
FEW_ROWS = 2  # in a group: who is the stranger, so few cannot tell
CLEARER = 0.5  # of their loss is left to the other rows when strangers are set aside


def find_outlier_rows(rows: Tensor, contexts: Tensor, table: GroupTable) -> Tensor:
    """Rows far off in the context of their group that another context explains ten times better, as a mask (m, n).

    Examples
    --------
    >>> import numpy as np
    >>> table = GroupTable.of(torch.ones(4, 1), torch.zeros(4, 1), np.zeros(4, dtype=int))
    >>> losses = torch.tensor([[[0.1, 0.1, 0.1, 9.0]], [[9.0, 9.0, 9.0, 0.1]]])  # of two models on one group of four rows
    >>> find_outlier_rows(losses, torch.tensor([0]), table)
    tensor([[False, False, False,  True]])
    """
    own = _own(rows, contexts)  #                                                             (m, n)
    is_strange = are_outliers(own, rows.amin(0), find_bound(rows, contexts, table))
    return is_strange & (table.weight > 0) & (table.sizes > FEW_ROWS)[:, None]


def find_bound(rows: Tensor, contexts: Tensor, table: GroupTable) -> float:
    """From losses (K, m, n) to the one beyond which a row is far off: twenty times the median, each row in the context of its group.

    Examples
    --------
    >>> import numpy as np
    >>> table = GroupTable.of(torch.ones(3, 1), torch.zeros(3, 1), np.zeros(3, dtype=int))
    >>> find_bound(torch.tensor([[[0.25, 0.5, 9.0]]]), torch.tensor([0]), table)
    10.0
    """
    return float(BOUND * _own(rows, contexts)[table.weight > 0].median().clamp(min=LEAST_LOSS))


def are_outliers(own: Tensor, best: Tensor, bound: float) -> Tensor:
    """Rows whose loss in their own context is beyond the bound, and ten times that in the best one.

    Examples
    --------
    >>> are_outliers(torch.tensor([0.1, 9.0, 9.0]), torch.tensor([0.1, 0.1, 8.0]), bound=2.0)
    tensor([False,  True, False])
    """
    return (own > bound) & (best * BETTER < own)


def bound_losses(rows: Tensor, bound: float | Tensor) -> Tensor:
    """Losses that grow up to the bound and no further.

    Examples
    --------
    >>> bound_losses(torch.tensor([0.0, 1.0, 999.0]), bound=1.0)
    tensor([0.0000, 0.5000, 0.9990])
    """
    return bound * rows / (bound + rows)


def weigh_rows(rows: Tensor, bound: float | Tensor) -> Tensor:
    """How much a model learns from rows of these losses: all of those near it, next to nothing of those far off.

    Examples
    --------
    >>> weigh_rows(torch.tensor([0.0, 1.0, 999.0]), bound=1.0)
    tensor([1.0000e+00, 2.5000e-01, 1.0000e-06])
    """
    return (bound / (bound + rows)).square()


def mean_of_inliers(rows: Tensor, contexts: Tensor, is_outlier: Tensor, table: GroupTable) -> float:
    """Mean loss of the rows that are no strangers, each in the context of its group.

    Examples
    --------
    >>> import numpy as np
    >>> table = GroupTable.of(torch.ones(2, 1), torch.zeros(2, 1), np.zeros(2, dtype=int))
    >>> mean_of_inliers(torch.tensor([[[0.5, 9.0]]]), torch.tensor([0]), torch.tensor([[False, True]]), table)
    0.5
    """
    return float(_own(rows, contexts)[(table.weight > 0) & ~is_outlier].mean())


def _own(rows: Tensor, contexts: Tensor) -> Tensor:
    """From losses (K, m, n) under every model to those in the context of each group, (m, n)."""
    return torch.gather(rows, 0, contexts[None, :, None].expand(1, -1, rows.shape[-1]))[0]


def search_with_bounded_losses(
    table: GroupTable, contexts: Tensor, n_contexts: int
) -> SearchResult:
    """Go on from these contexts (m,) with bounded losses; the bound comes down to what is typical.

    Examples
    --------
    >>> import numpy as np
    >>> y = torch.tensor([1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, 1.0], dtype=torch.float64).repeat(5)[:, None]  # the last is a stranger
    >>> table = GroupTable.of(torch.ones(40, 1, dtype=torch.float64), y, np.arange(40) // 4)
    >>> search_with_bounded_losses(table, torch.arange(10) % 2, 2).contexts
    tensor([[0, 1, 0, 1, 0, 1, 0, 1, 0, 1]])
    """
    contexts, row_weight = contexts[None], None
    loss = torch.full((1,), LEAST_LOSS, dtype=table.y.dtype)
    for round_ in range(ROUNDS):
        weights = harden(contexts, n_contexts, table.y.dtype)
        rows = leave_group_out(
            table, weights, RIDGE * loss.clamp(min=LEAST_LOSS), row_weight
        )  # (1, K, m, n)
        own = torch.gather(rows, 1, contexts[:, None, :, None].expand(-1, 1, -1, rows.shape[-1]))
        typical = own[0, 0][table.weight > 0].median()
        bound = torch.maximum(
            BOUND * typical.clamp(min=LEAST_LOSS),
            torch.tensor(0.5 * (1 - round_ / (TIGHTENING * ROUNDS))).to(own),
        )
        row_weight = weigh_rows(rows, bound)
        mean = (
            bound_losses(rows, bound).sum(-1) / table.sizes
        )  #                                               (1, K, m)
        loss, contexts = mean.amin(1).mean(-1), mean.argmin(1)
    return SearchResult(contexts, mean, loss, torch.full_like(rows[:, 0], torch.nan), rows)
