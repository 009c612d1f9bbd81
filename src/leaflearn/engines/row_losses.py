"""What the refit engine measures: the loss of every row under a model that only knows `fit` and `predict`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Fitted(NamedTuple):
    """A local model and how much it has seen."""

    model: Any
    n_rows: float


class RowLosses(Protocol):
    """What the engine asks of a loss."""

    def __call__(self, fitted: Fitted, x: Any, y: NDArray[Any]) -> Floats:
        """Loss of every row under a fitted model, shape (N,)."""


@dataclass(frozen=True)
class SquaredRowLoss:
    """Squared error in units of `scale`, averaged over the outputs.

    Examples
    --------
    >>> import numpy as np
    >>> model = ConstantModel(3)
    >>> SquaredRowLoss(scale=2.0)(Fitted(model, 5), np.zeros((2, 1)), np.array([3.0, 7.0]))
    array([0., 4.])
    """

    scale: float | Floats = 1.0  # one for all outputs, or (D,)

    def __call__(self, fitted: Fitted, x: Any, y: NDArray[Any]) -> Floats:
        error = (
            np.asarray(fitted.model.predict(x), dtype=np.float64).reshape(y.shape) - y
        ) / self.scale
        return np.asarray(np.square(error).reshape(len(y), -1).mean(1))


@dataclass(frozen=True)
class ClassRowLoss:
    """Log-loss where the model knows probabilities, 0/1 error where it does not. Class labels are 0..n_classes-1.

    A model fitted on n rows is not believed to be surer than n rows can make it: one pseudo-count is spread evenly over all classes.
    Without it a class that a context has not met yet would cost infinitely much there, and the allocation would freeze.

    Examples
    --------
    >>> import numpy as np
    >>> met_only_one = Fitted(ConstantModel(1), n_rows=9)
    >>> np.exp(-ClassRowLoss(n_classes=2)(met_only_one, np.zeros((2, 1)), np.array([0, 1])))
    array([0.05, 0.95])
    """

    n_classes: int
    probabilistic: bool = True  # one measure for all contexts: models without probabilities cannot be held against ones with

    def __call__(self, fitted: Fitted, x: Any, y: NDArray[Any]) -> Floats:
        model, n = fitted
        if not (self.probabilistic and hasattr(model, "predict_proba")):
            return np.asarray(model.predict(x) != y, dtype=np.float64)
        known = np.zeros((len(y), self.n_classes))  #                                       (N, C)
        known[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(
            x
        )  # a context may have met only some of the classes
        p = (n * known[np.arange(len(y)), y] + 1 / self.n_classes) / (n + 1)  #             (N,)
        return np.asarray(-np.log(p))


class ConstantModel:
    """The local model of a context with a single class, which most classifiers refuse to fit.

    Examples
    --------
    >>> import numpy as np
    >>> ConstantModel(2).predict(np.zeros((3, 1)))
    array([2, 2, 2])
    """

    def __init__(self, label: int) -> None:
        self.classes_ = np.array([label])

    def fit(self, x: Any, y: NDArray[Any]) -> ConstantModel:
        self.classes_ = np.unique(y)[:1]
        return self

    def predict(self, x: Any) -> NDArray[Any]:
        return np.repeat(self.classes_, x.shape[0])

    def predict_proba(self, x: Any) -> Floats:
        return np.ones((x.shape[0], 1))
