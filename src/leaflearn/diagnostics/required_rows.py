"""How many more labelled rows would settle the context of a source?

Each row adds to the margin between the two best contexts. What a further row adds, on average, is what the two contexts differ by on inputs
like these, in the words of the better one: the expectation of its own answers. Where few rows were seen, that is all there is to go by;
where many were, what they really added counts more. Rows are not all alike, and a margin wanders while it grows, so the number is such that
it suffices nine times out of ten if the models are right.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.estimators.identification import Identification

SETTLED = math.log(0.95 / 0.05)  # the margin at which one of two contexts is 95 % probable
OFTEN = NormalDist().inv_cdf(0.9)  # it suffices nine times out of ten
AS_MANY_ROWS = 5  # what the models expect counts like so many rows that were seen
MOST_ROWS = 1000  # where more would be needed, rows like these do not tell


def count_required_rows(
    estimator: Any, X: Any, found: Identification, group: NDArray[np.intp]
) -> NDArray[np.float64]:
    """How many more labelled rows each source needs, NaN where more would not help, shape (m,).

    Parameters
    ----------
    estimator
        Fitted.
    X
        The rows that were identified, (N, ...).
    found
        What `identify` said of them.
    group
        Which source of `found` each row belongs to, 0..m-1.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from leaflearn import LeafRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.normal(size=(200, 1)), np.repeat(np.arange(20), 10)
    >>> y = np.where(site % 2 == 0, -1.0, 1.0) * X[:, 0] + rng.normal(size=200)
    >>> leaf = LeafRegressor(2, local_model=LinearRegression(), random_state=0).fit(X, y, groups=site)
    >>> found = leaf.identify([[0.1]], [0.1])
    >>> int(count_required_rows(leaf, np.array([[0.1]]), found, np.array([0]))[0]) > 10
    True
    """
    n_rows, order = (
        np.bincount(group, minlength=len(found)),
        np.argsort(-found.probability, axis=1, kind="stable"),
    )
    needed = np.zeros(len(found))
    open_ = np.flatnonzero((found.margin < SETTLED) & ~found.is_new)
    needed[found.is_new] = np.nan
    for source in open_:
        rows = np.flatnonzero(group == source)
        expected = expected_gain(estimator, X[rows], *order[source, :2])
        gain = (AS_MANY_ROWS * expected + found.margin[source]) / (AS_MANY_ROWS + n_rows[source])
        needed[source] = rows_for(SETTLED - found.margin[source], gain)
    return needed


def rows_for(margin: float, gain: float) -> float:
    """How many rows it takes to add so much to the margin, where each adds `gain` on average; NaN where they do not come to an end.

    The sum of n log-likelihood ratios has mean `n * gain` and, near enough, variance `2 * n * gain`.

    Examples
    --------
    >>> rows_for(3.0, 1.0), rows_for(3.0, 1e-9)
    (9.0, nan)
    """
    root = (
        OFTEN * math.sqrt(2.0) + math.sqrt(2.0 * OFTEN**2 + 4.0 * margin)
    ) / 2.0  # of n times gain
    rows = math.ceil(root**2 / gain) if gain > 0 and root**2 / gain < MOST_ROWS else math.nan
    return float(rows)


def expected_gain(estimator: Any, X: Any, best: int, second: int) -> float:
    """By how much a row like these speaks for the best context against the second, on average, if the best one is right."""
    outputs = estimator._local_models.outputs(X)[:, best]  #                    (N, D)
    if not hasattr(estimator, "classes_"):
        losses = estimator._local_models.losses(
            X, outputs
        )  # of the answers that the best one would get
        return float((losses[:, second] - losses[:, best]).mean() / estimator._evidence_unit)
    gain = 0.0
    for label in np.flatnonzero(outputs.max(0) > 1e-3):
        losses = estimator._local_models.losses(X, np.full(len(outputs), label))
        gain += float((outputs[:, label] * (losses[:, second] - losses[:, best])).mean())
    return gain / float(estimator._evidence_unit)
