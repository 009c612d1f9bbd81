"""The table of data sets. A new one is a file with a registered factory, and a line in `__init__.py` that imports it."""

from __future__ import annotations

from collections.abc import Callable

from leaflearn.data.domains import DomainSet

Factory = Callable[[], DomainSet]

DATASETS: dict[str, Factory] = {}


def register(name: str) -> Callable[[Factory], Factory]:
    """Put the decorated factory into `DATASETS` under `name`.

    Examples
    --------
    >>> register("functions")(lambda: None)
    Traceback (most recent call last):
    ...
    ValueError: There is a data set called 'functions' already; give this one another name.
    """

    def put(factory: Factory) -> Factory:
        if name in DATASETS:
            raise ValueError(f"There is a data set called {name!r} already; give this one another name.")
        DATASETS[name] = factory
        return factory

    return put
