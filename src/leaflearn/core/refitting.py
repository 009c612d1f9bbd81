"""The refit engine: Algorithm 1 for local models that only know `fit` and `predict`, such as those of scikit-learn.

    from a random allocation: refit each model on its groups; score every group under every model; allocate; until nothing moves

A model that can learn its rows by heart (boosted trees, forests, nearest neighbours) likes its own groups best whatever they are, and the
first allocation freezes. Such models are scored out of fold: a group is judged only by models that have not seen it.
"""

from __future__ import annotations

import inspect
import operator
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from leaflearn.core.allocation import Rule, settled_at, temperature_of
from leaflearn.core.row_losses import ConstantModel, Fitted, Floats, RowLosses
from leaflearn.core.training import NonFiniteLossError
from leaflearn.core.trimming import trim_groups

Ints = NDArray[np.int64]
Take = Callable[[Any, Ints], Any]  # rows of whatever container x is

NEGLIGIBLE = 1e-3  # a group this much lighter than the heaviest of its context is left out of the refit
STILL = 1e-3  # an allocation whose weights move less than this stands still
# In sample, and out of fold, where a start costs as many times more as there are folds, and fails less often.
STARTS, STARTS_OUT_OF_FOLD = 4, 1
MAX_ITER, MAX_ITER_OUT_OF_FOLD = 30, 20
MEMORISED = 0.9  # loss on own groups over loss on others, below which scores are taken out of fold


@dataclass(frozen=True)
class Refitted:
    """The best of the starts, as `refit` found it.

    Examples
    --------
    >>> import numpy as np
    >>> from leaflearn.core.allocation import Hard
    >>> from leaflearn.core.row_losses import ClassRowLoss
    >>> x, y, group = np.zeros((2, 1)), np.array([0, 1]), np.array([0, 1])
    >>> found = refit(ConstantModel, x, y, group, ClassRowLoss(2), Hard(), 2, rng=np.random.default_rng(0))
    >>> sorted(found.history)
    ['changed', 'epoch', 'loss', 'seconds', 'temperature', 'usage']
    """

    models: list[Any]  # fitted on all groups of their context                      K
    n_rows: Floats  # how many rows that was, for `Fitted(model, n_rows)`           (K,)
    scores: Floats  # summed losses that led to the last allocation                 (m, K)
    contexts: Ints  #                                                               (m,)
    history: dict[str, NDArray[Any]]  # of equal length; usage is (T, K)
    converged: bool  # the allocation stood still
    out_of_fold: bool  # what was done, where "auto" was asked for
    restarts: list[dict[str, Any]]  # error, kept, n_iter and converged of every start


def refit(
    make_model: Callable[[int], Any],
    x: Any,
    y: NDArray[Any],
    group: Ints,
    row_losses: RowLosses,
    rule: Rule,
    n_contexts: int,
    *,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int | Literal["auto"] = "auto",
    out_of_fold: bool | Literal["auto"] = "auto",
    n_folds: int = 5,
    sample_weight: Floats | None = None,
    trim: float = 0.0,
    start: Ints | None = None,
    take: Take = operator.getitem,
    rng: np.random.Generator,
    on_iteration: Callable[[int, dict[str, Any]], bool | None] | None = None,
) -> Refitted:
    """LEAF by refitting; the best of `n_init` starts by the loss after the last allocation.

    Parameters
    ----------
    make_model
        Makes a fresh, unfitted local model from a seed; the same seed comes again at every refit of a context, so that only the
        allocation moves its scores.
    x, y, group
        Inputs in any container that `take(x, rows)` can index; targets (N,) or (N, D), whole numbers 0..C-1 for classes; group of each
        row, 0..m-1, in any order.
    row_losses, rule
        The measure (`SquaredRowLoss`, `ClassRowLoss`) and the allocation rule.
    n_init
        Starts; "auto" makes four, or one where scores are taken out of fold.
    max_iter
        Refits of a start at most, 30 or 20 for "auto"; an annealed temperature falls over them.
    out_of_fold
        Judge a group only by models that have not seen it; "auto" tries whether the model learns its rows by heart.
    n_folds
        Parts of the out-of-fold scores. Two are too few: their models share no group and need not agree which context is which.
    sample_weight
        Weighs the rows inside their group; every group has mass 1. A model whose `fit` takes no weights gets plain rows.
    trim
        Share of each group's rows, those with the largest loss, that its score leaves out.
    start
        Contexts (m,) from which the first start goes; the others begin with a random partition of the groups.
    on_iteration
        Called with the number of the start and a row of its history, with `max_iter` beside it; a true answer ends the search.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from leaflearn.core.allocation import Annealed
    >>> from leaflearn.core.row_losses import SquaredRowLoss
    >>> rng = np.random.default_rng(0)
    >>> x, group = rng.normal(size=(120, 1)), np.repeat(np.arange(30), 4)
    >>> y = np.where(group % 2, 2.0, -2.0) * x[:, 0]  # the odd groups rise, the even ones fall
    >>> rule = Annealed(start=0.5 * y.var())
    >>> found = refit(lambda seed: LinearRegression(), x, y, group, SquaredRowLoss(), rule, 2, rng=rng)
    >>> sorted(round(float(model.coef_[0]), 3) for model in found.models)
    [-2.0, 2.0]
    """
    task = _Task(make_model, x, np.asarray(y), np.asarray(group), _balance(sample_weight, group), row_losses, take, trim)
    judge = n_contexts > 1 and (task.learns_by_heart(n_contexts, rng) if out_of_fold == "auto" else bool(out_of_fold))
    n_starts = (STARTS_OUT_OF_FOLD if judge else STARTS) if n_init == "auto" else n_init
    n_refits = (MAX_ITER_OUT_OF_FOLD if judge else MAX_ITER) if max_iter == "auto" else max_iter
    best: _Run | None = None
    restarts = []
    for i, stream in enumerate(rng.spawn(n_starts if n_contexts > 1 else 1)):  # a stream each: a start does not depend on the others
        first = start if i == 0 and start is not None else stream.permutation(np.arange(task.n_groups) % n_contexts)
        run = _Run(task, rule, np.eye(n_contexts)[first], task.splits(n_folds if judge else 1, stream), stream)
        stop = run.run(n_refits if n_contexts > 1 else 1, i, on_iteration)
        restarts.append(run.tell())
        if best is None or run.loss < best.loss:  # only the best so far is kept in memory
            best, kept = run, i
        if stop:
            break
    assert best is not None
    restarts[kept]["kept"] = True
    final = best.fit_on_all()
    return Refitted(
        models=[fitted.model for fitted in final],
        n_rows=np.array([fitted.n_rows for fitted in final]),
        scores=best.scores,
        contexts=best.contexts,
        history={name: np.array([row[name] for row in best.history]) for name in best.history[0]},
        converged=bool(restarts[kept]["converged"]),
        out_of_fold=judge,
        restarts=restarts,
    )


class _Split(NamedTuple):
    """Who learns and who is judged; in sample both are everybody."""

    learns: Floats  # 1 or 0 for each group             (m,)
    rows: Ints  # of the groups that are judged         (R,)
    x: Any  #                                           (R, ...)


@dataclass(frozen=True)
class _Task:
    """What all starts share: the data, how to fit a model to some of it, how to score it."""

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
        return np.bincount(self.group)

    @property
    def n_groups(self) -> int:
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
        weight = (share / self.sizes)[self.group[rows]] * self.weight[rows]  # every group counts once, whatever its size
        if self.takes_weight and np.ptp(weight) > 1e-9 * weight.max():
            model.fit(x, y, sample_weight=weight / weight.mean())
        else:
            model.fit(x, y)
        return Fitted(model, n_rows)

    def score(self, fitted: Fitted, split: _Split) -> Floats:
        """Summed loss of every group that is judged, 0 for the others, shape (m,)."""
        losses, group = self.row_losses(fitted, split.x, self.y[split.rows]), self.group[split.rows]
        if self.trim:
            losses = trim_groups(torch.as_tensor(losses), torch.as_tensor(group), self.n_groups, self.trim).numpy()
        return np.bincount(group, losses * self.weight[split.rows], self.n_groups).astype(np.float64)

    def splits(self, n_folds: int, rng: np.random.Generator) -> list[_Split]:
        """Each fold of the groups judged by those who learn from the rest; one fold is everybody by everybody."""
        n_folds = min(n_folds, self.n_groups)
        if n_folds < 2:
            return [_Split(np.ones(self.n_groups), np.arange(len(self.group)), self.x)]
        fold = rng.permutation(np.arange(self.n_groups) % n_folds)  #                                   (m,)
        rows = [np.flatnonzero(fold[self.group] == f) for f in range(n_folds)]
        return [_Split((fold != f).astype(np.float64), rows[f], self.take(self.x, rows[f])) for f in range(n_folds)]

    def learns_by_heart(self, n_contexts: int, rng: np.random.Generator) -> bool:
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


class _Run:
    """One start, from its first allocation to its last."""

    def __init__(self, task: _Task, rule: Rule, weights: Floats, splits: list[_Split], rng: np.random.Generator) -> None:
        self.task, self.rule, self.weights, self.splits, self.rng = task, rule, weights, splits, rng  # weights (m, K)
        self.seeds = [int(seed) for seed in rng.integers(2**31, size=self.n_contexts)]
        self.generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
        self.models: list[list[Fitted | None]] = [[None] * self.n_contexts for _ in splits]
        self.scores = np.zeros_like(weights)  #                                                         (m, K)
        self.history: list[dict[str, Any]] = []
        self.converged = False
        self.revived: set[int] = set()

    @property
    def n_contexts(self) -> int:
        return len(self.weights.T)

    @property
    def contexts(self) -> Ints:
        return np.asarray(self.weights.argmax(1))

    @property
    def losses(self) -> Floats:
        """Mean loss of every group under its chosen model, shape (m,)."""
        return np.asarray(np.take_along_axis(self.scores, self.contexts[:, None], 1)[:, 0] / self.task.sizes)

    @property
    def loss(self) -> float:
        return float(self.losses.mean())

    def run(self, max_iter: int, number: int, tell: Callable[[int, dict[str, Any]], bool | None] | None) -> bool:
        """Refit, score, allocate until nothing moves; True if the listener wants to end the search."""
        stop = False
        while len(self.history) < max_iter and not self.converged and not stop:
            self.iterate(len(self.history) / max_iter)
            stop = tell is not None and bool(tell(number, {**self.history[-1], "max_iter": max_iter}))
        self.weights = self.allocate(progress=1.0)  # the temperature's last word
        return stop

    def tell(self) -> dict[str, Any]:
        """What became of this start."""
        curve = np.array([row["loss"] for row in self.history])
        is_still = self.converged or self.n_contexts == 1
        fate = {"error": self.loss, "kept": False, "n_iter": len(self.history), "converged": is_still}
        return {**fate, "curve": curve, "contexts": self.contexts}

    def iterate(self, progress: float) -> None:
        began, before = time.perf_counter(), self.weights
        self.refit_and_score()
        self.weights = self.allocate(progress)
        self.record(before.argmax(1), progress, time.perf_counter() - began)
        self.revive()
        # While the temperature falls, an allocation that stands still may yet fall apart.
        self.converged = progress >= settled_at(self.rule) and bool(np.abs(self.weights - before).max() < STILL)

    def record(self, was_in: Ints, progress: float, seconds: float) -> None:
        row = {
            "epoch": len(self.history) + 1,
            "loss": self.loss,
            "changed": float((self.contexts != was_in).mean()),
            "usage": np.bincount(self.contexts, minlength=self.n_contexts) / self.task.n_groups,
            "temperature": temperature_of(self.rule, progress),
            "seconds": seconds,
        }
        self.history.append(row)

    def refit_and_score(self) -> None:
        shares = self.shares()
        self.scores = np.zeros_like(self.weights)
        for s, split in enumerate(self.splits):
            for k, seed in enumerate(self.seeds):
                # An idle model stays as it is; one that never had a group begins with all there are.
                fitted = self.task.fit(shares[:, k] * split.learns, seed) or self.models[s][k] or self.task.fit(split.learns, seed)
                assert fitted is not None
                self.models[s][k] = fitted
                self.scores[:, k] += self.task.score(fitted, split)
        self.refuse_non_finite()

    def revive(self) -> None:
        """Give a context that lost its last group the worst-served ones, once a start; a second time it may be one too many."""
        idle = [k for k in range(self.n_contexts) if not self.weights[:, k].any() and k not in self.revived]
        worst_first = np.argsort(-self.losses)  #                                                       (m,)
        n = max(1, self.task.n_groups // (4 * self.n_contexts))  # a quarter of a fair share
        for i, k in enumerate(idle):
            self.weights[worst_first[i * n : (i + 1) * n]] = np.eye(self.n_contexts)[k]
        self.revived.update(idle)

    def shares(self) -> Floats:
        """How much of each group a model learns from, shape (m, K).

        A model that takes no weights gets a draw instead: every group goes whole to one context, in expectation as much as it should.
        """
        if self.task.takes_weight:
            return self.weights
        drawn = (self.rng.random((self.task.n_groups, 1)) < self.weights.cumsum(1)).argmax(1)  # a hard allocation draws itself
        return np.asarray(np.eye(self.n_contexts)[drawn])

    def allocate(self, progress: float) -> Floats:
        scores, sizes = torch.from_numpy(self.scores), torch.from_numpy(self.task.sizes).double()
        weights = self.rule(scores, sizes, torch.arange(len(sizes)), progress, self.generator)
        return np.asarray(weights.numpy(), dtype=np.float64)

    def fit_on_all(self) -> list[Fitted]:
        """The models of the last allocation; an idle one stays as it is."""
        shares = self.shares()
        final = [self.task.fit(shares[:, k], seed) or self.models[0][k] for k, seed in enumerate(self.seeds)]
        return [fitted for fitted in final if fitted is not None]

    def refuse_non_finite(self) -> None:
        if not np.isfinite(self.scores).all():
            raise NonFiniteLossError(
                f"The loss became non-finite at iteration {len(self.history) + 1}; the likely cause is a local model that predicts "
                "infinite or missing values for some rows: look at the scale of X and y, or regularise the local model."
            )


def _balance(sample_weight: Floats | None, group: Ints) -> Floats:
    """Weights that sum to the size of the group in every group, as `balance` in batches.py makes them."""
    if sample_weight is None:
        return np.ones(len(group))
    return np.asarray(sample_weight * (np.bincount(group) / np.bincount(group, sample_weight))[group])
