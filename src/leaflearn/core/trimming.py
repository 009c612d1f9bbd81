"""Leaving out the worst rows of each group, so that a few wrong ones do not decide its context."""

from __future__ import annotations

import torch
from torch import Tensor

SLACK = 1e-9  # 0.29 of 100 rows are 29, whatever the floating point makes of it


def trim_groups(losses: Tensor, group: Tensor, n_groups: int, trim: float) -> Tensor:
    """The losses (..., N), with 0 in place of the largest ones of each group: a share `trim` of its rows, rounded down.

    Each model has its own worst rows. That is what makes the comparison fair: a row that is absurd under the right model is left out
    there, and under the others so is a row that only they find absurd.

    Parameters
    ----------
    losses
        One loss a row; the leading dimensions are models and restarts.
    group
        The group of each row, 0..n_groups-1, in any order.
    n_groups
        How many groups there are.
    trim
        At least 0 and less than 1. A group of fewer than 1 / trim rows loses none.

    Examples
    --------
    >>> import torch
    >>> trim_groups(torch.tensor([1.0, 9.0, 2.0, 5.0, 7.0]), torch.tensor([0, 0, 0, 0, 1]), 2, trim=0.25)
    tensor([1., 0., 2., 5., 7.])
    """
    if trim == 0:
        return losses
    sizes = torch.bincount(group, minlength=n_groups)  #                            (B,)
    n_out = (trim * sizes.double() + SLACK).floor().long()
    order = losses.argsort(dim=-1, descending=True)  #                              (..., N)
    order = order.gather(
        -1, group[order].argsort(dim=-1, stable=True)
    )  # group by group, the worst row of each first
    position = torch.arange(len(group), device=group.device) - (
        sizes.cumsum(0) - sizes
    ).repeat_interleave(sizes)
    is_out = position < n_out.repeat_interleave(
        sizes
    )  #                           (N,) in that order
    return losses.scatter(-1, order[..., is_out], 0.0)
