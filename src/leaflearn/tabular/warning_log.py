"""Collect the warnings of a block as messages, and give the warnings later."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from leaflearn.messages import LeafWarning, Message


@contextmanager
def log_warnings() -> Iterator[list[Message]]:
    """Collect the messages of leaflearn's warnings in the block, each once.

    When the block ends, also in an error, all warnings are given according to the user's filters.

    Examples
    --------
    >>> from leaflearn.messages import OneGroup, TableWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     with log_warnings() as messages:
    ...         warnings.warn(TableWarning(OneGroup("site")), stacklevel=1)
    >>> messages
    [OneGroup(group='site')]
    """
    messages: list[Message] = []
    caught: list[warnings.WarningMessage] = []
    try:
        with hold_warnings() as caught:
            yield messages
    finally:
        messages.extend(dict.fromkeys(list_messages(caught)))
        reissue(caught)


@contextmanager
def hold_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Hold back all warnings of the block; `reissue` gives those that still apply.

    Examples
    --------
    >>> with hold_warnings() as held:
    ...     warnings.warn("This is not given.", stacklevel=1)
    >>> len(held)
    1
    """
    with warnings.catch_warnings(record=True) as held:
        warnings.simplefilter("always")
        yield held


def list_messages(caught: Iterable[warnings.WarningMessage]) -> list[Message]:
    """The messages of those warnings that are leaflearn's.

    Examples
    --------
    >>> list_messages([])
    []
    """
    return [
        message
        for warning in caught
        if isinstance(warning.message, LeafWarning)
        for message in warning.message.messages
    ]


def reissue(caught: Iterable[warnings.WarningMessage]) -> None:
    """Give warnings that were caught, according to the user's filters.

    Examples
    --------
    >>> reissue([])
    """
    registry: dict[Any, int] = {}  # which warnings were given already
    for warning in caught:
        message: Any = warning.message  # an instance of the category
        warnings.warn_explicit(
            message,
            warning.category,
            warning.filename,
            warning.lineno,
            registry=registry,
            source=warning.source,
        )
