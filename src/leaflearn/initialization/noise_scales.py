"""Noise of each group, shrunk towards that of all groups.

Groups also differ in how noisy they are, and contexts must not be spent on that. The residual
variance of a group within its own effects is estimated with the others as a prior: an inverse
chi-squared distribution whose degrees of freedom follow from how much the groups' variances differ
beyond chance (Smyth, 2004). Where they do not differ, all groups have the same noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import digamma, polygamma

from leaflearn.moments.group_moments import GroupMoments

Floats = NDArray[np.float64]


def shrink_variances(squares: Floats, n_free: Floats) -> tuple[Floats, float]:
    """Variances of groups from their residual squares and degrees of freedom.

    Returns the variances, and the degrees of freedom of their prior: infinite where the groups do
    not differ beyond chance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> variance, prior = shrink_variances(rng.chisquare(20, size=100), np.full(100, 20.0))
    >>> bool(prior > 100), bool(variance.std() < 0.1)
    (True, True)
    >>> unequal = rng.chisquare(20, size=100) * np.repeat([1.0, 9.0], 50)
    >>> shrink_variances(unequal, np.full(100, 20.0))[1] < 5
    True
    """
    half = n_free / 2
    centered = np.log(np.maximum(squares / n_free, 1e-300)) - digamma(half) + np.log(half)
    excess = centered.var(ddof=1) - polygamma(1, half).mean()
    if len(squares) < 3 or not excess > 1e-6:
        return np.full(len(squares), squares.sum() / n_free.sum()), np.inf
    prior = 2 * brentq(lambda value: polygamma(1, value) - excess, 1e-4, 1e7)
    common = np.exp(centered.mean() + digamma(prior / 2) - np.log(prior / 2))
    return (prior * common + squares) / (prior + n_free), float(prior)


def scale_to_equal_noise(moments: GroupMoments, noise: Floats) -> GroupMoments:
    """The moments as if every group had the same noise; `noise` are relative variances, (m,)."""
    return GroupMoments(moments.products / noise[:, None, None], moments.sizes, moments.n_targets)
