"""An oracle that knows the models: how well groups could be allocated at all.

One model with group effects is fitted to the groups of each true context. A group is allocated to
the context that makes its rows most probable, effects integrated out, by models that were fitted
without this group. Values have linear or smooth means, whichever makes the rows more probable in
their true contexts. Classes have linear log odds with random intercepts, by Laplace's method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leaflearn.benchmark.altered.settings import ALTERED
from leaflearn.benchmark.real.contract import Floats, Ints, Rows
from leaflearn.estimators import LeafRegressor

LogDensity = Callable[[Rows, int], Floats]  # of rows and the number of groups, (m,)


def allocate_knowing_models(rows: Rows, truth: Ints) -> tuple[Ints, Floats]:
    """The context of each group, and the probability of every context, out of fold.

    Parameters
    ----------
    rows
        All rows of the task.
    truth
        The true context of each group, shape (m,).

    Examples
    --------
    >>> rng, group = np.random.default_rng(0), np.repeat(np.arange(20), 10)
    >>> X, truth = rng.normal(size=(200, 1)), np.arange(20) % 2
    >>> y = X[:, 0] * np.where(truth == 1, 1, -1)[group] + rng.normal(0, 0.1, 200)
    >>> contexts, probabilities = allocate_knowing_models(Rows(X, y, group), truth)
    >>> contexts.tolist() == truth.tolist(), probabilities.shape
    (True, (20, 2))
    """
    fits: list[Callable[[Rows], LogDensity]] = (
        [_fit_logistic]
        if rows.n_classes
        else [lambda part: _fit_values("linear", part), lambda part: _fit_values("smooth", part)]
    )
    own = np.arange(len(truth)), truth
    log = max((_score(rows, truth, fit) for fit in fits), key=lambda found: found[own].sum())
    log = log + np.log(np.bincount(truth) / len(truth))
    probability = np.exp(log - log.max(1, keepdims=True))
    return log.argmax(1), probability / probability.sum(1, keepdims=True)


def _score(rows: Rows, truth: Ints, fit: Callable[[Rows], LogDensity]) -> Floats:
    """Log density of each group in each true context, out of fold, (m, K)."""
    m, K = len(truth), int(truth.max()) + 1
    fold = np.empty(m, dtype=np.intp)
    for k in range(K):  # every fold has groups of every context
        mine = np.random.default_rng(0).permutation(np.flatnonzero(truth == k))
        fold[mine] = np.arange(len(mine)) % ALTERED.n_folds
    out = np.empty((m, K))
    for f in range(ALTERED.n_folds):
        tested = np.flatnonzero(fold == f)
        for k in range(K):
            density = fit(_take(rows, np.flatnonzero((fold != f) & (truth == k))))
            out[tested, k] = density(_take(rows, tested), len(tested))
    return out


def _take(rows: Rows, groups: Ints) -> Rows:
    """The rows of these groups, which are numbered in this order."""
    number = np.full(int(rows.group.max()) + 1, -1)
    number[groups] = np.arange(len(groups))
    mine = number[rows.group] >= 0
    return Rows(rows.X[mine], rows.y[mine], number[rows.group[mine]], rows.n_classes)


def _fit_values(local_model: str, rows: Rows) -> LogDensity:
    used = rows.X.std(0) > 0  # a column may be constant within a context
    estimator: Any = LeafRegressor(1, local_model=local_model, random_state=0)
    state = estimator.fit(rows.X[:, used], rows.y, groups=rows.group).fitted_state_

    def density(rows: Rows, m: int) -> Floats:
        X = rows.X[:, used]
        given = state.local_models.means_and_targets(X, rows.y[:, None])
        return np.asarray(-state.effects.of_groups(X, *given, rows.group, m)[1][:, 0])

    return density


def _fit_logistic(rows: Rows) -> LogDensity:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(rows.X, rows.y)

    def log_odds(X: Floats) -> Floats:
        """Log probabilities of all classes, (N, C)."""
        out = np.full((len(X), rows.n_classes), np.log(1e-6))
        out[:, model.classes_.astype(int)] = model.predict_log_proba(X)
        return out

    own, m = log_odds(rows.X), int(rows.group.max()) + 1
    variance = max(ALTERED.variances, key=lambda v: laplace(own, rows.y, rows.group, m, v).sum())
    return lambda rows, m: laplace(log_odds(rows.X), rows.y, rows.group, m, variance)


@dataclass(frozen=True, eq=False)
class _GroupSums:
    group: Ints
    n_groups: int

    def __call__(self, values: Floats) -> Floats:
        out = np.zeros((self.n_groups, *values.shape[1:]))
        np.add.at(out, self.group, values)
        return out


def laplace(eta: Floats, y: Ints, group: Ints, n_groups: int, variance: float) -> Floats:
    """Log likelihood of each group's classes with random intercepts of all classes, (m,).

    Parameters
    ----------
    eta
        Log odds of each class without effects, shape (N, C).
    y, group
        Classes and groups of the rows, shape (N,).
    n_groups
        Number of groups.
    variance
        Of the intercept of each class.

    Examples
    --------
    Without effects it is the log likelihood itself:

    >>> eta, y = np.zeros((2, 2)), np.array([0, 1])
    >>> laplace(eta, y, np.array([0, 0]), 1, variance=1e-9).round(4)
    array([-1.3863])
    """
    N, C = eta.shape
    sum_by_group, target = _GroupSums(group, n_groups), np.eye(C)[y]
    effects = np.zeros((n_groups, C))
    for _ in range(ALTERED.n_newton_steps):
        p, curvature = _curvature(eta, effects, sum_by_group, variance)
        slope = sum_by_group(target - p) - effects / variance
        step = np.linalg.solve(curvature, slope[..., None])[..., 0]
        effects = effects + step
        if np.abs(step).max() < 1e-6:
            break
    p, curvature = _curvature(eta, effects, sum_by_group, variance)
    log = sum_by_group(np.log(np.maximum(p[np.arange(N), y], 1e-300)))
    penalty = (effects**2).sum(1) / (2 * variance)
    return np.asarray(log - penalty - 0.5 * np.linalg.slogdet(variance * curvature)[1])


def _curvature(
    eta: Floats, effects: Floats, sum_by_group: _GroupSums, variance: float
) -> tuple[Floats, Floats]:
    """Probabilities (N, C), and minus the second derivative of the log posterior, (m, C, C)."""
    from scipy.special import softmax

    p = softmax(eta + effects[sum_by_group.group], axis=1)
    C = eta.shape[1]
    outer = sum_by_group(p[:, :, None] * p[:, None, :])
    return p, np.eye(C) * (sum_by_group(p)[:, None, :] + 1 / variance) - outer
