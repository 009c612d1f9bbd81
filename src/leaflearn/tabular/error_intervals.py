"""How far can an error be from what it would be over all groups there could be? Intervals of 95 %, without drawing anything.

The groups are taken for a sample: rows of one group may be wrong together, so what counts is how much the error differs from group to
group. Resampling the groups gives intervals that are much too narrow where they are few; these take the quantile of Student's t instead,
on a scale on which errors are spread more evenly, so that no end ever lies below 0 or above 1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t

FEWEST_GROUPS = 5  # with fewer the interval says hardly anything
FEW_GROUPS = 10  # with fewer it is rough
LEVEL = 0.95

Floats = NDArray[np.float64]
Interval = tuple[float, float]


def find_interval(losses: Floats, rows: Floats, is_rate: bool) -> Interval | None:
    """The interval of an error: of the share of wrong rows, or of the root of the mean squared error; None for too few groups.

    Parameters
    ----------
    losses
        Of every group, the sum over its rows: how many are wrong, or the squared errors, (m,).
    rows
        How many rows each group has, (m,).
    is_rate
        Are these wrong rows, and not squared errors?

    Examples
    --------
    Eight groups of ten rows, two of which are wrong in the first four groups.

    >>> wrong = np.array([2.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0])
    >>> [round(end, 2) for end in find_interval(wrong, np.full(8, 10.0), is_rate=True)]
    [0.04, 0.22]
    """
    if not is_rate:
        return find_interval_of_ratio(losses, rows, is_rate)
    if len(losses) < FEWEST_GROUPS:
        return None
    n_rows = float(rows.sum())
    share = float(losses.sum()) / n_rows
    error = _standard_error(losses - share * rows) / n_rows
    return _around_share(share, error, n_rows, _quantile(len(losses)))


def find_interval_of_ratio(losses: Floats, others: Floats, is_rate: bool) -> Interval | None:
    """The interval of one error divided by another on the same rows; None for too few groups, or where one of them is 0.

    Examples
    --------
    >>> others = np.array([3.0, 5.0, 4.0, 6.0, 5.0, 4.0])
    >>> [round(end, 2) for end in find_interval_of_ratio(0.5 * others + [0.2, -0.2, 0.1, -0.1, 0.3, -0.3], others, is_rate=True)]
    [0.45, 0.56]
    """
    sums = np.array([losses.sum(), others.sum()])
    if len(losses) < FEWEST_GROUPS or not (np.isfinite(sums).all() and sums.all()):
        return None
    power = 1.0 if is_rate else 0.5  # a root halves what happens on the scale of logarithms
    middle = float(sums[0] / sums[1]) ** power
    reach = power * _quantile(len(losses)) * _standard_error(losses / sums[0] - others / sums[1])
    return middle * math.exp(-reach), middle * math.exp(reach)


def _standard_error(deviations: Floats) -> float:
    """Of a sum over groups, from what each of them deviates, (m,)."""
    m = len(deviations)
    return math.sqrt(m / (m - 1) * float(np.square(deviations).sum()))


def _quantile(n_groups: int) -> float:
    return float(student_t.ppf(0.5 + LEVEL / 2, n_groups - 1))


def _around_share(share: float, error: float, n_rows: float, quantile: float) -> Interval:
    """Wilson's interval, with as many rows as would be as uncertain if they had nothing to do with each other."""
    rows = n_rows if error == 0 else min(n_rows, share * (1.0 - share) / error**2)
    slack = quantile**2 / rows
    middle = (share + slack / 2) / (1.0 + slack)
    reach = math.sqrt(share * (1.0 - share) * slack + slack**2 / 4) / (1.0 + slack)
    return max(0.0, middle - reach), min(1.0, middle + reach)
