"""The table of data sets. Each file registers a factory, and `__init__.py` imports the file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from leaflearn.benchmark.datasets.domains import DomainSet
from leaflearn.benchmark.datasets.store import Files

Factory = TypeVar("Factory", bound=Callable[..., DomainSet])


@dataclass(frozen=True)
class DataSet:
    """A registered factory of a domain set, with the publisher's files that it reads.

    Call it like the factory.

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
    files: Files | None = None  # None if it needs no files

    def __call__(self, *arguments: object, **options: object) -> DomainSet:
        """Make the domain set."""
        return self.factory(*arguments, **options)

    @property
    def summary(self) -> str:
        """The first line of the factory's docstring."""
        return (self.factory.__doc__ or "").strip().partition("\n")[0]


DATASETS: dict[str, DataSet] = {}


def register(name: str, files: Files | None = None) -> Callable[[Factory], Factory]:
    """Register the decorated factory in `DATASETS`, with the publisher's files that it needs.

    Examples
    --------
    >>> register("functions")(lambda: None)
    Traceback (most recent call last):
    ...
    ValueError: A data set called 'functions' is already registered; choose another name.
    """

    def put(factory: Factory) -> Factory:
        if name in DATASETS:
            raise ValueError(
                f"A data set called {name!r} is already registered; choose another name."
            )
        DATASETS[name] = DataSet(name, factory, files)
        return factory

    return put
