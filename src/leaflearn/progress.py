"""One progress display for long work: the stage, how far it is, and the loss where it is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Literal, Protocol, Self, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

T = TypeVar("T")
Shows = Literal["count", "bytes", "elapsed", "loss"]
WEEK = 7 * 86400.0  # seconds


class Advance(Protocol):
    """A function that reports how much of the work is done."""

    def __call__(self, done: float) -> None:
        """Report the total amount that is done."""


class ProgressDisplay:
    """Show how far long work is, on standard error.

    Parameters
    ----------
    title
        The text before the bar.
    console
        Where to draw; standard error by default, so that the output of a program stays clean.
    shows
        What is shown beside the bar. `"loss"` shows percent, time left, loss and usage, one line
        per stage; the lines stay on the screen. `"count"` and `"bytes"` show the amount done and
        the time left, `"elapsed"` the time since the start. These three draw on a terminal only,
        and their line disappears when the work ends.

    Examples
    --------
    >>> with ProgressDisplay("fitting", Console(quiet=True)) as display:
    ...     display.update("search", done=1, total=2, loss=0.5, usage=[0.5, 0.5])
    """

    def __init__(
        self, title: str = "", console: Console | None = None, shows: Shows = "loss"
    ) -> None:
        console = console or Console(stderr=True)
        self._title = title
        self._stage: str | None = None
        self._stays = shows == "loss"
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            *_columns(shows),
            console=console,
            transient=not self._stays,
            disable=not (self._stays or console.is_terminal),
            # Steps that take minutes each need a long period, or else no time left is estimated.
            speed_estimate_period=30.0 if self._stays else WEEK,
        )
        if not self._stays:
            self._task = self._progress.add_task(title, total=None, state="")

    def begin(self, title: str, total: float | None = None) -> None:
        """Show the next part of the work; without `total`, its length is unknown."""
        self._title = title
        self._progress.update(self._task, description=title, total=total, completed=0)

    def advance(self, done: float) -> None:
        """Show that `done` of the current part is done."""
        self._progress.update(self._task, completed=done)

    def update(
        self,
        stage: str,
        done: int,
        total: int,
        loss: float | None = None,
        usage: Iterable[float] = (),
    ) -> None:
        """Show a stage of a fit at `done` of `total`, with its loss and usage where they are known.

        Where the lines stay, a new stage gets a line of its own.
        """
        if self._stays and stage != self._stage:
            self._fill()
            self._stage = stage
            self._task = self._progress.add_task(f"{self._title} {stage:<8}", total=total, state="")
        shares = "/".join(f"{100 * share:.0f}" for share in usage)
        self._progress.update(
            self._task,
            description=None if self._stays else f"{self._title}: {stage}",
            completed=done,
            total=total,
            state="" if loss is None else f"loss {loss:.4g}  usage {shares} %",
        )

    def _fill(self) -> None:
        """Fill the line of a stage that converged before its last epoch."""
        if self._stage is not None:
            self._progress.update(self._task, completed=self._progress.tasks[-1].total)

    def __enter__(self) -> Self:
        if not self._progress.disable:  # before version 14.3, rich ends even these with a new line
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self._fill()
        if not self._progress.disable:
            self._progress.stop()


@contextmanager
def progress_bar(title: str, total: float | None, in_bytes: bool = False) -> Iterator[Advance]:
    """Show how far the work in the block is; on a terminal only.

    Examples
    --------
    >>> with progress_bar("counting", total=3) as advance:
    ...     for done in (1, 2, 3):
    ...         advance(done)
    """
    with ProgressDisplay(shows="bytes" if in_bytes else "count") as display:
        display.begin(title, total)
        yield display.advance


def watch(title: str, results: Iterable[T], n: int) -> Iterator[T]:
    """Yield the `n` results one by one, and show how many are done.

    Examples
    --------
    >>> list(watch("counting", [1, 2], n=2))
    [1, 2]
    """
    with progress_bar(title, total=n) as advance:
        for done, result in enumerate(results, start=1):
            yield result
            advance(done)


def _columns(shows: Shows) -> list[ProgressColumn]:
    match shows:
        case "count":
            return [MofNCompleteColumn(), TimeRemainingColumn()]
        case "bytes":
            return [DownloadColumn(), TimeRemainingColumn()]
        case "elapsed":
            return [TimeElapsedColumn()]
    percent, state = TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[state]}")
    return [percent, TimeRemainingColumn(), state]
