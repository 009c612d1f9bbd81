"""Rows that an estimator keeps after a fit, so that its contexts can be pruned, merged and continued without the training data.

At most 2,000 rows and 64 megabytes, whole groups as far as possible, as many groups of a rare context as of a common one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing

from leaflearn.data.grouping import position_in_group
from leaflearn.estimators.engine_contract import Examples

MOST_ROWS, MOST_BYTES = 2000, 64 * 2**20  # pictures are large, and the memory is copied and pickled with its estimator
ROWS_OF_A_GROUP = 32  # of a large group no more than these, where there are many groups


def remember(examples: Examples, contexts: NDArray[np.intp], rng: np.random.Generator) -> Examples:
    """Some of the examples: groups drawn from each context in turn, until there are `MOST_ROWS` rows or `MOST_BYTES` bytes.

    Examples
    --------
    >>> group = np.repeat(np.arange(3000), 2)
    >>> rows = Examples(np.zeros((6000, 1)), np.zeros((6000, 1)), group, np.arange(6000), None, 1, False)
    >>> contexts = (np.arange(3000) < 100).astype(int)  # 100 groups of a rare context
    >>> kept = remember(rows, contexts, np.random.default_rng(0))
    >>> len(kept.y), int(np.sum(contexts[kept.group] == 1))
    (2000, 200)
    """
    size = np.bincount(examples.group, minlength=len(contexts))
    bytes_of_a_row = getattr(examples.X, "nbytes", 0) / max(1, len(examples.y))
    n_rows = min(MOST_ROWS, int(MOST_BYTES / max(bytes_of_a_row, 1.0)))
    most = max(min(ROWS_OF_A_GROUP, n_rows), n_rows // max(1, int(np.count_nonzero(size))))
    order = rng.permutation(len(size))
    turn = position_in_group(contexts, order)  # a group's place among those of its context
    order = order[np.argsort(turn[order], kind="stable")]
    order = order[size[order] > 0]
    n_kept = max(1, int(np.searchsorted(np.cumsum(np.minimum(size[order], most)), n_rows, side="right")))
    is_kept = np.zeros(len(size), dtype=bool)
    is_kept[order[:n_kept]] = True
    is_shown = position_in_group(examples.group, rng.permutation(len(examples.group))) < most
    return take(examples, np.flatnonzero(is_kept[examples.group] & is_shown))


def take(examples: Examples, rows: NDArray[np.intp]) -> Examples:
    """These rows of the examples; the groups keep their numbers.

    Examples
    --------
    >>> rows = Examples(np.eye(3), np.ones((3, 1)), np.array([0, 1, 1]), np.arange(3), None, 1, False)
    >>> take(rows, np.array([0, 2])).group
    array([0, 1])
    """
    weight = None if examples.weight is None else examples.weight[rows]
    X = _safe_indexing(examples.X, rows)
    return replace(examples, X=X, y=examples.y[rows], group=examples.group[rows], row=examples.row[rows], weight=weight)


def renumber(examples: Examples) -> tuple[Examples, NDArray[np.intp]]:
    """The examples with groups 0, 1, ... without gaps, and the numbers that they had.

    Examples
    --------
    >>> rows = Examples(np.eye(3), np.ones((3, 1)), np.array([4, 4, 9]), np.arange(3), None, 1, False)
    >>> dense, numbers = renumber(rows)
    >>> dense.group, numbers
    (array([0, 0, 1]), array([4, 9]))
    """
    numbers, group = np.unique(examples.group, return_inverse=True)
    return replace(examples, group=group), numbers


def join(first: Examples, second: Examples) -> Examples:
    """The rows of both, one below the other; rows without a weight have weight 1.

    Examples
    --------
    >>> one = Examples(np.zeros((2, 1)), np.zeros((2, 1)), np.array([0, 0]), np.arange(2), None, 1, False)
    >>> join(one, one).X.shape
    (4, 1)
    """
    weights = [np.ones(len(part.y)) if part.weight is None else part.weight for part in (first, second)]
    return replace(
        first,
        X=_stack(first.X, second.X),
        y=np.concatenate([first.y, second.y]),
        group=np.concatenate([first.group, second.group]),
        row=np.concatenate([first.row, second.row]),
        weight=None if first.weight is None and second.weight is None else np.concatenate(weights),
    )


def _stack(first: Any, second: Any) -> Any:
    """Rows in the container that the first ones came in."""
    if sparse.issparse(first):
        return sparse.vstack([first, second if sparse.issparse(second) else np.asarray(second)], format=first.format)
    if sparse.issparse(second):
        second = second.toarray()
    if hasattr(first, "vstack"):  # a polars frame
        return first.vstack(second if hasattr(second, "vstack") else type(first)(second, schema=first.schema))
    if hasattr(first, "columns"):
        import pandas  # type: ignore[import-untyped]

        return pandas.concat([first, pandas.DataFrame(second, columns=first.columns)], ignore_index=True)
    return np.concatenate([first, second])
