"""What spoils a benchmark on purpose: rows of other domains inside a group, and wrong labels inside a domain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leaflearn.benchmark.datasets.domains import DomainSet
from leaflearn.benchmark.datasets.sources import Array, Examples, Rows


def mix(
    domains: DomainSet, row_domain: Rows, mixing: float, generator: np.random.Generator
) -> Rows:
    """Send each row, with probability `mixing`, to one of the other domains, by their shares.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> mix(DATASETS["functions"](), np.zeros(8, dtype=int), 0.5, np.random.default_rng(0))
    array([0, 2, 2, 2, 0, 0, 0, 0])
    """
    if not 0 <= mixing < 1:
        raise ValueError(
            f"`mixing` is the probability of a row from another domain, at least 0 and less than 1; it is {mixing}."
        )
    if mixing == 0:
        return row_domain
    if np.count_nonzero(domains.probabilities) < 2:
        raise ValueError(
            f"`mixing` needs two domains that come up, but '{domains.name}' has only one; leave `mixing` at 0."
        )
    mixed, moved = row_domain.copy(), generator.random(len(row_domain)) < mixing
    for d in np.unique(row_domain):
        rows = np.flatnonzero(moved & (row_domain == d))
        others = np.where(
            np.arange(len(domains)) == d, 0.0, domains.probabilities
        )  #        (n_domains,)
        mixed[rows] = generator.choice(len(domains), size=len(rows), p=others / others.sum())
    return mixed


def mislabel(domains: DomainSet, share: float, generator: np.random.Generator) -> DomainSet:
    """The domain set with wrong labels at this share of every domain's training rows, each drawn from the labels of the same domain.

    The noise belongs to the data: a row with a wrong label keeps it each time it is drawn, as in a data set that people labelled once. The
    test part stays right.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> digits = DATASETS["colored-digits"]()
    >>> noisy = mislabel(digits, 0.1, np.random.default_rng(0))
    >>> [float(np.mean(a.train.y != b.train.y)) for a, b in zip(digits, noisy)]
    [0.1, 0.1]
    """
    if not 0 <= share < 1:
        raise ValueError(
            f"`label_noise` is the share of wrong labels, at least 0 and less than 1; it is {share}."
        )
    if share == 0:
        return domains
    tables = [domain.train for domain in domains]
    if domains.classes is None or not all(isinstance(table, Examples) for table in tables):
        raise ValueError(
            f"`label_noise` exchanges the labels of a table of examples, and '{domains.name}' has none; leave it at 0."
        )
    wrong = [
        Examples(table.x, _exchange(table.y, share, generator))
        for table in tables
        if isinstance(table, Examples)
    ]
    return replace(
        domains,
        domains=tuple(
            replace(domain, train=table) for domain, table in zip(domains, wrong, strict=True)
        ),
    )


def _exchange(labels: Array, share: float, generator: np.random.Generator) -> Array:
    """Another label of the same set at this share of the places."""
    known, code = np.unique(labels, return_inverse=True)
    if len(known) < 2:
        raise ValueError(
            f"`label_noise` needs a second label to be wrong with, but a domain has only {known.tolist()}; leave it at 0."
        )
    hit = generator.choice(len(labels), size=round(share * len(labels)), replace=False)
    code[hit] = (code[hit] + generator.integers(1, len(known), size=len(hit))) % len(
        known
    )  # any step but a whole turn changes it
    return np.asarray(known[code])
