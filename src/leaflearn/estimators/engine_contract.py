"""What every engine takes and hands back: checked examples, and local models with the scores of the groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from leaflearn.estimators.local_models import LocalModels

LearnAgain = Callable[[NDArray[np.intp], NDArray[np.intp], int], LocalModels]  # from some rows, the contexts (m,) known; and a seed


@dataclass(frozen=True)
class Examples:
    """Checked training data.

    Examples
    --------
    >>> rows = Examples(np.zeros((3, 1)), np.zeros((3, 1)), np.array([0, 0, 1]), np.arange(3), None, 1, False)
    >>> rows.without(np.array([True, False, True])).row
    array([1, 2])
    """

    X: Any  #                                                                       (N, ...)
    y: NDArray[Any]  # class numbers (N,), or values (N, D)
    group: NDArray[np.intp]  #                                                      (N,) in 0..m-1
    row: NDArray[np.intp]  # number of the row in the user's data                   (N,)
    weight: NDArray[np.float64] | None  #                                           (N,)
    n_outputs: int  # classes, or values a row
    is_classifier: bool

    @property
    def n_classes(self) -> int:
        """How many classes there are, 0 in regression."""
        return self.n_outputs if self.is_classifier else 0

    def without(self, rows: NDArray[np.bool_]) -> Examples:
        """The others; a group that would lose its last row keeps all."""
        left = np.bincount(self.group, ~rows)
        keep = np.flatnonzero(~rows | (left[self.group] == 0))
        weight = None if self.weight is None else self.weight[keep]
        X = _safe_indexing(self.X, keep)
        return replace(self, X=X, y=self.y[keep], group=self.group[keep], row=self.row[keep], weight=weight)


@dataclass(frozen=True)
class Fitting:
    """What an engine hands back."""

    local_models: LocalModels
    scores: NDArray[np.float64]  # summed loss of every model on every group        (m, K)
    history: dict[str, NDArray[Any]]
    restarts: list[dict[str, Any]]
    best_restart: int
    converged: bool
    constant_loss: float  # mean loss of the best constant prediction
    learn_again: LearnAgain  # local models that have not seen the other rows
    init: str = "random"  # where the search began, and why
    selection: dict[str, NDArray[Any]] = field(default_factory=dict)  # what other numbers of contexts would have given
