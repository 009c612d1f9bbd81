"""Local models in closed form: for every start and every context a ridge regression, and what it says of groups it has not seen.

The score of a group is its loss under a model that did not learn from that group. Otherwise a model that bends easily keeps whatever it was
first given, and two models that share one context look better than one. Leaving each group out in turn costs no refit: the residuals
of the rows of a group are put right by the share that the group itself had in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leaflearn.core.grouped_data import position_in_group

MOST_ROWS_OF_A_GROUP = 32


@dataclass(frozen=True, eq=False)
class GroupTable:
    """Features and targets of m groups as a rectangle; groups with fewer rows than others are filled up with rows of weight 0.

    Examples
    --------
    >>> features, y = torch.ones(3, 1), torch.tensor([[1.0], [2.0], [3.0]])
    >>> GroupTable.of(features, y, np.array([0, 1, 1])).sizes
    tensor([1., 2.])
    """

    features: Tensor  #                                                         (m, n, F)
    y: Tensor  #                                                                (m, n, D)
    weight: Tensor  # 0 where there is no row                                   (m, n)
    row: NDArray[np.intp]  # number of the row, -1 where there is none          (m, n)

    @classmethod
    def of(cls, features: Tensor, y: Tensor, group: NDArray[np.intp]) -> GroupTable:
        """Lay the rows (N, F) and (N, D) out by their group 0..m-1; of a very large group its first rows."""
        position = position_in_group(group)
        fits = np.flatnonzero(position < MOST_ROWS_OF_A_GROUP)
        row = np.full((int(group.max()) + 1, int(position[fits].max()) + 1), -1)
        row[group[fits], position[fits]] = fits
        weight = torch.as_tensor(row >= 0).to(y.dtype)
        at = torch.as_tensor(np.maximum(row, 0))
        return cls(features[at] * weight[..., None], y[at] * weight[..., None], weight, row)

    @property
    def sizes(self) -> Tensor:
        """Rows of each group, (m,)."""
        return self.weight.sum(-1)

    @cached_property
    def moments(self) -> tuple[Tensor, Tensor]:
        """What a ridge regression needs to know of each group: X'X (m, F, F) and X'y (m, F, D). Every solution adds them up again."""
        return self.features.mT @ self.features, self.features.mT @ self.y


def solve(
    table: GroupTable, weights: Tensor, ridge: Tensor, row_weight: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The coefficients of every model (RK, F, D), the root of its normal equations (RK, F, F), and what it learnt from each row (RK, 1, M).

    Examples
    --------
    >>> table = GroupTable.of(torch.ones(2, 1), torch.tensor([[0.0], [3.0]]), np.array([0, 1]))
    >>> solve(table, torch.ones(1, 1, 2), torch.zeros(1))[0].ravel()
    tensor([1.5000])
    """
    n_contexts, n_groups = weights.shape[1:]
    n_rows, n_features = table.features.shape[1:]
    learnt = weights[..., None].expand(-1, -1, -1, n_rows) * (
        1.0 if row_weight is None else row_weight
    )
    learnt = learnt.reshape(-1, 1, n_groups * n_rows)
    if row_weight is None:
        normal, moment = (
            torch.tensordot(weights.flatten(0, 1), of_group, 1) for of_group in table.moments
        )
    else:  # rows of a group count differently: every model adds them up for itself
        x, y = table.features.flatten(0, 1), table.y.flatten(0, 1)
        normal, moment = ((x.T * learnt) @ other for other in (x, y))
    held = torch.eye(n_features, dtype=normal.dtype)
    held[0, 0] = 1e-6  # the constant is free
    root = torch.linalg.cholesky(normal + ridge.repeat_interleave(n_contexts)[:, None, None] * held)
    return torch.cholesky_solve(moment, root), root, learnt


def leave_group_out(
    table: GroupTable, weights: Tensor, ridge: Tensor, row_weight: Tensor | None = None
) -> Tensor:
    """Squared error of every row under every model, as if the row's own group had not been learnt from, shape (R, K, m, n).

    Parameters
    ----------
    table
        The groups.
    weights
        How much each model learns from each group, shape (R, K, m).
    ridge
        How strongly each start's models are held down, shape (R,).
    row_weight
        How much each model learns from each row, beside the weight of its group, shape (R, K, m, n).

    Examples
    --------
    Two groups of one row, one model, a constant only: each row is predicted by the other.

    >>> table = GroupTable.of(torch.ones(2, 1), torch.tensor([[0.0], [3.0]]), np.array([0, 1]))
    >>> leave_group_out(table, torch.ones(1, 1, 2), torch.zeros(1)).ravel().round()
    tensor([9., 9.])
    """
    n_starts, n_contexts, n_groups = weights.shape
    n_rows = table.features.shape[1]
    coefficients, root, learnt = solve(table, weights, ridge, row_weight)
    residual = (table.y.flatten(0, 1) - table.features.flatten(0, 1) @ coefficients).unflatten(
        1, (n_groups, n_rows)
    )  # (RK, m, n, D)
    inverse = torch.cholesky_inverse(root)
    for model, own in enumerate(weights.flatten(0, 1) > 0):  # the others were left out anyway
        x, weight = (
            table.features[own],
            learnt[model].reshape(n_groups, 1, n_rows)[own],
        )  #               (o, n, F), (o, 1, n)
        share = (
            (x @ inverse[model]) @ x.mT * weight
        )  # of row j in the answer to row i                   (o, n, n)
        residual[model, own] = torch.linalg.solve(
            torch.eye(n_rows, dtype=x.dtype) - share, residual[model, own]
        )
    return (residual.square().sum(-1) * table.weight).reshape(
        n_starts, n_contexts, n_groups, n_rows
    )
