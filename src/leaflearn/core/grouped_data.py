"""Rows with a group each: the checked training data, and numbers 0..m-1 for the groups.

Users name groups by labels of any hashable type, in any row order. `encode_groups` turns them into
integers, and `GroupedData` holds the rows with these integers. Everything here is numpy;
`batches.py` has the tensors on which networks are trained.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing


@dataclass(frozen=True)
class GroupedData:
    """Checked training data.

    Parameters
    ----------
    X
        Inputs (N, ...), in any container that scikit-learn can index.
    y
        Class numbers (N,), or values (N, D).
    group
        The group of each row, (N,), in 0..m-1.
    row
        The number of each row in the data of the user, (N,).
    weight
        Weights of the rows, (N,); None where all are equal.
    n_outputs
        Number of classes, or of values per row.
    is_classifier
        Whether `y` holds class numbers.

    Examples
    --------
    >>> group = np.array([0, 0, 1])
    >>> data = GroupedData(np.eye(3), np.ones((3, 1)), group, np.arange(3), None, 1, False)
    >>> data.without(np.array([True, False, True])).row  # the last group has no other row
    array([1, 2])
    >>> data.take(np.array([0, 2])).group
    array([0, 1])
    >>> data.join(data).X.shape
    (6, 3)
    """

    X: Any
    y: NDArray[Any]
    group: NDArray[np.intp]
    row: NDArray[np.intp]
    weight: NDArray[np.float64] | None
    n_outputs: int
    is_classifier: bool

    @property
    def n_classes(self) -> int:
        """Number of classes, 0 in regression."""
        return self.n_outputs if self.is_classifier else 0

    def take(self, rows: NDArray[np.intp]) -> GroupedData:
        """Select rows by number; the groups keep their numbers."""
        return replace(
            self,
            X=_safe_indexing(self.X, rows),
            y=self.y[rows],
            group=self.group[rows],
            row=self.row[rows],
            weight=None if self.weight is None else self.weight[rows],
        )

    def without(self, rows: NDArray[np.bool_]) -> GroupedData:
        """Leave out the marked rows, except in groups of which no row would remain."""
        n_left = np.bincount(self.group, ~rows)
        return self.take(np.flatnonzero(~rows | (n_left[self.group] == 0)))

    def renumbered(self) -> tuple[GroupedData, NDArray[np.intp]]:
        """The same rows with groups 0, 1, ... without gaps, and the former group numbers.

        Examples
        --------
        >>> group = np.array([4, 4, 9])
        >>> data = GroupedData(np.eye(3), np.ones((3, 1)), group, np.arange(3), None, 1, False)
        >>> dense, numbers = data.renumbered()
        >>> dense.group, numbers
        (array([0, 0, 1]), array([4, 9]))
        """
        numbers, group = np.unique(self.group, return_inverse=True)
        return replace(self, group=group), numbers

    def join(self, other: GroupedData) -> GroupedData:
        """The rows of both; rows without a weight have weight 1."""
        weights = [
            np.ones(len(part.y)) if part.weight is None else part.weight for part in (self, other)
        ]
        is_weighted = self.weight is not None or other.weight is not None
        return replace(
            self,
            X=_stack(self.X, other.X),
            y=np.concatenate([self.y, other.y]),
            group=np.concatenate([self.group, other.group]),
            row=np.concatenate([self.row, other.row]),
            weight=np.concatenate(weights) if is_weighted else None,
        )


def encode_groups(groups: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Distinct group labels, and for each row the position of its label among them.

    Labels are sorted if they can be compared, and else in the order of their first appearance.
    With None, every row is its own group.

    Examples
    --------
    >>> labels, group = encode_groups(["b", "a", "b"], 3)
    >>> labels, group
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    if groups is None:
        return np.arange(n_rows), np.arange(n_rows)
    values = as_labels(groups)
    if len(values) != n_rows:
        raise ValueError(
            f"groups has {len(values)} entries, but X has {n_rows} rows; give one group label for "
            "every row."
        )
    if values.dtype != object:
        return np.unique(values, return_inverse=True)
    return _encode_objects(values.tolist())


def as_labels(groups: Any) -> NDArray[Any]:
    """Group labels as a one-dimensional array without missing values; tuples stay tuples.

    Examples
    --------
    >>> as_labels([("site", 1), ("site", 2)])
    array([('site', 1), ('site', 2)], dtype=object)
    """
    if isinstance(groups, str):
        raise ValueError(
            f"groups={groups!r} is a single string, but one label for every row was expected; pass "
            "the column itself."
        )
    if isinstance(groups, list | tuple) and not _have_one_type(groups):
        # np.asarray would turn tuples into a matrix, and mixed types into text.
        values = np.empty(len(groups), dtype=object)
        values[:] = groups
    else:
        values = np.asarray(groups)
    if values.ndim != 1:
        raise ValueError(
            f"groups has shape {values.shape}, but one label for every row was expected, shape "
            "(n_samples,)."
        )
    missing = count_missing(values)
    if missing:
        raise ValueError(
            f"groups holds {missing} missing values; give these rows a group of their own or leave "
            "them out."
        )
    return values


def find_groups(groups: NDArray[Any], known: NDArray[Any]) -> NDArray[np.intp]:
    """Position of every label among the known ones, -1 for unknown labels.

    Examples
    --------
    >>> find_groups(np.array(["b", "z"]), np.array(["a", "b"]))
    array([ 1, -1])
    """
    position = {label: i for i, label in enumerate(known.tolist())}
    labels, inverse = encode_groups(groups, len(groups))
    return np.array([position.get(label, -1) for label in labels.tolist()], dtype=np.intp)[inverse]


def count_missing(values: NDArray[Any]) -> int:
    """Number of labels that are None, NaN or NaT.

    Examples
    --------
    >>> count_missing(np.array(["a", None, float("nan")], dtype=object))
    2
    """
    if values.dtype.kind == "f":
        return int(np.isnan(values).sum())
    if values.dtype.kind in "mM":
        return int(np.isnat(values).sum())
    if values.dtype == object:
        return sum(label is None or _differs_from_itself(label) for label in values.tolist())
    return 0


def position_in_group(
    group: NDArray[np.intp], order: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Number of rows of the same group that precede each row, shape (n_rows,).

    The rows are counted in the given `order`, by default from first to last.

    Examples
    --------
    >>> position_in_group(np.array([1, 0, 1, 1]))
    array([0, 0, 1, 2])
    """
    order = np.arange(len(group)) if order is None else order
    order = order[np.argsort(group[order], kind="stable")]  # group by group
    size = np.bincount(group)
    position = np.empty(len(group), dtype=np.intp)
    position[order] = np.arange(len(group)) - np.repeat(np.cumsum(size) - size, size)
    return position


def sum_by_group(losses: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
    """Sum the losses of rows (N, K) over groups, shape (m, K).

    This version is for arrays. `algorithm.sum_rows_by_group` is its counterpart for tensors, with
    restarts, weights and trimming.

    Examples
    --------
    >>> sum_by_group(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 0]))
    array([[4., 6.]])
    """
    return np.stack([np.bincount(group, column) for column in losses.T], 1)


def _have_one_type(labels: Sequence[Any]) -> bool:
    """Whether the labels are plain values of one type, which numpy keeps as they are."""
    kinds = {type(label) for label in labels}
    return len(kinds) <= 1 and not kinds & {list, tuple, frozenset}


def _encode_objects(labels: Sequence[Hashable]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    try:
        seen = dict.fromkeys(labels)
    except TypeError as error:
        raise ValueError(
            f"groups holds labels that are not hashable ({error}); use strings, numbers or tuples "
            "of them."
        ) from None
    try:
        distinct = sorted(seen)  # type: ignore[type-var]
    except TypeError:  # labels of mixed types have no order
        distinct = list(seen)
    number = {label: i for i, label in enumerate(distinct)}
    known = np.empty(len(distinct), dtype=object)
    known[:] = distinct
    return known, np.fromiter((number[label] for label in labels), dtype=np.intp, count=len(labels))


def _differs_from_itself(label: object) -> bool:
    try:
        return bool(label != label)  # NaN and NaT of any library
    except (TypeError, ValueError):  # the comparison with pandas.NA has no truth value
        return True


def _stack(first: Any, second: Any) -> Any:
    """The rows of both, in the container of the first."""
    if sparse.issparse(first):
        return sparse.vstack(
            [first, second if sparse.issparse(second) else np.asarray(second)], format=first.format
        )
    if sparse.issparse(second):
        second = second.toarray()
    if hasattr(first, "vstack"):  # a polars frame
        return first.vstack(
            second if hasattr(second, "vstack") else type(first)(second, schema=first.schema)
        )
    if hasattr(first, "columns"):
        import pandas  # type: ignore[import-untyped]

        return pandas.concat(
            [first, pandas.DataFrame(second, columns=first.columns)], ignore_index=True
        )
    return np.concatenate([first, second])
