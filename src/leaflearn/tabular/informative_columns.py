"""Which columns tell the contexts apart? A look at the data before any fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.core.grouped_data import encode_groups
from leaflearn.tabular.feature_choice import MOST_CLASSES, find_informative_features


def find_informative_columns(X: Any, y: Any, groups: Any, random_state: int = 0) -> NDArray[Any]:
    """The columns that go with the target inside the groups, or tell groups apart; all columns, where none goes with the target.

    Columns that have nothing to do with the target hide the contexts from the search of `LeafRegressor` and `LeafClassifier`, which learn
    from all columns they are given. `TableModel` leaves such columns out by itself, in this way.

    Over all rows together contexts may cancel each other: where one goes up with a column, another goes down. So it is asked inside the
    groups how far each column, or its square, goes with the target, and whether that is clearly more than where targets are shuffled there.
    Two columns that matter only together are not seen. A column that is nearly constant inside each group stays: it may explain why groups
    differ.

    Parameters
    ----------
    X : array or frame of shape (n_samples, n_features)
        Numbers; a hole counts as the mean of its column.
    y : array of shape (n_samples,)
        Values or labels. Whole numbers are labels where there are at most twenty different ones.
    groups : array of shape (n_samples,)
        As for `fit`.
    random_state : int, default=0
        Of the shuffles.

    Returns
    -------
    ndarray
        The numbers of these columns, or their names where X is a frame. What to fit is then `X[:, find_informative_columns(X, y, groups)]`, or
        `X[find_informative_columns(X, y, groups)]` of a frame.

    Examples
    --------
    Two contexts that answer the second column with opposite signs, beside two columns of noise.

    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.normal(size=(200, 3)), np.repeat(np.arange(20), 10)
    >>> find_informative_columns(X, np.where(site % 2 == 0, X[:, 1], -X[:, 1]), site)
    array([1])
    """
    numbers, target = np.asarray(X), np.asarray(y)
    if numbers.ndim != 2 or numbers.dtype.kind not in "fiub":
        raise ValueError(
            f"X has shape {numbers.shape} and type {numbers.dtype}, but rows and columns of numbers were expected."
        )
    if target.shape != (len(numbers),):
        raise ValueError(
            f"y has shape {target.shape}, but one target for each of the {len(numbers)} rows of X was expected."
        )
    if target.dtype.kind in "iu" and len(np.unique(target)) > MOST_CLASSES:
        target = target.astype(np.float64)
    features = _fill_holes(numbers.astype(np.float64))
    found = find_informative_features(
        features, target, encode_groups(groups, len(target))[1], random_state
    )
    return np.asarray(X.columns)[found] if hasattr(X, "columns") else found


def _fill_holes(features: NDArray[np.float64]) -> NDArray[np.float64]:
    is_there = np.isfinite(features)
    mean = np.where(is_there, features, 0.0).sum(0) / np.maximum(is_there.sum(0), 1)
    return np.where(is_there, features, mean)
