"""Drawing in two parts: which domain and which row, for all at once, and the examples themselves when they are needed.

Numbers of rows are small, examples can be large. So a whole epoch is drawn as numbers, and its images are taken a step at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leaflearn.benchmark.datasets.domains import DomainSet, Truth
from leaflearn.benchmark.datasets.sources import Array, Examples, Rows


def draw_domains(domains: DomainSet, n_groups: int, generator: np.random.Generator) -> Rows:
    """A domain for each of `n_groups` groups, by their shares, shape (n_groups,).

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> draw_domains(DATASETS["functions"](), 3, np.random.default_rng(0))
    array([1, 0, 0])
    """
    return generator.choice(len(domains), size=n_groups, p=domains.probabilities)


@dataclass(frozen=True, eq=False)
class Draw:
    """Rows that were drawn and not yet taken: for each, the table of its domain and the number of the row there.

    Examples
    --------
    >>> table = Examples(np.array([[5.0], [6.0]]), np.array([50, 60]))
    >>> Draw((table,), row_domain=np.array([0, 0, 0]), index=np.array([1, 0, 1])).y()
    array([60, 50, 60])
    """

    tables: tuple[Examples, ...]  # one of each domain
    row_domain: Rows  #                                                         (N,)
    index: Rows  #                                                              (N,)

    def x(self, rows: slice | Rows = slice(None)) -> Array:
        """The inputs of these rows of the draw."""
        first = self.tables[0].x
        if all(table.x is first for table in self.tables):
            return first[self.index[rows]]
        x = np.empty(
            (len(self.index[rows]), *first.shape[1:]),
            dtype=np.result_type(*(table.x.dtype for table in self.tables)),
        )
        for d, table in enumerate(self.tables):
            here = self.row_domain[rows] == d
            x[here] = table.x[self.index[rows][here]]
        return x

    def y(self, rows: slice | Rows = slice(None)) -> Array:
        """The targets of these rows of the draw."""
        first = self.tables[0].y
        y = np.empty(
            (len(self.index[rows]), *first.shape[1:]),
            dtype=np.result_type(*(table.y for table in self.tables)),
        )
        for d, table in enumerate(self.tables):
            here = self.row_domain[rows] == d
            y[here] = table.y[self.index[rows][here]]
        return y

    def truth(self, domain: Rows, clean: DomainSet, rows: slice | Rows = slice(None)) -> Truth:
        """What is true of these rows, whose groups have these domains; `clean` is the domain set before labels were exchanged."""
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
    """One row for every entry of `row_domain` (N,), from the domain that it names.

    Without replacement, tables are decks of cards: shuffled, dealt to the end, shuffled again. Domains that share their inputs share the
    deck, so that each input comes up once a pass, under one domain. A source that is no table answers as many times as it is asked.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> draw_rows(DATASETS["functions"](), np.array([0, 2, 0]), np.random.default_rng(0)).x().shape
    (3, 1)
    """
    tables, index = [], np.empty(len(row_domain), dtype=np.intp)
    decks: dict[
        int, tuple[int, list[Rows]]
    ] = {}  # for each table of inputs: how many, and which rows of the draw take from it
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
            decks.setdefault(id(domain.train.x), (len(domain.train), []))[1].append(here)
    for n_cards, takers in decks.values():
        rows = np.sort(np.concatenate(takers))
        index[rows] = _deal(n_cards, len(rows), generator)
    return Draw(tuple(tables), row_domain, index)


def _deal(n_cards: int, n: int, generator: np.random.Generator) -> Rows:
    n_shuffles = max(1, -(-n // n_cards))
    return np.concatenate([generator.permutation(n_cards) for _ in range(n_shuffles)])[:n]
