"""A small domain set and an optimizer, for the tests of methods."""

from functools import partial

import numpy as np

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sources import Examples
from leaflearn.benchmark.methods.optimizers import adam

QUICK = partial(adam, learning_rate=0.01, beta1=0.9)


def clusters():
    """Four clusters in a square; one domain labels their row, the other their column."""
    rng = np.random.default_rng(0)
    place = rng.integers(4, size=400)
    x = np.stack([place // 2, place % 2], axis=1) * 4.0 + rng.normal(scale=0.3, size=(400, 2))
    labels = (place // 2, 2 + place % 2)
    tables = [(Examples(x[:300], y[:300]), Examples(x[300:], y[300:])) for y in labels]
    shared = tables[0][0].x, tables[0][1].x
    parts = [(Examples(shared[0], train.y), Examples(shared[1], test.y)) for train, test in tables]
    return DomainSet(
        "clusters",
        tuple(Domain(n, *p) for n, p in zip(("row", "column"), parts, strict=True)),
        75,
        4,
        classes=("a", "b", "c", "d"),
    )
