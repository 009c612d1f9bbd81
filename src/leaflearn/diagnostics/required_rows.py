"""How many more labelled rows would identify the context of a source?

Each row adds to the margin between the two best contexts. The expected gain of a further row is the
difference between the two contexts on inputs like these, averaged over the targets that the better
one predicts. Where few rows are known, this expectation counts most; where many are, the gain that
they really brought counts more. Rows differ, and the margin fluctuates while it grows, so the
number is chosen to suffice nine times out of ten if the local models are right.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.diagnostics import settings
from leaflearn.engines.local_models import LocalModels

Floats = NDArray[np.float64]


def count_required_rows(
    local_models: LocalModels,
    X: Any,
    group: NDArray[np.intp],
    probability: Floats,
    margin: Floats,
    is_new: NDArray[np.bool_],
    *,
    evidence_unit: float,
    is_classifier: bool,
) -> Floats:
    """How many more labelled rows each source needs, NaN where more would not help, shape (m,).

    Parameters
    ----------
    local_models
        The fitted local models.
    X
        The rows that were identified, (N, ...).
    group
        The source of each row, 0..m-1, shape (N,).
    probability
        Probability of each context, shape (m, K).
    margin
        Margin between the two best contexts, shape (m,).
    is_new
        Whether no known context explains the source, shape (m,).
    evidence_unit
        The difference in loss that makes a context e times more probable.
    is_classifier
        Whether the local models predict classes.

    Examples
    --------
    Two lines of slope 1 and -1 are observed at 0.1, where they are close, with noise of variance 1.

    >>> from sklearn.linear_model import LinearRegression
    >>> from leaflearn.engines.local_models import RefittedModels
    >>> from leaflearn.engines.refit_task import Fitted, SquaredRowLoss
    >>> x, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    >>> lines = [Fitted(LinearRegression().fit(x, slope * y), 2) for slope in (1.0, -1.0)]
    >>> models, X, group = RefittedModels(lines, SquaredRowLoss()), np.array([[0.1]]), np.array([0])
    >>> found = np.array([[0.51, 0.49]]), np.array([0.04]), np.array([False])
    >>> options = {"evidence_unit": 1.0, "is_classifier": False}
    >>> count_required_rows(models, X, group, *found, **options).tolist()
    [202.0]
    """
    limits = settings.DIAGNOSTICS
    n_rows = np.bincount(group, minlength=len(margin))
    order = np.argsort(-probability, axis=1, kind="stable")
    required = np.zeros(len(margin))
    required[is_new] = np.nan
    for source in np.flatnonzero((margin < limits.identified_margin) & ~is_new):
        rows, (best, second) = np.flatnonzero(group == source), order[source, :2]
        expected = _expected_gain(local_models, X[rows], best, second, is_classifier)
        total = limits.prior_rows * (expected / evidence_unit) + margin[source]
        gain = total / (limits.prior_rows + n_rows[source])
        required[source] = rows_for(limits.identified_margin - margin[source], gain)
    return required


def rows_for(margin: float, gain: float) -> float:
    """How many rows add this much to the margin, if each adds `gain` on average.

    The sum of n log-likelihood ratios has mean `n * gain` and, approximately, variance
    `2 * n * gain`. The result is NaN where the gain is not positive or too many rows would be
    required.

    Examples
    --------
    >>> rows_for(3.0, 1.0), rows_for(3.0, 1e-9)
    (9.0, nan)
    """
    limits = settings.DIAGNOSTICS
    z = NormalDist().inv_cdf(limits.sufficient_rate)
    root = (z * math.sqrt(2.0) + math.sqrt(2.0 * z**2 + 4.0 * margin)) / 2.0  # of n * gain
    if gain > 0 and root**2 / gain < limits.max_required_rows:
        return float(math.ceil(root**2 / gain))
    return math.nan


def _expected_gain(
    local_models: LocalModels, X: Any, best: int, second: int, is_classifier: bool
) -> float:
    """Mean difference in loss between two contexts on rows (n, ...) of the best one.

    The targets are those that the best context predicts.
    """
    outputs = local_models.outputs(X)[:, best]  #                                          (n, D)
    if not is_classifier:
        losses = local_models.losses(X, outputs)
        return float((losses[:, second] - losses[:, best]).mean())
    gain = 0.0
    for label in np.flatnonzero(outputs.max(0) > settings.DIAGNOSTICS.min_class_probability):
        losses = local_models.losses(X, np.full(len(outputs), label))
        gain += float((outputs[:, label] * (losses[:, second] - losses[:, best])).mean())
    return gain
