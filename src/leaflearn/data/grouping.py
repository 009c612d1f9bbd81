"""From the user's group labels, of any hashable type and in any row order, to the integers 0..m-1 that the core counts with."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
        raise ValueError(f"groups has {len(values)} entries, but X has {n_rows} rows; give one group label for every row.")
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
        raise ValueError(f"groups={groups!r} is a single text, but one label for every row was expected; pass the column itself.")
    if isinstance(groups, list | tuple) and not _alike(groups):
        values = np.empty(len(groups), dtype=object)  # numpy would make a table of tuples, and text of a mixture
        values[:] = groups
    else:
        values = np.asarray(groups)
    if values.ndim != 1:
        raise ValueError(f"groups has shape {values.shape}, but one label for every row was expected, shape (n_samples,).")
    missing = count_missing(values)
    if missing:
        raise ValueError(f"groups holds {missing} missing values; give these rows a group of their own or leave them out.")
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


def position_in_group(group: NDArray[np.intp], order: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
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
        raise ValueError(f"groups holds labels that cannot be compared ({error}); use strings, numbers or tuples of them.") from None
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
