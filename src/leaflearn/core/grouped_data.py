"""From the user's group labels, of any hashable type and in any row order, to the integers 0..m-1 that the core counts with."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing


def encode_groups(groups: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Distinct group labels, and the number of each row's group among them.

    Labels are sorted where they can be, else kept in the order of their first appearance. None makes every row its own group.

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
            f"groups has {len(values)} entries, but X has {n_rows} rows; give one group label for every row."
        )
    if values.dtype != object:
        return np.unique(values, return_inverse=True)
    return _encode_objects(values.tolist())


def as_labels(groups: Any) -> NDArray[Any]:
    """Group labels as a one-dimensional array without missing values; labels such as tuples stay what they are.

    Examples
    --------
    >>> as_labels([("site", 1), ("site", 2)])
    array([('site', 1), ('site', 2)], dtype=object)
    """
    if isinstance(groups, str):
        raise ValueError(
            f"groups={groups!r} is a single text, but one label for every row was expected; pass the column itself."
        )
    if isinstance(groups, list | tuple) and not _alike(groups):
        values = np.empty(
            len(groups), dtype=object
        )  # numpy would make a table of tuples, and text of a mixture
        values[:] = groups
    else:
        values = np.asarray(groups)
    if values.ndim != 1:
        raise ValueError(
            f"groups has shape {values.shape}, but one label for every row was expected, shape (n_samples,)."
        )
    missing = count_missing(values)
    if missing:
        raise ValueError(
            f"groups holds {missing} missing values; give these rows a group of their own or leave them out."
        )
    return values


def find_groups(groups: NDArray[Any], known: NDArray[Any]) -> NDArray[np.intp]:
    """Position of every label among the known ones, -1 where it is not there.

    Examples
    --------
    >>> find_groups(np.array(["b", "z"]), np.array(["a", "b"]))
    array([ 1, -1])
    """
    position = {label: i for i, label in enumerate(known.tolist())}
    labels, inverse = encode_groups(groups, len(groups))
    return np.array([position.get(label, -1) for label in labels.tolist()], dtype=np.intp)[inverse]


def position_in_group(
    group: NDArray[np.intp], order: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """How many rows of its own group come before each row, where rows come in `order` (their own by default), shape (n_rows,).

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


def _alike(labels: Sequence[Any]) -> bool:
    """Are these plain labels of one kind, which numpy can keep as they are?"""
    kinds = {type(label) for label in labels}
    return len(kinds) <= 1 and not kinds & {list, tuple, frozenset}


def _encode_objects(labels: Sequence[Hashable]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    try:
        seen = dict.fromkeys(labels)
    except TypeError as error:
        raise ValueError(
            f"groups holds labels that cannot be compared ({error}); use strings, numbers or tuples of them."
        ) from None
    try:
        distinct = sorted(seen)  # type: ignore[type-var]
    except TypeError:  # labels of mixed types have no order
        distinct = list(seen)
    number = {label: i for i, label in enumerate(distinct)}
    known = np.empty(len(distinct), dtype=object)
    known[:] = distinct
    return known, np.fromiter((number[label] for label in labels), dtype=np.intp, count=len(labels))


def count_missing(values: NDArray[Any]) -> int:
    """How many labels are None, NaN or NaT.

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


def _differs_from_itself(label: object) -> bool:
    try:
        return bool(label != label)  # NaN and NaT, of whatever library
    except (TypeError, ValueError):  # pandas.NA refuses to be compared
        return True


@dataclass(frozen=True)
class GroupedData:
    """Checked training data.

    Examples
    --------
    >>> rows = GroupedData(np.zeros((3, 1)), np.zeros((3, 1)), np.array([0, 0, 1]), np.arange(3), None, 1, False)
    >>> rows.without(np.array([True, False, True])).row
    array([1, 2])
    """

    X: Any  #                                                                       (N, ...)
    y: NDArray[Any]  # class numbers (N,), or values (N, D)
    group: NDArray[np.intp]  #                                                      (N,) in 0..m-1
    row: NDArray[np.intp]  # number of the row in the user's data                   (N,)
    weight: NDArray[np.float64] | None  #                                           (N,)
    n_outputs: int  # classes, or values a row
    is_classifier: bool

    @property
    def n_classes(self) -> int:
        """How many classes there are, 0 in regression."""
        return self.n_outputs if self.is_classifier else 0

    def without(self, rows: NDArray[np.bool_]) -> GroupedData:
        """The others; a group that would lose its last row keeps all."""
        left = np.bincount(self.group, ~rows)
        keep = np.flatnonzero(~rows | (left[self.group] == 0))
        weight = None if self.weight is None else self.weight[keep]
        X = _safe_indexing(self.X, keep)
        return replace(
            self, X=X, y=self.y[keep], group=self.group[keep], row=self.row[keep], weight=weight
        )


def take(examples: GroupedData, rows: NDArray[np.intp]) -> GroupedData:
    """These rows of the examples; the groups keep their numbers.

    Examples
    --------
    >>> rows = GroupedData(np.eye(3), np.ones((3, 1)), np.array([0, 1, 1]), np.arange(3), None, 1, False)
    >>> take(rows, np.array([0, 2])).group
    array([0, 1])
    """
    weight = None if examples.weight is None else examples.weight[rows]
    X = _safe_indexing(examples.X, rows)
    return replace(
        examples,
        X=X,
        y=examples.y[rows],
        group=examples.group[rows],
        row=examples.row[rows],
        weight=weight,
    )


def renumber(examples: GroupedData) -> tuple[GroupedData, NDArray[np.intp]]:
    """The examples with groups 0, 1, ... without gaps, and the numbers that they had.

    Examples
    --------
    >>> rows = GroupedData(np.eye(3), np.ones((3, 1)), np.array([4, 4, 9]), np.arange(3), None, 1, False)
    >>> dense, numbers = renumber(rows)
    >>> dense.group, numbers
    (array([0, 0, 1]), array([4, 9]))
    """
    numbers, group = np.unique(examples.group, return_inverse=True)
    return replace(examples, group=group), numbers


def join(first: GroupedData, second: GroupedData) -> GroupedData:
    """The rows of both, one below the other; rows without a weight have weight 1.

    Examples
    --------
    >>> one = GroupedData(np.zeros((2, 1)), np.zeros((2, 1)), np.array([0, 0]), np.arange(2), None, 1, False)
    >>> join(one, one).X.shape
    (4, 1)
    """
    weights = [
        np.ones(len(part.y)) if part.weight is None else part.weight for part in (first, second)
    ]
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
