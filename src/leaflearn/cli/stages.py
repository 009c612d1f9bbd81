"""One line on the terminal that says what is being done, and how far it has come where that is known."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from leaflearn.core.training import Callback, Training


class Stages(Callback):
    """Shows the stage of a long piece of work on standard error; nothing where that is no terminal.

    Examples
    --------
    >>> with Stages(Console(quiet=True)) as stages:
    ...     stages.begin("reading")
    """

    def __init__(self, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        self._title = ""
        self._progress = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(bar_width=24), TimeElapsedColumn(),
            console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip

    def begin(self, title: str) -> None:
        """Another stage, of which nobody knows how long it takes."""
        self._title = title
        self._progress.update(self._task, description=title, total=None, completed=0)

    def on_epoch(self, training: Training) -> None:
        """How far a network has come."""
        description = f"{self._title}: {training.stage}"
        self._progress.update(
            self._task, description=description, total=training.max_epochs, completed=training.epoch
        )

    def __enter__(self) -> Self:
        self._task = self._progress.add_task("", total=None)
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()
