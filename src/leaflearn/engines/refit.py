"""The engine for scikit-learn models: Algorithm 1 for models that only have `fit` and `predict`.

    from a random allocation, or one that the surrogate search found:
    refit each model on its groups, score every group under every model, allocate; repeat until
    the allocation converges

A model that memorizes its rows (boosted trees, forests, nearest neighbours) explains its own groups
best whatever they are, so that the first allocation never changes. Such models are scored out of
fold: a group is scored only by models that were fitted without it.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from leaflearn.core.allocation import (
    Given,
    Hard,
    Rule,
    Sampled,
    constant_from,
    contexts_of,
    temperature_of,
)
from leaflearn.core.grouped_data import GroupedData
from leaflearn.core.losses import CrossEntropy, Loss, SquaredError
from leaflearn.core.training import NonFiniteLossError
from leaflearn.engines import settings
from leaflearn.engines.fitted_state import EngineResult, FittedState
from leaflearn.engines.local_models import LocalModels, RefittedModels, Scaling
from leaflearn.engines.parameters import Parameters
from leaflearn.engines.progress import ProgressBar
from leaflearn.engines.recipe import resolve_rule
from leaflearn.engines.refit_task import (
    ClassRowLoss,
    Fitted,
    Floats,
    Ints,
    RefitTask,
    RowLosses,
    Split,
    SquaredRowLoss,
    Take,
)
from leaflearn.initialization.start import (
    describe_selection,
    describe_start,
    trusted_contexts,
)
from leaflearn.initialization.surrogate import Start

# Called with the number of the start and a row of its history; a true value ends the search.
Listener = Callable[[int, dict[str, Any]], bool | None]


def fit_by_refitting(
    parameters: Parameters,
    n_contexts: int,
    data: GroupedData,
    start: Start | None,
    random_state: np.random.RandomState,
) -> EngineResult:
    """Fit scikit-learn models: score, allocate, refit, until the allocation converges.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> from sklearn.linear_model import LinearRegression
    >>> group = np.array([0, 0, 1, 1])
    >>> rows = GroupedData(np.zeros((4, 1)), np.zeros((4, 1)), group, np.arange(4), None, 1, False)
    >>> leaf = LeafRegressor(2, local_model=LinearRegression())
    >>> fit_by_refitting(leaf, 2, rows, None, np.random.RandomState(0)).state.scores.shape
    (2, 2)
    """
    if parameters.loss != "auto":
        raise ValueError(
            f"loss={parameters.loss!r} has no effect on a scikit-learn local model, which has its "
            "own; leave it at 'auto'."
        )
    y, n_classes = targets_of(data), data.n_classes
    is_probabilistic = hasattr(parameters.local_model, "predict_proba")
    row_losses: RowLosses = (
        ClassRowLoss(n_classes, is_probabilistic)
        if n_classes
        else SquaredRowLoss(Scaling.of(y).scale)
    )
    # Temperatures are in units of this loss, with targets in the units of the row losses.
    loss: Loss = CrossEntropy() if n_classes else SquaredError()
    targets = torch.as_tensor(data.y if n_classes else Scaling.of(data.y).apply(data.y))
    contexts = trusted_contexts(parameters, start)
    is_trusted = contexts is not None
    # Annealing would lose a trusted start, so the allocation is hard from there on.
    rule: Rule = (
        Hard()
        if is_trusted
        else resolve_rule(parameters.allocation, parameters.temperature, loss, targets)
    )
    with ProgressBar.of(parameters) as bar:

        def show(start: int, row: dict[str, Any]) -> None:
            label = f"start {start + 1}"
            bar.update(label, row["epoch"], row["max_iter"], row["loss"], row["usage"])

        fit = refit(
            make_local_model(parameters.local_model),
            data.X,
            y,
            data.group,
            row_losses,
            rule,
            n_contexts,
            n_init=1 if is_trusted and parameters.n_init == "auto" else parameters.n_init,
            start=contexts,
            max_iter=parameters.max_epochs,
            out_of_fold=parameters.out_of_fold,
            trim=parameters.trim,
            sample_weight=data.weight,
            take=_safe_indexing,
            rng=np.random.default_rng(random_state.randint(2**31 - 1)),
            on_iteration=show,
        )
    if is_probabilistic or not n_classes:
        constant_loss = loss.of_best_constant(targets)
    else:  # the loss is an error rate, and the best constant the most frequent class
        constant_loss = 1.0 - np.bincount(y).max() / len(y)
    stage = "given" if is_trusted else "training"
    local_models = RefittedModels(with_sizes(fit), row_losses, n_classes)
    state = FittedState(
        local_models,
        fit.scores,
        np.bincount(data.group),
        fit.history,
        [{"stage": stage, **restart} for restart in fit.restarts],
        [restart["kept"] for restart in fit.restarts].index(True),
        converged=fit.converged,
        constant_loss=constant_loss,
        init=describe_start(parameters, start, is_trusted),
        selection=describe_selection(start),
    )
    quickly = partial(_refit_on_rows, local_models, parameters.local_model, n_contexts, data)
    return EngineResult(state, quickly)


def _refit_on_rows(
    like: RefittedModels,
    local_model: Any,
    n_contexts: int,
    data: GroupedData,
    rows: NDArray[np.intp],
    contexts: NDArray[np.intp],
    seed: int,
) -> LocalModels:
    """New models for the contexts (m,) from some of the rows."""
    kept, group = np.unique(data.group[rows], return_inverse=True)
    found = refit(
        make_local_model(local_model),
        _safe_indexing(data.X, rows),
        targets_of(data)[rows],
        group,
        like.row_losses,
        Given(torch.as_tensor(contexts[kept])),
        n_contexts,
        n_init=1,
        start=contexts[kept],
        max_iter=1,
        out_of_fold=False,
        sample_weight=None if data.weight is None else data.weight[rows],
        take=_safe_indexing,
        rng=np.random.default_rng(seed),
    )
    return replace(like, fitted=with_sizes(found))


def targets_of(data: GroupedData) -> NDArray[Any]:
    """The targets as scikit-learn takes them: class numbers or values (N,), or values (N, D).

    Examples
    --------
    >>> y, group = np.array([[3.0], [4.0]]), np.array([0, 1])
    >>> targets_of(GroupedData(np.zeros((2, 1)), y, group, np.arange(2), None, 1, False))
    array([3., 4.])
    """
    return data.y if data.is_classifier or data.n_outputs > 1 else data.y[:, 0]


def with_sizes(found: Refitted) -> list[Fitted]:
    """The local models, each with the number of rows it was fitted on."""
    return [Fitted(model, n_rows) for model, n_rows in zip(found.models, found.n_rows, strict=True)]


def make_local_model(local_model: Any) -> Callable[[int], Any]:
    """Makes unfitted copies of a scikit-learn model, from a seed.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> make_local_model(DecisionTreeRegressor())(7)
    DecisionTreeRegressor(random_state=7)
    """
    names = local_model.get_params(deep=True)
    seeds = [n for n in names if n == "random_state" or n.endswith("__random_state")]
    return lambda seed: clone(local_model).set_params(**dict.fromkeys(seeds, int(seed)))


# ---- Algorithm 1 by refitting --------------------------------------------------------------------


@dataclass(frozen=True)
class Refitted:
    """The best of the starts of `refit`.

    Examples
    --------
    >>> from leaflearn.engines.refit_task import ConstantModel
    >>> x, y, group = np.zeros((2, 1)), np.array([0, 1]), np.array([0, 1])
    >>> rng = np.random.default_rng(0)
    >>> found = refit(ConstantModel, x, y, group, ClassRowLoss(2), Hard(), 2, rng=rng)
    >>> sorted(found.history)
    ['changed', 'epoch', 'loss', 'seconds', 'temperature', 'usage']
    """

    models: list[Any]  # fitted on all groups of their context                      K
    n_rows: Floats  # rows each was fitted on                                       (K,)
    scores: Floats  # summed losses of the last allocation                          (m, K)
    contexts: Ints  #                                                               (m,)
    history: dict[str, NDArray[Any]]  # of equal length; usage is (T, K)
    converged: bool
    out_of_fold: bool  # whether groups were scored out of fold
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
    n_init: int | str = "auto",
    max_iter: int | str = "auto",
    out_of_fold: bool | str = "auto",
    n_folds: int | Literal["auto"] = "auto",
    sample_weight: Floats | None = None,
    trim: float = 0.0,
    start: Ints | None = None,
    take: Take = operator.getitem,
    rng: np.random.Generator,
    on_iteration: Listener | None = None,
) -> Refitted:
    """LEAF by refitting; the best of `n_init` starts by the loss after the last allocation.

    Parameters
    ----------
    make_model
        Makes an unfitted local model from a seed. A context gets the same seed at every refit, so
        that only the allocation changes its scores.
    x, y, group
        Inputs in any container that `take(x, rows)` can index; targets (N,) or (N, D), integers
        0..C-1 for classes; group of each row, 0..m-1, in any order.
    row_losses, rule
        The loss (`SquaredRowLoss`, `ClassRowLoss`) and the allocation rule.
    n_init
        Starts; "auto" makes four, or one where groups are scored out of fold.
    max_iter
        Refits of a start at most, 30 or 20 for "auto"; annealing extends over them.
    out_of_fold
        Score a group only by models fitted without it; "auto" tests whether the model memorizes
        its rows.
    n_folds
        Folds of the out-of-fold scores.
    sample_weight
        Weights of the rows inside their group; every group has mass 1. A model whose `fit` takes
        no weights is fitted without.
    trim
        Share of each group's rows, those with the largest loss, that its score leaves out.
    start
        Contexts (m,) of the first start; the others begin with a random partition.
    take
        Indexes rows of `x`.
    rng
        Source of randomness.
    on_iteration
        Called with the number of the start and a row of its history, with `max_iter` added; a true
        return value ends the search.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from leaflearn.core.allocation import Annealed
    >>> rng = np.random.default_rng(0)
    >>> x, group = rng.normal(size=(120, 1)), np.repeat(np.arange(30), 4)
    >>> y = np.where(group % 2, 2.0, -2.0) * x[:, 0]  # slope 2 in odd groups, -2 in even groups
    >>> rule, make = Annealed(start=0.5 * y.var()), lambda seed: LinearRegression()
    >>> found = refit(make, x, y, group, SquaredRowLoss(), rule, 2, rng=rng)
    >>> sorted(round(float(model.coef_[0]), 3) for model in found.models)
    [-2.0, 2.0]
    """
    weight = _balance(sample_weight, group)
    task = RefitTask(
        make_model, x, np.asarray(y), np.asarray(group), weight, row_losses, take, trim
    )
    is_judged = n_contexts > 1 and (
        task.memorizes_rows(n_contexts, rng) if out_of_fold == "auto" else bool(out_of_fold)
    )
    auto, folds = settings.REFIT, settings.REFIT.n_folds if n_folds == "auto" else n_folds
    default_starts = auto.n_starts_out_of_fold if is_judged else auto.n_starts
    default_refits = auto.max_iter_out_of_fold if is_judged else auto.max_iter
    n_starts = default_starts if isinstance(n_init, str) else n_init
    n_refits = default_refits if isinstance(max_iter, str) else max_iter
    best: RefitRun | None = None
    restarts = []
    # Every start has a random stream of its own, so that it does not depend on the others.
    for i, stream in enumerate(rng.spawn(n_starts if n_contexts > 1 else 1)):
        given = start if i == 0 else None
        if given is None:
            first = stream.permutation(np.arange(task.n_groups) % n_contexts)
        else:
            first = given
        splits = task.splits(folds if is_judged else 1, stream, given)
        run = RefitRun(task, rule, np.eye(n_contexts)[first], splits, stream, given is not None)
        stop = run.run(n_refits if n_contexts > 1 else 1, i, on_iteration)
        restarts.append(run.describe())
        if best is None or run.loss < best.loss:  # only the best start stays in memory
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
        out_of_fold=is_judged,
        restarts=restarts,
    )


def _balance(sample_weight: Floats | None, group: Ints) -> Floats:
    """Weights that sum to the size of the group in every group, as `core.batches.balance`."""
    if sample_weight is None:
        return np.ones(len(group))
    factor = np.bincount(group) / np.bincount(group, sample_weight)
    return np.asarray(sample_weight * factor[group])


class RefitRun:
    """One start, from its first allocation to its last.

    Parameters
    ----------
    task
        The data and how models are fitted and scored; shared by all starts.
    rule
        The allocation rule.
    weights
        The first allocation, shape (m, K).
    splits
        Groups that models are fitted on, and groups that they are then scored on.
    rng
        Source of the models' seeds and of all other randomness.
    is_given
        Whether the first allocation comes from a search rather than from a random partition. A
        context whose groups all lie in one fold is then scored there by a model fitted on them,
        because no other model represents it.

    Examples
    --------
    Two groups with one class each start in one context; the other context is revived with one of
    them.

    >>> from leaflearn.engines.refit_task import ConstantModel
    >>> y, group, rng = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), np.random.default_rng(0)
    >>> x, take = np.zeros((4, 1)), lambda x, rows: x[rows]
    >>> task = RefitTask(ConstantModel, x, y, group, np.ones(4), ClassRowLoss(2), take)
    >>> weights, splits = np.array([[1.0, 0.0], [1.0, 0.0]]), task.splits(1, rng)
    >>> run = RefitRun(task, Hard(), weights, splits, rng)
    >>> run.run(max_iter=10, number=0)
    False
    >>> run.converged, sorted(run.contexts.tolist())
    (True, [0, 1])
    """

    def __init__(
        self,
        task: RefitTask,
        rule: Rule,
        weights: Floats,
        splits: list[Split],
        rng: np.random.Generator,
        is_given: bool = False,
    ) -> None:
        self.task, self.rule, self.splits, self.rng = task, rule, splits, rng
        self.weights = weights  #                                                   (m, K)
        self._is_given = is_given
        self._seeds = [int(seed) for seed in rng.integers(2**31, size=self.n_contexts)]
        self._generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
        self._models: list[list[Fitted | None]] = [[None] * self.n_contexts for _ in splits]
        self.scores = np.zeros_like(weights)  #                                     (m, K)
        self.history: list[dict[str, Any]] = []
        self.converged = False
        self._revived: set[int] = set()

    @property
    def n_contexts(self) -> int:
        """Number of contexts."""
        return len(self.weights.T)

    @property
    def contexts(self) -> Ints:
        """The context of every group, shape (m,)."""
        scores, weights = torch.as_tensor(self.scores), torch.as_tensor(self.weights)
        return contexts_of(self.rule, scores, weights).numpy()

    @property
    def losses(self) -> Floats:
        """Mean loss of every group under its chosen model, shape (m,)."""
        own = np.take_along_axis(self.scores, self.contexts[:, None], 1)[:, 0]
        return np.asarray(own / self.task.sizes)

    @property
    def loss(self) -> float:
        """Mean of these losses over the groups."""
        return float(self.losses.mean())

    def run(self, max_iter: int, number: int, listener: Listener | None = None) -> bool:
        """Refit, score, allocate until convergence; True if the listener ends the search."""
        stop = False
        while len(self.history) < max_iter and not self.converged and not stop:
            self._iterate(len(self.history) / max_iter)
            row = {**self.history[-1], "max_iter": max_iter}
            stop = listener is not None and bool(listener(number, row))
        self.weights = self._allocate(progress=1.0)  # at the final temperature
        return stop

    def describe(self) -> dict[str, Any]:
        """The outcome of this start, as an entry of `restarts_`."""
        curve = np.array([row["loss"] for row in self.history])
        has_converged = self.converged or self.n_contexts == 1
        if isinstance(self.rule, Sampled):  # samples keep changing; the best models may not
            has_converged |= self.history[-1]["changed"] < settings.REFIT.tolerance
        outcome = {"error": self.loss, "kept": False, "n_iter": len(self.history)}
        return {**outcome, "converged": has_converged, "curve": curve, "contexts": self.contexts}

    def fit_on_all(self) -> list[Fitted]:
        """The models of the last allocation; an idle model stays as it is."""
        shares = self._shares()
        final = [
            self.task.fit(shares[:, k], seed) or self._models[0][k]
            for k, seed in enumerate(self._seeds)
        ]
        return [fitted for fitted in final if fitted is not None]

    def _iterate(self, progress: float) -> None:
        began, before, contexts_before = time.perf_counter(), self.weights, self.contexts
        self._refit_and_score()
        self.weights = self._allocate(progress)
        self._record(contexts_before, progress, time.perf_counter() - began)
        self._revive()
        # While the temperature falls, an allocation that does not move may still change later.
        is_constant = progress >= constant_from(self.rule)
        change = np.abs(self.weights - before).max()
        self.converged = is_constant and bool(change < settings.REFIT.tolerance)

    def _record(self, contexts_before: Ints, progress: float, seconds: float) -> None:
        row = {
            "epoch": len(self.history) + 1,
            "loss": self.loss,
            "changed": float((self.contexts != contexts_before).mean()),
            "usage": np.bincount(self.contexts, minlength=self.n_contexts) / self.task.n_groups,
            "temperature": temperature_of(self.rule, progress),
            "seconds": seconds,
        }
        self.history.append(row)

    def _refit_and_score(self) -> None:
        shares = self._shares()
        self.scores = np.zeros_like(self.weights)
        for s, split in enumerate(self.splits):
            for k, seed in enumerate(self._seeds):
                fitted = self.task.fit(shares[:, k] * split.learns, seed)
                if fitted is None and self._is_given:
                    fitted = self.task.fit(shares[:, k], seed)
                # An idle model stays as it is; one that never had a group is fitted on all.
                fitted = fitted or self._models[s][k] or self.task.fit(split.learns, seed)
                assert fitted is not None
                self._models[s][k] = fitted
                self.scores[:, k] += self.task.score(fitted, split)
        if not np.isfinite(self.scores).all():
            raise NonFiniteLossError(
                f"The loss became non-finite at iteration {len(self.history) + 1}; the likely cause"
                " is a local model that predicts infinite or missing values for some rows: check "
                "the scale of X and y, or regularise the local model."
            )

    def _revive(self) -> None:
        """Give a context that lost its last group the worst-served ones, once per start.

        If it loses them again, it is probably one context too many.
        """
        is_idle = ~np.asarray(self.weights.any(0))
        idle = [k for k in range(self.n_contexts) if is_idle[k] and k not in self._revived]
        worst_first = np.argsort(-self.losses)  #                                   (m,)
        fair_share = self.task.n_groups / self.n_contexts
        n = max(1, int(settings.REFIT.revived_share * fair_share))
        for i, k in enumerate(idle):
            self.weights[worst_first[i * n : (i + 1) * n]] = np.eye(self.n_contexts)[k]
        self._revived.update(idle)

    def _shares(self) -> Floats:
        """How much of each group each model is fitted on, shape (m, K).

        For a model that takes no weights, every group is assigned to one context at random, with
        the weights as probabilities; a hard allocation assigns itself.
        """
        if self.task.takes_weight:
            return self.weights
        cumulated = self.weights.cumsum(1)
        sampled = (self.rng.random((self.task.n_groups, 1)) < cumulated).argmax(1)
        return np.asarray(np.eye(self.n_contexts)[sampled])

    def _allocate(self, progress: float) -> Floats:
        scores, sizes = torch.from_numpy(self.scores), torch.from_numpy(self.task.sizes).double()
        weights = self.rule(scores, sizes, torch.arange(len(sizes)), progress, self._generator)
        return np.asarray(weights.numpy(), dtype=np.float64)
