"""The engine for scikit-learn models: from an estimator's parameters and checked examples to models that were fitted again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from leaflearn.core.allocation import Given, Hard
from leaflearn.core.grouped_data import GroupedData
from leaflearn.core.losses import CrossEntropy, Loss, SquaredError
from leaflearn.engines import resolve_rule
from leaflearn.engines.fitted_state import Fitting
from leaflearn.engines.local_models import LocalModels, RefittedModels, Scaling
from leaflearn.engines.progress import ProgressBar
from leaflearn.engines.refitting import Refitted, refit
from leaflearn.engines.row_losses import ClassRowLoss, Fitted, SquaredRowLoss
from leaflearn.initialization.start import (
    Start,
    describe_selection,
    describe_start,
    trusted_contexts,
)


def fit_by_refitting(
    estimator: Any, examples: GroupedData, start: Start | None, random_state: np.random.RandomState
) -> Fitting:
    """Models that only know fit and predict: score, allocate, refit, until the allocation stands still.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> from sklearn.linear_model import LinearRegression
    >>> leaf = LeafRegressor(2, local_model=LinearRegression())
    >>> leaf.n_contexts_ = 2
    >>> rows = GroupedData(np.zeros((4, 1)), np.zeros((4, 1)), np.array([0, 0, 1, 1]), np.arange(4), None, 1, False)
    >>> fit_by_refitting(leaf, rows, None, np.random.RandomState(0)).scores.shape
    (2, 2)
    """
    if estimator.loss != "auto":
        raise ValueError(
            f"loss={estimator.loss!r} has no effect on a scikit-learn local model, which has its own; leave it at 'auto'."
        )
    y = targets_of(examples)
    n_classes, is_probabilistic = (
        examples.n_classes,
        hasattr(estimator.local_model, "predict_proba"),
    )
    row_losses = (
        ClassRowLoss(n_classes, is_probabilistic)
        if n_classes
        else SquaredRowLoss(Scaling.of(y).scale)
    )
    # What temperatures are measured by, and targets in the units of the row losses.
    loss: Loss = CrossEntropy() if n_classes else SquaredError()
    targets = torch.as_tensor(examples.y if n_classes else Scaling.of(examples.y).apply(examples.y))
    contexts = trusted_contexts(estimator, start)
    is_trusted = contexts is not None
    # To anneal would forget the start: from there on the allocation is hard.
    rule = (
        Hard()
        if is_trusted
        else resolve_rule(estimator.allocation, estimator.temperature, loss, targets)
    )
    with ProgressBar.of(estimator) as bar:
        fit = refit(
            make_local_model(estimator.local_model),
            examples.X,
            y,
            examples.group,
            row_losses,
            rule,
            estimator.n_contexts_,
            n_init=1 if is_trusted and estimator.n_init == "auto" else estimator.n_init,
            start=contexts,
            max_iter=estimator.max_epochs,
            out_of_fold=estimator.out_of_fold,
            trim=estimator.trim,
            sample_weight=examples.weight,
            take=_safe_indexing,
            rng=np.random.default_rng(random_state.randint(2**31 - 1)),
            on_iteration=lambda start, row: bar.update(
                f"start {start + 1}", row["epoch"], row["max_iter"], row["loss"], row["usage"]
            ),
        )
    local_models = RefittedModels(with_sizes(fit), row_losses, n_classes)
    return Fitting(
        local_models,
        fit.scores,
        fit.history,
        [{"stage": "given" if is_trusted else "training", **restart} for restart in fit.restarts],
        [restart["kept"] for restart in fit.restarts].index(True),
        fit.converged,
        # Without probabilities the loss is an error, and the best constant answer the commonest class.
        constant_loss=loss.of_best_constant(targets)
        if is_probabilistic or not n_classes
        else 1.0 - np.bincount(y).max() / len(y),
        refit_quickly=partial(_refit_quickly, local_models, estimator, examples),
        init=describe_start(estimator, start, is_trusted),
        selection=describe_selection(start),
    )


def _refit_quickly(
    like: RefittedModels, estimator: Any, examples: GroupedData, rows: NDArray[np.intp], contexts: NDArray[np.intp], seed: int
) -> LocalModels:  # fmt: skip
    """New models for the contexts (m,) from some of the rows."""
    kept, group = np.unique(examples.group[rows], return_inverse=True)
    found = refit(
        make_local_model(estimator.local_model),
        _safe_indexing(examples.X, rows),
        targets_of(examples)[rows],
        group,
        like.row_losses,
        Given(torch.as_tensor(contexts[kept])),
        estimator.n_contexts_,
        n_init=1,
        start=contexts[kept],
        max_iter=1,
        out_of_fold=False,
        sample_weight=None if examples.weight is None else examples.weight[rows],
        take=_safe_indexing,
        rng=np.random.default_rng(seed),
    )
    return replace(like, fitted=with_sizes(found))


def targets_of(examples: GroupedData) -> NDArray[Any]:
    """The targets as scikit-learn models take them: class numbers (N,), values (N,), or several values a row (N, D).

    Examples
    --------
    >>> rows = GroupedData(np.zeros((2, 1)), np.array([[3.0], [4.0]]), np.array([0, 1]), np.arange(2), None, 1, False)
    >>> targets_of(rows)
    array([3., 4.])
    """
    return examples.y if examples.is_classifier or examples.n_outputs > 1 else examples.y[:, 0]


def with_sizes(found: Refitted) -> list[Fitted]:
    """The local models, each with the number of rows that it was fitted on."""
    return [Fitted(model, n_rows) for model, n_rows in zip(found.models, found.n_rows, strict=True)]


def make_local_model(local_model: Any) -> Callable[[int], Any]:
    """What makes unfitted copies of a scikit-learn model, from a seed.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> make_local_model(DecisionTreeRegressor())(7)
    DecisionTreeRegressor(random_state=7)
    """
    seeds = [
        name
        for name in local_model.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    ]
    return lambda seed: clone(local_model).set_params(**dict.fromkeys(seeds, int(seed)))
