"""Variances of group effects by restricted likelihood (REML), from the moments of the groups.

The model of one context and one target is `y = x'b + z'u + e` with `u ~ N(0, s2 T T')` for every
group and `e ~ N(0, s2)`; `z` are some of the features, and T is a lower triangle or diagonal.
Coefficients of the features in `is_shrunk` have the prior N(0, s2 g), which makes a sum of cosines
a smooth function; T, g and s2 are those under which the targets are most probable, with the other
coefficients integrated out. This is the criterion of lme4, and of a mixed model whose smooth mean
is itself a random effect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from leaflearn.effects import settings
from leaflearn.effects.batched_cholesky import InverseFactors
from leaflearn.moments.group_moments import GroupMoments

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class MixedModel:
    """A fitted context for one target: F features, q of them with effects.

    Parameters
    ----------
    columns
        The features that have effects, shape (q,).
    coefficients
        Coefficients of the mean, shape (F,).
    root
        Lower triangle T: the covariance of effects is `noise * T T'`, shape (q, q).
    noise
        Variance of a row around its mean and effects.
    smoothness
        Variance g of the shrunk coefficients in units of the noise.
    criterion
        Minus twice the restricted log-likelihood, up to a constant.
    n_parameters
        Number of variances that were estimated.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group, offset = np.repeat(np.arange(50), 8), rng.normal(size=50)
    >>> y = offset[group] + rng.normal(size=400)
    >>> moments = GroupMoments.of(np.ones((400, 1)), y[:, None], group, 50)
    >>> model = fit_mixed_model(moments, np.array([0]))
    >>> bool(0.5 < model.covariance[0, 0] < 1.5), bool(0.8 < model.noise < 1.2)
    (True, True)
    """

    columns: Ints
    coefficients: Floats
    root: Floats
    noise: float
    smoothness: float = 1.0
    criterion: float = 0.0
    n_parameters: int = 0

    @property
    def covariance(self) -> Floats:
        """Covariance of the effects, (q, q)."""
        return self.noise * self.root @ self.root.T


def fit_with_variances(
    moments: GroupMoments,
    like: MixedModel,
    is_shrunk: NDArray[np.bool_] | None = None,
    weight: Floats | None = None,
    noise: float | None = None,
) -> MixedModel:
    """The mean and the noise with the relative variances of another model.

    Examples
    --------
    >>> like = MixedModel(np.array([0]), np.zeros(1), np.ones((1, 1)), 1.0)
    >>> group, y = np.array([0, 0, 1]), np.array([[1.0], [1.0], [3.0]])
    >>> fit_with_variances(GroupMoments.of(np.ones((3, 1)), y, group, 2), like).root
    array([[1.]])
    """
    criterion = RestrictedLikelihood(moments, like.columns, is_shrunk, weight, True, noise)
    point = like.root[criterion.entries]
    if criterion.is_shrunk.any():
        point = np.append(point, np.log(like.smoothness))
    return criterion.model_at(point)


def fit_mixed_model(
    moments: GroupMoments,
    columns: Ints,
    is_shrunk: NDArray[np.bool_] | None = None,
    weight: Floats | None = None,
    full: bool = False,
    start: MixedModel | None = None,
    noise: float | None = None,
) -> MixedModel:
    """The most probable variances, and the mean and noise that go with them.

    Parameters
    ----------
    moments
        Moments of the groups, with one target.
    columns
        The features that have effects, shape (q,).
    is_shrunk
        Features whose coefficients are shrunk, shape (F,); none by default.
    weight
        Weight of each group's likelihood, for example its posterior, shape (m,).
    full
        Whether effects are correlated.
    start
        A model with the same columns to begin with.
    noise
        The variance of a row around its mean and effects, where it is known.
    """
    criterion = RestrictedLikelihood(moments, columns, is_shrunk, weight, full, noise)
    return criterion.minimize(start)


class RestrictedLikelihood:
    """Minus twice the restricted log-likelihood, as a function of T and log g, with its gradient.

    Uncorrelated effects are found by Newton steps with the average information matrix (Gilmour,
    Thompson and Cullis, 1995), correlated ones by L-BFGS. Variances that are zero at the minimum
    have a gradient of zero in their standard deviation, so that a search can get stuck there;
    `minimize` checks the gradient in the variance itself.
    """

    def __init__(
        self,
        moments: GroupMoments,
        columns: Ints,
        is_shrunk: NDArray[np.bool_] | None = None,
        weight: Floats | None = None,
        full: bool = False,
        noise: float | None = None,
    ) -> None:
        self.noise = noise
        m, F, q = len(moments.sizes), moments.n_features, len(columns)
        self.columns, self.full = np.asarray(columns, dtype=np.intp), full
        self.weight = np.ones(m) if weight is None else weight
        self.is_shrunk = np.zeros(F, dtype=bool) if is_shrunk is None else is_shrunk
        self.wx = moments.products[:, self.columns]  # effects with all columns     (m, q, P)
        self.ww = self.wx[:, :, self.columns]  #                                    (m, q, q)
        self.total = moments.sum(self.weight)  #                                    (P, P)
        self.n_rows = float(self.weight @ moments.sizes)
        self.entries = np.tril_indices(q) if full else (np.arange(q), np.arange(q))
        # Columns that others determine do not use up degrees of freedom.
        self.n_fixed = _rank(self.total, self.is_shrunk)
        self.ridge = _tiny_ridge(self.total, F)

    def minimize(self, start: MixedModel | None = None) -> MixedModel:
        """The model at the minimum."""
        limits = settings.EFFECTS
        is_diagonal = self.entries[0] == self.entries[1]
        point = np.where(is_diagonal, limits.start_deviation, 0.0)
        log_smoothness = np.log(limits.start_smoothness)
        if start is not None:
            at_start = start.root[self.entries]
            point = np.where(is_diagonal, np.maximum(at_start, 0.01), at_start)
            log_smoothness = np.log(start.smoothness)
        if self.is_shrunk.any():
            point = np.append(point, log_smoothness)
        for _ in range(limits.n_restarts):
            if not len(point):
                break
            point = self._descend(point) if self.full else self._step_to_minimum(point)
            slope = self._variance_slopes(point)  #                                 (q,)
            is_stuck = np.zeros(len(point), dtype=bool)
            at = np.flatnonzero(is_diagonal)
            is_stuck[at] = (np.abs(point[at]) < 1e-3) & (slope[self.entries[0][at]] < 0)
            if not is_stuck.any():
                break
            point = np.where(is_stuck, limits.start_deviation / 3, point)
        return self.model_at(point)

    def _descend(self, point: Floats) -> Floats:
        """From a point to the minimum by L-BFGS."""
        limits = settings.EFFECTS
        bounds = [
            (0.0 if on_diagonal else -limits.max_deviation, limits.max_deviation)
            for on_diagonal in self.entries[0] == self.entries[1]
        ]
        if self.is_shrunk.any():
            bounds.append(limits.log_smoothness_range)
        options = {"maxiter": limits.max_iter, "ftol": 1e-13, "gtol": 1e-9}
        found = minimize(
            self.evaluate, point, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        return np.asarray(found.x, dtype=np.float64)

    def _step_to_minimum(self, point: Floats) -> Floats:
        """From a point to the minimum by damped Newton steps; for diagonal T."""
        limits, q = settings.EFFECTS, len(self.columns)
        low, high = limits.log_smoothness_range
        damping, before = limits.start_damping, np.inf
        state = self._solve(*self._unpack(point))
        for _ in range(limits.max_iter):
            gradient, information = self._expand(point, state)
            scale = np.diag(information) + 1e-12 * (1 + np.abs(gradient).max())
            is_bound = np.zeros(len(point), dtype=bool)  # and would leave its range
            is_bound[q:] = np.where(gradient[q:] < 0, point[q:] >= high, point[q:] <= low)
            free = np.flatnonzero(~is_bound)
            for _ in range(limits.max_damped):
                damped = (information + damping * np.diag(scale))[np.ix_(free, free)]
                step = np.linalg.solve(damped, -gradient[free])
                new = point.copy()
                new[free] += np.clip(step, -limits.max_step, limits.max_step)
                # The criterion is the same for a standard deviation and its negative.
                new[:q] = np.minimum(np.abs(new[:q]), limits.max_deviation)
                new[q:] = np.clip(new[q:], low, high)
                tried = self._solve(*self._unpack(new))
                expected = float(gradient @ (point - new))
                # Very small differences of the criterion are rounding, but its gradient is exact.
                is_close = expected < limits.close_fall
                if tried.value <= state.value or is_close:
                    break
                damping *= 8.0
            if is_close and not expected < 0.9 * before:
                break
            if not (tried.value <= state.value or is_close):
                break
            point, state, before = new, tried, expected
            damping = max(damping / 8, limits.min_damping)
            if expected < limits.min_fall:
                break
        return point

    def model_at(self, point: Floats) -> MixedModel:
        """The model with these variances."""
        root, smoothness = self._unpack(point)
        state = self._solve(root, smoothness)
        return MixedModel(
            self.columns,
            state.coefficients,
            root,
            self.noise or state.square / state.n_free,
            smoothness,
            state.value,
            len(point),
        )

    def evaluate(self, point: Floats) -> tuple[float, Floats]:
        """The criterion and its gradient, per row."""
        root, smoothness = self._unpack(point)
        state = self._solve(root, smoothness)
        gradient = (2 * self._variance_gradient(root, state) @ root)[self.entries]
        if self.is_shrunk.any():
            gradient = np.append(gradient, self._smoothness_gradient(smoothness, state))
        return state.value / self.n_rows, gradient / self.n_rows

    def _smoothness_gradient(self, smoothness: float, state: _Solution) -> float:
        own = state.coefficients[self.is_shrunk]
        trace = np.diag(state.inverse)[self.is_shrunk].sum()
        return float(len(own) - (trace + state.precision * (own @ own)) / smoothness)

    def _expand(self, point: Floats, state: _Solution) -> tuple[Floats, Floats]:
        """Gradient and average information at a point, for diagonal T.

        The average of the observed and the expected information has no traces of products: with
        `f_j` the derivative of the covariance by parameter j times `P y`, it is `f_i' P f_j / s2`.
        """
        (root, smoothness), F, n_parameters = self._unpack(point), len(self.is_shrunk), len(point)
        deviation, q = np.diag(root), len(root)
        own, cross, residual = self._residuals(root, state)
        weight = self.weight[:, None]
        solved = cross[:, :, :F].reshape(-1, F) @ state.inverse  #                  (m q, F)
        of_means = (solved.reshape(len(cross), q, F) * cross[:, :, :F]).sum(2)  #           (m, q)
        squares = (weight * residual**2).sum(0)  # f_j' P y                         (q,)
        diagonal = np.diagonal(own, axis1=1, axis2=2)
        by_variance = self.weight @ (diagonal - of_means) - state.precision * squares
        pull = np.einsum("mq,mqf->qf", weight * residual, cross[:, :, :F])  #       (q, F)
        between = np.einsum("mq,mqr,mr->qr", weight * residual, own, residual, optimize=True)
        between -= pull @ state.inverse @ pull.T
        gradient, information = np.zeros(n_parameters), np.zeros((n_parameters, n_parameters))
        along = 2 * deviation  # derivative of the variances by their roots
        gradient[:q] = along * by_variance
        information[:q, :q] = between * np.outer(along, along)
        fits = along * squares
        if self.is_shrunk.any():
            shrunk = state.coefficients[self.is_shrunk]
            toward = (pull @ state.inverse)[:, self.is_shrunk] @ shrunk / smoothness
            information[:q, q] = information[q, :q] = along * toward
            left = shrunk - state.inverse[np.ix_(self.is_shrunk, self.is_shrunk)] @ shrunk / (
                smoothness
            )
            information[q, q] = shrunk @ left / smoothness
            gradient[q] = self._smoothness_gradient(smoothness, state)
            fits = np.append(fits, shrunk @ shrunk / smoothness)
        information *= state.precision
        if self.noise is None:  # the noise follows the other parameters
            information -= np.outer(fits, fits) * state.precision**2 / state.n_free
        # Curvature of the parametrization; it is zero at a minimum inside.
        curvature = np.append(2 * by_variance, gradient[q:])
        information[np.diag_indices(n_parameters)] += np.maximum(curvature, 0.0)
        return gradient, information

    def _unpack(self, point: Floats) -> tuple[Floats, float]:
        q, n_entries = len(self.columns), len(self.entries[0])
        root = np.zeros((q, q))
        root[self.entries] = point[:n_entries]
        return root, float(np.exp(point[n_entries])) if self.is_shrunk.any() else 1.0

    def _solve(self, root: Floats, smoothness: float) -> _Solution:
        return self._solve_on(self.ww, self.wx, root, smoothness)

    def _solve_on(self, ww: Floats, wx: Floats, root: Floats, smoothness: float) -> _Solution:
        whitening, log_determinant = _whiten_effects(ww, root)
        white = whitening @ wx  #                                                   (m, q, P)
        left = self.total - _sum_squares(white, None if self._is_equal else self.weight)
        ridge = np.where(self.is_shrunk, 1 / smoothness, self.ridge)
        inverse, coefficients, square, log_determinant_of_means = _least_squares(left, ridge)
        square = max(square, 1e-12 * float(self.total[-1, -1]))
        n_free = _count_free(self.n_rows, self.n_fixed)
        value = (
            self.weight @ log_determinant
            + log_determinant_of_means
            + self.is_shrunk.sum() * np.log(smoothness)
            + (n_free * np.log(square / n_free) if self.noise is None else square / self.noise)
        )
        precision = n_free / square if self.noise is None else 1 / self.noise
        solved = coefficients, inverse, whitening, white
        return _Solution(*solved, square, n_free, precision, float(value))

    @cached_property
    def _is_equal(self) -> bool:
        return bool((self.weight == 1.0).all())

    def _residuals(self, root: Floats, state: _Solution) -> tuple[Floats, Floats, Floats]:
        """z' V^-1 z (m, q, q), z' V^-1 [x, y] (m, q, P), and z' V^-1 times residuals (m, q)."""
        n, F = len(root), len(self.is_shrunk)
        reach = self.ww[:, :, :n] @ np.swapaxes(state.whitening, 1, 2)  #           (m, q, n)
        own = self.ww - reach @ np.swapaxes(reach, 1, 2)
        cross = self.wx - reach @ state.white
        return own, cross, cross[:, :, F] - cross[:, :, :F] @ state.coefficients

    def _variance_gradient(self, root: Floats, state: _Solution) -> Floats:
        """Derivative of the criterion by the covariance `T T'`, (q, q)."""
        own, cross, residual = self._residuals(root, state)
        m, q, F = len(own), own.shape[1], len(self.is_shrunk)
        weight = self.weight[:, None]
        x = cross[:, :, :F]
        solved = (x.reshape(-1, F) @ state.inverse).reshape(m, q, F) * weight[..., None]
        mean_part = (solved @ np.swapaxes(x, 1, 2)).sum(0)
        fit_part = (residual * weight).T @ residual * state.precision
        return np.tensordot(self.weight, own, 1) - mean_part - fit_part

    def _variance_slopes(self, point: Floats) -> Floats:
        root, smoothness = self._unpack(point)
        return np.diag(self._variance_gradient(root, self._solve(root, smoothness)))

    def score_columns(self, model: MixedModel) -> Floats:
        """How strongly the data ask for effects of each column beyond those of a model, (q,).

        The columns of the model come first among those of this criterion. A column's score is the
        derivative of the restricted log-likelihood by its variance, in standard deviations of
        that derivative if there are no further effects; it is about standard normal then.
        """
        n, F = len(model.columns), len(self.is_shrunk)
        state = self._solve_on(self.ww[:, :n, :n], self.wx[:, :n], model.root, model.smoothness)
        own, cross, residual = self._residuals(model.root, state)
        x, diagonal = cross[:, :, :F], np.diagonal(own, axis1=1, axis2=2)  #        (m, q)
        of_means = ((x.reshape(-1, F) @ state.inverse).reshape(x.shape) * x).sum(2)
        gradient = self.weight @ (diagonal - of_means - state.precision * residual**2)
        deviation = np.sqrt(2 * (self.weight @ diagonal**2))
        return -gradient / np.maximum(deviation, 1e-300)


@dataclass(frozen=True)
class _Solution:
    coefficients: Floats  #                                                         (F,)
    inverse: Floats  #                                                              (F, F)
    whitening: Floats  #                                                            (m, q, q)
    white: Floats  #                                                                (m, q, P)
    square: float
    n_free: float
    precision: float  # one over the noise
    value: float


def _whiten_effects(ww: Floats, root: Floats) -> tuple[Floats, Floats]:
    """U T' with U'U the inverse of `I + T'z'z T` (m, q, q), and log determinants of the latter."""
    inner = np.ascontiguousarray(np.moveaxis(root.T @ ww @ root, 0, 2))  #          (q, q, m)
    inner[np.arange(len(root)), np.arange(len(root))] += 1.0
    factors = InverseFactors.of(inner)
    lower = np.moveaxis(factors.lower / np.sqrt(factors.pivots)[:, None], 2, 0)
    return lower @ root.T, factors.log_determinant


def _sum_squares(white: Floats, weight: Floats | None) -> Floats:
    """Sum of `white' white` over the groups, (P, P)."""
    scaled = white if weight is None else white * np.sqrt(weight)[:, None, None]
    flat = scaled.reshape(-1, white.shape[2])
    return flat.T @ flat


def _least_squares(left: Floats, ridge: Floats) -> tuple[Floats, Floats, float, float]:
    """Inverse normal matrix, coefficients, what is left of y'y, and a log determinant."""
    F = len(ridge)
    normal = left[:F, :F] + np.diag(ridge)
    inverse = np.asarray(np.linalg.inv(normal), dtype=np.float64)
    coefficients = inverse @ left[:F, F]
    square = float(left[F, F] - left[:F, F] @ coefficients)
    return inverse, coefficients, square, float(np.linalg.slogdet(normal)[1])


def _tiny_ridge(total: Floats, n_features: int) -> Floats:
    squares = np.diag(total)[:n_features]  # a column of zeros has a coefficient of zero
    return np.where(squares > 0, settings.EFFECTS.fixed_ridge * squares, 1.0)


def _rank(total: Floats, is_shrunk: NDArray[np.bool_]) -> int:
    """How many of the columns that are not shrunk are independent."""
    fixed = np.flatnonzero(~is_shrunk)
    scale = np.sqrt(np.maximum(np.diag(total), 1e-300))
    correlation = (total / np.outer(scale, scale))[np.ix_(fixed, fixed)]
    return int(np.linalg.matrix_rank(correlation, hermitian=True)) if len(fixed) else 0


def _count_free(n_rows: float, n_fixed: int) -> float:
    """Degrees of freedom; a context with fewer rows than coefficients still has a noise."""
    return max(n_rows - n_fixed, settings.EFFECTS.min_free_share * n_rows)


def marginal_products(
    moments: GroupMoments, like: MixedModel, weight: Floats | None = None
) -> Floats:
    """`[x, y]' V^-1 [x, y]` with the variances of a model, summed over the groups, (P, P).

    Sums of parts of the groups add up, so that a mean can be fitted to more groups than there is
    memory for: see `fit_from_products`.
    """
    weight = np.ones(len(moments.sizes)) if weight is None else weight
    wx = moments.products[:, like.columns]
    whitening, _ = _whiten_effects(wx[:, :, like.columns], like.root)
    return moments.sum(weight) - _sum_squares(whitening @ wx, weight)


def fit_from_products(
    products: Floats, n_rows: float, like: MixedModel, is_shrunk: NDArray[np.bool_]
) -> MixedModel:
    """The mean and the noise with the relative variances of another model, from sums.

    Examples
    --------
    >>> like = MixedModel(np.array([0]), np.zeros(1), np.ones((1, 1)), 1.0)
    >>> group, y = np.array([0, 0, 1]), np.array([[1.0], [1.0], [3.0]])
    >>> moments = GroupMoments.of(np.ones((3, 1)), y, group, 2)
    >>> sums = marginal_products(moments, like)
    >>> found = fit_from_products(sums, 3.0, like, np.zeros(1, dtype=bool))
    >>> same = fit_with_variances(moments, like)
    >>> np.allclose([found.coefficients[0], found.noise], [same.coefficients[0], same.noise])
    True
    """
    ridge = np.where(is_shrunk, 1 / like.smoothness, _tiny_ridge(products, len(is_shrunk)))
    _, coefficients, square, _ = _least_squares(products, ridge)
    n_free = _count_free(n_rows, _rank(products, is_shrunk))
    noise = max(square, 1e-12 * float(products[-1, -1])) / n_free
    return replace(like, coefficients=coefficients, noise=noise)


def shrunk_effects(model: MixedModel, moments: GroupMoments) -> Floats:
    """The most probable effects of groups, known or new, shape (m, q).

    Examples
    --------
    Three rows of a new group are 1 above the mean; with equal variances the effect is 3/4.

    >>> model = MixedModel(np.array([0]), np.zeros(1), np.ones((1, 1)), 1.0)
    >>> new = GroupMoments.of(np.ones((3, 1)), np.ones((3, 1)), np.zeros(3, dtype=int), 1)
    >>> shrunk_effects(model, new).round(2)
    array([[0.75]])
    """
    residual = moments.residual(model.coefficients)[:, model.columns]  #            (m, q)
    ww = moments.products[:, model.columns][:, :, model.columns]
    inner = np.eye(len(model.root)) + model.root.T @ ww @ model.root
    return np.linalg.solve(inner, (residual @ model.root)[..., None])[..., 0] @ model.root.T


def log_likelihood(model: MixedModel, moments: GroupMoments) -> Floats:
    """Log marginal likelihood of each group, effects integrated out, shape (m,).

    Examples
    --------
    >>> model = MixedModel(np.array([0]), np.zeros(1), np.zeros((1, 1)), 1.0)
    >>> row = GroupMoments.of(np.ones((1, 1)), np.zeros((1, 1)), np.zeros(1, dtype=int), 1)
    >>> log_likelihood(model, row).round(3)
    array([-0.919])
    """
    products = moments.residual(model.coefficients)
    residual, square = products[:, model.columns], products[:, -1]
    ww = moments.products[:, model.columns][:, :, model.columns]
    inner = np.eye(len(model.root)) + model.root.T @ ww @ model.root
    rooted = residual @ model.root
    solved = np.linalg.solve(inner, rooted[..., None])[..., 0]
    fit = np.maximum(square - (rooted * solved).sum(1), 0.0) / model.noise
    constant = moments.sizes * np.log(2 * np.pi * model.noise)
    return -0.5 * (constant + np.linalg.slogdet(inner)[1] + fit)


def without_columns(model: MixedModel, kept: NDArray[np.bool_]) -> MixedModel:
    """The model with some of its effects only."""
    return replace(model, columns=model.columns[kept], root=model.root[np.ix_(kept, kept)])
