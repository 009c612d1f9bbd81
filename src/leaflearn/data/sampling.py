"""Bilevel sampling: every group draws its domain, then its examples from that domain (Section 2.1 of the paper)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leaflearn.data.domains import Array, DomainSet, Examples, Truth


class GroupedSample(NamedTuple):
    """What a learner gets: examples and the group of each. It has no field for the domain."""

    x: Array  #                                                                 (N, ...)
    y: Array  #                                                                 (N, ...)
    groups: NDArray[np.intp]  #                                                 (N,) in 0..m-1


def sample_groups(
    domains: DomainSet,
    n_groups: int | None = None,
    group_size: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> tuple[GroupedSample, Truth]:
    """Draw `n_groups` groups of `group_size` examples that share a domain.

    Parameters
    ----------
    domains
        Where the examples come from, and how often each domain comes up.
    n_groups, group_size
        How many groups and how many examples in each; the domain set's own numbers where None.
    random_state
        A seed or a numpy generator; the same seed gives the same sample.

    Returns
    -------
    sample
        Inputs, targets and group ids: everything a learner may see.
    truth
        The domain of each group: for evaluation and for oracles.

    Examples
    --------
    >>> from leaflearn.datasets import DATASETS
    >>> (x, y, groups), truth = sample_groups(DATASETS["functions"](), n_groups=3, group_size=2, random_state=0)
    >>> x.shape, y.shape, groups.tolist()
    ((6, 1), (6,), [0, 0, 1, 1, 2, 2])
    >>> [truth.names[d] for d in truth.domain]
    ['sine', 'absolute', 'absolute']
    """
    n_groups = domains.n_groups if n_groups is None else n_groups
    group_size = domains.group_size if group_size is None else group_size
    if n_groups < 1 or group_size < 1:
        raise ValueError(f"`n_groups` and `group_size` must be at least 1; they are {n_groups} and {group_size}.")
    generator = np.random.default_rng(random_state)
    domain = generator.choice(len(domains), size=n_groups, p=domains.probabilities)  #         (m,)
    groups = np.repeat(np.arange(n_groups), group_size)  #                                     (N,)
    examples = draw_examples(domains, domain[groups], generator)
    return GroupedSample(examples.x, examples.y, groups), Truth(domain, domains.names)


def draw_examples(domains: DomainSet, domain: NDArray[np.intp], generator: np.random.Generator) -> Examples:
    """One example for every entry of `domain` (N,), drawn from the domain that it names.

    Examples
    --------
    >>> from leaflearn.datasets import DATASETS
    >>> draw_examples(DATASETS["functions"](), np.array([0, 2, 0]), np.random.default_rng(0)).x.shape
    (3, 1)
    """
    counts = np.bincount(domain, minlength=len(domains))  #                                    (n_domains,)
    drawn = [source.train.draw(int(n), generator) for source, n in zip(domains, counts, strict=True)]
    # The draws lie one domain after the other; the rank of a row in that order is where its own example stands.
    place = np.argsort(np.argsort(domain, kind="stable"))  #                                   (N,)
    return Examples(np.concatenate([part.x for part in drawn])[place], np.concatenate([part.y for part in drawn])[place])
