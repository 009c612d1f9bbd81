"""Coloured digits: what is in the image, the digit or its colour? Colored MNIST of the paper, in the size of a demonstration.

The images are scikit-learn's own 8x8 digits, so nothing is fetched. Each is painted in one of eight colours, once and for all; the
domain `digit` calls it 0 to 9, the domain `color` 10 to 17, and both share one space of 18 labels.
"""

from __future__ import annotations

import numpy as np

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.painting import CLASSES, COLORS, DIGITS, paint
from leaflearn.benchmark.datasets.registry import register
from leaflearn.benchmark.datasets.sources import Examples

N_TEST = 497  # of 1,797 images
SEED = 0  # of the colours and of the split, which are part of the data


@register("colored-digits")
def colored_digits() -> DomainSet:
    """Small digits (3, 8, 8) in eight colours, called by their digit or by their colour.

    There are 1,300 training and 497 test images, with values between 0 and 1; by default 1,000 groups of 4 are drawn.

    Examples
    --------
    >>> domains = colored_digits()
    >>> domains.names, domains.input_shape
    (('digit', 'color'), (3, 8, 8))
    >>> [domains.classes[domain.test.y[0]] for domain in domains]
    ['5', 'pink']
    """
    from sklearn.datasets import (
        load_digits,
    )  # here, so that the table of data sets is there at once
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    color = np.random.default_rng(SEED).integers(len(COLORS), size=len(digits.target))  #     (N,)
    x = paint(
        np.asarray(digits.images / 16.0, dtype=np.float32), color
    )  #                                                 (N, 3, 8, 8)
    y = np.stack(
        [digits.target, len(DIGITS) + color], axis=1
    )  #                                (N, 2)
    x_train, x_test, y_train, y_test = train_test_split(
        x, y, test_size=N_TEST, stratify=digits.target, random_state=SEED
    )
    domains = tuple(
        Domain(name, train=Examples(x_train, y_train[:, d]), test=Examples(x_test, y_test[:, d]))
        for d, name in enumerate(("digit", "color"))
    )
    return DomainSet("colored-digits", domains, n_groups=1000, group_size=4, classes=CLASSES)
