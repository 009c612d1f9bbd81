"""Rows that an estimator keeps after a fit, so that its contexts can be pruned, merged and continued without the training data.

At most 2,000 rows and 64 megabytes, whole groups as far as possible, as many groups of a rare context as of a common one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leaflearn.core.grouped_data import GroupedData, position_in_group

MOST_ROWS, MOST_BYTES = (
    2000,
    64 * 2**20,
)  # pictures are large, and the memory is copied and pickled with its estimator
ROWS_OF_A_GROUP = 32  # of a large group no more than these, where there are many groups


def fill_replay_buffer(
    examples: GroupedData, contexts: NDArray[np.intp], rng: np.random.Generator
) -> GroupedData:
    """Some of the examples: groups drawn from each context in turn, until there are `MOST_ROWS` rows or `MOST_BYTES` bytes.

    Examples
    --------
    >>> group = np.repeat(np.arange(3000), 2)
    >>> rows = GroupedData(np.zeros((6000, 1)), np.zeros((6000, 1)), group, np.arange(6000), None, 1, False)
    >>> contexts = (np.arange(3000) < 100).astype(int)  # 100 groups of a rare context
    >>> kept = fill_replay_buffer(rows, contexts, np.random.default_rng(0))
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
    n_kept = max(
        1, int(np.searchsorted(np.cumsum(np.minimum(size[order], most)), n_rows, side="right"))
    )
    is_kept = np.zeros(len(size), dtype=bool)
    is_kept[order[:n_kept]] = True
    is_shown = position_in_group(examples.group, rng.permutation(len(examples.group))) < most
    return examples.take(np.flatnonzero(is_kept[examples.group] & is_shown))
