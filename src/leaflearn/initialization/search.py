"""The search for contexts with surrogate models in closed form: many starts at once, annealed.

This is the algorithm of LEAF with ridge regressions as local models, one for every start and every
context. They need no training, so a search takes about a second. Its contexts are the start of the
fit.

A group is scored by its loss under models that have not seen it. Otherwise a flexible model keeps
the groups it was given first, and two models that share one context look better than one. Leaving
out each group in turn needs no refit: the residuals of a group's rows are corrected by the leverage
of the group itself.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from leaflearn.core.grouped_data import position_in_group
from leaflearn.initialization import settings


@dataclass(frozen=True, eq=False)
class GroupTable:
    """Features and targets of m groups as a rectangle; smaller groups are padded with weight 0.

    Examples
    --------
    >>> features, y = torch.ones(3, 1), torch.tensor([[1.0], [2.0], [3.0]])
    >>> GroupTable.of(features, y, np.array([0, 1, 1])).sizes
    tensor([1., 2.])
    """

    features: Tensor  #                                                             (m, n, F)
    y: Tensor  #                                                                    (m, n, D)
    weight: Tensor  # 0 in padding                                                  (m, n)
    row: NDArray[np.intp]  # number of the row, -1 in padding                       (m, n)

    @classmethod
    def of(cls, features: Tensor, y: Tensor, group: NDArray[np.intp]) -> GroupTable:
        """Lay out rows (N, F) and (N, D) by group 0..m-1; very large groups keep their first rows.

        The limit is `SearchSettings.max_rows_per_group`.
        """
        position = position_in_group(group)
        kept = np.flatnonzero(position < settings.SEARCH.max_rows_per_group)
        row = np.full((int(group.max()) + 1, int(position[kept].max()) + 1), -1)
        row[group[kept], position[kept]] = kept
        weight = torch.as_tensor(row >= 0).to(y.dtype)
        at = torch.as_tensor(np.maximum(row, 0))
        return cls(features[at] * weight[..., None], y[at] * weight[..., None], weight, row)

    @property
    def sizes(self) -> Tensor:
        """Number of rows of each group, (m,)."""
        return self.weight.sum(-1)

    @cached_property
    def moments(self) -> tuple[Tensor, Tensor]:
        """X'X (m, F, F) and X'y (m, F, D) of each group; every ridge regression adds them up."""
        return self.features.mT @ self.features, self.features.mT @ self.y


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The allocations and losses of R starts."""

    contexts: Tensor  # best model of each group                                    (R, m)
    losses: Tensor  # mean loss of each group under models that have not seen it    (R, K, m)
    error: Tensor  # mean over groups of the best model's loss                      (R,)
    held_out: Tensor  # see `hold_rows_out`                                         (R, m, n)
    row_losses: Tensor  #                                                           (R, K, m, n)

    def take(self, start: int) -> SearchResult:
        """Select one start."""
        return SearchResult(
            *(getattr(self, field.name)[start : start + 1] for field in fields(self))
        )


def search(
    table: GroupTable, n_contexts: int, n_starts: int, generator: torch.Generator
) -> SearchResult:
    """Allocate the groups from `n_starts` random starts, annealed.

    The variances of the target columns are expected to sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> y = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]], dtype=torch.float64).repeat(5, 1)
    >>> table = GroupTable.of(torch.ones(20, 1, dtype=torch.float64), y, np.arange(20) // 2)
    >>> search(table, 2, 4, torch.Generator().manual_seed(0)).error.min() < 1e-9
    tensor(True)
    """
    setting, dtype = settings.SEARCH, table.y.dtype
    draws = torch.randn(n_starts, n_contexts, len(table.y), generator=generator, dtype=dtype)
    weights = torch.softmax(setting.start_spread * draws, 1)  #                     (R, K, m)
    temperatures = setting.start_temperatures
    first = [temperatures[r % len(temperatures)] for r in range(n_starts)]
    temperature = torch.tensor(first, dtype=dtype)  #                               (R,)
    loss = torch.full((n_starts,), setting.start_loss, dtype=dtype)
    for round_ in range(setting.soft_rounds):
        mean = leave_group_out(table, weights, ridge_at(loss)).sum(-1) / table.sizes  # (R, K, m)
        loss = mean.amin(1).mean(-1)
        cooled = temperature * (1 - round_ / setting.soft_rounds)
        weights = torch.softmax(-mean / cooled[:, None, None], 1)
    return refine(table, weights.argmax(1), n_contexts, loss)


def search_seeded(
    table: GroupTable, n_contexts: int, n_starts: int, generator: torch.Generator
) -> SearchResult:
    """Allocate the groups from starts that add one model at a time, as k-means++ adds centers.

    Each new model starts with groups drawn in proportion to their loss under the models so far.

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
    loss = torch.full((n_starts,), settings.SEARCH.start_loss, dtype=table.y.dtype)
    for k in range(1, n_contexts):
        found = refine(table, contexts, k, loss)
        best = found.losses.amin(1)  #                                              (R, m)
        seeds = torch.multinomial(
            best + 1e-12 * best.amax(), max(1, n_groups // n_contexts), generator=generator
        )
        contexts, loss = found.contexts.scatter(1, seeds, k), found.error
    return refine(table, contexts, n_contexts, loss)


def refine(table: GroupTable, contexts: Tensor, n_contexts: int, loss: Tensor) -> SearchResult:
    """Refit and allocate, hard, from the contexts (R, m) of each start until no group moves.

    Examples
    --------
    >>> import numpy as np
    >>> y = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]], dtype=torch.float64).repeat(5, 1)
    >>> table = GroupTable.of(torch.ones(20, 1, dtype=torch.float64), y, np.arange(20) // 2)
    >>> one_wrong = torch.tensor([[0, 1, 0, 1, 0, 1, 0, 1, 0, 0]])
    >>> refine(table, one_wrong, 2, torch.full((1,), 0.1)).contexts
    tensor([[0, 1, 0, 1, 0, 1, 0, 1, 0, 1]])
    """
    for _ in range(settings.SEARCH.hard_rounds):
        rows = leave_group_out(table, harden(contexts, n_contexts, table.y.dtype), ridge_at(loss))
        mean = rows.sum(-1) / table.sizes  #                                        (R, K, m)
        loss, before, contexts = mean.amin(1).mean(-1), contexts, mean.argmin(1)
        if torch.equal(contexts, before):
            break
    return SearchResult(contexts, mean, loss, hold_rows_out(rows, table), rows)


def judge(table: GroupTable, contexts: Tensor, n_contexts: int) -> SearchResult:
    """Compute the losses of given contexts (m,); `error` is that of each group in its own context.

    Examples
    --------
    >>> import numpy as np
    >>> y = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]], dtype=torch.float64).repeat(5, 1)
    >>> table = GroupTable.of(torch.ones(20, 1, dtype=torch.float64), y, np.arange(20) // 2)
    >>> right, wrong = torch.arange(10) % 2, torch.arange(10) // 5
    >>> bool(judge(table, right, 2).error < 1e-6), bool(judge(table, wrong, 2).error > 0.5)
    (True, True)
    """
    weights = harden(contexts[None], n_contexts, table.y.dtype)
    loss = torch.full((1,), settings.SEARCH.judge_loss, dtype=table.y.dtype)
    for _ in range(settings.SEARCH.judge_rounds):
        rows = leave_group_out(table, weights, ridge_at(loss))
        mean = rows.sum(-1) / table.sizes  #                                        (1, K, m)
        loss = mean.gather(1, contexts[None, None])[:, 0].mean(-1)
    return SearchResult(contexts[None], mean, loss, hold_rows_out(rows, table), rows)


def split_and_merge(
    table: GroupTable, found: SearchResult, generator: torch.Generator
) -> SearchResult:
    """Merge one model into the others, let it take half of another's groups, keep what is better.

    This leads out of local optima where one model fits two contexts and two models share another
    one. `found` holds one start.

    Examples
    --------
    Two levels are in one context, and the groups of the third level are in two.

    >>> import numpy as np
    >>> y = torch.tensor([[1.0], [2.0], [-1.0]], dtype=torch.float64).repeat(20, 1)
    >>> table = GroupTable.of(torch.ones(60, 1, dtype=torch.float64), y, np.arange(60))
    >>> local_optimum = torch.where(torch.arange(60) % 3 == 2, torch.arange(60) % 2, 2)[None]
    >>> stuck = refine(table, local_optimum, 3, torch.full((1,), 0.1))
    >>> better = split_and_merge(table, stuck, torch.Generator().manual_seed(0))
    >>> bool(stuck.error > 0.1), bool(better.error < 1e-6)
    (True, True)
    """
    for _ in range(settings.SEARCH.split_merge_rounds):
        proposals = _propose(found, generator)
        if not len(proposals):
            break
        tried = refine(table, proposals, found.losses.shape[1], found.error.expand(len(proposals)))
        best = int(tried.error.argmin())
        if not tried.error[best] < settings.SEARCH.split_merge_ratio * found.error[0]:
            break
        found = tried.take(best)
    return found


def _propose(found: SearchResult, generator: torch.Generator) -> Tensor:
    """Contexts after each split and merge to try, (R, m).

    A freed model takes the half of another's groups that is explained worst, or a random half.
    """
    setting = settings.SEARCH
    losses, contexts = found.losses[0], found.contexts[0]  #                        (K, m), (m,)
    best = losses.amin(0)
    merge_cost, unexplained = torch.zeros(2, len(losses), dtype=losses.dtype)  #    (K,), (K,)
    others = losses.scatter(0, contexts[None], torch.inf)  # models other than the group's own
    merge_cost.index_add_(0, contexts, others.amin(0) - best)
    unexplained.index_add_(0, contexts, best)
    halves = torch.rand(setting.n_random_halves, len(best), generator=generator, dtype=best.dtype)
    orders = [best, *halves]
    proposals = []
    for freed in merge_cost.argsort()[: setting.n_freed].tolist():
        merged = torch.where(contexts == freed, others.argmin(0), contexts)
        for split in unexplained.argsort(descending=True)[: setting.n_split].tolist():
            is_own = contexts == split
            if split != freed and is_own.sum() > 1:
                proposals += [
                    torch.where(is_own & (order > order[is_own].median()), freed, merged)
                    for order in orders
                ]
    return torch.stack(proposals) if proposals else torch.empty(0, len(contexts), dtype=torch.long)


def leave_group_out(
    table: GroupTable, weights: Tensor, ridge: Tensor, row_weight: Tensor | None = None
) -> Tensor:
    """Squared error of every row under models fitted without its group, shape (R, K, m, n).

    Parameters
    ----------
    table
        The groups.
    weights
        Weight of each group in each model, shape (R, K, m).
    ridge
        Ridge of the models of each start, shape (R,).
    row_weight
        Weight of each row in each model, in addition to that of its group, shape (R, K, m, n).

    Examples
    --------
    Two groups of one row, one model, an intercept only: each row is predicted by the other one.

    >>> table = GroupTable.of(torch.ones(2, 1), torch.tensor([[0.0], [3.0]]), np.array([0, 1]))
    >>> leave_group_out(table, torch.ones(1, 1, 2), torch.zeros(1)).ravel().round()
    tensor([9., 9.])
    """
    n_starts, n_contexts, n_groups = weights.shape
    n_rows = table.features.shape[1]
    coefficients, root, fitted_weight = solve(table, weights, ridge, row_weight)
    residual = table.y.flatten(0, 1) - table.features.flatten(0, 1) @ coefficients
    residual = residual.unflatten(1, (n_groups, n_rows))  #                         (RK, m, n, D)
    inverse = torch.cholesky_inverse(root)
    for model, own in enumerate(weights.flatten(0, 1) > 0):  # the others were left out anyway
        x = table.features[own]  #                                                  (o, n, F)
        weight = fitted_weight[model].reshape(n_groups, 1, n_rows)[own]  #          (o, 1, n)
        leverage = (x @ inverse[model]) @ x.mT * weight  #                          (o, n, n)
        residual[model, own] = torch.linalg.solve(
            torch.eye(n_rows, dtype=x.dtype) - leverage, residual[model, own]
        )
    losses = residual.square().sum(-1) * table.weight
    return losses.reshape(n_starts, n_contexts, n_groups, n_rows)


def solve(
    table: GroupTable, weights: Tensor, ridge: Tensor, row_weight: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Fit every model. Arguments as in `leave_group_out`.

    Returns the coefficients (RK, F, D), the Cholesky factor of the normal equations (RK, F, F), and
    the weight of each row in the fit (RK, 1, M).

    Examples
    --------
    >>> table = GroupTable.of(torch.ones(2, 1), torch.tensor([[0.0], [3.0]]), np.array([0, 1]))
    >>> solve(table, torch.ones(1, 1, 2), torch.zeros(1))[0].ravel()
    tensor([1.5000])
    """
    n_contexts, n_groups = weights.shape[1:]
    n_rows, n_features = table.features.shape[1:]
    expanded = weights[..., None].expand(-1, -1, -1, n_rows)
    fitted_weight = expanded * (1.0 if row_weight is None else row_weight)
    fitted_weight = fitted_weight.reshape(-1, 1, n_groups * n_rows)
    if row_weight is None:
        normal, moment = (
            torch.tensordot(weights.flatten(0, 1), of_group, 1) for of_group in table.moments
        )
    else:  # rows of one group have different weights: the moments of groups cannot be reused
        x, y = table.features.flatten(0, 1), table.y.flatten(0, 1)
        normal, moment = ((x.T * fitted_weight) @ other for other in (x, y))
    penalty = torch.eye(n_features, dtype=normal.dtype)
    penalty[0, 0] = settings.SEARCH.intercept_ridge
    ridges = ridge.repeat_interleave(n_contexts)[:, None, None]
    root = torch.linalg.cholesky(normal + ridges * penalty)
    return torch.cholesky_solve(moment, root), root, fitted_weight


def ridge_at(loss: Tensor) -> Tensor:
    """The ridge of models with this loss so far, (R,).

    Examples
    --------
    >>> ridge_at(torch.tensor([0.5, 0.0], dtype=torch.float64))
    tensor([5.0000e-02, 1.0000e-06], dtype=torch.float64)
    """
    return settings.SEARCH.ridge * loss.clamp(min=settings.SEARCH.min_loss)


def harden(contexts: Tensor, n_contexts: int, dtype: torch.dtype) -> Tensor:
    """Turn contexts (R, m) into weights of 0 and 1, (R, K, m).

    Examples
    --------
    >>> harden(torch.tensor([[1, 0]]), 2, torch.float32)
    tensor([[[0., 1.],
             [1., 0.]]])
    """
    return one_hot(contexts, n_contexts).transpose(1, 2).to(dtype)


def hold_rows_out(rows: Tensor, table: GroupTable) -> Tensor:
    """Loss of each row in the context that the other rows of its group choose, shape (R, m, n).

    It is nan where a group has no other rows. The number of contexts is chosen by these losses: a
    superfluous context fits its groups better by chance, but predicts held-out rows no better.

    Parameters
    ----------
    rows
        Loss of each row under each model, shape (R, K, m, n).
    table
        The groups.

    Examples
    --------
    The first row chooses context 0 for the second one, and the second row context 1 for the first.

    >>> import numpy as np
    >>> table = GroupTable.of(torch.ones(2, 1), torch.zeros(2, 1), np.array([0, 0]))
    >>> hold_rows_out(torch.tensor([[[[0.0, 5.0]], [[1.0, 2.0]]]]), table)
    tensor([[[1., 5.]]])
    """
    others = rows.sum(-1, keepdim=True) - rows
    chosen = torch.gather(rows, 1, others.argmin(1, keepdim=True))[:, 0]  #         (R, m, n)
    return torch.where((table.weight > 0) & (table.sizes > 1)[:, None], chosen, torch.nan)
