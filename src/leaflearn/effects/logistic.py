"""Group effects on log-odds: yes-or-no answers of groups, from their rows.

The model of one context is `P(y = 1) = 1 / (1 + exp(-eta))` with `eta = x'b + z'u` and
`u ~ N(0, T T')` for every group. It is fitted by working responses: around the present `eta`, the
log-likelihood is replaced by a parabola below it, so that `b`, `u` and the variances are those of a
Gaussian mixed model with known noise (`restricted_likelihood.py`), and the next parabola is at
least as good. The marginal likelihood of a group is that of its effects' normal approximation
(Laplace).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from leaflearn.effects import settings
from leaflearn.effects.restricted_likelihood import (
    MixedModel,
    fit_mixed_model,
    fit_with_variances,
    shrunk_effects,
)
from leaflearn.moments.group_moments import GroupMoments

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def curvature(eta: Floats) -> Floats:
    """Curvature of the widest parabola below the log-likelihood that touches it at `eta`.

    It is 1/4 at 0 and falls to zero on both sides (Jaakkola and Jordan, 2000).

    Examples
    --------
    >>> curvature(np.array([0.0, 4.0])).round(3)
    array([0.25 , 0.121])
    """
    size = np.maximum(np.abs(eta), 1e-6)
    return np.tanh(size / 2) / (2 * size)


@dataclass(frozen=True, eq=False)
class Answers:
    """Yes-or-no answers of groups, with their rows sorted by group.

    Examples
    --------
    >>> answers = Answers.of(np.array([1.0, 0.0, 1.0]), np.array([0, 1, 0]), 2)
    >>> answers.sum_by_group(answers.y)
    array([2., 0.])
    """

    y: Floats  # 0 or 1                                                             (N,)
    group: Ints  # sorted                                                           (N,)
    n_groups: int
    weight: Floats  # of each row's log-likelihood                                  (N,)
    order: Ints  # from the rows as they were given

    @classmethod
    def of(cls, y: Floats, group: Ints, n_groups: int, weight: Floats | None = None) -> Answers:
        """Sort the rows by group."""
        order = np.argsort(group, kind="stable")
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        return cls(y[order].astype(np.float64), group[order], n_groups, weight[order], order)

    def sum_by_group(self, values: Floats) -> Floats:
        """Sums over the rows of each group, (m, ...); rows are in the order of this object."""
        sums = np.zeros((self.n_groups, *values.shape[1:]))
        if len(values):
            starts = np.flatnonzero(np.r_[True, self.group[1:] != self.group[:-1]])
            sums[self.group[starts]] = np.add.reduceat(values, starts, 0)
        return sums

    def log_likelihood(self, eta: Floats) -> Floats:
        """Of each group's answers, given the log-odds of its rows, (m,)."""
        loss = np.logaddexp(0.0, np.where(self.y > 0.5, -eta, eta)) * self.weight
        return -self.sum_by_group(loss)


def integrate_effects(
    answers: Answers, z: Floats, mean: Floats, root: Floats
) -> tuple[Floats, Floats, Floats]:
    """Integrate the effects of each group out, by their normal approximation.

    Parameters
    ----------
    answers
        The answers.
    z
        The columns that have effects, in the order of the answers, shape (N, q).
    mean
        Log-odds without effects, in the same order, shape (N,).
    root
        A root T of the effects' covariance `T T'`, shape (q, q), or (m, q, q) for each group.

    Returns
    -------
    effects
        The most probable effects of each group, shape (m, q).
    products
        Sums of `z z'` weighted by how much each row tells about its log-odds, shape (m, q, q).
    log_likelihood
        Log marginal likelihood of each group, shape (m,).

    Examples
    --------
    >>> answers = Answers.of(np.ones(20), np.zeros(20, dtype=int), 1)
    >>> effects, _, _ = integrate_effects(answers, np.ones((20, 1)), np.zeros(20), np.ones((1, 1)))
    >>> effects.round(1)
    array([[2.1]])
    """
    limits, q, m = settings.LOGISTIC, z.shape[1], answers.n_groups
    if not q:
        none = np.zeros((m, 0)), np.zeros((m, 0, 0))
        return (*none, answers.log_likelihood(mean))
    rooted = z @ root if root.ndim == 2 else np.einsum("nq,nqr->nr", z, root[answers.group])
    pairs, scaled, eta = _outer(rooted), np.zeros((m, q)), mean
    for _ in range(limits.max_effect_steps):
        weight = answers.weight * curvature(eta)
        inner = np.eye(q) + answers.sum_by_group(pairs * weight[:, None]).reshape(m, q, q)
        slope = answers.sum_by_group(rooted * (answers.weight * (answers.y - expit(eta)))[:, None])
        step = np.linalg.solve(inner, (slope - scaled)[..., None])[..., 0]
        scaled = scaled + step
        eta = mean + (rooted * scaled[answers.group]).sum(1)
        if np.abs(step).max(initial=0.0) < limits.effect_tolerance:
            break
    told = answers.weight * expit(eta) * expit(-eta)
    products = answers.sum_by_group(_outer(z) * told[:, None]).reshape(m, q, q)
    log_det = np.linalg.slogdet(np.eye(q) + np.swapaxes(root, -1, -2) @ products @ root)[1]
    likelihood = answers.log_likelihood(eta) - 0.5 * ((scaled**2).sum(1) + log_det)
    return (root @ scaled[..., None])[..., 0], products, likelihood


def _outer(z: Floats) -> Floats:
    """Products of all pairs of columns, (N, q q)."""
    return (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)


def fit_logistic(
    answers: Answers,
    design: Floats,
    columns: Ints,
    is_shrunk: NDArray[np.bool_],
    group_weight: Floats | None = None,
    full: bool = False,
    start: LogisticFit | None = None,
    keep_variances: bool = False,
    n_steps: int | None = None,
    offset: Floats | None = None,
) -> LogisticFit:
    """The mean, the variances of effects and the log-odds of all rows of one context.

    Parameters
    ----------
    answers
        The answers.
    design
        Features of the rows in the order of the answers, shape (N, F).
    columns
        The features that have effects, shape (q,).
    is_shrunk
        Features whose coefficients are shrunk, shape (F,).
    group_weight
        Weight of each group's likelihood, shape (m,).
    full
        Whether effects are correlated.
    start
        A fit to begin with.
    keep_variances
        Whether the variances of `start` are kept.
    n_steps
        Working responses at most.
    offset
        Known part of the log-odds of each row, shape (N,).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group, offset = np.repeat(np.arange(100), 20), rng.normal(0, 1.5, 100)
    >>> y = rng.uniform(size=2000) < expit(1 + offset[group])
    >>> answers = Answers.of(y, group, 100)
    >>> first = np.array([0])
    >>> model = fit_logistic(answers, np.ones((2000, 1)), first, np.zeros(1, dtype=bool)).model
    >>> bool(0.6 < model.coefficients[0] < 1.4), bool(1.1 < model.root[0, 0] < 1.9)
    (True, True)
    """
    limits = settings.LOGISTIC
    if start is None:
        share = np.average(answers.y, weights=answers.weight)
        share = np.clip(share, 1 / (len(answers.y) + 2), 1 - 1 / (len(answers.y) + 2))
        eta, model = np.full(len(answers.y), np.log(share / (1 - share))), None
    else:
        eta, model = start.eta, start.model
    for step in range(limits.max_steps if n_steps is None else n_steps):
        moments = working_moments(answers, design, eta, offset)
        if keep_variances and model is not None:
            model = fit_with_variances(moments, model, is_shrunk, group_weight, noise=1.0)
        elif step < limits.n_variance_steps or model is None:
            model = fit_mixed_model(
                moments, columns, is_shrunk, group_weight, full, model, noise=1.0
            )
        else:
            model = fit_with_variances(moments, model, is_shrunk, group_weight, noise=1.0)
        effects = shrunk_effects(model, moments)  #                                 (m, q)
        new = design @ model.coefficients + (0.0 if offset is None else offset)
        new += (design[:, columns] * effects[answers.group]).sum(1)
        change, eta = np.abs(new - eta).max(initial=0.0), new
        if change < limits.tolerance:
            break
    assert model is not None
    return LogisticFit(model, eta)


def fit_by_laplace(
    answers: Answers,
    design: Floats,
    columns: Ints,
    is_shrunk: NDArray[np.bool_],
    group_weight: Floats | None = None,
    full: bool = False,
    start: LogisticFit | None = None,
    root: Floats | None = None,
    offset: Floats | None = None,
) -> LogisticFit:
    """The same, with effects as large as Laplace's marginal likelihood has them.

    Working responses underestimate the variances of effects where groups have few rows. All
    standard deviations are therefore multiplied by the factor that makes the answers most probable.
    Their ratios are those of `root`, if it is given.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group, offset = np.repeat(np.arange(300), 4), rng.normal(0, 2.0, 300)
    >>> answers = Answers.of(rng.uniform(size=1200) < expit(offset[group]), group, 300)
    >>> design, first, none = np.ones((1200, 1)), np.array([0]), np.zeros(1, dtype=bool)
    >>> working = fit_logistic(answers, design, first, none)
    >>> found = fit_by_laplace(answers, design, first, none)
    >>> bool(working.model.root[0, 0] < 1.5 < found.model.root[0, 0] < 2.5)
    True
    """
    limits = settings.LOGISTIC
    how = columns, is_shrunk, group_weight, full
    fit = fit_logistic(answers, design, *how, start, offset=offset)
    if not len(columns):
        return fit
    if root is not None:
        like = replace(fit, model=replace(fit.model, root=root))
        fit = fit_logistic(answers, design, *how, like, keep_variances=True, offset=offset)
    z = design[:, columns]
    weight = np.ones(answers.n_groups) if group_weight is None else group_weight

    def value(fit: LogisticFit) -> float:
        mean = design @ fit.model.coefficients + (0.0 if offset is None else offset)
        return float(weight @ integrate_effects(answers, z, mean, fit.model.root)[2])

    if np.abs(fit.model.root).max() < limits.least_deviation / 4:
        smallest = np.diag(limits.least_deviation / np.sqrt(np.maximum((z**2).mean(0), 1e-12)))
        fit = replace(fit, model=replace(fit.model, root=smallest))
    best, highest = fit, value(fit)
    for factor in (limits.effect_factor, 1 / limits.effect_factor):
        for _ in range(limits.max_scalings):
            scaled = best.scale_effects(factor)
            n_steps = limits.n_scaled_steps
            other = fit_logistic(answers, design, *how, scaled, True, n_steps, offset)
            reached = value(other)
            if not reached > highest:
                break
            best, highest = other, reached
        if best is not fit:
            break
    return best


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """A fitted context, and the log-odds of all rows with the effects of their groups."""

    model: MixedModel
    eta: Floats  #                                                                  (N,)

    def scale_effects(self, factor: float) -> LogisticFit:
        """The same with larger or smaller effects."""
        return replace(self, model=replace(self.model, root=self.model.root * factor))


def working_moments(
    answers: Answers, design: Floats, eta: Floats, offset: Floats | None = None
) -> GroupMoments:
    """Moments of the working responses around these log-odds, less an offset; their noise is 1.

    Examples
    --------
    >>> answers = Answers.of(np.array([1.0, 0.0]), np.array([0, 0]), 1)
    >>> working_moments(answers, np.ones((2, 1)), np.zeros(2)).products[0].round(3) + 0.0
    array([[0.5, 0. ],
           [0. , 2. ]])
    """
    weight = curvature(eta)
    response = eta + (answers.y - expit(eta)) / weight
    if offset is not None:
        response = response - offset
    found = GroupMoments.of(
        design, response[:, None], answers.group, answers.n_groups, weight * answers.weight
    )
    sizes = answers.sum_by_group(answers.weight)  # a working response counts as one row
    return GroupMoments(found.products, sizes, 1)
