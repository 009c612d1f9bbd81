"""Finding the allocation with local models in closed form: many starts at once, annealed, in about a second.

This is LEAF with models that need no training. What it finds is a start for the real ones.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from leaflearn.initialization.smoothers import GroupTable, leave_group_out

SOFT_ROUNDS, HARD_ROUNDS = 30, 20
START_TEMPERATURES = (0.5, 0.25)  # of the targets' variance, in turn over the starts
RIDGE = 0.1  # of the loss so far: models are held down less as the contexts come apart
LEAST_LOSS = 1e-5  # of the targets' variance: below, ridges no longer matter
EXCHANGES, FREED, SPLIT, RANDOM_HALVES = (
    5,
    2,
    2,
    2,
)  # rounds of split and merge, how many models are tried for either part, and how
ROUNDS_TO_JUDGE = 3  # until the ridge fits the loss
GAIN = 0.9  # of the loss may be left after an exchange that was worth it


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What several starts have come to."""

    contexts: Tensor  # best model of each group                                (R, m)
    losses: Tensor  # mean loss of every model on groups that it has not seen   (R, K, m)
    error: Tensor  # mean over groups of the best model's loss                  (R,)
    held_out: Tensor  # loss of each row in the context that the others of its group chose; nan where there are none (R, m, n)
    row_losses: Tensor  #                                                       (R, K, m, n)

    def take(self, start: int) -> SearchResult:
        """One start alone."""
        return SearchResult(
            *(getattr(self, field.name)[start : start + 1] for field in fields(self))
        )


def search(
    table: GroupTable, n_contexts: int, n_starts: int, generator: torch.Generator
) -> SearchResult:
    """Allocate the groups from `n_starts` random starts, annealed. Targets are expected to have variance 1 in all.

    Examples
    --------
    >>> import numpy as np
    >>> y = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]], dtype=torch.float64).repeat(5, 1)
    >>> table = GroupTable.of(torch.ones(20, 1, dtype=torch.float64), y, np.arange(20) // 2)
    >>> search(table, 2, 4, torch.Generator().manual_seed(0)).error.min() < 1e-9
    tensor(True)
    """
    n_groups = len(table.y)
    weights = torch.softmax(
        2 * torch.randn(n_starts, n_contexts, n_groups, generator=generator, dtype=table.y.dtype), 1
    )
    start = torch.tensor(
        [START_TEMPERATURES[r % len(START_TEMPERATURES)] for r in range(n_starts)],
        dtype=table.y.dtype,
    )
    loss = torch.full((n_starts,), 0.5, dtype=table.y.dtype)
    for round_ in range(SOFT_ROUNDS):
        mean = (
            leave_group_out(table, weights, RIDGE * loss.clamp(min=LEAST_LOSS)).sum(-1)
            / table.sizes
        )  # (R, K, m)
        loss = mean.amin(1).mean(-1)
        weights = torch.softmax(-mean / (start * (1 - round_ / SOFT_ROUNDS))[:, None, None], 1)
    return refine(table, weights.argmax(1), n_contexts, loss)


def search_seeded(
    table: GroupTable, n_contexts: int, n_starts: int, generator: torch.Generator
) -> SearchResult:
    """Allocate the groups from starts like those of k-means++: each further model begins with groups that the models so far explain badly.

    Examples
    --------
    >>> import numpy as np
    >>> y = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]], dtype=torch.float64).repeat(5, 1)
    >>> table = GroupTable.of(torch.ones(20, 1, dtype=torch.float64), y, np.arange(20) // 2)
    >>> search_seeded(table, 2, 4, torch.Generator().manual_seed(0)).error.min() < 1e-9
    tensor(True)
    """
    n_groups = len(table.y)
    contexts = torch.zeros(n_starts, n_groups, dtype=torch.long)
    loss = torch.full((n_starts,), 0.5, dtype=table.y.dtype)
    for k in range(1, n_contexts):
        found = refine(table, contexts, k, loss)
        served = found.losses.amin(
            1
        )  #                                                        (R, m)
        seeds = torch.multinomial(
            served + 1e-12 * served.amax(), max(1, n_groups // n_contexts), generator=generator
        )
        contexts, loss = found.contexts.scatter(1, seeds, k), found.error
    return refine(table, contexts, n_contexts, loss)


def refine(table: GroupTable, contexts: Tensor, n_contexts: int, loss: Tensor) -> SearchResult:
    """Refit and allocate, hard, from the contexts (R, m) of each start until nothing moves.

    Examples
    --------
    >>> import numpy as np
    >>> y = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]], dtype=torch.float64).repeat(5, 1)
    >>> table = GroupTable.of(torch.ones(20, 1, dtype=torch.float64), y, np.arange(20) // 2)
    >>> one_wrong = torch.tensor([[0, 1, 0, 1, 0, 1, 0, 1, 0, 0]])
    >>> refine(table, one_wrong, 2, torch.full((1,), 0.1)).contexts
    tensor([[0, 1, 0, 1, 0, 1, 0, 1, 0, 1]])
    """
    for _ in range(HARD_ROUNDS):
        rows = leave_group_out(
            table, harden(contexts, n_contexts, table.y.dtype), RIDGE * loss.clamp(min=LEAST_LOSS)
        )
        mean = (
            rows.sum(-1) / table.sizes
        )  #                                                    (R, K, m)
        loss, before, contexts = mean.amin(1).mean(-1), contexts, mean.argmin(1)
        if torch.equal(contexts, before):
            break
    return SearchResult(contexts, mean, loss, hold_rows_out(rows, table), rows)


def judge(table: GroupTable, contexts: Tensor, n_contexts: int) -> SearchResult:
    """What contexts (m,) that nobody may change leave unexplained, each group in its own.

    Examples
    --------
    >>> import numpy as np
    >>> y = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]], dtype=torch.float64).repeat(5, 1)
    >>> table = GroupTable.of(torch.ones(20, 1, dtype=torch.float64), y, np.arange(20) // 2)
    >>> right, wrong = torch.arange(10) % 2, torch.arange(10) // 5
    >>> bool(judge(table, right, 2).error < 1e-6), bool(judge(table, wrong, 2).error > 0.5)
    (True, True)
    """
    loss = torch.full((1,), 0.1, dtype=table.y.dtype)
    for _ in range(ROUNDS_TO_JUDGE):
        rows = leave_group_out(
            table,
            harden(contexts[None], n_contexts, table.y.dtype),
            RIDGE * loss.clamp(min=LEAST_LOSS),
        )
        mean = (
            rows.sum(-1) / table.sizes
        )  #                                                    (1, K, m)
        loss = mean.gather(1, contexts[None, None])[:, 0].mean(-1)
    return SearchResult(contexts[None], mean, loss, hold_rows_out(rows, table), rows)


def exchange(table: GroupTable, found: SearchResult, generator: torch.Generator) -> SearchResult:
    """Split and merge: free a model that others can stand in for, let it take half of another's groups, and see whether that is better.

    This leads out of dead ends where one model answers for two contexts and two models share another. `found` holds one start.

    Examples
    --------
    >>> import numpy as np
    >>> y = torch.tensor([[1.0], [2.0], [-1.0]], dtype=torch.float64).repeat(20, 1)
    >>> table = GroupTable.of(torch.ones(60, 1, dtype=torch.float64), y, np.arange(60))
    >>> dead_end = torch.where(torch.arange(60) % 3 == 2, torch.arange(60) % 2, 2)[None]  # the first two in one, the third cut in two
    >>> stuck = refine(table, dead_end, 3, torch.full((1,), 0.1))
    >>> bool(stuck.error > 0.1), bool(exchange(table, stuck, torch.Generator().manual_seed(0)).error < 1e-6)
    (True, True)
    """
    for _ in range(EXCHANGES):
        moved = _exchanged(found, generator)
        if not len(moved):
            break
        n_contexts = found.losses.shape[1]
        tried = refine(table, moved, n_contexts, found.error.expand(len(moved)))
        best = int(tried.error.argmin())
        if not tried.error[best] < GAIN * found.error[0]:
            break
        found = tried.take(best)
    return found


def _exchanged(found: SearchResult, generator: torch.Generator) -> Tensor:
    """Contexts after each exchange that is worth a try, (R, m): a freed model takes another's worse half, or a random one."""
    losses, contexts = (
        found.losses[0],
        found.contexts[0],
    )  #                                    (K, m), (m,)
    best = losses.amin(0)
    lost, worst = torch.zeros(2, len(losses), dtype=losses.dtype)
    without = losses.scatter(
        0, contexts[None], torch.inf
    )  # each group under the models that are not its own
    lost.index_add_(0, contexts, without.amin(0) - best)  # what it costs to free each model
    worst.index_add_(0, contexts, best)  # what each model leaves unexplained
    orders = [best, *torch.rand(RANDOM_HALVES, len(best), generator=generator, dtype=best.dtype)]
    moved = []
    for freed in lost.argsort()[:FREED].tolist():
        left = torch.where(contexts == freed, without.argmin(0), contexts)
        for split in worst.argsort(descending=True)[:SPLIT].tolist():
            own = contexts == split
            if split != freed and own.sum() > 1:
                moved += [
                    torch.where(own & (order > order[own].median()), freed, left)
                    for order in orders
                ]
    return torch.stack(moved) if moved else torch.empty(0, len(contexts), dtype=torch.long)


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
    chosen = torch.gather(rows, 1, others.argmin(1, keepdim=True))[
        :, 0
    ]  #                     (R, m, n)
    can_tell = (table.weight > 0) & (table.sizes > 1)[:, None]
    return torch.where(can_tell, chosen, torch.nan)
