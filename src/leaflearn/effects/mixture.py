"""Contexts with group effects by EM on moments: many starts and folds at once.

Each of B parallel fits has K contexts with a mean of their own. Variances of effects and noise are
common to the contexts of a fit, so that contexts differ in kind and never only in spread. Effects
may have heavy tails: a group's effects are scaled by one of a few factors, whose shares are
estimated.

After every round the mean of the expected effects moves into the coefficients (parameter-expanded
EM), without which the constant of the mean and that of the effects approach each other slowly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from leaflearn.effects import settings
from leaflearn.effects.batched_cholesky import InverseFactors
from leaflearn.moments.group_moments import GroupMoments

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Mixture:
    """B fits of K contexts to m groups; F features, q effects, D targets.

    Parameters
    ----------
    coefficients
        Of the mean of each context, shape (B, K, D, F).
    deviations
        Standard deviations of the effects in units of the noise, shape (B, D, q).
    noise
        Variance of a row around its mean and effects, shape (B, D).
    priors
        Share of each context, shape (B, K).
    posterior
        Probability of each context for each group, learnt from or not, shape (B, K, m).
    log_density
        Of each group under the whole mixture, effects integrated out, shape (B, m).
    objective
        Sum of the log densities of the groups that were learnt from, shape (B,).
    effects
        Expected effects of each group, shape (B, m, D, q).
    """

    coefficients: Floats
    deviations: Floats
    noise: Floats
    priors: Floats
    posterior: Floats
    log_density: Floats
    objective: Floats
    effects: Floats

    def take(self, start: int) -> Mixture:
        """One of the fits."""
        return Mixture(*(getattr(self, name)[start : start + 1] for name in self.__annotations__))

    def best(self) -> Mixture:
        """The fit with the highest likelihood."""
        return self.take(int(np.argmax(self.objective)))


class _Groups:
    """The moments of the groups in the order in which the rounds use them.

    Products of features are symmetric; only their lower triangles are kept, with T entries.
    """

    def __init__(self, moments: GroupMoments, columns: Ints, penalty: Floats) -> None:
        F, D = moments.n_features, moments.n_targets
        self.sizes, self.columns, self.penalty = moments.sizes, columns, penalty
        m, q = len(self.sizes), len(columns)
        self.triangle = np.tril_indices(F)
        self.xx = moments.products[:, self.triangle[0], self.triangle[1]]  #        (m, T)
        # Twice off the diagonal, where a quadratic form has two equal terms.
        self.twice = np.where(self.triangle[0] == self.triangle[1], 1.0, 2.0)  #    (T,)
        by_column = np.moveaxis(moments.products[:, columns], 0, 2)  #              (q, P, m)
        self.zz = np.ascontiguousarray(by_column[:, columns])  #                    (q, q, m)
        self.zx = np.moveaxis(by_column[:, :F], 1, 0).reshape(F, q * m)  #          (F, q m)
        self.zy = np.moveaxis(by_column[:, F:], 1, 0)  #                            (D, q, m)
        self.xy = np.moveaxis(moments.xy, 2, 0)  #                                  (D, m, F)
        self.yy = [moments.products[:, F + d, F + d] for d in range(D)]  #          (D, m)

    def fit_mean(self, d: int, weight: Floats, effects: Floats, noise: Floats) -> Floats:
        """Ridge coefficients of M models given weights (M, m) and weighted effects (M, q, m)."""
        M, F = len(weight), len(self.zx)
        normal = np.zeros((M, F, F))  # lower triangles
        normal[:, self.triangle[0], self.triangle[1]] = weight @ self.xx
        moment = weight @ self.xy[d] - effects.reshape(M, -1) @ self.zx.T
        ridge = self.penalty * np.maximum(noise, settings.MIXTURE.min_ridge_noise)[:, None]
        normal[:, np.arange(F), np.arange(F)] += ridge
        return np.stack([_solve_positive(*each) for each in zip(normal, moment, strict=True)])

    def residuals(self, d: int, coefficients: Floats) -> tuple[Floats, Floats]:
        """Squares (M, m) and products with the effects' columns (M, q, m) of the residuals."""
        outer = coefficients[:, self.triangle[0]] * coefficients[:, self.triangle[1]]
        squares = (outer * self.twice) @ self.xx.T
        squares += self.yy[d] - 2 * coefficients @ self.xy[d].T
        products = (coefficients @ self.zx).reshape(len(coefficients), *self.zy.shape[1:])
        return np.maximum(squares, 1e-12), self.zy[d] - products


def fit_mixture(
    moments: GroupMoments,
    columns: Ints,
    penalty: Floats,
    posterior: Floats,
    is_learned: NDArray[np.bool_] | None = None,
    n_held: int = 0,
    n_rounds: int | None = None,
    anneal: float = 0.0,
    like: Mixture | None = None,
) -> Mixture:
    """Fit B mixtures side by side.

    Parameters
    ----------
    moments
        Moments of the groups, in units in which targets have variances of about 1.
    columns
        Features that have effects; empty for none.
    penalty
        Ridge of each coefficient, in units of the noise, shape (F,).
    posterior
        Where each fit starts, shape (B, K, m).
    is_learned
        Groups that each fit learns from; the others only have a density. Shape (B, m).
    n_held
        Number of rounds in which the posterior stays as it was given.
    n_rounds
        Number of rounds at most.
    anneal
        Temperature at the beginning, per row of a group; it falls to zero in half of the rounds.
    like
        A fit whose variances are those to begin with.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group, y = np.repeat(np.arange(20), 5), np.repeat([0.0, 3.0] * 10, 5)
    >>> y = y + rng.normal(0, 0.1, 100)
    >>> moments = GroupMoments.of(np.ones((100, 1)), y[:, None], group, 20)
    >>> start = rng.dirichlet([1, 1], size=20).T[None]
    >>> found = fit_mixture(moments, np.array([0]), np.zeros(1), start)
    >>> np.sort(found.coefficients.ravel().round(1) + 0.0)
    array([0., 3.])
    """
    groups = _Groups(moments, columns, penalty)
    limits, B = settings.MIXTURE, len(posterior)
    n_rounds = limits.n_rounds if n_rounds is None else n_rounds
    mask = np.ones((B, len(moments.sizes))) if is_learned is None else is_learned.astype(np.float64)
    fits = _Fits.begin(groups, posterior, mask, like)
    done: list[_Fits] = []
    for number in range(n_rounds):
        before = fits.objective
        heat = 1 + anneal * moments.sizes.mean() * max(0.0, 1 - 2 * number / n_rounds)
        fits.advance(groups, number, number < n_held, heat)
        if number <= max(n_held, limits.min_rounds):
            continue
        n_learned = fits.mask.sum(1)
        has_settled = np.abs(fits.objective - before) < limits.tolerance * n_learned  # (B,)
        if has_settled.all():
            break
        if has_settled.any() and not anneal:  # the others go on alone
            done.append(fits.take(np.flatnonzero(has_settled)))
            fits = fits.take(np.flatnonzero(~has_settled))
    done.append(fits)
    order = np.argsort(np.concatenate([each.number for each in done]))
    return Mixture(
        *(
            np.concatenate([getattr(each, name) for each in done])[order]
            for name in Mixture.__annotations__
        )
    )


@dataclass(eq=False)
class _Fits:
    """The state of B fits between two rounds; J factors of the effects."""

    number: Ints  # which of the fits these are                                     (B,)
    mask: Floats  # 1 for groups that are learned from                              (B, m)
    posterior: Floats  #                                                            (B, K, m)
    priors: Floats  #                                                               (B, K)
    tails: Floats  # shares of the factors                                          (B, J)
    noise: Floats  #                                                                (B, D)
    deviations: Floats  #                                                           (B, D, q)
    joint: Floats  # probability of context and factor                              (B, K, J, m)
    weighted_effects: Floats  # expected effects times the posterior                (B, D, K, q, m)
    coefficients: Floats  #                                                         (B, K, D, F)
    log_density: Floats  #                                                          (B, m)
    objective: Floats  #                                                            (B,)

    @classmethod
    def begin(cls, groups: _Groups, posterior: Floats, mask: Floats, like: Mixture | None) -> _Fits:
        limits, (B, K, m), q = settings.MIXTURE, posterior.shape, len(groups.columns)
        F, D = len(groups.zx), len(groups.yy)
        tails = np.tile(limits.tail_shares if q else (1.0,), (B, 1))
        noise = np.full((B, D), limits.start_noise)
        deviations = np.full((B, D, q), limits.start_deviation)
        if like is not None:
            noise = np.tile(like.noise, (B, 1))
            deviations = np.tile(like.deviations, (B, 1, 1))
        return cls(
            np.arange(B),
            mask,
            posterior,
            _shares(posterior * mask[:, None]),
            tails,
            noise,
            deviations,
            posterior[:, :, None] * tails[:, None, :, None],
            np.zeros((B, D, K, q, m)),
            np.zeros((B, K, D, F)),
            np.zeros((B, m)),
            np.full(B, -np.inf),
        )

    def take(self, chosen: Ints) -> _Fits:
        """Some of the fits."""
        return _Fits(*(getattr(self, name)[chosen] for name in self.__annotations__))

    @property
    def effects(self) -> Floats:
        """Expected effects of each group, (B, m, D, q)."""
        return np.moveaxis(self.weighted_effects.sum(2), 3, 1)

    def advance(self, groups: _Groups, number: int, is_held: bool, heat: float) -> None:
        """One round: means, noise, posterior, shares of the factors, variances of effects."""
        limits = settings.MIXTURE
        (B, K, m), D, q = self.posterior.shape, self.noise.shape[1], len(groups.columns)
        scales = np.array(limits.tail_scales if q else (1.0,))
        usual = np.array(limits.tail_shares if q else (1.0,))
        weight = self.joint * self.mask[:, None, None]  #                           (B, K, J, m)
        by_context = self.posterior * self.mask[:, None]  #                         (B, K, m)
        rows = by_context.sum(1) @ groups.sizes  #                                  (B,)
        log_joint = np.tile(np.log(self.tails)[:, None, :, None], (1, K, 1, m))
        integrated = []
        for d in range(D):
            expected = self.weighted_effects[:, d] * self.mask[:, None, None]  #    (B, K, q, m)
            mean = groups.fit_mean(
                d,
                by_context.reshape(B * K, m),
                expected.reshape(B * K, q, m),
                np.repeat(self.noise[:, d], K),
            )
            if q and number:
                moved = expected.sum(3) / np.maximum(by_context.sum(2), 1e-9)[..., None]
                mean[:, groups.columns] += moved.reshape(B * K, q)
            self.coefficients[:, :, d] = mean.reshape(B, K, -1)
            squares, products = groups.residuals(d, mean)
            found = _integrate(
                groups.zz,
                squares.reshape(B, K, 1, m),
                np.moveaxis(products.reshape(B, K, q, m), 2, 0),
                self.deviations[:, d].T[:, :, None] * scales,
            )
            noise = np.maximum((weight * found.left).sum((1, 2, 3)) / rows, limits.min_noise)
            self.noise[:, d] = noise
            constant = groups.sizes * np.log(2 * np.pi * noise)[:, None]  #         (B, m)
            log_joint -= 0.5 * (
                constant[:, None, None]
                + found.log_determinant[:, None]
                + found.left / noise[:, None, None, None]
            )
            integrated.append(found)
        log_context = _log_sum(log_joint, 2)  #                                     (B, K, m)
        log_prior = log_context + np.log(self.priors)[:, :, None]
        self.log_density = _log_sum(log_prior, 1)  #                                (B, m)
        self.objective = (self.log_density * self.mask).sum(1)
        within = np.exp(log_joint - log_context[:, :, None])
        if not is_held:
            tempered = log_prior / heat
            self.posterior = np.exp(tempered - _log_sum(tempered, 1)[:, None])
            self.priors = _shares(self.posterior * self.mask[:, None])
        self.joint = self.posterior[:, :, None] * within
        weight = self.joint * self.mask[:, None, None]
        if len(scales) > 1:
            counts = weight.sum((1, 3)) + limits.tail_prior * usual
            self.tails = counts / counts.sum(1, keepdims=True)
        for d, found in enumerate(integrated if q else []):
            self.weighted_effects[:, d] = found.expected(self.joint)
            if number >= limits.first_variance_round:
                ratio = found.expected_squares(weight, self.noise[:, d]) / weight.sum((1, 2, 3))
                power = limits.overrelaxation if number > limits.first_variance_round + 3 else 1.0
                grown = self.deviations[:, d] * np.maximum(ratio.T, 1e-12) ** (power / 2)
                self.deviations[:, d] = np.clip(grown, limits.min_deviation, limits.max_deviation)


@dataclass(frozen=True, eq=False)
class _Integrated:
    """Groups with their effects integrated out; effects are in units of their deviations."""

    root: Floats  # deviations times factors                                        (q, B, J)
    left: Floats  # of the squares                                                  (B, K, J, m)
    log_determinant: Floats  #                                                      (B, J, m)
    solved: Floats  # expected effects                                              (q, B, K, J, m)
    spread: Floats  # their variances, in units of the noise                        (q, B, J, m)

    def expected(self, weight: Floats) -> Floats:
        """Effects times weights, over all factors, (B, K, q, m)."""
        rooted = weight * self.root[:, :, None, :, None]  #                         (q, B, K, J, m)
        return np.moveaxis((rooted * self.solved).sum(3), 0, 2)

    def expected_squares(self, weight: Floats, noise: Floats) -> Floats:
        """Expected squares of the effects, summed over all groups, (q, B)."""
        q, B = self.solved.shape[:2]
        of_means = (weight * self.solved**2).reshape(q, B, -1).sum(2) / noise
        return of_means + (weight.sum(1) * self.spread).reshape(q, B, -1).sum(2)


def _integrate(zz: Floats, squares: Floats, products: Floats, root: Floats) -> _Integrated:
    """Integrate effects out: squares (B, K, 1, m), products (q, B, K, m), root (q, B, J)."""
    q, (B, J), m = len(zz), root.shape[1:], squares.shape[3]
    if not q:
        none = np.zeros((0, *squares.shape))
        return _Integrated(root, squares, np.zeros((B, J, m)), none, none[:, :, 0])
    inner = (root[:, None] * root)[..., None] * zz[:, :, None, None]  #             (q, q, B, J, m)
    inner[np.arange(q), np.arange(q)] += 1.0
    factors = InverseFactors.of(inner)
    of_contexts = InverseFactors(factors.lower[:, :, :, None], factors.pivots[:, :, None])
    white = of_contexts.whiten(products[:, :, :, None] * root[:, :, None, :, None])
    scaled = white / of_contexts.pivots  #                                          (q, B, K, J, m)
    left = np.maximum(squares - (white * scaled).sum(0), 1e-12)
    solved = of_contexts.unwhiten(scaled)
    return _Integrated(root, left, factors.log_determinant, solved, factors.diagonal)


def _solve_positive(lower: Floats, right: Floats) -> Floats:
    """Solve a positive definite system, given the lower triangle of its matrix."""
    # The transpose is in LAPACK's order, and its upper triangle is the one that is read.
    _, solution, failure = dposv(lower.T.copy("K"), right, overwrite_a=True)
    if failure:  # columns that others determine
        full = lower + np.tril(lower, -1).T
        solution = np.linalg.lstsq(full, right)[0]
    return np.asarray(solution, dtype=np.float64)


def _log_sum(values: Floats, axis: int) -> Floats:
    """Log of the sum of exponentials; lighter than scipy's for finite values."""
    largest = values.max(axis, keepdims=True)
    total = np.exp(values - largest).sum(axis)
    return np.asarray(np.log(total) + largest.squeeze(axis))


def _shares(weights: Floats) -> Floats:
    mass = np.maximum(weights.sum(-1), 1e-9)
    return mass / mass.sum(1, keepdims=True)
