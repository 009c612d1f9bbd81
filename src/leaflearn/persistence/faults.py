"""One sentence for whatever a file brings about that nobody of ours has written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

FAULTS = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    RuntimeError,
    AssertionError,
)


@contextmanager
def expecting(what: str) -> Iterator[None]:
    """Turn the errors of reading a description into one that says what was expected.

    Examples
    --------
    >>> with expecting("an estimator"):
    ...     {}["class"]
    Traceback (most recent call last):
    ...
    ValueError: The model folder does not describe an estimator (KeyError: 'class'); get a fresh copy of it.
    """
    try:
        yield
    except FAULTS as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".rstrip(".")
        raise ValueError(
            f"The model folder does not describe {what} ({reason}); get a fresh copy of it."
        ) from error
