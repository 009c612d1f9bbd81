"""Bilevel sampling: every group draws its domain, then its examples from that domain (Section 2.1 of the paper)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leaflearn.benchmark.datasets.domains import DomainSet, Truth
from leaflearn.benchmark.datasets.draws import draw_domains, draw_rows
from leaflearn.benchmark.datasets.noise import mislabel, mix
from leaflearn.benchmark.datasets.sources import Array


class GroupedSample(NamedTuple):
    """What a learner gets: examples and the group of each. It has no field for the domain."""

    x: Array  #                                                                 (N, ...)
    y: Array  #                                                                 (N, ...)
    groups: NDArray[np.intp]  #                                                 (N,) in 0..m-1


def sample_groups(
    domains: DomainSet,
    n_groups: int | None = None,
    group_size: int | tuple[int, int] | None = None,
    random_state: int | np.random.Generator | None = None,
    *,
    mixing: float = 0.0,
    label_noise: float = 0.0,
    replacement: bool = True,
) -> tuple[GroupedSample, Truth]:
    """Draw `n_groups` groups of `group_size` examples that share a domain.

    Parameters
    ----------
    domains
        Where the examples come from, and how often each domain comes up.
    n_groups, group_size
        How many groups and how many examples in each; the domain set's own numbers where None. A pair of sizes draws the size of each group
        between the two, both included.
    random_state
        A seed or a numpy generator; the same seed gives the same sample.
    mixing
        How likely a row is to come from another domain than its group's (alpha in the paper).
    label_noise
        The share of training labels that are wrong, but of the same domain's set (beta in the paper); see `mislabel`.
    replacement
        Draw rows independently; if False, a table's rows are dealt out like cards, none of them twice before all have come once.

    Returns
    -------
    sample
        Inputs, targets and group ids: everything a learner may see.
    truth
        The domain of each group, and what was mixed or mislabelled: for evaluation and for oracles.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> (x, y, groups), truth = sample_groups(DATASETS["functions"](), n_groups=3, group_size=2, random_state=0)
    >>> x.shape, y.shape, groups.tolist()
    ((6, 1), (6,), [0, 0, 1, 1, 2, 2])
    >>> [truth.names[d] for d in truth.domain]
    ['sine', 'absolute', 'absolute']
    """
    n_groups = domains.n_groups if n_groups is None else n_groups
    group_size = domains.group_size if group_size is None else group_size
    smallest, largest = group_size if isinstance(group_size, tuple) else (group_size, group_size)
    if n_groups < 1 or smallest < 1:
        raise ValueError(
            f"`n_groups` and `group_size` must be at least 1; they are {n_groups} and {group_size}."
        )
    if smallest > largest:
        raise ValueError(
            f"`group_size` is a size or a pair (smallest, largest); it is {group_size}."
        )
    generator = np.random.default_rng(random_state)
    for_labels, for_mixing = generator.spawn(
        2
    )  # of their own, so that the same seed draws the same groups with and without noise
    noisy = mislabel(domains, label_noise, for_labels)
    domain = draw_domains(domains, n_groups, generator)  #                                    (m,)
    sizes = (
        generator.integers(smallest, largest + 1, n_groups)
        if smallest < largest
        else np.full(n_groups, smallest)
    )
    groups = np.repeat(np.arange(n_groups), sizes)  #                                         (N,)
    draw = draw_rows(
        noisy, mix(domains, domain[groups], mixing, for_mixing), generator, replacement
    )
    return GroupedSample(draw.x(), draw.y(), groups), draw.truth(domain, domains)
