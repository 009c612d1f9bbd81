"""How tables are altered, what the oracle does, and what counts as good."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AlteredSettings:
    """Numbers of the tasks that are made from real tables.

    Parameters
    ----------
    share
        Share of the groups that are altered.
    factor, shift
        The other unit: a number z in standard deviations becomes `factor * z + shift`, as
        temperatures in Fahrenheit do if their standard deviation is 16 degrees Celsius.
    thresholds
        Quantiles of the values above which an answer is yes, in unaltered and altered groups.
    n_folds
        Parts of the groups; the oracle allocates each with models of the others.
    variances
        Variances of the group effects on log odds among which the oracle's likelihood chooses.
    n_newton_steps
        Steps to the most probable effects.
    ari_bar, oracle_bar
        The adjusted Rand index that is asked for where the oracle reaches the second number.
    number_bar
        Share of these tasks in which the number of contexts should be right.

    Examples
    --------
    >>> ALTERED.ari_bar
    0.9
    """

    share: float = 1 / 3
    factor: float = 1.8
    shift: float = 2.0
    thresholds: tuple[float, float] = (0.4, 0.75)
    n_folds: int = 5
    variances: tuple[float, ...] = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0)
    n_newton_steps: int = 25
    ari_bar: float = 0.9
    oracle_bar: float = 0.95
    number_bar: float = 0.8


ALTERED = AlteredSettings()
