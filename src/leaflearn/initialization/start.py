"""The start of a fit: contexts found before training, whether to trust them, and how to say so.

- Groups of several rows: a search with smooth surrogate models at several scales; the scale and the
  start that explain held-out groups best are kept.
- Groups that name items: a search with mean answers to the items.
- Groups of one row: blocks of labels, where every context has labels of its own.

`initialize` is what estimators call. `find_start` does the search on arrays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from leaflearn.core.grouped_data import GroupedData
from leaflearn.initialization import settings
from leaflearn.initialization.features import as_numbers
from leaflearn.initialization.items import ItemSurrogate, find_items, start_from_items
from leaflearn.initialization.label_blocks import start_from_labels
from leaflearn.initialization.n_contexts import (
    CandidateCount,
    Criteria,
    choose,
    count_down,
    count_up,
    is_significantly_better,
)
from leaflearn.initialization.outliers import find_wrong_labels
from leaflearn.initialization.surrogate import SmoothSurrogate, Start, Surrogate


class StartParameters(Protocol):
    """The parameters of an estimator that determine its start."""

    @property
    def n_contexts(self) -> int | str:
        """An integer, or `"auto"`."""

    @property
    def init(self) -> str:
        """`"auto"`, `"conflict"`, `"seeded"` or `"random"`."""

    @property
    def allocation(self) -> object:
        """The name of an allocation rule, or the rule itself."""


def initialize(
    estimator: StartParameters, data: GroupedData, random_state: np.random.RandomState
) -> Start | None:
    """Find contexts before training, if the estimator needs them; else return None.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> x, group = np.linspace(-1, 1, 40)[:, None], np.arange(40) % 10
    >>> y = np.where(group[:, None] % 2, x, -x)
    >>> rows = GroupedData(x, y, group, np.arange(40), None, 1, False)
    >>> initialize(LeafRegressor(2), rows, np.random.RandomState(0)).is_trusted
    True
    >>> initialize(LeafRegressor(2, allocation="hard"), rows, np.random.RandomState(0)) is None
    True
    """
    is_open = estimator.n_contexts == "auto"
    is_needed = is_open or uses_surrogate_start(estimator)
    x = as_numbers(data.X) if is_needed and estimator.n_contexts != 1 else None
    if x is None:
        return None
    n_contexts = None if is_open else int(estimator.n_contexts)
    seed = int(random_state.randint(2**31 - 1))
    y, group, n_classes = data.y, data.group, data.n_classes
    items = find_items(data.X, group)
    if items is not None:
        return start_from_items(items, y, group, n_contexts, n_classes, seed)
    try:
        start = find_start(x, y, group, n_contexts, n_classes, seed, estimator.init == "seeded")
        if data.is_classifier and start.is_trusted:
            start = _mark_wrong_labels(start, x, data, seed)
    except torch.linalg.LinAlgError:  # inputs of extreme size: the fit starts at random
        return None
    return start


def uses_surrogate_start(estimator: StartParameters) -> bool:
    """Whether the fit starts from the contexts that were found, and not only from their number.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> uses_surrogate_start(LeafRegressor())
    True
    >>> uses_surrogate_start(LeafRegressor(allocation="hard"))
    False
    """
    return estimator.init in ("conflict", "seeded") or (
        estimator.init == "auto" and estimator.allocation == "annealed"
    )


def find_start(
    x: NDArray[np.floating],
    y: NDArray[np.generic],
    group: NDArray[np.intp],
    n_contexts: int | None,
    n_classes: int,
    seed: int,
    seeded: bool = False,
) -> Start:
    """Find contexts of the groups without training.

    Parameters
    ----------
    x
        Inputs (N, ...).
    y
        Class numbers (N,) or values (N, D).
    group
        The group of each row, 0..m-1.
    n_contexts
        The number of contexts; None chooses it.
    n_classes
        The number of classes; 0 in regression.
    seed
        Seed of all random draws.
    seeded
        Whether starts add one context at a time, from groups that are explained worst, instead of
        random starts.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.sampling import sample_groups
    >>> from leaflearn.benchmark.datasets import functions
    >>> from leaflearn.benchmark.evaluation import allocation_agreement
    >>> data, truth = sample_groups(functions(), random_state=0)
    >>> start = find_start(data.x, data.y[:, None], data.groups, n_contexts=3, n_classes=0, seed=0)
    >>> start.is_trusted, allocation_agreement(start.contexts, truth.domain) > 0.98
    (True, True)
    """
    if np.bincount(group).max() > 1:
        surrogate = SmoothSurrogate.of(x, y, group, n_classes, seed, seeded)
        return _start_from_search(surrogate, n_contexts)
    if n_classes:
        return start_from_labels(x, y, group, n_contexts, n_classes, seed)
    reason = "contexts cannot be identified from single rows with values"
    return Start("conflict", np.zeros(len(group), dtype=np.intp), 1.0, False, reason)


def _start_from_search(surrogate: SmoothSurrogate, n_contexts: int | None) -> Start:
    setting, found = settings.SEARCH, surrogate.best

    def find(n: int) -> CandidateCount:
        # The scale is chosen by the requested number of contexts, which is searched first, or by
        # a number that explains nearly everything.
        largest = setting.explained_share * found[1].error if 1 in found else 0.0
        explained = [best for best in found.values() if best.error < largest]
        chosen = found.get(n_contexts or 0) or min(
            explained, key=lambda best: best.error, default=None
        )
        best = surrogate.find(n, None if chosen is None or n == 1 else [chosen.scale])
        return CandidateCount(n, best.error, best.held_out)

    if n_contexts is None:
        counts = count_up(find, min(setting.max_contexts, len(surrogate.groups)))
        n_used = choose(counts)
    else:
        n_used, counts = count_down(find, n_contexts)
    one, count = counts[0], next(count for count in counts if count.n_contexts == n_used)
    is_trusted = n_used > 1 and (
        count.error < setting.trusted_share * one.error or is_significantly_better(count, one)
    )
    left = f"{100 * count.error / max(one.error, 1e-12):.2g} %"
    reason = f"smooth models of {n_used} contexts leave {left} of what one model leaves unexplained"
    best, is_outlier = surrogate.exclude_outliers(found[n_used])
    kind, contexts = "seeded" if surrogate.seeded else "conflict", surrogate.extend(best)
    is_outlier |= surrogate.mark_remaining_outliers(best, contexts)
    return Start(
        kind, contexts, count.error, is_trusted, reason, counts, is_outlier, surrogate, best
    )


def _mark_wrong_labels(
    start: Start, x: NDArray[np.floating], data: GroupedData, seed: int
) -> Start:
    """Mark labels that the rest of their context contradicts as outliers."""
    if np.bincount(data.group).max() == 1:  # a group keeps its last row
        return start
    is_wrong = find_wrong_labels(x, data.y, data.group, start.contexts, seed)
    is_outlier = is_wrong if start.is_outlier is None else is_wrong | start.is_outlier
    return replace(start, is_outlier=is_outlier)


def find_label_blocks(
    data: GroupedData, n_contexts: int, start: Start | None, random_state: np.random.RandomState
) -> Start | None:
    """Contexts of single rows by their labels, whether the fit starts from them or not.

    None if groups have several rows, or if labels are not informative.

    Examples
    --------
    Labels 0 and 1 depend on the first column, labels 2 and 3 on the second one.

    >>> rng = np.random.default_rng(0)
    >>> x, is_first = rng.normal(size=(2000, 2)), rng.integers(2, size=2000)
    >>> y = np.where(is_first, x[:, 0] > 0, 2 + (x[:, 1] > 0)).astype(int)
    >>> rows = GroupedData(x, y, np.arange(2000), np.arange(2000), None, 4, True)
    >>> find_label_blocks(rows, 2, None, np.random.RandomState(0)).kind
    'labels'
    """
    if not data.is_classifier or n_contexts == 1 or np.bincount(data.group).max() > 1:
        return None
    if start is None:
        x, seed = as_numbers(data.X), int(random_state.randint(2**31 - 1))
        if x is None:
            return None
        try:
            start = find_start(x, data.y, data.group, n_contexts, data.n_classes, seed)
        except torch.linalg.LinAlgError:
            return None
    return start if start.kind == "labels" and start.is_trusted else None


def make_surrogate(data: GroupedData, random_state: np.random.RandomState) -> Surrogate | None:
    """A surrogate of the data for the diagnostics of a fit; None if every group has one row.

    Examples
    --------
    >>> x, y, group = np.zeros((2, 1)), np.zeros((2, 1)), np.array([0, 1])
    >>> rows = GroupedData(x, y, group, np.arange(2), None, 1, False)
    >>> make_surrogate(rows, np.random.RandomState(0)) is None
    True
    """
    y, group, n_classes = data.y, data.group, data.n_classes
    x = as_numbers(data.X) if np.bincount(group).max() > 1 else None
    if x is None:
        return None
    seed = int(random_state.randint(2**31 - 1))
    items = find_items(data.X, group)
    if items is not None:
        return ItemSurrogate.of(x, items, y, group, n_classes, seed)
    return SmoothSurrogate.of(x, y, group, n_classes, seed)


def trusted_contexts(estimator: StartParameters, start: Start | None) -> NDArray[np.intp] | None:
    """The contexts (m,) to start from; None if the fit starts at random.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> start = Start("conflict", np.array([0, 1]), 0.1, True, "2 contexts leave 3 %")
    >>> trusted_contexts(LeafRegressor(), start)
    array([0, 1])
    """
    is_used = start is not None and start.is_trusted and uses_surrogate_start(estimator)
    return start.contexts if start is not None and is_used else None


def describe_start(estimator: StartParameters, start: Start | None, kept: bool) -> str:
    """How the fit started and why; `kept` says whether it kept the contexts of the start.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> start = Start("conflict", np.array([0, 1]), 0.1, True, "2 contexts leave 3 %")
    >>> describe_start(LeafRegressor(), start, kept=False)
    'random: 2 contexts leave 3 %, but it did not hold'
    """
    if start is None or not uses_surrogate_start(estimator):
        return "random"
    was_dropped = start.is_trusted and not kept
    note = ", but it did not hold" if was_dropped else ""
    return f"{start.kind if kept else 'random'}: {start.reason}{note}"


def describe_selection(start: Start | None) -> dict[str, NDArray[Any]]:
    """The losses of each number of contexts that was tried, as columns.

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
    if start is not None and start.surrogate is not None:
        criteria = [start.surrogate.criteria(c.n_contexts) for c in counts]
        columns |= {name: [getattr(c, name) for c in criteria] for name in Criteria._fields}
    if start is not None and start.kind == "labels":  # labels have no held-out rows or errors
        columns |= {
            "n_blocks": list(start.mass_variance),
            "mass_variance": list(start.mass_variance.values()),
        }
    return {name: np.array(column) for name, column in columns.items()}
