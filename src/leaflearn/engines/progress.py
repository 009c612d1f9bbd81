"""A progress bar for long fits: how far, the loss, and how the groups are shared out."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from leaflearn.core.training import Callback, Training


class ProgressBar(Callback):
    """Show a line that fills up as a fit goes on, one for each of its stages.

    Parameters
    ----------
    title
        What stands before the bar.
    console
        Where to draw it; standard error by default, so that a program's output stays clean.

    Examples
    --------
    >>> with ProgressBar("fitting", Console(quiet=True)) as bar:
    ...     bar.update("search", done=1, total=2, loss=0.5, usage=[0.5, 0.5])
    """

    def __init__(self, title: str = "fitting", console: Console | None = None) -> None:
        self._title = title
        self._stage: str | None = None
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[state]}"),
            console=console or Console(stderr=True),
        )

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """A bar for the fit of an estimator; it is drawn only where that is verbose."""
        return cls(type(estimator).__name__, Console(stderr=True, quiet=not estimator.verbose))

    def update(self, stage: str, done: int, total: int, loss: float, usage: Any) -> None:
        """Draw the stage's line at `done` of `total`."""
        if stage != self._stage:
            self._fill()
            self._stage = stage
            self._task = self._progress.add_task(f"{self._title} {stage:<8}", total=total, state="")
        shares = "/".join(f"{100 * share:.0f}" for share in usage)
        self._progress.update(
            self._task, completed=done, total=total, state=f"loss {loss:.4g}  usage {shares} %"
        )

    def on_epoch(self, training: Training) -> None:
        loss = np.atleast_1d(training.history["loss"][-1])
        best = int(np.nanargmin(loss))
        usage = training.history["usage"][-1].reshape(len(loss), -1)[best]
        self.update(training.stage, training.epoch, training.max_epochs, float(loss[best]), usage)

    def _fill(self) -> None:
        """A stage that levelled off ended before its last epoch; its line is full all the same."""
        if self._stage is not None:
            self._progress.update(self._task, completed=self._progress.tasks[-1].total)

    def __enter__(self) -> Self:
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
        self._progress.stop()
