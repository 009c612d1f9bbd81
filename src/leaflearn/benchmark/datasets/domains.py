"""Domains: where the examples of a benchmark come from, and the truth that no learner may see.

A domain is a pair of an input distribution and a target function (Section 2.1 of the paper); its `train` source draws examples from the
pair, its `test` examples measure who has learnt the function. A `DomainSet` adds how often each domain comes up (Q in the paper).

The truth firewall: which group came from which domain is kept in a `Truth`, an object of its own beside the examples. Nothing that a
learner takes has a field for it; only evaluation, and learners that are called oracles, are ever handed one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaflearn.benchmark.datasets.sources import Array, Examples, Source


@dataclass(frozen=True, eq=False)
class Domain:
    """One hidden truth of a benchmark: its name, the source of its training examples, and its test examples.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.sources import Function
    >>> square = Function(lambda x: x**2, low=0.0, high=1.0)
    >>> Domain("square", train=square, test=square.grid(100)).name
    'square'
    """

    name: str
    train: Source
    test: Examples


@dataclass(frozen=True, eq=False)
class DomainSet:
    """Domains that conflict, and how often each of them comes up.

    Parameters
    ----------
    name
        What the benchmark is called.
    domains
        The domains; their inputs have one shape, their targets one space.
    n_groups, group_size
        How much is drawn where nothing else is asked for.
    shares
        How likely a group is to come from each domain (Q in the paper); equal where None.
    classes
        Readable names of the labels 0, 1, ... of all domains together; None in regression.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.sources import Function
    >>> up, down = Function(lambda x: x, -1.0, 1.0), Function(lambda x: -x, -1.0, 1.0)
    >>> domains = DomainSet("cross", (Domain("up", up, up.grid(5)), Domain("down", down, down.grid(5))), n_groups=10, group_size=2)
    >>> domains.names, domains.probabilities.tolist(), domains.input_shape
    (('up', 'down'), [0.5, 0.5], (1,))
    """

    name: str
    domains: tuple[Domain, ...]
    n_groups: int
    group_size: int
    shares: tuple[float, ...] | None = None
    classes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.domains or len(set(self.names)) < len(self.domains):
            raise ValueError(
                f"A domain set needs at least one domain and a different name for each; it got {list(self.names)}."
            )
        tables = [
            part
            for domain in self.domains
            for part in (domain.train, domain.test)
            if isinstance(part, Examples)
        ]
        shapes = {table.x.shape[1:] for table in tables}
        if len(shapes) > 1:
            raise ValueError(
                f"All domains of a set need inputs of one shape; they have {sorted(shapes)}."
            )
        if not all(len(table) for table in tables):
            raise ValueError(
                f"Every domain of '{self.name}' needs examples to train on and to test on; a table is empty."
            )
        self._check_labels(tables)
        if self.shares is not None and not (
            len(self.shares) == len(self.domains) and min(self.shares) >= 0 and sum(self.shares) > 0
        ):
            raise ValueError(
                f"`shares` needs one number of 0 or more for each of {len(self.domains)} domains, not {self.shares}."
            )

    def _check_labels(self, tables: list[Examples]) -> None:
        if self.classes is None:
            return
        for table in tables:
            if (
                table.y.dtype.kind not in "iu"
                or table.y.min() < 0
                or table.y.max() >= len(self.classes)
            ):
                found = f"{table.y.dtype} from {table.y.min()} to {table.y.max()}"
                raise ValueError(
                    f"'{self.name}' has {len(self.classes)} classes, so its labels are whole numbers from 0 on; they are {found}."
                )

    def __len__(self) -> int:
        return len(self.domains)

    def __iter__(self) -> Iterator[Domain]:
        return iter(self.domains)

    @property
    def names(self) -> tuple[str, ...]:
        """The domains' names, in order."""
        return tuple(domain.name for domain in self.domains)

    @property
    def probabilities(self) -> Array:
        """How likely a group is to come from each domain; sums to 1, shape (n_domains,)."""
        shares = np.ones(len(self)) if self.shares is None else np.asarray(self.shares, dtype=float)
        return np.asarray(shares / shares.sum())

    @property
    def shares_inputs(self) -> bool:
        """Do all domains answer the same training inputs? They do where their tables hold one and the same `x`."""
        tables = [domain.train for domain in self]
        return all(
            isinstance(table, Examples) and table.x is getattr(tables[0], "x", None)
            for table in tables
        )

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return self.domains[0].test.x.shape[1:]


@dataclass(frozen=True, eq=False)
class Truth:
    """Which domain each group came from. It travels apart from the examples, so that no learner receives it by accident.

    Parameters
    ----------
    domain
        The domain of each group, an index into `names`.
    names
        The domains' names.
    row_domain
        The domain that each row was really drawn from: another one than its group's where groups are mixed.
    mislabelled
        Which rows carry a wrong label.
    label_sets
        Every domain's right answer to each row's input, where the domains share their inputs; else None.

    Examples
    --------
    >>> truth = Truth(domain=np.array([1, 0, 1]), names=("up", "down"))
    >>> [truth.names[d] for d in truth.domain]
    ['down', 'up', 'down']
    """

    domain: NDArray[np.intp]  #                                                 (m,)
    names: tuple[str, ...]
    row_domain: NDArray[np.intp] | None = None  #                               (N,)
    mislabelled: NDArray[np.bool_] | None = None  #                             (N,)
    label_sets: Array | None = None  #                                          (N, n_domains, ...)
