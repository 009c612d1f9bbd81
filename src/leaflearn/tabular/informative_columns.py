"""Which columns and features are informative: associated with the target within the groups.

Over all rows, contexts may cancel out: the target increases with a feature in one context and
decreases in another. Therefore the association of a feature with the target is measured within the
groups, each of which has one context, and its sign is ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.core.grouped_data import encode_groups
from leaflearn.tabular import settings

Floats = NDArray[np.float64]


def find_informative_columns(X: Any, y: Any, groups: Any, random_state: int = 0) -> NDArray[Any]:
    """The columns that are associated with the target within the groups, or differ between groups.

    Columns that are not associated with the target hide the contexts from the search of
    `LeafRegressor` and `LeafClassifier`, which learn from all columns. `TableModel` leaves such
    columns out by itself, in this way.

    Over all rows, contexts may cancel out: the target increases with a column in one context and
    decreases in another. Therefore this function measures within the groups how strongly each
    column, or its square, is associated with the target, and selects a column if the association
    is significantly stronger than after shuffling the targets within the groups. Interactions of
    two columns that have no effect on their own are not found. A column that is nearly constant
    within each group is selected too: it may explain why groups differ. If no column is associated
    with the target, all columns are selected.

    Parameters
    ----------
    X : array or data frame of shape (n_samples, n_features)
        Numbers; missing values count as the mean of their column.
    y : array of shape (n_samples,)
        Values or labels. Whole numbers are labels if there are at most twenty different ones.
    groups : array of shape (n_samples,)
        As for `fit`.
    random_state : int, default=0
        Seed of the shuffles.

    Returns
    -------
    ndarray
        The indices of the columns, or their names if X is a data frame. Select them with
        `X[:, find_informative_columns(X, y, groups)]`, or of a data frame with
        `X[find_informative_columns(X, y, groups)]`.

    Examples
    --------
    In two contexts the second column has opposite effects; the other two columns are noise.

    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.normal(size=(200, 3)), np.repeat(np.arange(20), 10)
    >>> find_informative_columns(X, np.where(site % 2 == 0, X[:, 1], -X[:, 1]), site)
    array([1])
    """
    numbers, target = np.asarray(X), np.asarray(y)
    if numbers.ndim != 2 or numbers.dtype.kind not in "fiub":
        raise ValueError(
            f"X has shape {numbers.shape} and type {numbers.dtype}, but rows and columns of "
            "numbers were expected."
        )
    if target.shape != (len(numbers),):
        raise ValueError(
            f"y has shape {target.shape}, but one target for each of the {len(numbers)} rows of X "
            "was expected."
        )
    if target.dtype.kind in "iu" and len(np.unique(target)) > settings.TABLES.max_classes:
        target = target.astype(np.float64)
    features = _impute_mean(numbers.astype(np.float64))
    group = encode_groups(groups, len(target))[1]
    selected = find_informative_features(features, target, group, random_state)
    return np.asarray(X.columns)[selected] if hasattr(X, "columns") else selected


def find_informative_features(
    features: Floats, y: NDArray[np.generic], group: NDArray[np.intp], seed: int
) -> NDArray[np.intp]:
    """Features that are associated with the target, or properties of the groups; all, if none is.

    Arguments as in `choose_features`. A feature that is nearly constant within the groups, such as
    the altitude of a site, cannot be associated with the target there, but it may explain why
    groups differ.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features, group = rng.normal(size=(60, 3)), np.repeat(np.arange(6), 10)
    >>> y = np.where(group < 3, 1.0, -1.0) * features[:, 1]
    >>> find_informative_features(features, y, group, seed=0)
    array([1])
    """
    is_associated = are_associated_with_target(features, y, group, seed)
    within = sum(len(rows) * features[rows].var(0) for rows in _split(group)) / len(features)
    is_of_group = within < settings.TABLES.group_level_share * features.var(0)
    if not is_associated.any():
        return np.arange(features.shape[1])
    return np.flatnonzero(is_associated | is_of_group)


def choose_features(
    features: Floats, y: NDArray[np.generic], group: NDArray[np.intp], most: int
) -> NDArray[np.intp]:
    """The `most` features with the strongest association with the target, in their order.

    Parameters
    ----------
    features
        Features of the rows, shape (N, F).
    y
        Values, or class indices, shape (N,).
    group
        The group of each row, 0..m-1.
    most
        How many features to choose; if there are no more, all are returned.

    Examples
    --------
    In two groups the second feature has opposite effects; the other two have none.

    >>> rng = np.random.default_rng(0)
    >>> features, group = rng.normal(size=(60, 3)), np.repeat([0, 1], 30)
    >>> y = np.where(group == 0, 1.0, -1.0) * features[:, 1]
    >>> choose_features(features, y, group, most=1)
    array([1])
    """
    if features.shape[1] <= most:
        return np.arange(features.shape[1])
    strength = measure_strength(features, _target_columns(y), group)
    return np.sort(np.argsort(-strength, kind="stable")[:most])


def are_associated_with_target(
    features: Floats, y: NDArray[np.generic], group: NDArray[np.intp], seed: int
) -> NDArray[np.bool_]:
    """Which features are associated with the target within the groups, shape (F,).

    The association has to be significantly stronger than after shuffling the targets within the
    groups.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features, group = rng.normal(size=(60, 3)), np.repeat(np.arange(6), 10)
    >>> y = np.where(group < 3, 1.0, -1.0) * features[:, 1]
    >>> are_associated_with_target(features, y, group, seed=0)
    array([False,  True, False])
    """
    rng, targets = np.random.default_rng(seed), _target_columns(y)
    by_group = _split(group)
    by_chance = []
    for _ in range(settings.TABLES.n_shuffles):
        shuffled = targets.copy()
        for rows in by_group:
            shuffled[rows] = targets[rng.permutation(rows)]
        by_chance.append(measure_strength(features, shuffled, group))
    mean, spread = np.mean(by_chance, axis=0), np.std(by_chance, axis=0, ddof=1)
    strength = measure_strength(features, targets, group)
    return np.asarray(strength > mean + settings.TABLES.association_sd * spread)


def is_order_informative(
    values: Floats, y: NDArray[np.generic], group: NDArray[np.intp], seed: int
) -> bool:
    """Whether rows of a group with neighboring values (N,) have similar targets.

    If the order of whole numbers is not informative, they are names and not quantities.

    Examples
    --------
    >>> group, values = np.divmod(np.arange(120), 30)
    >>> names = np.random.default_rng(0).permutation(30)[values]
    >>> y = np.sin(values / 5)
    >>> [is_order_informative(numbers, y, group, seed=0) for numbers in (values, names)]
    [True, False]
    """
    rng, targets = np.random.default_rng(seed), _target_columns(y)

    def sum_of_steps(by_group: list[NDArray[np.intp]]) -> float:
        return float(sum(np.square(np.diff(targets[rows], axis=0)).sum() for rows in by_group))

    by_group = [rows[np.argsort(values[rows], kind="stable")] for rows in _split(group)]
    by_chance = [
        sum_of_steps([rng.permutation(rows) for rows in by_group])
        for _ in range(settings.TABLES.n_shuffles)
    ]
    limit = np.mean(by_chance) - settings.TABLES.order_sd * np.std(by_chance, ddof=1)
    return sum_of_steps(by_group) < float(limit)


def measure_strength(features: Floats, targets: Floats, group: NDArray[np.intp]) -> Floats:
    """Association of each feature, and of its square, with the targets (N, D), shape (F,).

    Examples
    --------
    >>> features, targets = np.array([[-1.0, 1.0], [1.0, 1.0]]), np.array([[3.0], [5.0]])
    >>> measure_strength(features, targets, np.array([0, 0])).tolist()
    [2.0, 0.0]
    """
    standard = _standardize(features)
    total = np.zeros(features.shape[1])
    for shape in (standard, _standardize(np.square(standard))):
        for rows in _split(group):
            goal = targets[rows] - targets[rows].mean(0)
            total += np.square((shape[rows] - shape[rows].mean(0)).T @ goal).sum(1) / len(rows)
    return total


def _impute_mean(features: Floats) -> Floats:
    is_present = np.isfinite(features)
    mean = np.where(is_present, features, 0.0).sum(0) / np.maximum(is_present.sum(0), 1)
    return np.where(is_present, features, mean)


def _standardize(values: Floats) -> Floats:
    spread = values.std(0)
    return np.asarray((values - values.mean(0)) / np.where(spread > 1e-9, spread, np.inf))


def _split(group: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """The rows of each group; if all groups are single rows, all rows as one group."""
    if np.bincount(group).max() < 2:
        return [np.arange(len(group))]
    order = np.argsort(group, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group[order])) + 1)


def _target_columns(y: NDArray[np.generic]) -> Floats:
    """Targets as columns: standardized values, or an indicator of each common class."""
    if y.dtype.kind == "f":
        return _standardize(np.asarray(y[:, None], dtype=np.float64))
    classes, counts = np.unique(y, return_counts=True)
    common = classes[np.argsort(-counts, kind="stable")[: settings.TABLES.max_classes]]
    return np.asarray(y[:, None] == common, dtype=np.float64)
