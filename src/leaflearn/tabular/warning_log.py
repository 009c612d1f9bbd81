"""Warnings that are given and also kept, so that who comes later learns what was said at the time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def log_warnings() -> Iterator[list[str]]:
    """Collect the sentences that leaflearn warns with in the block, each once; all warnings are given when it ends, as the user's filters
    have it, also where it ends in an error.

    Examples
    --------
    >>> from leaflearn.tabular.text_encoding import warn
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     with log_warnings() as kept:
    ...         warn("Column 'a' is empty.")
    >>> kept
    ["Column 'a' is empty."]
    """
    kept: list[str] = []
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield kept
    finally:
        sentences = [
            str(warning.message)
            for warning in caught
            if warning.category.__module__.startswith("leaflearn.")
        ]
        kept.extend(dict.fromkeys(sentences))
        reissue(caught)


@contextmanager
def hold_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Hold all warnings of the block back; `reissue` gives them, where they still hold.

    Examples
    --------
    >>> with hold_warnings() as held:
    ...     warnings.warn("This will not be kept.", stacklevel=1)
    >>> len(held)
    1
    """
    with warnings.catch_warnings(record=True) as held:
        warnings.simplefilter("always")
        yield held


def reissue(caught: list[warnings.WarningMessage]) -> None:
    """Give warnings that were caught, as the user's filters have it.

    Examples
    --------
    >>> reissue([])
    """
    known: dict[Any, int] = {}  # what was already said
    for warning in caught:
        message: Any = warning.message  # an object of the category, which may be given as it is
        warnings.warn_explicit(
            message,
            warning.category,
            warning.filename,
            warning.lineno,
            registry=known,
            source=warning.source,
        )
