"""How far the expected error can exceed the training error: Theorems 3 and 4 of the paper.

The gap has three sources: the groups are a sample of the domains, the rows are a sample of each
domain, and the context of a group is chosen on its few rows alone. Each source has a term that
vanishes as groups, rows, or rows per group increase. If groups contain rows of other domains
(`mixing`, Theorem 4), all terms grow; without such rows Theorem 4 is Theorem 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """An upper bound of the expected error, which holds with probability 1 - delta, in four terms.

    Examples
    --------
    >>> Bound(training=0.25, domains=0.25, rows=0.0, allocation=0.25).total
    0.75
    >>> Bound(training=0.1, domains=0.2, rows=0.1, allocation=3.0).is_trivial
    True
    """

    training: float  # the training error
    domains: float  # the groups are a sample of the domains
    rows: float  # the rows are a sample of each domain
    allocation: float  # the context of a group is chosen on its few rows

    @property
    def total(self) -> float:
        """The bound: the sum of the terms."""
        return self.training + self.domains + self.rows + self.allocation

    @property
    def is_trivial(self) -> bool:
        """Whether the bound is 1 or more, which is trivial, since losses are at most 1."""
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
    """Theorem 4: an upper bound of the expected error, for losses between 0 and 1.

    It holds for all model sets at once.

    Parameters
    ----------
    training_error
        Mean over groups of the mean loss under the best model of the group (`empirical_error_`).
    groups_of_domain
        The number of groups of each domain (m_k in the paper).
    group_size
        Rows per group (n).
    row_dimension
        VC dimension of the losses of one local model on rows. For a network it is at least of the
        order of its number of parameters.
    domain_dimension
        VC dimension of the losses of the whole model set on domains.
    delta
        The bound may fail with this probability.
    mixing
        Probability that a row of a group belongs to another domain (alpha).

    Examples
    --------
    Lines that are fitted to many groups of many rows. With pairs of rows the bound is trivial.

    >>> lines = {"row_dimension": 3, "domain_dimension": 6}
    >>> bound = generalization_bound(0.0, [50_000, 50_000], 5_000, **lines)
    >>> [round(part, 3) for part in (bound.domains, bound.rows, bound.allocation, bound.total)]
    [0.027, 0.001, 0.19, 0.218]
    >>> generalization_bound(0.0, [50_000, 50_000], 2, **lines).is_trivial
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
    """How far a mean over `n` examples may be from its expectation.

    It holds for all functions of a set of this dimension at once.
    """
    if n == 0:
        return 0.0
    # The logarithm of the number of ways in which 2n examples can be classified (Sauer's lemma);
    # examples that are fewer than the dimension can be classified in every way.
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
            f"`training_error` must be between 0 and 1, but it is {training_error}; divide the "
            "losses by the largest possible one."
        )
    if not groups_of_domain or min(groups_of_domain) < 0 or sum(groups_of_domain) == 0:
        raise ValueError(
            "`groups_of_domain` must hold the number of groups of each domain, with at least one "
            f"group in total, but it is {list(groups_of_domain)}."
        )
    if group_size < 1 or dimension <= 0:
        raise ValueError(
            f"`group_size` and the dimensions must be positive, but `group_size` is {group_size} "
            f"and the smaller dimension is {dimension}."
        )
    if not 0 < delta <= 1 or not 0 <= mixing < 1:
        raise ValueError(
            "`delta` must be above 0 and at most 1, and `mixing` at least 0 and below 1, but they "
            f"are {delta} and {mixing}."
        )
