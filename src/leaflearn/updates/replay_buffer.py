"""Training rows kept after a fit, so that contexts can be pruned, merged and updated without it.

At most 2,000 rows and 64 megabytes: whole groups as far as possible, and as many groups of a rare
context as of a common one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leaflearn.core.grouped_data import GroupedData, position_in_group
from leaflearn.engines.fitted_state import FittedState
from leaflearn.updates import settings


def fill_replay_buffer(
    data: GroupedData, contexts: NDArray[np.intp], rng: np.random.Generator
) -> GroupedData:
    """Sample groups of each context (m,) in turn, until the buffer is full.

    Examples
    --------
    >>> x, group = np.zeros((6000, 1)), np.repeat(np.arange(3000), 2)
    >>> rows = GroupedData(x, x, group, np.arange(6000), None, 1, False)
    >>> contexts = (np.arange(3000) < 100).astype(int)  # 100 groups of a rare context
    >>> buffer = fill_replay_buffer(rows, contexts, np.random.default_rng(0))
    >>> len(buffer.y), int(np.sum(contexts[buffer.group] == 1))
    (2000, 200)
    """
    limits = settings.UPDATES
    size = np.bincount(data.group, minlength=len(contexts))
    bytes_per_row = getattr(data.X, "nbytes", 0) / max(1, len(data.y))
    n_rows = min(limits.max_rows, int(limits.max_bytes / max(bytes_per_row, 1.0)))
    fair_share = n_rows // max(1, int(np.count_nonzero(size)))
    per_group = max(min(limits.max_rows_per_group, n_rows), fair_share)
    order = rng.permutation(len(size))
    turn = position_in_group(contexts, order)  # position of a group in its context
    order = order[np.argsort(turn[order], kind="stable")]
    order = order[size[order] > 0]
    total = np.cumsum(np.minimum(size[order], per_group))
    n_kept = max(1, int(np.searchsorted(total, n_rows, side="right")))
    is_kept = np.zeros(len(size), dtype=bool)
    is_kept[order[:n_kept]] = True
    position = position_in_group(data.group, rng.permutation(len(data.group)))
    return data.take(np.flatnonzero(is_kept[data.group] & (position < per_group)))


def stored_rows(state: FittedState) -> GroupedData:
    """The rows of the replay buffer, or an error where it was emptied."""
    if state.replay_buffer is None:
        raise ValueError(
            "replay_buffer_ is empty, so there are no rows to update the contexts with; fit again."
        )
    return state.replay_buffer
