"""Which rows are learnt from and which are predicted.

Five splits. In each, a fifth of the groups are new: none of their rows are learnt from. Of every
other group, half of the rows are learnt from and the others are predicted ("known"). For a number
of labels s, s rows of each new group are labelled and the others predicted; groups with fewer than
s + 5 rows are left out, and a cell counts if it has 20 groups over all splits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaflearn.benchmark.real.settings import REAL
from leaflearn.core.grouped_data import position_in_group

RowNumbers = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of one split.

    Parameters
    ----------
    train, known
        Rows that are learnt from, and rows of the same groups that are predicted.
    new
        By the number of labels: labelled rows of new groups, and rows of these that are predicted.

    Examples
    --------
    >>> Split(train=np.arange(3), known=np.arange(3, 6), new={}).known
    array([3, 4, 5])
    """

    train: RowNumbers
    known: RowNumbers
    new: dict[int, tuple[RowNumbers, RowNumbers]]


def make_splits(group: NDArray[np.intp]) -> Iterator[Split]:
    """The splits of a table whose rows have these groups, 0 to m - 1.

    Examples
    --------
    >>> splits = list(make_splits(np.repeat(np.arange(10), 12)))
    >>> len(splits), len(splits[0].train), len(splits[0].known)
    (5, 48, 48)
    >>> {s: (len(labelled), len(rest)) for s, (labelled, rest) in splits[0].new.items()}
    {1: (2, 22), 5: (10, 14), 10: (0, 0), 20: (0, 0)}
    """
    size = np.bincount(group)
    fold = np.random.default_rng(0).permutation(len(size)) % REAL.n_splits
    for number in range(REAL.n_splits):
        rng = np.random.default_rng(number + 1)
        position = position_in_group(group, rng.permutation(len(group)))
        is_new = fold[group] == number
        is_train = ~is_new & (position < (size[group] + 1) // 2)
        new = {}
        for s in REAL.n_labels:
            is_used = is_new & (size[group] >= s + REAL.min_test_rows)
            new[s] = (
                np.flatnonzero(is_used & (position < s)),
                np.flatnonzero(is_used & (position >= s)),
            )
        yield Split(np.flatnonzero(is_train), np.flatnonzero(~is_new & ~is_train), new)
