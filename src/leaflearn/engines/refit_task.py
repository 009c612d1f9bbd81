"""What all starts of the refit engine share: the rows, how a model is fitted to some groups, and how it is scored on some."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from leaflearn.core.algorithm import trim_groups
from leaflearn.engines.row_losses import ConstantModel, Fitted, Floats, RowLosses

Ints = NDArray[np.int64]
Take = Callable[[Any, Ints], Any]  # rows of whatever container x is

NEGLIGIBLE = (
    1e-3  # a group this much lighter than the heaviest of its context is left out of the refit
)
MEMORISED = 0.9  # loss on own groups over loss on others, below which scores are taken out of fold


class Split(NamedTuple):
    """Who learns and who is judged; in sample both are everybody."""

    learns: Floats  # 1 or 0 for each group             (m,)
    rows: Ints  # of the groups that are judged         (R,)
    x: Any  #                                           (R, ...)


@dataclass(frozen=True)
class RefitTask:
    """What all starts share: the data, how to fit a model to some of it, how to score it.

    Examples
    --------
    >>> from leaflearn.engines.row_losses import ClassRowLoss
    >>> y, group, loss = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), ClassRowLoss(2, probabilistic=False)
    >>> task = RefitTask(ConstantModel, np.zeros((4, 1)), y, group, np.ones(4), loss, take=lambda x, rows: x[rows])
    >>> (everybody,) = task.splits(1, np.random.default_rng(0))
    >>> task.score(task.fit(np.array([1.0, 0.0]), seed=0), everybody)  # learnt from the first group, wrong in both rows of the second
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
        """How many groups there are."""
        return len(self.sizes)

    @cached_property
    def takes_weight(self) -> bool:
        """Does `fit` name a sample_weight? A pipeline passes one on only under a step's name, so it counts as taking none."""
        return "sample_weight" in inspect.signature(self.make_model(0).fit).parameters

    def fit(self, share: Floats, seed: int) -> Fitted | None:
        """A fresh model on the groups that have a share in its context, (m,); None where no group has."""
        rows = np.flatnonzero((share > NEGLIGIBLE * share.max())[self.group])
        if not len(rows):
            return None
        x, y, n_rows = self.take(self.x, rows), self.y[rows], float(share @ self.sizes)
        if y.dtype.kind in "iu" and np.all(y == y[0]):
            return Fitted(ConstantModel(y[0]), n_rows)
        model = self.make_model(seed)
        weight = (share / self.sizes)[self.group[rows]] * self.weight[
            rows
        ]  # every group counts once, whatever its size
        if self.takes_weight and np.ptp(weight) > 1e-9 * weight.max():
            model.fit(x, y, sample_weight=weight / weight.mean())
        else:
            model.fit(x, y)
        return Fitted(model, n_rows)

    def score(self, fitted: Fitted, split: Split) -> Floats:
        """Summed loss of every group that is judged, 0 for the others, shape (m,)."""
        losses, group = self.row_losses(fitted, split.x, self.y[split.rows]), self.group[split.rows]
        if self.trim:
            losses = trim_groups(
                torch.as_tensor(losses), torch.as_tensor(group), self.n_groups, self.trim
            ).numpy()
        return np.bincount(group, losses * self.weight[split.rows], self.n_groups).astype(
            np.float64
        )

    def splits(
        self, n_folds: int, rng: np.random.Generator, contexts: Ints | None = None
    ) -> list[Split]:
        """Each fold of the groups judged by those who learn from the rest; one fold is everybody by everybody.

        Where the groups have contexts (m,) to begin with, these are dealt out evenly: two groups that are all of their context must not
        lie in one fold, or nobody who learns from the rest could speak for them.
        """
        n_folds = min(n_folds, self.n_groups)
        if n_folds < 2:
            return [Split(np.ones(self.n_groups), np.arange(len(self.group)), self.x)]
        fold = rng.permutation(
            np.arange(self.n_groups) % n_folds
        )  #                                   (m,)
        if contexts is not None:
            order = rng.permutation(self.n_groups)
            fold[order[np.argsort(contexts[order], kind="stable")]] = (
                np.arange(self.n_groups) % n_folds
            )
        rows = [np.flatnonzero(fold[self.group] == f) for f in range(n_folds)]
        return [
            Split((fold != f).astype(np.float64), rows[f], self.take(self.x, rows[f]))
            for f in range(n_folds)
        ]

    def memorizes_rows(self, n_contexts: int, rng: np.random.Generator) -> bool:
        """Is the loss of a model clearly smaller on its own groups than on others?

        Two models, each on as many groups as a context will have. Both are judged on the groups of both, so that the conflict, which is
        most of the loss at this point, is the same on either side of the comparison.
        """
        size = self.n_groups // max(n_contexts, 2)
        if size < 2:
            return False
        (everybody,), order = self.splits(1, rng), rng.permutation(self.n_groups)
        halves = order[:size], order[size : 2 * size]
        loss = np.empty((2, 2))  # of the model of one half on the groups of the other
        for i, half in enumerate(halves):
            fitted = self.fit(np.bincount(half, minlength=self.n_groups).astype(np.float64), 0)
            assert fitted is not None
            mean = self.score(fitted, everybody) / self.sizes
            loss[i] = [mean[other].mean() for other in halves]
        return bool(np.trace(loss) < MEMORISED * (loss.sum() - np.trace(loss)))
