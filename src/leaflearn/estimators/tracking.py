"""Callbacks that log the loss and the usage of every epoch to TensorBoard or MLflow.

Both packages are optional: `pip install leaflearn[tracking]`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leaflearn.core.training import Callback, Training


def latest_values(training: Training) -> dict[str, float]:
    """The loss and the usage of the latest epoch, by name, for the best start so far.

    Examples
    --------
    >>> class Latest:
    ...     stage = "search"
    ...     history = {
    ...         "loss": [np.array([0.5, 0.25])],
    ...         "usage": [np.array([[1.0, 0.0], [0.5, 0.5]])],
    ...     }
    >>> latest_values(Latest())
    {'search/loss': 0.25, 'search/usage_0': 0.5, 'search/usage_1': 0.5}
    """
    loss = np.atleast_1d(training.history["loss"][-1])
    best = int(np.nanargmin(loss)) if np.isfinite(loss).any() else 0
    usage = np.asarray(training.history["usage"][-1]).reshape(len(loss), -1)[best]
    shares = {f"{training.stage}/usage_{k}": float(share) for k, share in enumerate(usage)}
    return {f"{training.stage}/loss": float(loss[best]), **shares}


class TensorBoardCallback(Callback):
    """Write learning curves for TensorBoard.

    Parameters
    ----------
    folder
        The folder to write to; `tensorboard --logdir FOLDER` shows the curves.

    Examples
    --------
    >>> import tempfile
    >>> from leaflearn import LeafRegressor
    >>> X, groups = np.linspace(0, 1, 40)[:, None], np.repeat(np.arange(10), 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     callbacks = [TensorBoardCallback(folder)]
    ...     leaf = LeafRegressor(n_contexts=1, max_epochs=2, callbacks=callbacks)
    ...     leaf = leaf.fit(X, X[:, 0], groups)
    """

    def __init__(self, folder: str) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ImportError(
                "TensorBoardCallback needs tensorboard; install it with `pip install "
                "leaflearn[tracking]`."
            ) from error
        self._writer: Any = SummaryWriter(folder)

    def on_epoch(self, training: Training) -> None:
        """Write the latest epoch."""
        for name, value in latest_values(training).items():
            self._writer.add_scalar(name, value, training.epoch)
        self._writer.flush()  # so that the curves can be watched during the fit


class MLflowCallback(Callback):
    """Log learning curves to the active run of MLflow.

    Fit the estimator inside `with mlflow.start_run():`.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> leaf = LeafRegressor(local_model="mlp", callbacks=[MLflowCallback()])
    """

    def __init__(self) -> None:
        try:
            import mlflow
        except ImportError as error:
            raise ImportError(
                "MLflowCallback needs mlflow; install it with `pip install leaflearn[tracking]`."
            ) from error
        self._mlflow: Any = mlflow

    def on_epoch(self, training: Training) -> None:
        """Log the latest epoch."""
        self._mlflow.log_metrics(
            {name: value for name, value in latest_values(training).items() if np.isfinite(value)},
            step=training.epoch,
        )
