"""The table of methods. A method's file registers it; `leaflearn.benchmark.methods` imports them all."""

from __future__ import annotations

from collections.abc import Callable

from leaflearn.benchmark.methods.contract import Method

METHODS: dict[str, type[Method]] = {}


def register(name: str) -> Callable[[type[Method]], type[Method]]:
    """Put a method into the table.

    Examples
    --------
    >>> from leaflearn.benchmark.methods.erm import ERM
    >>> @register("my-method")
    ... class MyMethod(ERM):
    ...     pass
    >>> METHODS.pop("my-method").name
    'my-method'
    """

    def add(method: type[Method]) -> type[Method]:
        if name in METHODS:
            raise ValueError(f"There is a method called {name!r} already; choose another name.")
        method.name = name
        METHODS[name] = method
        return method

    return add


def make_method(name: str, **settings: object) -> Method:
    """A method by its name, with hyper-parameters other than the paper's where they are given.

    Examples
    --------
    >>> make_method("leaf", n_contexts=4).n_contexts
    4
    """
    if name not in METHODS:
        raise ValueError(
            f"method {name!r} is not known; choose one of {', '.join(sorted(METHODS))}."
        )
    return METHODS[name](**settings)
