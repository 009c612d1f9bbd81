"""What all starts of the refit engine share: the data, fitting a model to groups, scoring it.

Below that are the losses of a row under a fitted model, and the model of a context with one class.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from leaflearn.core.algorithm import trim_groups
from leaflearn.engines import settings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Take = Callable[[Any, Ints], Any]  # rows of x, in whatever container it is


class Fitted(NamedTuple):
    """A local model and the number of rows it was fitted on."""

    model: Any
    n_rows: float


class RowLosses(Protocol):
    """A loss of single rows under a fitted model."""

    def __call__(self, fitted: Fitted, x: Any, y: NDArray[Any]) -> Floats:
        """Loss of every row, shape (N,)."""


class Split(NamedTuple):
    """Groups that models are fitted on, and groups they are scored on; in sample all are both."""

    learns: Floats  # 1 or 0 for each group             (m,)
    rows: Ints  # of the groups that are scored         (R,)
    x: Any  #                                           (R, ...)


@dataclass(frozen=True)
class RefitTask:
    """The data, how to fit a model to some groups, and how to score it on some.

    Examples
    --------
    >>> y, group, loss = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), ClassRowLoss(2, False)
    >>> x, take = np.zeros((4, 1)), lambda x, rows: x[rows]
    >>> task = RefitTask(ConstantModel, x, y, group, np.ones(4), loss, take)
    >>> (in_sample,) = task.splits(1, np.random.default_rng(0))
    >>> task.score(task.fit(np.array([1.0, 0.0]), seed=0), in_sample)  # fitted on the first group
    array([0., 2.])
    """

    make_model: Callable[[int], Any]
    x: Any  #                                           (N, ...)
    y: NDArray[Any]  #                                  (N,) or (N, D)
    group: Ints  #                                      (N,) in 0..m-1
    weight: Floats  # sums to its size in each group    (N,)
    row_losses: RowLosses
    take: Take
    trim: float = 0.0

    @cached_property
    def sizes(self) -> Ints:
        """Rows of each group, shape (m,)."""
        return np.bincount(self.group)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.sizes)

    @cached_property
    def takes_weight(self) -> bool:
        """Whether `fit` has a sample_weight; that of a pipeline's step does not count."""
        return "sample_weight" in inspect.signature(self.make_model(0).fit).parameters

    def fit(self, share: Floats, seed: int) -> Fitted | None:
        """A new model on the groups with a share (m,) in its context; None where there are none."""
        is_used = share > settings.REFIT.min_weight * share.max()
        rows = np.flatnonzero(is_used[self.group])
        if not len(rows):
            return None
        x, y, n_rows = self.take(self.x, rows), self.y[rows], float(share @ self.sizes)
        if y.dtype.kind in "iu" and np.all(y == y[0]):
            return Fitted(ConstantModel(y[0]), n_rows)
        model = self.make_model(seed)
        # Every group has the same mass, whatever its size.
        weight = (share / self.sizes)[self.group[rows]] * self.weight[rows]
        if self.takes_weight and np.ptp(weight) > 1e-9 * weight.max():
            model.fit(x, y, sample_weight=weight / weight.mean())
        else:
            model.fit(x, y)
        return Fitted(model, n_rows)

    def score(self, fitted: Fitted, split: Split) -> Floats:
        """Summed loss of every group of the split that is scored, 0 for the others, shape (m,)."""
        losses, group = self.row_losses(fitted, split.x, self.y[split.rows]), self.group[split.rows]
        if self.trim:
            rows, groups = torch.as_tensor(losses), torch.as_tensor(group)
            losses = trim_groups(rows, groups, self.n_groups, self.trim).numpy()
        weighted = losses * self.weight[split.rows]
        return np.bincount(group, weighted, self.n_groups).astype(np.float64)

    def splits(
        self, n_folds: int, rng: np.random.Generator, contexts: Ints | None = None
    ) -> list[Split]:
        """Folds of the groups, each scored by models fitted on the others; one fold is in sample.

        Contexts (m,) to start from are spread evenly over the folds. Otherwise the two groups of a
        small context could lie in one fold, and no model fitted on the others would represent them.
        """
        n_folds = min(n_folds, self.n_groups)
        if n_folds < 2:
            return [Split(np.ones(self.n_groups), np.arange(len(self.group)), self.x)]
        in_turn = np.arange(self.n_groups) % n_folds
        fold = rng.permutation(in_turn)  #                                          (m,)
        if contexts is not None:
            order = rng.permutation(self.n_groups)
            fold[order[np.argsort(contexts[order], kind="stable")]] = in_turn
        rows = [np.flatnonzero(fold[self.group] == f) for f in range(n_folds)]
        return [
            Split((fold != f).astype(np.float64), rows[f], self.take(self.x, rows[f]))
            for f in range(n_folds)
        ]

    def memorizes_rows(self, n_contexts: int, rng: np.random.Generator) -> bool:
        """Whether the loss of a model is clearly smaller on its own groups than on others.

        Two models are fitted, each on as many groups as a context will have, and scored on the
        groups of both. The conflict, which is most of the loss at this point, is then the same on
        both sides of the comparison.
        """
        size = self.n_groups // max(n_contexts, 2)
        if size < 2:
            return False
        (in_sample,), order = self.splits(1, rng), rng.permutation(self.n_groups)
        halves = order[:size], order[size : 2 * size]
        loss = np.empty((2, 2))  # of the model of one half on the groups of the other
        for i, half in enumerate(halves):
            fitted = self.fit(np.bincount(half, minlength=self.n_groups).astype(np.float64), 0)
            assert fitted is not None
            mean = self.score(fitted, in_sample) / self.sizes
            loss[i] = [mean[other].mean() for other in halves]
        own, other = np.trace(loss), loss.sum() - np.trace(loss)
        return bool(own < settings.REFIT.max_own_loss * other)


@dataclass(frozen=True)
class SquaredRowLoss:
    """Squared error in units of `scale`, averaged over the outputs.

    Examples
    --------
    >>> model = ConstantModel(3)
    >>> SquaredRowLoss(scale=2.0)(Fitted(model, 5), np.zeros((2, 1)), np.array([3.0, 7.0]))
    array([0., 4.])
    """

    scale: float | Floats = 1.0  # one for all outputs, or (D,)

    def __call__(self, fitted: Fitted, x: Any, y: NDArray[Any]) -> Floats:
        predictions = np.asarray(fitted.model.predict(x), dtype=np.float64).reshape(y.shape)
        return np.asarray(np.square((predictions - y) / self.scale).reshape(len(y), -1).mean(1))


@dataclass(frozen=True)
class ClassRowLoss:
    """Log-loss where the model predicts probabilities, else 0/1 error; classes 0..n_classes-1.

    Probabilities of a model fitted on n rows are smoothed by one pseudo-count, spread evenly over
    the classes. Otherwise a class that a context has not seen yet would have an infinite loss
    there, and the allocation could never change.

    Examples
    --------
    >>> saw_one_class = Fitted(ConstantModel(1), n_rows=9)
    >>> np.exp(-ClassRowLoss(n_classes=2)(saw_one_class, np.zeros((2, 1)), np.array([0, 1])))
    array([0.05, 0.95])
    """

    n_classes: int
    probabilistic: bool = True  # one loss for all contexts, so that they can be compared

    def __call__(self, fitted: Fitted, x: Any, y: NDArray[Any]) -> Floats:
        model, n = fitted
        if not (self.probabilistic and hasattr(model, "predict_proba")):
            return np.asarray(model.predict(x) != y, dtype=np.float64)
        known = np.zeros((len(y), self.n_classes))  #                               (N, C)
        # A context may have seen only some of the classes.
        known[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(x)
        p = (n * known[np.arange(len(y)), y] + 1 / self.n_classes) / (n + 1)  #     (N,)
        return np.asarray(-np.log(p))


class ConstantModel:
    """The local model of a context with a single class, which most classifiers refuse to fit.

    Examples
    --------
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
