"""New rows arrive at a fitted model: the numbers of known and new groups, and what it came to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leaflearn.core.grouped_data import GroupedData, encode_groups, find_groups
from leaflearn.engines.fitted_state import FittedState

Ints = NDArray[np.intp]


class ContextUpdate(NamedTuple):
    """What `partial_fit` came to."""

    state: FittedState  # contexts ordered by usage
    groups: NDArray[Any]  # labels of all groups                                (m,)
    data: GroupedData  # the rows that were learned from, old and new


class JoinedGroups(NamedTuple):
    """The labels of known and new groups together."""

    labels: NDArray[Any]  #                                                     (m,)
    known: Ints  # where the known groups are among them
    arrived: Ints  # where the groups of the new rows are


def join_groups(known: NDArray[Any], arrived: NDArray[Any]) -> JoinedGroups:
    """Number known groups and those of new rows together.

    Examples
    --------
    >>> join_groups(np.array(["a", "c"]), np.array(["b", "c"]))
    JoinedGroups(labels=array(['a', 'b', 'c'], dtype='<U1'), known=array([0, 2]), \
arrived=array([1, 2]))
    """
    unknown = arrived[find_groups(arrived, known) < 0]
    labels, number = encode_groups(_join_labels(known, unknown), len(known) + len(unknown))
    return JoinedGroups(labels, number[: len(known)], find_groups(arrived, labels))


def _join_labels(known: NDArray[Any], unknown: NDArray[Any]) -> Any:
    if known.dtype.kind == unknown.dtype.kind != "O" or not len(unknown):
        return np.concatenate([known, unknown if len(unknown) else unknown.astype(known.dtype)])
    return [*known.tolist(), *unknown.tolist()]  # numpy would turn numbers beside names into text
