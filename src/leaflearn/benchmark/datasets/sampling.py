"""Bilevel sampling: each group draws a domain, then its rows (Section 2.1 of the paper).

`sample_groups` draws a complete sample. It has two stages: `draw_rows` draws row numbers, which are
small, and the resulting `Draw` takes the examples, which can be large. `streaming.py` uses the two
stages to draw a whole epoch at once and load its images one step at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leaflearn.benchmark.datasets.domains import DomainSet, Truth
from leaflearn.benchmark.datasets.sources import Array, Examples, Images, Rows


class GroupedSample(NamedTuple):
    """What a learner sees: examples and the group of each. It has no field for the domain."""

    x: Array  #                                                                           (N, ...)
    y: Array  #                                                                           (N, ...)
    groups: NDArray[np.intp]  #                                                   (N,) in 0..m-1


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
        The domains to draw from, with their probabilities.
    n_groups, group_size
        Number of groups, and examples per group; None means the defaults of the domain set. For a
        pair of sizes, the size of each group is drawn between the two, inclusive.
    random_state
        A seed or a numpy generator; the same seed gives the same sample.
    mixing
        Probability that a row comes from another domain than its group (alpha in the paper).
    label_noise
        Share of training labels that are replaced by another label of the same domain (beta in the
        paper); see `mislabel`.
    replacement
        If True, rows are drawn independently. If False, no row of a table is drawn again before
        all of its rows have been drawn.

    Returns
    -------
    sample
        Inputs, targets and group ids: everything that a learner may see.
    truth
        The domain of each group, and which rows are mixed or mislabelled: for evaluation and for
        oracles.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> functions = DATASETS["functions"]()
    >>> (x, y, groups), truth = sample_groups(functions, n_groups=3, group_size=2, random_state=0)
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
            f"`group_size` must be a size or a pair (smallest, largest); it is {group_size}."
        )
    generator = np.random.default_rng(random_state)
    # separate generators, so that the same seed draws the same groups with and without noise
    for_labels, for_mixing = generator.spawn(2)
    noisy = mislabel(domains, label_noise, for_labels)
    domain = draw_domains(domains, n_groups, generator)  #                                    (m,)
    sizes = (
        generator.integers(smallest, largest + 1, n_groups)
        if smallest < largest
        else np.full(n_groups, smallest)
    )
    groups = np.repeat(np.arange(n_groups), sizes)  #                                         (N,)
    row_domain = mix(domains, domain[groups], mixing, for_mixing)
    draw = draw_rows(noisy, row_domain, generator, replacement)
    return GroupedSample(draw.x(), draw.y(), groups), draw.truth(domain, domains)


# Drawing


def draw_domains(domains: DomainSet, n_groups: int, generator: np.random.Generator) -> Rows:
    """Draw a domain for each of `n_groups` groups according to their shares, shape (n_groups,).

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> draw_domains(DATASETS["functions"](), 3, np.random.default_rng(0))
    array([1, 0, 0])
    """
    return generator.choice(len(domains), size=n_groups, p=domains.probabilities)


@dataclass(frozen=True, eq=False)
class Draw:
    """Row numbers that were drawn, with the table of each row's domain.

    Examples
    --------
    >>> table = Examples(np.array([[5.0], [6.0]]), np.array([50, 60]))
    >>> Draw((table,), row_domain=np.array([0, 0, 0]), index=np.array([1, 0, 1])).y()
    array([60, 50, 60])
    """

    tables: tuple[Examples, ...]  # one per domain
    row_domain: Rows  #                                                                       (N,)
    index: Rows  # row number in the table of the domain                                      (N,)

    def x(self, rows: slice | Rows = slice(None)) -> Array:
        """Take the inputs of these rows of the draw."""
        first = self.tables[0].x
        if all(table.x is first for table in self.tables):
            return first[self.index[rows]]
        return self._take([table.x for table in self.tables], rows)

    def y(self, rows: slice | Rows = slice(None)) -> Array:
        """Take the targets of these rows of the draw."""
        return self._take([table.y for table in self.tables], rows)

    def _take(self, columns: Sequence[Array | Images], rows: slice | Rows) -> Array:
        """Take these rows from the column of each row's domain."""
        index, row_domain = self.index[rows], self.row_domain[rows]
        dtype = np.result_type(*(column.dtype for column in columns))
        taken = np.empty((len(index), *columns[0].shape[1:]), dtype=dtype)
        for d, column in enumerate(columns):
            here = row_domain == d
            taken[here] = column[index[here]]
        return taken

    def truth(self, domain: Rows, clean: DomainSet, rows: slice | Rows = slice(None)) -> Truth:
        """Return the truth about these rows.

        Parameters
        ----------
        domain
            The domain of each of their groups.
        clean
            The domain set before label noise was added.
        rows
            Which rows of the draw.
        """
        tables = tuple(
            known if isinstance(known := source.train, Examples) else table
            for source, table in zip(clean, self.tables, strict=True)
        )
        right = replace(self, tables=tables).y(rows)
        wrong = np.any((right != self.y(rows)).reshape(len(right), -1), axis=1)
        label_sets = (
            np.stack([table.y[self.index[rows]] for table in tables], axis=1)
            if clean.shares_inputs
            else None
        )
        return Truth(domain, clean.names, self.row_domain[rows], wrong, label_sets)


def draw_rows(
    domains: DomainSet, row_domain: Rows, generator: np.random.Generator, replacement: bool = True
) -> Draw:
    """Draw one row for each entry of `row_domain` (N,), from the domain that it names.

    Without replacement, the rows of a table come in random order, and in a new order after all have
    been drawn. Domains that share their inputs share this order, so each input is drawn once per
    pass, under one domain. A source that is not a table draws as many rows as needed.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> draw_rows(DATASETS["functions"](), np.array([0, 2, 0]), np.random.default_rng(0)).x().shape
    (3, 1)
    """
    tables, index = [], np.empty(len(row_domain), dtype=np.intp)
    # for each table of inputs: its length, and the rows of the draw that take from it
    shared: dict[int, tuple[int, list[Rows]]] = {}
    for d, domain in enumerate(domains):
        here = np.flatnonzero(row_domain == d)
        if not isinstance(domain.train, Examples):
            tables.append(domain.train.draw(len(here), generator))
            index[here] = np.arange(len(here))
            continue
        tables.append(domain.train)
        if replacement:
            index[here] = generator.integers(len(domain.train), size=len(here))
        else:
            shared.setdefault(id(domain.train.x), (len(domain.train), []))[1].append(here)
    for n_rows, takers in shared.values():
        rows = np.sort(np.concatenate(takers))
        index[rows] = _permute(n_rows, len(rows), generator)
    return Draw(tuple(tables), row_domain, index)


def _permute(n_rows: int, n: int, generator: np.random.Generator) -> Rows:
    """The first `n` entries of as many permutations of `n_rows` rows as it takes."""
    n_permutations = max(1, -(-n // n_rows))
    return np.concatenate([generator.permutation(n_rows) for _ in range(n_permutations)])[:n]


# Noise: rows of other domains inside a group, and wrong labels inside a domain


def mix(
    domains: DomainSet, row_domain: Rows, mixing: float, generator: np.random.Generator
) -> Rows:
    """Replace the domain of each row, with probability `mixing`, by one of the other domains.

    The other domain is drawn according to the domains' shares.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> mix(DATASETS["functions"](), np.zeros(8, dtype=int), 0.5, np.random.default_rng(0))
    array([0, 2, 2, 2, 0, 0, 0, 0])
    """
    if not 0 <= mixing < 1:
        raise ValueError(
            "`mixing` is the probability of a row from another domain and must be at least 0 and "
            f"less than 1; it is {mixing}."
        )
    if mixing == 0:
        return row_domain
    if np.count_nonzero(domains.probabilities) < 2:
        raise ValueError(
            "`mixing` needs two domains with a positive share, but "
            f"'{domains.name}' has only one; leave `mixing` at 0."
        )
    mixed, moved = row_domain.copy(), generator.random(len(row_domain)) < mixing
    for d in np.unique(row_domain):
        rows = np.flatnonzero(moved & (row_domain == d))
        others = np.where(np.arange(len(domains)) == d, 0.0, domains.probabilities)  # (n_domains,)
        mixed[rows] = generator.choice(len(domains), size=len(rows), p=others / others.sum())
    return mixed


def mislabel(domains: DomainSet, share: float, generator: np.random.Generator) -> DomainSet:
    """Return the domain set with wrong labels in this share of each domain's training rows.

    A wrong label is drawn from the other labels of the same domain. The noise is part of the data:
    a row keeps its wrong label each time it is drawn. The test rows keep their labels.

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
            "`label_noise` is the share of wrong labels and must be at least 0 and less than 1; "
            f"it is {share}."
        )
    if share == 0:
        return domains
    tables = [domain.train for domain in domains]
    if domains.classes is None or not all(isinstance(table, Examples) for table in tables):
        raise ValueError(
            "`label_noise` exchanges the labels of a table of examples, but "
            f"'{domains.name}' has none; leave it at 0."
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
    """Replace this share of the labels by another label of the same set."""
    known, code = np.unique(labels, return_inverse=True)
    if len(known) < 2:
        raise ValueError(
            f"`label_noise` needs at least two labels, but a domain has only {known.tolist()}; "
            "leave it at 0."
        )
    hit = generator.choice(len(labels), size=round(share * len(labels)), replace=False)
    steps = generator.integers(1, len(known), size=len(hit))  # never 0, so each label changes
    code[hit] = (code[hit] + steps) % len(known)
    return np.asarray(known[code])
