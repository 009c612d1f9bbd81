"""Where a fit begins: contexts read off the conflict, where the estimator asks for them and they can be trusted; and how this is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from leaflearn.core.grouped_data import GroupedData
from leaflearn.initialization.columns import as_numbers
from leaflearn.initialization.criteria import Criteria
from leaflearn.initialization.item_surrogate import ItemSurrogate, find_items, start_from_items
from leaflearn.initialization.start import Start, find_start
from leaflearn.initialization.surrogate import SmoothSurrogate
from leaflearn.initialization.wrong_labels import find_wrong_labels


def uses_surrogate_start(estimator: Any) -> bool:
    """Does the estimator want its contexts read off the conflict, and not only their number?

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> uses_surrogate_start(LeafRegressor()), uses_surrogate_start(LeafRegressor(allocation="hard"))
    (True, False)
    """
    return estimator.init in ("conflict", "seeded") or (
        estimator.init == "auto" and estimator.allocation == "annealed"
    )


def initialize(
    estimator: Any, examples: GroupedData, random_state: np.random.RandomState
) -> Start | None:
    """Contexts read off the conflict, where the estimator asks for them.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> x, group = np.linspace(-1, 1, 40)[:, None], np.arange(40) % 10
    >>> rows = GroupedData(x, np.where(group[:, None] % 2, x, -x), group, np.arange(40), None, 1, False)
    >>> initialize(LeafRegressor(2), rows, np.random.RandomState(0)).is_trusted
    True
    >>> initialize(LeafRegressor(2, allocation="hard"), rows, np.random.RandomState(0)) is None
    True
    """
    is_open = estimator.n_contexts == "auto"
    x = (
        as_numbers(examples.X)
        if (is_open or uses_surrogate_start(estimator)) and estimator.n_contexts != 1
        else None
    )
    if x is None:
        return None
    n_contexts = None if is_open else int(estimator.n_contexts)
    seed = int(random_state.randint(2**31 - 1))
    items = find_items(examples.X, examples.group)
    if items is not None:
        return start_from_items(
            items, examples.y, examples.group, n_contexts, examples.n_classes, seed
        )
    try:
        start = find_start(
            x,
            examples.y,
            examples.group,
            n_contexts,
            examples.n_classes,
            seed,
            estimator.init == "seeded",
        )
        return (
            _mark_wrong_labels(start, x, examples, seed)
            if examples.is_classifier and start.is_trusted
            else start
        )
    except (
        torch.linalg.LinAlgError
    ):  # inputs so far apart that their equations cannot be solved: the search begins at random
        return None


def find_label_blocks(
    examples: GroupedData, n_contexts: int, start: Start | None, random_state: np.random.RandomState
) -> Start | None:
    """What labels alone tell of the contexts of single rows, whether the fit begins with it or not; None where they tell nothing.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, is_side = rng.normal(size=(2000, 2)), rng.integers(2, size=2000)
    >>> y = np.where(is_side, x[:, 0] > 0, 2 + (x[:, 1] > 0)).astype(int)  # left or right, or below or above
    >>> rows = GroupedData(x, y, np.arange(2000), np.arange(2000), None, 4, True)
    >>> find_label_blocks(rows, 2, None, np.random.RandomState(0)).kind
    'labels'
    """
    if not examples.is_classifier or n_contexts == 1 or np.bincount(examples.group).max() > 1:
        return None
    if start is None:
        x, seed = as_numbers(examples.X), int(random_state.randint(2**31 - 1))
        try:
            start = (
                None
                if x is None
                else find_start(x, examples.y, examples.group, n_contexts, examples.n_classes, seed)
            )
        except torch.linalg.LinAlgError:
            return None
    return start if start is not None and start.kind == "labels" and start.is_trusted else None


def _mark_wrong_labels(
    start: Start, x: NDArray[np.floating], examples: GroupedData, seed: int
) -> Start:
    """Labels that the rest of their context contradicts are set aside like rows of another context."""
    if np.bincount(examples.group).max() == 1:  # a group keeps its last row
        return start
    is_wrong = find_wrong_labels(x, examples.y, examples.group, start.contexts, seed)
    return replace(
        start, is_outlier=is_wrong if start.is_outlier is None else is_wrong | start.is_outlier
    )


def trusted_contexts(estimator: Any, start: Start | None) -> NDArray[np.intp] | None:
    """The contexts (m,) to begin with; None where the search begins at random.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> trusted_contexts(LeafRegressor(), Start("conflict", np.array([0, 1]), 0.1, True, "smooth models of 2 contexts leave 3 %"))
    array([0, 1])
    """
    return (
        start.contexts
        if start is not None and start.is_trusted and uses_surrogate_start(estimator)
        else None
    )


def describe_start(estimator: Any, start: Start | None, kept: bool) -> str:
    """Where the search began and why, in a few words; `kept` says whether the contexts of the start led to the fit.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> start = Start("conflict", np.array([0, 1]), 0.1, True, "smooth models of 2 contexts leave 3 %")
    >>> describe_start(LeafRegressor(), start, kept=False)
    'random: smooth models of 2 contexts leave 3 %, but it did not hold'
    """
    if start is None or not uses_surrogate_start(estimator):
        return "random"
    return f"{start.kind if kept else 'random'}: {start.reason}" + (
        "" if kept or not start.is_trusted else ", but it did not hold"
    )


def describe_selection(start: Start | None) -> dict[str, NDArray[Any]]:
    """What each number of contexts would have given, as columns.

    Examples
    --------
    >>> sorted(describe_selection(None))
    ['error', 'held_out', 'n_contexts']
    """
    counts = [] if start is None else start.counts
    columns: dict[str, list[Any]] = {
        "n_contexts": [c.n_contexts for c in counts],
        "error": [c.error for c in counts],
        "held_out": [c.mean for c in counts],
    }
    if start is not None and start.reading is not None:
        criteria = [start.reading.measure(c.n_contexts) for c in counts]
        columns |= {name: [getattr(c, name) for c in criteria] for name in Criteria._fields}
    if (
        start is not None and start.kind == "labels"
    ):  # columns of their own: labels hold no rows out, and no error can be compared
        columns |= {
            "n_blocks": list(start.mass_variance),
            "mass_variance": list(start.mass_variance.values()),
        }
    return {name: np.array(column) for name, column in columns.items()}


def make_surrogate(
    examples: GroupedData, random_state: np.random.RandomState
) -> SmoothSurrogate | None:
    """The data as smooth models see them, or as mean answers to items do, for a second opinion; None where neither can.

    Examples
    --------
    >>> rows = GroupedData(np.zeros((2, 1)), np.zeros((2, 1)), np.array([0, 1]), np.arange(2), None, 1, False)
    >>> make_surrogate(rows, np.random.RandomState(0)) is None  # single rows tell nothing
    True
    """
    x = as_numbers(examples.X) if np.bincount(examples.group).max() > 1 else None
    if x is None:
        return None
    seed = int(random_state.randint(2**31 - 1))
    items = find_items(examples.X, examples.group)
    if items is not None:
        return ItemSurrogate.of_items(
            x, items, examples.y, examples.group, examples.n_classes, seed
        )
    return SmoothSurrogate.of(x, examples.y, examples.group, examples.n_classes, seed)
