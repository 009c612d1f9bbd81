"""The table of methods. Each file registers its methods; the package imports all files."""

from __future__ import annotations

from collections.abc import Callable

from leaflearn.benchmark.methods.contract import Method

METHODS: dict[str, type[Method]] = {}


def register(name: str) -> Callable[[type[Method]], type[Method]]:
    """Register the decorated method in `METHODS`.

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
            raise ValueError(
                f"A method called {name!r} is already registered; choose another name."
            )
        method.name = name
        METHODS[name] = method
        return method

    return add


def make_method(name: str, **settings: object) -> Method:
    """Create a method by name; settings override the paper's hyper-parameters.

    Examples
    --------
    >>> make_method("leaf", n_contexts=4).n_contexts
    4
    """
    if name not in METHODS:
        raise ValueError(
            f"The method {name!r} is unknown; choose one of {', '.join(sorted(METHODS))}."
        )
    return METHODS[name](**settings)
