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
from scipy.special import logsumexp

from leaflearn.effects import settings
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
    """The moments of the groups in the order in which the rounds use them."""

    def __init__(self, moments: GroupMoments, columns: Ints, penalty: Floats) -> None:
        F, D = moments.n_features, moments.n_targets
        self.sizes, self.columns, self.penalty = moments.sizes, columns, penalty
        self.xx = moments.xx.reshape(len(self.sizes), -1)  #                        (m, F F)
        self.zx = moments.products[:, columns, :F]  #                               (m, q, F)
        self.zz = moments.products[:, columns][:, :, columns]  #                    (m, q, q)
        self.by_target = [moments.target(d).products for d in range(D)]  #          (m, P, P)
        self.swapped = [p.transpose(1, 0, 2).reshape(F + 1, -1) for p in self.by_target]

    def fit_mean(self, d: int, weight: Floats, effects: Floats, noise: Floats) -> Floats:
        """Ridge coefficients of M models given their weights (M, m) and expected effects."""
        M, F = len(weight), self.zx.shape[2]
        normal = (weight @ self.xx).reshape(M, F, F)
        moment = weight @ self.by_target[d][:, :F, F]
        moment = moment - effects.reshape(M, -1) @ self.zx.reshape(-1, F)
        ridge = self.penalty * np.maximum(noise, settings.MIXTURE.min_ridge_noise)[:, None]
        solved = np.linalg.solve(normal + ridge[:, None] * np.eye(F), moment[..., None])
        return np.asarray(solved[..., 0], dtype=np.float64)

    def residuals(self, d: int, coefficients: Floats) -> tuple[Floats, Floats]:
        """Squares (M, m) and products with the effects' columns (M, m, q) of the residuals."""
        last = np.concatenate([-coefficients, np.ones((len(coefficients), 1))], 1)
        products = (last @ self.swapped[d]).reshape(len(last), len(self.sizes), -1)
        squares = np.einsum("bmp,bp->bm", products, last)
        return np.maximum(squares, 1e-12), products[:, :, self.columns]


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
    limits = settings.MIXTURE
    groups = _Groups(moments, columns, penalty)
    (B, K, m), D, q = posterior.shape, moments.n_targets, len(columns)
    n, n_rounds = moments.sizes, limits.n_rounds if n_rounds is None else n_rounds
    mask = np.ones((B, m)) if is_learned is None else is_learned.astype(np.float64)
    scales = np.array(limits.tail_scales if q else (1.0,))
    usual = np.array(limits.tail_shares if q else (1.0,))
    J = len(scales)
    tails = np.tile(usual, (B, 1))  #                                               (B, J)
    noise = np.full((B, D), limits.start_noise)
    deviations = np.full((B, D, q), limits.start_deviation)
    if like is not None:
        noise = np.tile(like.noise, (B, 1))
        deviations = np.tile(like.deviations, (B, 1, 1))
    joint = posterior[:, :, None] * tails[:, None, :, None]  #                      (B, K, J, m)
    effects = np.zeros((D, B, K, J, m, q))
    coefficients = np.zeros((D, B, K, moments.n_features))
    priors = _shares(posterior * mask[:, None])
    before = np.full(B, -np.inf)
    for round_ in range(n_rounds):
        weight = joint * mask[:, None, None]  #                                     (B, K, J, m)
        rows = weight.sum((1, 2)) @ n  #                                            (B,)
        log_joint = np.tile(np.log(tails)[:, None, :, None], (1, K, 1, m))
        second = np.zeros((D, B, K, J, m, q))  # expected squares of scaled effects
        for d in range(D):
            own = weight.sum(2).reshape(B * K, m)
            expected = (weight[..., None] * effects[d]).sum(2).reshape(B * K, m, q)
            mean = groups.fit_mean(d, own, expected, np.repeat(noise[:, d], K))
            if q and round_:
                mean[:, columns] += expected.sum(1) / np.maximum(own.sum(1), 1e-9)[:, None]
            coefficients[d] = mean.reshape(B, K, -1)
            squares, products = groups.residuals(d, mean)
            left, log_det, solved, spread = _integrate(
                groups.zz,
                squares.reshape(B, K, 1, m),
                products.reshape(B, K, 1, m, q),
                deviations[:, d],
                scales,
            )
            noise[:, d] = np.maximum((weight * left).sum((1, 2, 3)) / rows, limits.min_noise)
            own_noise = noise[:, d].reshape(B, 1, 1, 1)
            log_joint -= 0.5 * (n * np.log(2 * np.pi * own_noise) + log_det + left / own_noise)
            effects[d] = solved * (deviations[:, d][:, None, None, None] * scales[:, None, None])
            second[d] = solved**2 / own_noise[..., None] + spread
        log_context = logsumexp(log_joint, 2)  #                                    (B, K, m)
        log_prior = log_context + np.log(priors)[:, :, None]
        log_density = logsumexp(log_prior, 1)  #                                    (B, m)
        objective = (log_density * mask).sum(1)
        within = np.exp(log_joint - log_context[:, :, None])
        if round_ >= n_held:
            heat = 1 + anneal * n.mean() * max(0.0, 1 - 2 * round_ / n_rounds)
            tempered = log_prior / heat
            posterior = np.exp(tempered - logsumexp(tempered, 1)[:, None])
            priors = _shares(posterior * mask[:, None])
        joint = posterior[:, :, None] * within
        weight = joint * mask[:, None, None]
        if J > 1:
            counts = weight.sum((1, 3)) + limits.tail_prior * usual
            tails = counts / counts.sum(1, keepdims=True)
        if q and round_ >= limits.first_variance_round:
            ratio = (
                np.einsum("bkjm,dbkjmq->bdq", weight, second) / weight.sum((1, 2, 3))[:, None, None]
            )
            power = limits.overrelaxation if round_ > limits.first_variance_round + 3 else 1.0
            grown = deviations * np.maximum(ratio, 1e-12) ** (power / 2)
            deviations = np.clip(grown, limits.min_deviation, limits.max_deviation)
        has_settled = (np.abs(objective - before) < limits.tolerance * mask.sum(1)).all()
        if has_settled and round_ > max(n_held, limits.min_rounds):
            break
        before = objective
    expected = np.moveaxis((joint[..., None] * effects).sum((2, 3)), 0, 2)  #       (B, m, D, q)
    return Mixture(
        np.moveaxis(coefficients, 0, 2),
        deviations,
        noise,
        priors,
        posterior,
        log_density,
        objective,
        expected,
    )


def _integrate(
    zz: Floats, squares: Floats, products: Floats, deviations: Floats, scales: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Integrate effects out: what is left of the squares, log determinants, effects, their spread.

    Effects are in units of their standard deviation. Shapes (B, K, J, m) and (B, K, J, m, q).
    """
    q = zz.shape[-1]
    shape = (*squares.shape[:2], len(scales), squares.shape[3])
    if not q:
        none = np.zeros((*shape, 0))
        return np.broadcast_to(squares, shape), np.zeros(shape), none, none
    root = deviations[:, None, None, None, :] * scales[:, None, None]  #            (B, 1, J, 1, q)
    inner = (
        np.eye(q) + root[..., :, None] * zz * root[..., None, :]
    )  #             (B, 1, J, m, q, q)
    inverse = np.linalg.inv(inner)
    log_det = np.broadcast_to(np.linalg.slogdet(inner)[1], shape)
    rooted = products * root
    solved = (inverse @ rooted[..., None])[..., 0]
    left = np.maximum(squares - (rooted * solved).sum(-1), 1e-12)
    return left, log_det, solved, np.diagonal(inverse, axis1=-2, axis2=-1)


def _shares(weights: Floats) -> Floats:
    mass = np.maximum(weights.sum(-1), 1e-9)
    return mass / mass.sum(1, keepdims=True)
