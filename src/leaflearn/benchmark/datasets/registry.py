"""The table of data sets. A new one is a file with a registered factory, and a line in `__init__.py` that imports it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from leaflearn.benchmark.datasets.domains import DomainSet
from leaflearn.benchmark.datasets.store import Files

Factory = TypeVar("Factory", bound=Callable[..., DomainSet])


@dataclass(frozen=True)
class DataSet:
    """A registered factory of a domain set, and the publisher's files that it reads. Call it as you would call the factory.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> DATASETS["functions"].files is None
    True
    >>> DATASETS["functions"]().names
    ('absolute', 'sine', 'logarithm')
    """

    name: str
    factory: Callable[..., DomainSet]
    files: Files | None = None  # None: it needs no file

    def __call__(self, *arguments: object, **options: object) -> DomainSet:
        """Make the domain set."""
        return self.factory(*arguments, **options)

    @property
    def summary(self) -> str:
        """The first line of the factory's description."""
        return (self.factory.__doc__ or "").strip().partition("\n")[0]


DATASETS: dict[str, DataSet] = {}


def register(name: str, files: Files | None = None) -> Callable[[Factory], Factory]:
    """Put the decorated factory into `DATASETS` under `name`, with the publisher's files that it needs.

    Examples
    --------
    >>> register("functions")(lambda: None)
    Traceback (most recent call last):
    ...
    ValueError: There is a data set called 'functions' already; give this one another name.
    """

    def put(factory: Factory) -> Factory:
        if name in DATASETS:
            raise ValueError(
                f"There is a data set called {name!r} already; give this one another name."
            )
        DATASETS[name] = DataSet(name, factory, files)
        return factory

    return put
