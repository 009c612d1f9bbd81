"""Which features go with the target.

Over all rows together contexts may cancel each other: where one goes up with a feature, another goes down. So it is asked inside the
groups, each of which has one context, how far a feature goes with the target, in whichever direction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_CLASSES = 20  # that are asked one by one
N_SHUFFLES = 20
CLEARLY = 5.0  # standard deviations above what chance gives
ORDERED = 3.0  # standard deviations: by so much neighbours are more alike than chance gives where the order of numbers tells something
OF_THE_GROUP = 0.1  # of a feature's variance lies inside the groups, or less: then it says something of the group

Floats = NDArray[np.float64]


def choose_features(
    features: Floats, y: NDArray[np.generic], group: NDArray[np.intp], most: int
) -> NDArray[np.intp]:
    """At most so many features, in their order: those that go with the target most; all of them where they are no more.

    Parameters
    ----------
    features
        Of each row, shape (N, F).
    y
        Values, or class numbers, shape (N,).
    group
        The group of each row, 0..m-1.
    most
        How many.

    Examples
    --------
    Two groups in which one feature goes with the target in opposite directions, beside two that do not.

    >>> rng = np.random.default_rng(0)
    >>> features, group = rng.normal(size=(60, 3)), np.repeat([0, 1], 30)
    >>> y = np.where(group == 0, 1.0, -1.0) * features[:, 1]
    >>> choose_features(features, y, group, most=1)
    array([1])
    """
    if features.shape[1] <= most:
        return np.arange(features.shape[1])
    strength = measure_strength(features, _columns_of(y), group)
    return np.sort(np.argsort(-strength, kind="stable")[:most])


def find_informative_features(
    features: Floats, y: NDArray[np.generic], group: NDArray[np.intp], seed: int
) -> NDArray[np.intp]:
    """Features that go with the target more than chance would have it, and those that tell groups apart; all, where none does.

    Arguments as in `choose_features`. A feature that is nearly constant inside the groups, such as a site's altitude, cannot go with the
    target there, and yet may explain why groups differ.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features, group = rng.normal(size=(60, 3)), np.repeat(np.arange(6), 10)
    >>> y = np.where(group < 3, 1.0, -1.0) * features[:, 1]
    >>> find_informative_features(features, y, group, seed=0)
    array([1])
    """
    clearly = are_associated_with_target(features, y, group, seed)
    inside = sum(len(rows) * features[rows].var(0) for rows in _split(group)) / len(features)
    found = np.flatnonzero(clearly | (inside < OF_THE_GROUP * features.var(0)))
    return found if clearly.any() else np.arange(features.shape[1])


def are_associated_with_target(
    features: Floats, y: NDArray[np.generic], group: NDArray[np.intp], seed: int
) -> NDArray[np.bool_]:
    """Which features go with the target inside the groups clearly more than where targets are shuffled there, shape (F,).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features, group = rng.normal(size=(60, 3)), np.repeat(np.arange(6), 10)
    >>> are_associated_with_target(features, np.where(group < 3, 1.0, -1.0) * features[:, 1], group, seed=0)
    array([False,  True, False])
    """
    rng, targets = np.random.default_rng(seed), _columns_of(y)
    by_group = _split(group)
    by_chance = []
    for _ in range(N_SHUFFLES):
        shuffled = targets.copy()
        for rows in by_group:
            shuffled[rows] = targets[rng.permutation(rows)]
        by_chance.append(measure_strength(features, shuffled, group))
    mean, spread = np.mean(by_chance, axis=0), np.std(by_chance, axis=0, ddof=1)
    return np.asarray(measure_strength(features, targets, group) > mean + CLEARLY * spread)


def tells_by_order(
    values: Floats, y: NDArray[np.generic], group: NDArray[np.intp], seed: int
) -> bool:
    """Do rows of a group whose values (N,) are neighbours have more similar targets than any two of its rows? Names do not tell by order.

    Examples
    --------
    >>> group, values = np.divmod(np.arange(120), 30)
    >>> names = np.random.default_rng(0).permutation(30)[values]
    >>> [tells_by_order(numbers, np.sin(values / 5), group, seed=0) for numbers in (values, names)]
    [True, False]
    """
    rng, targets = np.random.default_rng(seed), _columns_of(y)

    def differ(by_group: list[NDArray[np.intp]]) -> float:
        return float(sum(np.square(np.diff(targets[rows], axis=0)).sum() for rows in by_group))

    by_group = [rows[np.argsort(values[rows], kind="stable")] for rows in _split(group)]
    by_chance = [differ([rng.permutation(rows) for rows in by_group]) for _ in range(N_SHUFFLES)]
    return differ(by_group) < float(np.mean(by_chance) - ORDERED * np.std(by_chance, ddof=1))


def measure_strength(features: Floats, targets: Floats, group: NDArray[np.intp]) -> Floats:
    """How far each feature, or its square, goes with the targets (N, D) inside the groups, shape (F,).

    Examples
    --------
    >>> measure_strength(np.array([[-1.0, 1.0], [1.0, 1.0]]), np.array([[3.0], [5.0]]), np.array([0, 0])).tolist()
    [2.0, 0.0]
    """
    standard = _standardise(features)
    total = np.zeros(features.shape[1])
    for shape in (standard, _standardise(np.square(standard))):
        for rows in _split(group):
            goal = targets[rows] - targets[rows].mean(0)
            total += np.square((shape[rows] - shape[rows].mean(0)).T @ goal).sum(1) / len(rows)
    return total


def _standardise(values: Floats) -> Floats:
    spread = values.std(0)
    return np.asarray((values - values.mean(0)) / np.where(spread > 1e-9, spread, np.inf))


def _split(group: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """The rows of each group; all rows as one group where groups are single rows and have no inside."""
    if np.bincount(group).max() < 2:
        return [np.arange(len(group))]
    order = np.argsort(group, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group[order])) + 1)


def _columns_of(y: NDArray[np.generic]) -> Floats:
    """Targets as columns: values in standard units; each common class as zeros and ones."""
    if y.dtype.kind == "f":
        return _standardise(np.asarray(y[:, None], dtype=np.float64))
    classes, counts = np.unique(y, return_counts=True)
    common = classes[np.argsort(-counts, kind="stable")[:MOST_CLASSES]]
    return np.asarray(y[:, None] == common, dtype=np.float64)
