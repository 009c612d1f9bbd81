"""Boosted trees as a feature of models in closed form.

Trees are fitted to the targets without the group effects found so far, and enter the mean of every
context as one more column, whose coefficient the likelihood determines. The training rows of a
group are predicted by trees that did not see this group. Otherwise columns that are constant within
groups would let the trees memorize each group, and nothing would be left for its effects; and the
coefficient of trees that overfit would not shrink.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from leaflearn.engines import settings

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class BoostedColumns:
    """Fitted trees, one model per column.

    Examples
    --------
    >>> X, group = np.arange(400.0)[:, None] % 20, np.repeat(np.arange(20), 20)
    >>> y = np.where(X > 9, 1.0, -1.0)
    >>> columns, training = BoostedColumns.fit(X, y, group, None, seed=0)
    >>> columns(np.array([[0.0], [19.0]])).round().ravel().tolist(), training.shape
    ([-1.0, 1.0], (400, 1))
    """

    models: Sequence[HistGradientBoostingRegressor]

    @classmethod
    def fit(
        cls, X: Floats, y: Floats, group: Ints, weight: Floats | None, seed: int
    ) -> tuple[BoostedColumns, Floats]:
        """Trees for each target (N, D); also the columns of the training rows, out of fold.

        Weights are those of the rows, (N,), or of each target, (N, D).
        """
        fold_of_group = np.random.default_rng(seed).permutation(int(group.max()) + 1)
        fold = fold_of_group[group] % settings.BOOSTING.n_folds
        mass = np.ones_like(y) if weight is None else np.broadcast_to(weight.T, y.T.shape).T
        coarse = round_to_bins(X)
        fitted = [
            _fit_out_of_fold(coarse, own, fold, own_mass, seed)
            for own, own_mass in zip(y.T, mass.T, strict=True)
        ]
        return cls([model for model, _ in fitted]), np.stack([column for _, column in fitted], 1)

    def __call__(self, X: Floats) -> Floats:
        """The columns of some rows, (N, D)."""
        return np.stack([model.predict(X) for model in self.models], 1)


def round_to_bins(X: Floats) -> Floats:
    """Columns of many values, rounded to as many as trees distinguish.

    scikit-learn would find the same bins for every fit anew, and takes longer for it than for the
    trees where rows have weights. Splits are halfway between two values, also for new rows.

    Examples
    --------
    >>> len(np.unique(round_to_bins(np.random.default_rng(0).normal(size=(9999, 1)))))
    255
    """
    coarse, n_bins = X.copy(), settings.BOOSTING.n_bins
    for j, column in enumerate(X.T):
        if len(np.unique(column)) > n_bins:
            ranks = np.linspace(0, 1, n_bins)
            values = np.unique(np.quantile(column, ranks, method="nearest"))
            coarse[:, j] = values[np.searchsorted((values[1:] + values[:-1]) / 2, column)]
    return coarse


def _fit_out_of_fold(
    X: Floats, y: Floats, fold: Ints, weight: Floats, seed: int
) -> tuple[HistGradientBoostingRegressor, Floats]:
    """Trees on all rows, as many as predict held-out groups best; and held-out predictions (N,)."""
    limits = settings.BOOSTING

    def make(n_trees: int) -> HistGradientBoostingRegressor:
        return HistGradientBoostingRegressor(
            max_iter=n_trees,
            learning_rate=limits.learning_rate,
            max_leaf_nodes=limits.max_leaf_nodes,
            min_samples_leaf=limits.min_samples_leaf,
            early_stopping=False,
            random_state=seed,
            warm_start=True,
        )

    folds = [fold == f for f in np.unique(fold)]
    models = [make(0) for _ in folds]
    held_out = np.zeros((limits.max_trees // limits.step, len(y)))
    best = 0
    for first in range(0, len(held_out), limits.n_steps):
        after = min(first + limits.n_steps, len(held_out))
        for mine, model in zip(folds, models, strict=True):
            model.set_params(max_iter=after * limits.step).fit(X[~mine], y[~mine], weight[~mine])
            stages = islice(model.staged_predict(X[mine]), limits.step - 1, None, limits.step)
            held_out[first:after, mine] = list(stages)[first:]
        best = int(((held_out[:after] - y) ** 2 @ weight).argmin())
        if best < after - limits.patience:
            break
    return make((best + 1) * limits.step).fit(X, y, weight), held_out[best]
