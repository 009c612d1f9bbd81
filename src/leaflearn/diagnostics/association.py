"""Tests of association between properties of groups, by permuting the groups.

A permutation test is exact for any number of groups, however rare a category is. Many columns are
tested at once, so p-values are corrected by the method of Holm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from leaflearn.diagnostics import settings

Floats = NDArray[np.float64]


def find_p_value(values: NDArray[Any], others: NDArray[Any], seed: int = 0) -> float:
    """The p-value of an association between two properties of groups.

    Floats are compared by their ranks, everything else as categories: Pearson's chi-squared for two
    categories, Kruskal and Wallis's statistic for a category and a number, Spearman's correlation
    for two numbers.

    Parameters
    ----------
    values, others
        A value per group, (m,). Groups with a missing number are left out.
    seed
        Seed of the permutations.

    Examples
    --------
    >>> region = np.repeat(["north", "south"], 10)
    >>> find_p_value(region, np.repeat([0, 1], 10)) < 0.01
    True
    >>> find_p_value(region, np.tile([0, 1], 10)) > 0.5
    True
    """
    is_known = ~(_is_missing(values) | _is_missing(others))
    x, y = _standardize(values[is_known]), _standardize(others[is_known])  #        (m, p), (m, r)
    if not x.shape[1] or not y.shape[1]:
        return 1.0
    # With indicator columns divided by the roots of their means, and ranks by their standard
    # deviation, the sum of squared products is each of the three statistics, up to a constant.
    rng = np.random.default_rng(seed)
    observed = np.square(x.T @ y).sum()
    n = settings.DIAGNOSTICS.n_permutations
    others_at = (np.square(x[rng.permutation(len(x))].T @ y).sum() for _ in range(n))
    n_as_large = sum(value >= observed * (1 - 1e-9) for value in others_at)
    return float((1 + n_as_large) / (1 + n))


def correct_p_values(p_values: Floats) -> Floats:
    """Holm's correction for the number of tests.

    Examples
    --------
    >>> correct_p_values(np.array([0.01, 0.04, 0.03])).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    corrected = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0)
    out = np.empty(len(p_values))
    out[order] = corrected
    return out


def _is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    return np.zeros(len(values), dtype=bool)


def _standardize(values: NDArray[Any]) -> Floats:
    """Ranks as one column, or the indicators of categories; nothing for constant values."""
    if not len(values):
        return np.empty((0, 0))
    if values.dtype.kind == "f":
        ranks = rankdata(values)
        spread = ranks.std()
        return (
            ((ranks - ranks.mean()) / spread)[:, None] if spread > 0 else np.empty((len(ranks), 0))
        )
    categories, number = np.unique(values.astype(str), return_inverse=True)
    if len(categories) < 2:
        return np.empty((len(values), 0))
    indicators = np.eye(len(categories))[number]
    share = indicators.mean(0)
    return np.asarray((indicators - share) / np.sqrt(share))
