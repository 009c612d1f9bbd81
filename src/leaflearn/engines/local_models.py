"""The fitted local models of an estimator behind one interface, networks and others alike.

outputs(X)    predictions of each local model: values in the units of y, or probabilities (N, K, D)
losses(X, y)  loss of every row under every local model, in the units of training         (N, K)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leaflearn.core.losses import Loss
from leaflearn.core.training import ROWS_AT_ONCE
from leaflearn.engines.refit_task import Fitted, RowLosses

Floats = NDArray[np.float64]


class LocalModels(Protocol):
    """Fitted local models, one per context."""

    @property
    def models(self) -> list[Any]:
        """The fitted models themselves."""

    def outputs(self, X: Any) -> Floats:
        """Predictions of each local model, shape (N, K, D)."""

    def losses(self, X: Any, y: NDArray[Any]) -> Floats:
        """Loss of every row under every local model, shape (N, K)."""

    def reordered(self, order: NDArray[np.intp]) -> Self:
        """The same local models in another order, or some of them."""

    def joined(self, others: Self) -> Self:
        """These local models, followed by others."""


@dataclass(frozen=True)
class NetworkModels:
    """Torch modules, with the scaling of the default network (None for the user's own modules)."""

    models: list[nn.Module]
    loss: Loss
    x_scaling: Scaling | None
    y_scaling: Scaling | None
    is_classifier: bool
    device: str

    def outputs(self, X: NDArray[Any]) -> Floats:
        raw = np.concatenate([self._raw(X[rows]).cpu().numpy() for rows in _slices(len(X))])
        return self.y_scaling.undo(raw) if self.y_scaling else raw

    def losses(self, X: NDArray[Any], y: NDArray[Any]) -> Floats:
        return np.concatenate([self._losses(X[rows], y[rows]) for rows in _slices(len(X))])

    def reordered(self, order: NDArray[np.intp]) -> NetworkModels:
        return replace(self, models=[self.models[k] for k in order])

    def joined(self, others: NetworkModels) -> NetworkModels:
        return replace(self, models=[*self.models, *others.models])

    def _raw(self, X: NDArray[Any]) -> Tensor:
        answers = self._logits(X)
        return torch.softmax(answers.double(), -1) if self.is_classifier else answers

    @torch.no_grad()
    def _logits(self, X: NDArray[Any]) -> Tensor:
        dtype = next((p.dtype for p in self.models[0].parameters()), torch.float32)
        x = to_tensor(self.x_scaling.apply(X) if self.x_scaling else X, dtype, self.device)
        return torch.stack([module.eval()(x) for module in self.models], 1)  #      (N, K, D)

    def _losses(self, X: NDArray[Any], y: NDArray[Any]) -> Floats:
        target = self.y_scaling.apply(y) if self.y_scaling else y
        answers = self._logits(X).transpose(0, 1).double()  #                       (K, N, D)
        goal = torch.as_tensor(target, device=self.device)
        return self.loss(answers, goal if self.is_classifier else goal.double()).T.cpu().numpy()


@dataclass(frozen=True)
class RefittedModels:
    """Scikit-learn models, each fitted on the rows of its context."""

    fitted: list[Fitted]
    row_losses: RowLosses
    n_classes: int = 0  # 0 in regression

    @property
    def models(self) -> list[Any]:
        return [fitted.model for fitted in self.fitted]

    def outputs(self, X: Any) -> Floats:
        answers = [
            self._probabilities(fitted, X) if self.n_classes else fitted.model.predict(X)
            for fitted in self.fitted
        ]
        return np.stack(
            [np.asarray(answer, dtype=np.float64).reshape(X.shape[0], -1) for answer in answers], 1
        )

    def losses(self, X: Any, y: NDArray[Any]) -> Floats:
        return np.stack([self.row_losses(fitted, X, y) for fitted in self.fitted], 1)

    def reordered(self, order: NDArray[np.intp]) -> RefittedModels:
        return replace(self, fitted=[self.fitted[k] for k in order])

    def joined(self, others: RefittedModels) -> RefittedModels:
        return replace(self, fitted=[*self.fitted, *others.fitted])

    def _probabilities(self, fitted: Fitted, X: Any) -> Floats:
        """A column for every class: a context may have seen only some of them."""
        model, table = fitted.model, np.zeros((X.shape[0], self.n_classes))  #      (N, C)
        if hasattr(model, "predict_proba"):
            table[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(X)
        else:
            table[np.arange(len(table)), np.asarray(model.predict(X), dtype=int)] = 1.0
        return table


def to_tensor(values: NDArray[Any], dtype: torch.dtype, device: str) -> Tensor:
    """An array as a tensor of this type, on the device of the models.

    Examples
    --------
    >>> to_tensor(np.ones(1), torch.float32, "cpu")
    tensor([1.])
    """
    return torch.as_tensor(np.ascontiguousarray(values), dtype=dtype, device=device)


def _slices(n_rows: int) -> list[slice]:
    return [slice(start, start + ROWS_AT_ONCE) for start in range(0, n_rows, ROWS_AT_ONCE)]


@dataclass(frozen=True)
class Scaling:
    """Mean and standard deviation of each column, for standardization.

    Examples
    --------
    >>> scaling = Scaling.of(np.array([[0.0], [2.0]]))
    >>> scaling.apply(np.array([[4.0]]))
    array([[3.]])
    >>> scaling.undo(np.array([[3.0]]))
    array([[4.]])
    """

    center: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def of(cls, values: NDArray[Any]) -> Scaling:
        """Mean and standard deviation of each column; a constant column keeps its unit."""
        center, scale = values.mean(0, dtype=np.float64), values.std(0, dtype=np.float64)
        # Rounding gives a constant column a tiny deviation; dividing by it would inflate the next
        # value that differs.
        constant = scale <= 1e-12 * np.maximum(np.abs(center), 1e-300)
        return cls(center, np.where(constant, 1.0, scale))

    def apply(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Into standard units."""
        return (values - self.center) / self.scale

    def undo(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Back into the user's units."""
        return values * self.scale + self.center
