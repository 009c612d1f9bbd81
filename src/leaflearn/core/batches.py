"""The tensors of training: flat rows with an integer group each.

Groups may have any size and are not padded. All rows are in one flat tensor, and `group` holds the
group of each row, so that a local model gets ordinary (N, ...) input.
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
    """One meta-batch: the rows of B groups. There is no field for the hidden domain of a group.

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
    group_id: Tensor | None = None  # positions in the training set             (B,)
    index: Tensor | None = None  # row numbers in the training set              (N,)
    weight: Tensor | None = None  # sums to the size of each group              (N,)
    n_groups: int = 0  # by default the largest group plus 1

    def __post_init__(self) -> None:
        if not self.n_groups:
            object.__setattr__(self, "n_groups", int(self.group.max()) + 1)

    @cached_property
    def sizes(self) -> Tensor:
        """Number of rows of each group, as floats, shape (B,)."""
        return torch.bincount(self.group, minlength=self.n_groups).to(torch.get_default_dtype())


class GroupedExamples:
    """The whole training set, from which meta-batches are drawn.

    Parameters
    ----------
    x, y
        Inputs (N, ...) and targets (N, ...).
    group
        The group of each row, integers 0..m-1 without gaps, in any row order.
    weight
        Optional positive weights of the rows within their group. They are scaled to sum to the
        size of the group.

    Examples
    --------
    >>> import torch
    >>> x, group = torch.arange(4.0)[:, None], torch.tensor([1, 0, 1, 1])
    >>> data = GroupedExamples(x, torch.zeros(4, 1), group)
    >>> data.sizes
    tensor([1, 3])
    >>> generator = torch.Generator().manual_seed(0)
    >>> [batches.x.ravel().tolist() for batches in data.meta_batches(1, generator)]
    [[1.0], [0.0, 2.0, 3.0]]
    """

    def __init__(self, x: Tensor, y: Tensor, group: Tensor, weight: Tensor | None = None) -> None:
        self.x, self.y, self.group, self.weight = x, y, group, weight
        self._device = x.device  # indices are computed on the CPU, then moved here
        self.sizes = torch.bincount(group)  #                                   (m,)
        self._rows = torch.argsort(group, stable=True)  # rows, group by group   (N,)

    @property
    def n_groups(self) -> int:
        return len(self.sizes)

    def meta_batches(
        self, groups_per_step: int, generator: torch.Generator, rows_per_group: int | None = None
    ) -> Iterator[Batches]:
        """One epoch: every group once, in random order, `groups_per_step` at a time.

        Groups with more than `rows_per_group` rows are subsampled, differently in each epoch, so
        that a very large group does not slow down a step.
        """
        order = torch.randperm(self.n_groups, generator=generator)  #            (m,)
        sizes = self.sizes[order]
        taken = sizes if rows_per_group is None else sizes.clamp(max=rows_per_group)  #  (m,)
        ends = torch.cumsum(taken, 0)
        # Position of each row within its group.
        position = torch.arange(int(ends[-1])) - (ends - taken).repeat_interleave(taken)
        if len(position) < len(self.group):
            position = self._sample(
                position, sizes.repeat_interleave(taken), taken.repeat_interleave(taken), generator
            )
        first = (torch.cumsum(self.sizes, 0) - self.sizes)[order]  # of each group
        rows = self._rows[first.repeat_interleave(taken) + position]
        local = (torch.arange(self.n_groups) % groups_per_step).repeat_interleave(taken)
        stop_at = [0, *ends[groups_per_step - 1 :: groups_per_step].tolist()]
        if stop_at[-1] != len(rows):
            stop_at.append(len(rows))
        for i, (start, stop) in enumerate(pairwise(stop_at)):
            group_id = order[i * groups_per_step : (i + 1) * groups_per_step]
            yield self._take(rows[start:stop], local[start:stop], group_id)

    def chunks(self, rows_at_once: int) -> Iterator[Batches]:
        """All rows in order, `rows_at_once` at a time; large groups may span several chunks."""
        for start in range(0, len(self.group), rows_at_once):
            part = slice(start, start + rows_at_once)
            group_id, local = torch.unique(self.group[part], return_inverse=True)
            yield Batches(
                self.x[part],
                self.y[part],
                local.to(self._device),
                group_id,
                weight=None if self.whole_weight is None else self.whole_weight[part],
                n_groups=len(group_id),
            )

    def _take(self, rows: Tensor, local: Tensor, group_id: Tensor) -> Batches:
        at, local = rows.to(self._device), local.to(self._device)
        weight = None if self.weight is None else balance(self.weight[at], local, len(group_id))
        return Batches(self.x[at], self.y[at], local, group_id, rows, weight, len(group_id))

    @staticmethod
    def _sample(
        position: Tensor, size: Tensor, taken: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Positions within their group of a random subset of rows, by stratified sampling.

        The group is cut into `taken` equal strata, one row is drawn from each, and all positions
        are shifted cyclically by a random offset. Every row is equally likely, none is drawn
        twice, and the cost depends on the number of sampled rows only.
        """
        low, high = position * size // taken, (position + 1) * size // taken
        share = torch.rand(len(position), generator=generator, dtype=torch.float64)
        drawn = low + (share * (high - low)).long()
        is_first = position == 0
        share = torch.rand(int(is_first.sum()), generator=generator, dtype=torch.float64)
        offset = (share * size[is_first]).long()
        return (drawn + offset.repeat_interleave(taken[is_first])) % size

    @cached_property
    def whole_weight(self) -> Tensor | None:
        """Weights that sum to the size of each whole group, (N,); None without weights."""
        if self.weight is None:
            return None
        return balance(self.weight, self.group.to(self._device), self.n_groups)


def balance(weight: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """Scale the weights so that they sum to the size of the group in every group.

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
