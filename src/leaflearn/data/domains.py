"""Domains: where the examples of a benchmark come from, and the truth that no learner may see.

A domain is a pair of an input distribution and a target function (Section 2.1 of the paper); its `train` source draws examples from the
pair, its `test` examples measure who has learnt the function. A `DomainSet` adds how often each domain comes up (Q in the paper).

The truth firewall: which group came from which domain is kept in a `Truth`, an object of its own beside the examples. Nothing that a
learner takes has a field for it; only evaluation, and learners that are called oracles, are ever handed one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Source(Protocol):
    """Whatever examples can be drawn from: a table of them, a function, a recording."""

    def draw(self, n: int, generator: np.random.Generator) -> Examples:
        """Draw `n` independent examples."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and their targets, row by row. Also a source: it draws rows with replacement.

    Examples
    --------
    >>> table = Examples(x=np.array([[1.0], [2.0]]), y=np.array([10, 20]))
    >>> table.draw(3, np.random.default_rng(0)).y
    array([20, 20, 20])
    """

    x: Array  #                                                                 (N, ...)
    y: Array  #                                                                 (N, ...)

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"x has {len(self.x)} rows and y has {len(self.y)}; every input needs one target.")

    def __len__(self) -> int:
        return len(self.x)

    def draw(self, n: int, generator: np.random.Generator) -> Examples:
        """Draw `n` rows, each of them equally likely each time."""
        rows = generator.integers(len(self), size=n)
        return Examples(self.x[rows], self.y[rows])


@dataclass(frozen=True)
class Function:
    """A source that knows its target function: x uniform between `low` and `high`, y = target(x) plus Gaussian noise.

    Examples
    --------
    >>> square = Function(lambda x: x**2, low=0.0, high=1.0)
    >>> square.draw(4, np.random.default_rng(0)).x.shape
    (4, 1)
    >>> square.grid(3).y
    array([0.  , 0.25, 1.  ])
    """

    target: Callable[[Array], Array]
    low: float
    high: float
    noise: float = 0.0

    def draw(self, n: int, generator: np.random.Generator) -> Examples:
        """Draw `n` inputs and what the function, noise included, answers."""
        x = generator.uniform(self.low, self.high, n)
        return Examples(x[:, None], self.target(x) + generator.normal(0.0, self.noise, n))

    def grid(self, n: int) -> Examples:
        """Evenly spaced inputs from end to end with noiseless targets: what to test on."""
        x = np.linspace(self.low, self.high, n)
        return Examples(x[:, None], self.target(x))


@dataclass(frozen=True, eq=False)
class Domain:
    """One hidden truth of a benchmark: its name, the source of its training examples, and its test examples.

    Examples
    --------
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
            raise ValueError(f"A domain set needs at least one domain and a different name for each; it got {list(self.names)}.")
        shapes = {domain.test.x.shape[1:] for domain in self.domains}
        if len(shapes) > 1:
            raise ValueError(f"All domains of a set need inputs of one shape; they have {sorted(shapes)}.")
        if self.shares is not None and (len(self.shares) != len(self.domains) or min(self.shares) < 0 or sum(self.shares) <= 0):
            raise ValueError(f"`shares` needs one number of 0 or more for each of {len(self.domains)} domains, not {self.shares}.")

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
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return self.domains[0].test.x.shape[1:]


@dataclass(frozen=True, eq=False)
class Truth:
    """Which domain each group came from. It travels apart from the examples, so that no learner receives it by accident.

    Examples
    --------
    >>> truth = Truth(domain=np.array([1, 0, 1]), names=("up", "down"))
    >>> [truth.names[d] for d in truth.domain]
    ['down', 'up', 'down']
    """

    domain: NDArray[np.intp]  # index into names                                (m,)
    names: tuple[str, ...]
