"""The bilevel sampler of an experiment: a stream of meta-batches, epoch by epoch.

`sample_groups` draws a fixed sample, and a learner sees its groups repeatedly. Here every epoch
draws new groups, as in the paper's image experiments: 600,000 groups of one image are ten passes
over 60,000 images, each under a random domain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from leaflearn.benchmark.datasets.domains import DomainSet, Truth
from leaflearn.benchmark.datasets.sampling import Draw, draw_domains, draw_rows, mislabel, mix
from leaflearn.benchmark.datasets.sources import Array, Examples, Rows
from leaflearn.core.batches import Batches


@dataclass(frozen=True)
class BilevelSampler:
    """Meta-batches of newly drawn groups.

    If all sources are tables, an epoch uses every training row once.

    Parameters
    ----------
    domains
        The domains to draw from.
    group_size
        Examples per group (n in the paper); None means the default of the domain set.
    groups_per_step
        Groups per meta-batch (B in the paper).
    groups_per_epoch
        Groups per epoch. None means as many as use all rows once, or the default of the domain set
        if a source is unlimited.
    redraw
        If True, each epoch draws new groups. If False, the groups of the first epoch are repeated
        in a different order.
    mixing, label_noise, replacement
        As in `sample_groups`; here rows are drawn without replacement by default.
    random_state
        The seed. An epoch does not depend on which epochs were drawn before it.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> sampler = BilevelSampler(DATASETS["colored-digits"](), group_size=4, groups_per_step=100)
    >>> [len(batches.x) for batches, truth in sampler.epoch(0)]
    [400, 400, 400, 100]
    """

    domains: DomainSet
    group_size: int | None = None
    groups_per_step: int = 32
    groups_per_epoch: int | None = None
    redraw: bool = True
    mixing: float = 0.0
    label_noise: float = 0.0
    replacement: bool = False
    random_state: int = 0

    def __post_init__(self) -> None:
        for name in ("group_size", "groups_per_step", "groups_per_epoch"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | np.integer) or value < 1):
                raise ValueError(f"`{name}` must be an integer of at least 1; it is {value}.")
        # raises an error now, not in the first step
        mix(self.domains, np.zeros(0, dtype=np.intp), self.mixing, np.random.default_rng(0))

    @property
    def size(self) -> int:
        """Examples per group."""
        return self.domains.group_size if self.group_size is None else self.group_size

    @property
    def n_rows(self) -> int | None:
        """Training rows of all domains with a positive share; None if a source is unlimited.

        Rows that domains share count once.
        """
        tables = [
            domain.train
            for domain, share in zip(self.domains, self.domains.probabilities, strict=True)
            if share
        ]
        sizes = {id(table.x): len(table) for table in tables if isinstance(table, Examples)}
        return sum(sizes.values()) if all(isinstance(table, Examples) for table in tables) else None

    @property
    def n_groups(self) -> int:
        """Groups per epoch."""
        if self.groups_per_epoch is not None:
            return self.groups_per_epoch
        return self.domains.n_groups if self.n_rows is None else -(-self.n_rows // self.size)

    def __len__(self) -> int:
        """Meta-batches per epoch."""
        return -(-self.n_groups // self.groups_per_step)

    @cached_property
    def _noisy(self) -> DomainSet:
        return mislabel(
            self.domains, self.label_noise, np.random.default_rng([self.random_state, 0])
        )

    @cached_property
    def _row_numbers(self) -> list[Rows] | None:
        """Row numbers of every domain in the whole training set; None if a source is unlimited.

        They are shuffled over all tables, because consecutive numbers would reveal the domain.
        """
        tables = {
            id(domain.train.x): len(domain.train)
            for domain in self.domains
            if isinstance(domain.train, Examples)
        }
        if not all(isinstance(domain.train, Examples) for domain in self.domains):
            return None
        shuffled = np.random.default_rng([self.random_state, 2]).permutation(sum(tables.values()))
        parts = dict(
            zip(tables, np.split(shuffled, np.cumsum([*tables.values()])[:-1]), strict=True)
        )
        return [
            parts[id(domain.train.x)]
            for domain in self.domains
            if isinstance(domain.train, Examples)
        ]

    def epoch(self, number: int) -> Iterator[tuple[Batches, Truth]]:
        """Yield the meta-batches of this epoch, each with its truth for evaluation and oracles.

        `group_id` continues through the epochs if groups are redrawn. `index` is the number of each
        row's input in the training set, the same in all epochs; None if inputs are drawn from an
        unlimited source.
        """
        generator = np.random.default_rng([self.random_state, 1, number if self.redraw else 0])
        (for_mixing,) = generator.spawn(1)
        domain = draw_domains(self.domains, self.n_groups, generator)  #                      (m,)
        group = np.repeat(np.arange(self.n_groups), self.size)[: self._last_row()]  #         (N,)
        row_domain = mix(self.domains, domain[group], self.mixing, for_mixing)
        draw = draw_rows(self._noisy, row_domain, generator, self.replacement)
        order = np.arange(self.n_groups)
        if not self.redraw:
            order = np.random.default_rng([self.random_state, 3, number]).permutation(self.n_groups)
        for start in range(0, self.n_groups, self.groups_per_step):
            groups = order[start : start + self.groups_per_step]
            rows = (groups[:, None] * self.size + np.arange(self.size)).ravel()
            is_there = rows < len(group)  # the last group may be smaller
            rows, place = rows[is_there], np.repeat(np.arange(len(groups)), self.size)[is_there]
            batches = Batches(
                x=as_inputs(draw.x(rows)),
                y=as_targets(draw.y(rows), self.domains.classes is not None),
                group=torch.from_numpy(place),
                group_id=torch.from_numpy(
                    groups + number * self.n_groups if self.redraw else groups
                ),
                index=self._number(draw, rows),
                n_groups=len(groups),
            )
            yield batches, draw.truth(domain[groups], self.domains, rows)

    def _number(self, draw: Draw, rows: Rows) -> Tensor | None:
        if self._row_numbers is None:
            return None
        numbers = np.empty(len(draw.index[rows]), dtype=np.intp)
        for d, of_domain in enumerate(self._row_numbers):
            here = draw.row_domain[rows] == d
            numbers[here] = of_domain[draw.index[rows][here]]
        return torch.from_numpy(numbers)

    def _last_row(self) -> int | None:
        """End of a pass: the last group is smaller if the group size does not divide the rows."""
        return self.n_rows if self.groups_per_epoch is None and not self.replacement else None


def as_inputs(x: Array) -> Tensor:
    """Convert inputs to float32, as networks expect.

    Examples
    --------
    >>> as_inputs(np.zeros((2, 3))).dtype
    torch.float32
    """
    return torch.from_numpy(np.require(x, np.float32, "W"))  # copies a read-only array


def as_targets(y: Array, is_class: bool) -> Tensor:
    """Convert targets as losses expect: class numbers (N,), or float32 (N, n_outputs).

    Examples
    --------
    >>> as_targets(np.zeros(2), is_class=False).shape
    torch.Size([2, 1])
    """
    if is_class:
        return torch.from_numpy(np.asarray(y, dtype=np.int64))
    values = torch.from_numpy(np.asarray(y, dtype=np.float32))
    return values[:, None] if values.ndim == 1 else values
