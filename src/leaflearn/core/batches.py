"""Flat examples with an integer group id: what the algorithm reads.

Groups are never padded to a rectangle. A group of one row and a group of a thousand lie side by side in one flat array, and `group` says
which row belongs where, so a user's module sees ordinary (N, ...) input.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batches:
    """One meta-batch: the rows of B groups. It has no field for the domain, so no learner can peek.

    Examples
    --------
    >>> import torch
    >>> batches = Batches(x=torch.zeros(3, 1), y=torch.zeros(3, 1), group=torch.tensor([0, 0, 1]))
    >>> batches.sizes
    tensor([2., 1.])
    """

    x: Tensor  #                                                                (N, ...)
    y: Tensor  #                                                                (N, ...)
    group: Tensor  #                                                            (N,) in 0..B-1
    group_id: Tensor | None = None  # which groups of the training set          (B,)
    index: Tensor | None = None  # which rows of the training set               (N,)
    weight: Tensor | None = None  # sums to the size of the group, in each      (N,)
    n_groups: int = 0  # read off `group` where it is not given

    def __post_init__(self) -> None:
        if not self.n_groups:
            object.__setattr__(self, "n_groups", int(self.group.max()) + 1)

    @cached_property
    def sizes(self) -> Tensor:
        """Rows of each group, as floats, shape (B,)."""
        return torch.bincount(self.group, minlength=self.n_groups).to(torch.get_default_dtype())


class GroupedExamples:
    """The whole training set, kept once, from which meta-batches are drawn.

    Parameters
    ----------
    x, y
        Inputs (N, ...) and targets (N, ...).
    group
        The group of each row, integers 0..m-1, every one of them in use, in any row order.
    weight
        Optional positive weights of the rows inside their group; each group keeps a mass of its own size.

    Examples
    --------
    >>> import torch
    >>> data = GroupedExamples(torch.arange(4.0)[:, None], torch.zeros(4, 1), torch.tensor([1, 0, 1, 1]))
    >>> data.sizes
    tensor([1, 3])
    >>> [batches.x.ravel().tolist() for batches in data.meta_batches(groups_per_step=1, generator=torch.Generator().manual_seed(0))]
    [[1.0], [0.0, 2.0, 3.0]]
    """

    def __init__(self, x: Tensor, y: Tensor, group: Tensor, weight: Tensor | None = None) -> None:
        self.x, self.y, self.group, self.weight = x, y, group, weight
        self._device = (
            x.device
        )  # indices are made on the processor, where the generator is, and follow the data
        self.sizes = torch.bincount(group)  #                                   (m,)
        self._rows = torch.argsort(group, stable=True)  # rows, group by group   (N,)

    @property
    def n_groups(self) -> int:
        return len(self.sizes)

    def meta_batches(
        self, groups_per_step: int, generator: torch.Generator, rows_per_group: int | None = None
    ) -> Iterator[Batches]:
        """One epoch: every group once, in a new order, `groups_per_step` at a time.

        Of a group with more than `rows_per_group` rows, that many are drawn anew each epoch, so that one huge group neither slows a step
        down nor counts more than the others.
        """
        order = torch.randperm(self.n_groups, generator=generator)  #            (m,)
        sizes = self.sizes[order]
        taken = (
            sizes if rows_per_group is None else sizes.clamp(max=rows_per_group)
        )  # (m,) in the epoch's order
        ends = torch.cumsum(taken, 0)
        position = torch.arange(int(ends[-1])) - (ends - taken).repeat_interleave(
            taken
        )  # of a row inside its group
        if len(position) < len(self.group):
            position = self._spread(
                position, sizes.repeat_interleave(taken), taken.repeat_interleave(taken), generator
            )
        first = (torch.cumsum(self.sizes, 0) - self.sizes)[order]  # where a group starts
        rows = self._rows[first.repeat_interleave(taken) + position]
        local = (torch.arange(self.n_groups) % groups_per_step).repeat_interleave(taken)
        stop_at = [0, *ends[groups_per_step - 1 :: groups_per_step].tolist()]
        if stop_at[-1] != len(rows):
            stop_at.append(len(rows))
        for i, (start, stop) in enumerate(pairwise(stop_at)):
            group_id = order[i * groups_per_step : (i + 1) * groups_per_step]
            yield self._take(rows[start:stop], local[start:stop], group_id)

    def chunks(self, rows_at_once: int) -> Iterator[Batches]:
        """All rows in their own order, a slice at a time; a group that spans slices is in each of them, with a part of its rows."""
        for start in range(0, len(self.group), rows_at_once):
            part = slice(start, start + rows_at_once)
            group_id, local = torch.unique(self.group[part], return_inverse=True)
            weight = None if self.whole_weight is None else self.whole_weight[part]
            yield Batches(
                self.x[part],
                self.y[part],
                local.to(self._device),
                group_id,
                weight=weight,
                n_groups=len(group_id),
            )

    def _take(self, rows: Tensor, local: Tensor, group_id: Tensor) -> Batches:
        at, local = rows.to(self._device), local.to(self._device)
        weight = None if self.weight is None else balance(self.weight[at], local, len(group_id))
        return Batches(self.x[at], self.y[at], local, group_id, rows, weight, len(group_id))

    @staticmethod
    def _spread(
        position: Tensor, size: Tensor, taken: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Positions of the rows to take: one at random from each of `taken` equal stretches of the group, which is a ring turned at random.

        So every row is as likely as every other, none comes twice, and the work grows with the rows taken, not with the rows there are.
        """
        low, high = position * size // taken, (position + 1) * size // taken
        inside = (
            low
            + (
                torch.rand(len(position), generator=generator, dtype=torch.float64) * (high - low)
            ).long()
        )
        starts = position == 0
        turn = (
            torch.rand(int(starts.sum()), generator=generator, dtype=torch.float64) * size[starts]
        ).long()
        return (inside + turn.repeat_interleave(taken[starts])) % size

    @cached_property
    def whole_weight(self) -> Tensor | None:
        """What each row counts when all rows of its group are there, (N,); None where all count the same."""
        if self.weight is None:
            return None
        return balance(self.weight, self.group.to(self._device), self.n_groups)


def balance(weight: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """Scale the weights so that they sum to the group's size in every group.

    Examples
    --------
    >>> import torch
    >>> balance(torch.tensor([1.0, 3.0, 7.0]), torch.tensor([0, 0, 1]), 2)
    tensor([0.5000, 1.5000, 1.0000])
    """
    total = torch.zeros(n_groups, dtype=weight.dtype, device=weight.device).index_add_(
        0, group, weight
    )
    size = torch.bincount(group, minlength=n_groups)
    return weight * (size / total)[group]
