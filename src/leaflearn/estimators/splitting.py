"""Cross-validation that holds rows of every group out, never whole groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from leaflearn.core.grouped_data import encode_groups, position_in_group


class WithinGroupKFold(BaseCrossValidator):
    """K folds of rows that never hold out a whole group, so that a held-out row's context is known from the rows that stayed.

    With whole groups held out the context of a test row is anybody's guess, and more contexts always look better; to compare numbers of
    contexts, hold out within groups. Groups of a single row always stay in training.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    shuffle : bool, default=False
        Deal the rows of each group in random order.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffling.

    Examples
    --------
    >>> import numpy as np
    >>> X, groups = np.zeros((6, 1)), ["a", "a", "b", "b", "b", "c"]
    >>> for train, test in WithinGroupKFold(n_splits=2).split(X, groups=groups):
    ...     print(train, test)
    [1 2 4 5] [0 3]
    [0 3 5] [1 2 4]
    """

    __metadata_request__split = {"groups": True}  # as GroupKFold does

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the rows to train on and the rows to test on, once for each fold."""
        fold = self._deal(len(X) if not hasattr(X, "shape") else X.shape[0], groups)
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        return self.n_splits

    def _deal(self, n_rows: int, groups: Any) -> NDArray[np.intp]:
        """The fold in which each row is tested, -1 for rows that are always trained on."""
        if groups is None:
            raise ValueError(
                "groups is None, but WithinGroupKFold holds rows of every group out and needs the group of each row."
            )
        if self.n_splits < 2:
            raise ValueError(f"n_splits={self.n_splits}, but at least 2 folds are needed.")
        labels, group = encode_groups(groups, n_rows)
        size = np.bincount(group)
        if size.max() < 2:
            raise ValueError(
                "every group has a single row, so nothing can be held out within groups; use KFold instead."
            )
        random = check_random_state(self.random_state)
        position = position_in_group(group, random.permutation(n_rows) if self.shuffle else None)
        # Small groups start at different folds, else the first folds would get all of their rows.
        first = (
            random.randint(self.n_splits, size=len(labels))
            if self.shuffle
            else np.arange(len(labels))
        )
        fold = (position + first[group]) % self.n_splits
        fold[size[group] == 1] = -1
        return fold
