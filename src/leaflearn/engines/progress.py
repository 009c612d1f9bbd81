"""The progress display as a callback of a training."""

from __future__ import annotations

from typing import Self

import numpy as np
from rich.console import Console

from leaflearn.core.training import Callback, Training
from leaflearn.engines.parameters import Parameters
from leaflearn.progress import ProgressDisplay


class ProgressBar(ProgressDisplay, Callback):
    """A progress display that a training updates after every epoch.

    Examples
    --------
    >>> with ProgressBar("fitting", Console(quiet=True)) as bar:
    ...     bar.update("search", done=1, total=2, loss=0.5, usage=[0.5, 0.5])
    """

    @classmethod
    def of(cls, estimator: Parameters) -> Self:
        """A progress bar for the fit of an estimator, drawn only if that is verbose."""
        return cls(type(estimator).__name__, Console(stderr=True, quiet=not estimator.verbose))

    def on_epoch(self, training: Training) -> None:
        loss = np.atleast_1d(training.history["loss"][-1])
        best = int(np.nanargmin(loss))
        usage = training.history["usage"][-1].reshape(len(loss), -1)[best]
        self.update(training.stage, training.epoch, training.max_epochs, float(loss[best]), usage)
