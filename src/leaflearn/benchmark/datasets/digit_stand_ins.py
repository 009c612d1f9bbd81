"""Small stand-ins for the paper's image sets that need files: scikit-learn's coloured digits, called in other ways.

They have the same relation between domains, parallel, hierarchical or opposite, and show in seconds that an experiment runs to its end.
What comes out says nothing about the real data, so their names say what they are.
"""

from __future__ import annotations

import numpy as np

from leaflearn.benchmark.datasets.colored_digits import colored_digits
from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.painting import COLORS, DIGITS
from leaflearn.benchmark.datasets.registry import register
from leaflearn.benchmark.datasets.sources import Array, Examples

SEED = 0


@register("digits-parallel")
def digits_parallel() -> DomainSet:
    """Coloured digits called by digit, colour or parity: a stand-in for Fashion Product Images.

    Examples
    --------
    >>> digits_parallel().names
    ('digit', 'color', 'parity')
    """
    domains = colored_digits()
    first = len(DIGITS) + len(COLORS)
    third = tuple(Examples(table.x, first + table.y % 2) for table in _tables(domains.domains[0]))
    parity = Domain("parity", *third)
    classes = (*(domains.classes or ()), "even", "odd")
    return DomainSet(
        "digits-parallel (stand-in)",
        (*domains.domains, parity),
        n_groups=1000,
        group_size=1,
        classes=classes,
    )


@register("digits-hierarchy")
def digits_hierarchy() -> DomainSet:
    """Coloured digits called by one of five pairs of digits or by the digit: a stand-in for CIFAR-100.

    Examples
    --------
    >>> digits_hierarchy().names
    ('pair', 'digit')
    """
    digit = colored_digits().domains[0]
    pairs = tuple(f"{d} or {d + 1}" for d in range(0, 10, 2))
    pair = Domain("pair", *(Examples(table.x, table.y // 2) for table in _tables(digit)))
    single = Domain("digit", *(Examples(table.x, len(pairs) + table.y) for table in _tables(digit)))
    return DomainSet(
        "digits-hierarchy (stand-in)",
        (pair, single),
        n_groups=1000,
        group_size=2,
        classes=(*pairs, *DIGITS),
    )


@register("digits-opposite")
def digits_opposite() -> DomainSet:
    """Coloured digits liked by a friend of even or of odd numbers: a stand-in for the opposite setting. Each image is in one domain.

    Examples
    --------
    >>> domains = digits_opposite()
    >>> domains.names, domains.shares_inputs
    (('even', 'odd'), False)
    """
    digit = colored_digits().domains[0]
    halves = [_halve(table) for table in _tables(digit)]
    even = Domain("even", *(Examples(half[0].x, 1 - half[0].y % 2) for half in halves))
    odd = Domain("odd", *(Examples(half[1].x, half[1].y % 2) for half in halves))
    return DomainSet(
        "digits-opposite (stand-in)",
        (even, odd),
        n_groups=60,
        group_size=20,
        classes=("dislike", "like"),
    )


def _tables(domain: Domain) -> tuple[Examples, Examples]:
    assert isinstance(domain.train, Examples)
    return domain.train, domain.test


def _halve(table: Examples) -> tuple[Examples, Examples]:
    order: Array = np.random.default_rng(SEED).permutation(len(table))
    first, second = np.array_split(order, 2)
    return Examples(table.x[first], table.y[first]), Examples(table.x[second], table.y[second])
