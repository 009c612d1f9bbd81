"""Mixed models: a mean that all groups share, and random effects of each group.

A mixed model is fitted once. The effects of a new group are then those that its labelled rows make
most probable, with the mean and the variances of the fit.

Random slopes are given to at most `REAL.max_slopes` columns: those that vary within groups, first
the ones that correlate most with the target within groups, and no more than half of the mean number
of rows of a group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leaflearn.benchmark.real.contract import Floats, Ints, Rows
from leaflearn.benchmark.real.settings import REAL

MAX_LOG_ODDS = 30.0  # beyond, probabilities are 0 or 1 in floating point
N_NEWTON_STEPS = 50
NEGLIGIBLE = 1e-3  # spread within groups, as a share of the whole spread, of a constant column


@dataclass(frozen=True, eq=False)
class Scaling:
    """Columns with mean 0 and standard deviation 1 in the rows that were learnt from.

    Examples
    --------
    >>> Scaling.of(np.array([[1.0], [3.0]]))(np.array([[5.0]])).round(6)
    array([[3.]])
    """

    mean: Floats  #                                                                 (d,)
    std: Floats  #                                                                  (d,)

    @classmethod
    def of(cls, X: Floats) -> Scaling:
        """The scaling of these rows."""
        return cls(X.mean(0), X.std(0) + 1e-12)

    def __call__(self, X: Floats) -> Floats:
        """Scale rows, (N, d)."""
        return (X - self.mean) / self.std


@dataclass(frozen=True, eq=False)
class Design:
    """The columns of the random effects: a constant, and scaled columns of the inputs.

    Examples
    --------
    >>> design = Design(Scaling(np.zeros(2), np.ones(2)), slopes=np.array([1]))
    >>> design(np.array([[3.0, 4.0]]))
    array([[1., 4.]])
    """

    scaling: Scaling
    slopes: Ints

    def __call__(self, X: Floats) -> Floats:
        """The columns of these rows, (N, 1 + number of slopes)."""
        return np.hstack([np.ones((len(X), 1)), self.scaling(X)[:, self.slopes]])


@dataclass(frozen=True, eq=False)
class Mixed:
    """A mean and random effects `z'u` with covariance D: values, or log odds of two classes.

    Parameters
    ----------
    mean, design
        The mean of rows (N,), and their columns of the random effects (N, q).
    D, noise
        Covariance of the effects (q, q), and the variance of the residuals; with two classes, the
        latter is not used.
    effects
        The effects of each group that was learnt from (q,).
    n_classes
        0 or 2.

    Examples
    --------
    >>> design = Design(Scaling(np.zeros(1), np.ones(1)), slopes=np.array([], dtype=int))
    >>> model = Mixed(lambda X: X[:, 0], design, D=np.eye(1), noise=1.0, effects={})
    >>> labelled = Rows(np.zeros((1, 1)), np.array([2.0]), np.array([7]))
    >>> model.new(labelled, np.array([[5.0]]), np.array([7]))  # half of the residual 2 is an effect
    array([6.])
    """

    mean: Callable[[Floats], Floats]
    design: Callable[[Floats], Floats]
    D: Floats
    noise: float
    effects: dict[int, Floats]
    n_classes: int = 0

    def known(self, X: Floats, group: Ints) -> Floats:
        """Predict rows; a group without effects is predicted by the mean."""
        none = np.zeros(len(self.D))
        effects = np.stack([self.effects.get(int(g), none) for g in group])  #      (N, q)
        eta = self.mean(X) + (self.design(X) * effects).sum(1)
        if not self.n_classes:
            return eta
        p = expit(eta)
        return np.stack([1 - p, p], 1)

    def new(self, labelled: Rows, X: Floats, group: Ints) -> Floats:
        """Predict rows of new groups with the effects that their labelled rows suggest."""
        return self.with_groups(labelled).known(X, group)

    def with_groups(self, rows: Rows) -> Mixed:
        """The same model with the most probable effects of these groups."""
        eta, Z = self.mean(rows.X), self.design(rows.X)
        effects = {}
        for g in np.unique(rows.group):
            mine = rows.group == g
            effects[int(g)] = (
                logistic_mode(Z[mine], rows.y[mine], eta[mine], self.D)
                if self.n_classes
                else gaussian_mode(Z[mine], rows.y[mine], eta[mine], self.D, self.noise)
            )
        return replace(self, effects=effects)


def gaussian_mode(Z: Floats, y: Floats, eta: Floats, D: Floats, noise: float) -> Floats:
    """The most probable effects of a group with targets `y` and means `eta`: D Z' V^-1 (y - eta).

    Examples
    --------
    >>> gaussian_mode(np.ones((3, 1)), np.full(3, 4.0), np.zeros(3), np.eye(1), noise=1.0)
    array([3.])
    """
    V = Z @ D @ Z.T + noise * np.eye(len(Z))
    return np.asarray(D @ Z.T @ np.linalg.solve(V, y - eta))


def logistic_mode(Z: Floats, y: NDArray[np.intp], eta: Floats, D: Floats) -> Floats:
    """The most probable effects of a group with classes `y` and log odds `eta`, by Newton steps.

    Examples
    --------
    >>> Z, y = np.ones((2, 1)), np.array([0, 1])
    >>> logistic_mode(Z, y, np.zeros(2), np.eye(1))
    array([0.])
    """
    root = np.linalg.cholesky(D + 1e-9 * np.eye(len(D)))
    A, b = Z @ root, np.zeros(len(D))
    for _ in range(N_NEWTON_STEPS):
        p = expit(eta + A @ b)
        step = np.linalg.solve(A.T * (p * (1 - p)) @ A + np.eye(len(b)), A.T @ (y - p) - b)
        b = b + step
        if np.abs(step).max() < 1e-8:
            break
    return np.asarray(root @ b)


def expit(eta: Floats) -> Floats:
    """The probabilities of log odds.

    Examples
    --------
    >>> expit(np.array([0.0, -1000.0])).round(6)
    array([0.5, 0. ])
    """
    return np.asarray(1 / (1 + np.exp(-np.clip(eta, -MAX_LOG_ODDS, MAX_LOG_ODDS))))


def choose_slopes(rows: Rows) -> Ints:
    """Columns with random slopes, in the order in which they correlate within groups.

    Examples
    --------
    >>> group, rng = np.repeat(np.arange(20), 4), np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=80), group, rng.normal(size=80)])
    >>> choose_slopes(Rows(X, X[:, 2] + 0.1 * X[:, 0], group))
    array([2, 0])
    """
    size = np.bincount(rows.group).astype(float)
    Y = as_columns(rows)
    X_in = rows.X - _group_means(rows.X, rows.group, size)
    Y_in = Y - _group_means(Y, rows.group, size)
    spread, total = X_in.std(0), rows.X.std(0)
    varies = spread > NEGLIGIBLE * np.maximum(total, 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.abs(X_in.T @ Y_in).max(1) / (spread * max(Y_in.std(), 1e-12))
    order = [j for j in np.argsort(-np.where(varies, r, -1)) if varies[j]]
    n_slopes = min(REAL.max_slopes, int(size[size > 0].mean() / 2))
    return np.array(order[:n_slopes], dtype=np.intp)


def as_columns(rows: Rows) -> Floats:
    """The targets as one column, or as an indicator column for each class.

    Examples
    --------
    >>> as_columns(Rows(np.zeros((2, 1)), np.array([1, 0]), np.array([0, 0]), n_classes=2))
    array([[0., 1.],
           [1., 0.]])
    """
    return np.eye(rows.n_classes)[rows.y] if rows.n_classes else rows.y[:, None].astype(float)


def _group_means(values: Floats, group: Ints, size: Floats) -> Floats:
    """The mean of its group for each row."""
    sums = np.stack([np.bincount(group, column, minlength=len(size)) for column in values.T], 1)
    return np.asarray((sums / np.maximum(size, 1)[:, None])[group])
