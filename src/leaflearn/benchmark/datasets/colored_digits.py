"""Colored digits: a small version of Colored MNIST, and stand-ins for the paper's other image sets.

The images are scikit-learn's 8x8 digits, so nothing is fetched. Each digit has one of eight fixed
colors. In `colored-digits` the domain `digit` labels it 0 to 9 and the domain `color` labels it 10
to 17, in one space of 18 labels.

The stand-ins have the same relation between domains as the paper's image sets that need files:
parallel, hierarchical or opposite. They show within seconds that an experiment runs. Their results
say nothing about the real data, so their names contain "stand-in".
"""

from __future__ import annotations

import numpy as np

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.registry import register
from leaflearn.benchmark.datasets.sources import Array, Examples

COLORS: dict[str, tuple[float, float, float]] = {  # red, green, blue
    "red": (1.0, 0.0, 0.0),
    "blue": (0.0, 0.0, 1.0),
    "yellow": (1.0, 1.0, 0.0),
    "green": (0.0, 1.0, 0.0),
    "pink": (1.0, 0.5, 0.75),
    "cyan": (0.0, 1.0, 1.0),
    "white": (1.0, 1.0, 1.0),
    "purple": (0.5, 0.0, 0.5),
}
DIGITS = tuple(str(digit) for digit in range(10))
CLASSES = (*DIGITS, *COLORS)  # one label space for both domains
N_TEST = 497  # of 1,797 images
SEED = 0  # of the colors and the splits, which are part of the data


@register("colored-digits")
def colored_digits() -> DomainSet:
    """Small digits (3, 8, 8) in eight colors, labelled by digit or by color.

    There are 1,300 training and 497 test images, with values between 0 and 1. The default sample
    has 1,000 groups of 4.

    Examples
    --------
    >>> domains = colored_digits()
    >>> domains.names, domains.input_shape
    (('digit', 'color'), (3, 8, 8))
    >>> [domains.classes[domain.test.y[0]] for domain in domains]
    ['5', 'pink']
    """
    from sklearn.datasets import load_digits  # imported here because it is slow
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    color = np.random.default_rng(SEED).integers(len(COLORS), size=len(digits.target))  #     (N,)
    x = paint(np.asarray(digits.images / 16.0, dtype=np.float32), color)  #           (N, 3, 8, 8)
    y = np.stack([digits.target, len(DIGITS) + color], axis=1)  #                           (N, 2)
    x_train, x_test, y_train, y_test = train_test_split(
        x, y, test_size=N_TEST, stratify=digits.target, random_state=SEED
    )
    domains = tuple(
        Domain(name, train=Examples(x_train, y_train[:, d]), test=Examples(x_test, y_test[:, d]))
        for d, name in enumerate(("digit", "color"))
    )
    return DomainSet("colored-digits", domains, n_groups=1000, group_size=4, classes=CLASSES)


@register("digits-parallel")
def digits_parallel() -> DomainSet:
    """Colored digits labelled by digit, color or parity: a stand-in for Fashion Product Images.

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
    """Colored digits labelled by one of five pairs of digits or by digit: a stand-in for CIFAR-100.

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
    """Colored digits liked if even, or liked if odd: a stand-in for the opposite setting.

    Each image belongs to one domain.

    Examples
    --------
    >>> domains = digits_opposite()
    >>> domains.names, domains.shares_inputs
    (('even', 'odd'), False)
    """
    halves = [_halve(table) for table in _tables(colored_digits().domains[0])]
    even = Domain("even", *(Examples(half[0].x, 1 - half[0].y % 2) for half in halves))
    return DomainSet(
        "digits-opposite (stand-in)",
        (even, Domain("odd", *(Examples(half[1].x, half[1].y % 2) for half in halves))),
        n_groups=60,
        group_size=20,
        classes=("dislike", "like"),
    )


def paint(images: Array, color: Array) -> Array:
    """Color gray images (N, height, width), as (N, 3, height, width) of the same type.

    `color` holds the index of each image's color in `COLORS`, (N,).

    Examples
    --------
    >>> paint(np.ones((1, 1, 1), dtype=np.float32), np.array([0])).ravel()  # red
    array([1., 0., 0.], dtype=float32)
    """
    painted = np.empty((len(images), 3, *images.shape[1:]), dtype=images.dtype)
    channels = np.array(list(COLORS.values()), dtype=np.float32)[color]  #                  (N, 3)
    for c in range(3):  # channel by channel, to avoid a copy in a wider type
        np.multiply(images, channels[:, c, None, None], out=painted[:, c], casting="unsafe")
    return painted


def _tables(domain: Domain) -> tuple[Examples, Examples]:
    assert isinstance(domain.train, Examples)
    return domain.train, domain.test


def _halve(table: Examples) -> tuple[Examples, Examples]:
    order: Array = np.random.default_rng(SEED).permutation(len(table))
    first, second = np.array_split(order, 2)
    return Examples(table.x[first], table.y[first]), Examples(table.x[second], table.y[second])
