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
        fitted = [
            _fit_out_of_fold(X, own, fold, own_mass, seed)
            for own, own_mass in zip(y.T, mass.T, strict=True)
        ]
        return cls([model for model, _ in fitted]), np.stack([column for _, column in fitted], 1)

    def __call__(self, X: Floats) -> Floats:
        """The columns of some rows, (N, D)."""
        return np.stack([model.predict(X) for model in self.models], 1)


def _fit_out_of_fold(
    X: Floats, y: Floats, fold: Ints, weight: Floats, seed: int
) -> tuple[HistGradientBoostingRegressor, Floats]:
    """Trees on all rows, as many as predict held-out groups best; and held-out predictions (N,)."""
    limits = settings.BOOSTING

    def fit(rows: NDArray[np.bool_], n_trees: int) -> HistGradientBoostingRegressor:
        model = HistGradientBoostingRegressor(
            max_iter=n_trees,
            learning_rate=limits.learning_rate,
            max_leaf_nodes=limits.max_leaf_nodes,
            min_samples_leaf=limits.min_samples_leaf,
            early_stopping=False,
            random_state=seed,
        )
        return model.fit(X[rows], y[rows], weight[rows])

    held_out = np.zeros((limits.max_trees // limits.step, len(y)))
    for f in np.unique(fold):
        mine = fold == f
        model = fit(~mine, limits.max_trees)
        for stage, prediction in enumerate(model.staged_predict(X[mine])):
            if (stage + 1) % limits.step == 0:
                held_out[(stage + 1) // limits.step - 1, mine] = prediction
    best = int(((held_out - y) ** 2 @ weight).argmin())
    everything = np.ones(len(y), dtype=bool)
    return fit(everything, (best + 1) * limits.step), held_out[best]
