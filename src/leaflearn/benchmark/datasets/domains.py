"""Domains: the sources of a benchmark's examples, and the truth that learners must not see.

A domain is a pair of an input distribution and a target function (Section 2.1 of the paper). Its
`train` source draws examples from the pair; its `test` examples measure how well the function was
learned. A `DomainSet` adds the probability of each domain (Q in the paper).

The domain of each group is stored in a `Truth`, separate from the examples. The inputs of a learner
have no field for it; only evaluation, and learners that are called oracles, receive one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaflearn.benchmark.datasets.sources import Array, Examples, Source


@dataclass(frozen=True, eq=False)
class Domain:
    """One domain of a benchmark: a name, a source of training examples, and test examples.

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
    """Conflicting domains with their probabilities.

    Parameters
    ----------
    name
        Name of the benchmark.
    domains
        The domains; their inputs have the same shape, and their targets share one space.
    n_groups, group_size
        Default number of groups and of examples per group.
    shares
        Relative frequency of each domain (Q in the paper); equal if None.
    classes
        Names of the labels 0, 1, ... of all domains together; None in regression.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.sources import Function
    >>> up, down = Function(lambda x: x, -1.0, 1.0), Function(lambda x: -x, -1.0, 1.0)
    >>> pair = (Domain("up", up, up.grid(5)), Domain("down", down, down.grid(5)))
    >>> domains = DomainSet("cross", pair, n_groups=10, group_size=2)
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
                "A domain set needs at least one domain and a different name for each; "
                f"it got {list(self.names)}."
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
                f"Every domain of '{self.name}' needs training and test examples; a table is empty."
            )
        self._check_labels(tables)
        if self.shares is not None and not (
            len(self.shares) == len(self.domains) and min(self.shares) >= 0 and sum(self.shares) > 0
        ):
            raise ValueError(
                f"`shares` needs one number of 0 or more for each of {len(self.domains)} domains, "
                f"not {self.shares}."
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
                    f"'{self.name}' has {len(self.classes)} classes, so labels must be integers "
                    f"from 0 to {len(self.classes) - 1}; they are {found}."
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
        """Probability of each domain; sums to 1, shape (n_domains,)."""
        shares = np.ones(len(self)) if self.shares is None else np.asarray(self.shares, dtype=float)
        return np.asarray(shares / shares.sum())

    @property
    def shares_inputs(self) -> bool:
        """Whether all domains label the same training inputs, that is, share one array `x`."""
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
    """The domain of each group, kept apart from the examples so that no learner receives it.

    Parameters
    ----------
    domain
        The domain of each group, an index into `names`.
    names
        Names of the domains.
    row_domain
        The domain that each row was drawn from; differs from its group's domain in mixed groups.
    mislabelled
        Which rows have a wrong label.
    label_sets
        Correct target of each row in every domain, if the domains share their inputs; else None.

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
