"""A line on the terminal that fills up while something long goes on; nothing where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

T = TypeVar("T")
LONGEST = (
    7 * 86400.0
)  # seconds that the time left is estimated from: what comes once in minutes would else never tell


class Advance(Protocol):
    """What the work calls as it goes on."""

    def __call__(self, done: float) -> None:
        """So much is done, in all."""


@contextmanager
def progress_bar(title: str, total: float | None, in_bytes: bool = False) -> Iterator[Advance]:
    """Show how far the work in the block has come, on standard error; leave no trace when it ends.

    Examples
    --------
    >>> with progress_bar("counting", total=3) as advance:
    ...     for done in (1, 2, 3):
    ...         advance(done)
    """
    console = Console(stderr=True)
    count: ProgressColumn = DownloadColumn() if in_bytes else MofNCompleteColumn()
    with Progress(
        TextColumn("{task.description}"), BarColumn(bar_width=24), count, TimeRemainingColumn(),
        console=console, transient=True, disable=not console.is_terminal, speed_estimate_period=LONGEST,
    ) as progress:  # fmt: skip
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, completed=done)


def watch(title: str, coming: Iterable[T], n: int) -> Iterator[T]:
    """Hand on what comes, `n` in all, and show how far it has come.

    Examples
    --------
    >>> list(watch("counting", [1, 2], n=2))
    [1, 2]
    """
    with progress_bar(title, total=n) as advance:
        for done, result in enumerate(coming, start=1):
            yield result
            advance(done)
