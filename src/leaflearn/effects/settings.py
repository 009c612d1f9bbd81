"""Numbers that steer the estimation of group effects."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EffectSettings:
    """How variances of group effects are found.

    Parameters
    ----------
    start_deviation
        Standard deviation of effects at which the search begins, in units of the noise.
    max_deviation
        Largest standard deviation of effects, in units of the noise; a step of the search beyond
        would leave double precision.
    start_smoothness
        Variance of the shrunk coefficients at which the search begins, in units of the noise.
    log_smoothness_range
        Between a smooth part of nearly zero and one that is hardly shrunk.
    max_iter
        Iterations of a search.
    start_damping, min_damping
        Share of the information that is added to its diagonal, so that steps are careful.
    max_damped
        How often a step is tried again with more damping.
    max_step
        Longest step of a standard deviation or of the log smoothness.
    close_fall, min_fall
        Where a step is expected to lower minus twice the log-likelihood by less than the first, it
        is taken in any case; by less than the second, the search ends.
    n_restarts
        How often a search continues where a variance got stuck at zero.
    fixed_ridge
        Ridge of the coefficients that are not shrunk, as a share of their column's square sum; it
        only keeps columns that others determine from being singular.
    min_free_share
        Degrees of freedom of the noise at least, as a share of the rows.
    max_slopes
        Columns besides the constant that may have effects.
    max_correlated
        Up to this number of columns, correlations of the effects are tried.
    min_score
        Standard deviations above which a column's variance is tried.
    min_improvement
        Fall of minus twice the log-likelihood that a further variance has to bring (Akaike).
    min_varying_share
        A column varies within groups from this share of its variance on.
    min_total
        Effects whose variances, summed over the rows, are below this share of the noise are zero.
    n_knots
        Hat functions of an input that has effects.
    max_hats
        Hat functions of all inputs together.
    min_hat_values
        Different values that an input needs for hat functions.

    Examples
    --------
    >>> EffectSettings().max_iter
    200
    """

    start_deviation: float = 0.3
    max_deviation: float = 1e4
    start_smoothness: float = 0.1
    log_smoothness_range: tuple[float, float] = (-14.0, 6.0)
    max_iter: int = 200
    start_damping: float = 1e-2
    min_damping: float = 1e-6
    max_damped: int = 20
    max_step: float = 2.0
    close_fall: float = 1e-2
    min_fall: float = 1e-10
    n_restarts: int = 4
    fixed_ridge: float = 1e-10
    min_free_share: float = 0.1
    max_slopes: int = 8
    max_correlated: int = 3
    min_score: float = 1.0
    min_improvement: float = 2.0
    min_varying_share: float = 1e-4
    min_total: float = 0.01
    n_knots: int = 3
    max_hats: int = 9
    min_hat_values: int = 8


@dataclass(frozen=True)
class MixtureSettings:
    """How contexts with group effects are found by EM.

    Parameters
    ----------
    n_rounds, min_rounds
        Rounds of a fit at most and at least.
    tolerance
        A fit ends when a round raises the log-likelihood by less than this per group.
    tail_scales, tail_shares
        Factors of the effects of a group, and their shares to begin with; three factors follow
        Student distributions down to about three degrees of freedom.
    tail_prior
        Number of groups that the shares to begin with are worth.
    start_noise, start_deviation
        Noise variance, and standard deviation of effects in units of the noise, to begin with.
    min_noise, min_deviation, max_deviation
        Their limits.
    min_ridge_noise
        The ridge does not fall below that of this noise, so that means stay determined.
    first_variance_round
        Variances of effects are held until this round.
    overrelaxation
        Power to which a change of a variance is raised; EM alone takes small steps.

    Examples
    --------
    >>> sum(MixtureSettings().tail_shares)
    1.0
    """

    n_rounds: int = 80
    min_rounds: int = 12
    tolerance: float = 1e-4
    tail_scales: tuple[float, ...] = (1.0, 2.5, 6.0)
    tail_shares: tuple[float, ...] = (0.85, 0.12, 0.03)
    tail_prior: float = 2.0
    start_noise: float = 0.3
    start_deviation: float = 0.25
    min_noise: float = 1e-7
    min_deviation: float = 1e-4
    max_deviation: float = 1e3
    min_ridge_noise: float = 1e-4
    first_variance_round: int = 2
    overrelaxation: float = 1.5


@dataclass(frozen=True)
class LogisticSettings:
    """How effects on log-odds are found.

    Parameters
    ----------
    max_steps, tolerance
        Working responses of a fit at most, and the change of a row's log-odds at which it ends.
    n_variance_steps
        Working responses with which variances are estimated; they are kept afterwards.
    max_effect_steps, effect_tolerance
        Steps to the most probable effects of a group at most, and the step at which they end, in
        standard deviations of the effects.
    effect_factor, max_scalings, n_scaled_steps
        Standard deviations of effects are multiplied by this factor, at most this often, as long as
        the answers become more probable; and the working responses after each.
    least_deviation
        Standard deviation of effects to try where working responses find none.

    Examples
    --------
    >>> LogisticSettings().max_steps
    12
    """

    max_steps: int = 12
    tolerance: float = 0.01
    n_variance_steps: int = 6
    max_effect_steps: int = 20
    effect_tolerance: float = 1e-3
    effect_factor: float = 1.25
    max_scalings: int = 12
    n_scaled_steps: int = 3
    least_deviation: float = 0.2


EFFECTS = EffectSettings()
LOGISTIC = LogisticSettings()
MIXTURE = MixtureSettings()
