"""How far the error on new data can be above the error in training: Theorems 3 and 4 of the paper.

The gap has three sources: the groups are a sample of the domains, the rows are a sample of each domain, and a group's context is chosen on
its few rows alone. Each has a term that dies away with more of what it lacks: groups, rows, rows in a group. With rows of other domains
inside the groups (`mixing`, Theorem 4) all terms grow; without them Theorem 4 is Theorem 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """What the expected error is below, with the probability that was asked for, and the parts of which that is the sum.

    Examples
    --------
    >>> Bound(training=0.25, domains=0.25, rows=0.0, allocation=0.25).total
    0.75
    >>> Bound(training=0.1, domains=0.2, rows=0.1, allocation=3.0).says_nothing
    True
    """

    training: float  # the error in training
    domains: float  # the groups are a sample of the domains
    rows: float  # the rows are a sample of each domain
    allocation: float  # a group's context is chosen on its own few rows

    @property
    def total(self) -> float:
        """Their sum."""
        return self.training + self.domains + self.rows + self.allocation

    @property
    def says_nothing(self) -> bool:
        """Whether it is 1 or more: losses are at most 1, so that is known anyway."""
        return self.total >= 1


def generalization_bound(
    training_error: float,
    groups_of_domain: Sequence[int],
    group_size: int,
    *,
    row_dimension: float,
    domain_dimension: float,
    delta: float = 0.05,
    mixing: float = 0.0,
) -> Bound:
    """Theorem 4: an upper bound of the expected error that holds for all model sets at once, for losses between 0 and 1.

    Parameters
    ----------
    training_error
        Mean over groups of the mean loss under the model that explains the group best (`empirical_error_`).
    groups_of_domain
        How many groups came from each domain (m_k in the paper).
    group_size
        Rows in a group (n).
    row_dimension
        VC dimension of the losses of one local model on rows. Of a network it is at least of the order of its parameters.
    domain_dimension
        VC dimension of the losses of the whole model set on domains.
    delta
        The bound may fail with this probability.
    mixing
        Probability that a row of a group is of another domain (alpha).

    Examples
    --------
    Lines, learnt from many groups of many rows; then the same with pairs, which tell too little to bound anything.

    >>> bound = generalization_bound(0.0, [50_000, 50_000], 5_000, row_dimension=3, domain_dimension=6)
    >>> [round(part, 3) for part in (bound.domains, bound.rows, bound.allocation, bound.total)]
    [0.027, 0.001, 0.19, 0.218]
    >>> generalization_bound(0.0, [50_000, 50_000], 2, row_dimension=3, domain_dimension=6).says_nothing
    True
    """
    n_groups, n_domains = sum(groups_of_domain), len(groups_of_domain)
    _check(
        training_error,
        groups_of_domain,
        group_size,
        min(row_dimension, domain_dimension),
        delta,
        mixing,
    )
    domains = _gap(n_groups, domain_dimension, delta / 24) + 1 / n_groups
    rows = sum(
        count / n_groups * _gap(count * group_size, row_dimension, delta / (12 * n_domains))
        + 1 / (n_groups * group_size)
        for count in groups_of_domain
    )
    allocation = _gap(group_size, row_dimension, delta / (24 * n_groups)) + 1 / group_size
    clean = 1 - mixing
    return Bound(
        training_error / clean, (1 + mixing) / clean * domains, rows / clean, 2 * allocation / clean
    )


def _gap(n: int, dimension: float, delta: float) -> float:
    """How far a mean over `n` examples may be from the expectation, for all functions of a set of this dimension at once."""
    if n == 0:
        return 0.0
    # In how many ways 2n examples can be told apart, as a logarithm; fewer examples than dimensions can be told apart in every way.
    ways = (
        dimension * (math.log(2 * n / dimension) + 1) if 2 * n > dimension else 2 * n * math.log(2)
    )
    return math.sqrt((ways - math.log(delta)) / n)


def _check(
    training_error: float,
    groups_of_domain: Sequence[int],
    group_size: int,
    dimension: float,
    delta: float,
    mixing: float,
) -> None:
    if not 0 <= training_error <= 1:
        raise ValueError(
            f"`training_error` is a mean of losses between 0 and 1; it is {training_error}. Divide losses by the largest one."
        )
    if not groups_of_domain or min(groups_of_domain) < 0 or sum(groups_of_domain) == 0:
        raise ValueError(
            f"`groups_of_domain` counts the groups of each domain, at least one in all; it is {list(groups_of_domain)}."
        )
    if group_size < 1 or dimension <= 0:
        raise ValueError(
            f"`group_size` and the dimensions must be positive; they are {group_size} and at least {dimension}."
        )
    if not 0 < delta <= 1 or not 0 <= mixing < 1:
        raise ValueError(
            f"`delta` must be above 0 and at most 1, `mixing` at least 0 and below 1; they are {delta} and {mixing}."
        )
