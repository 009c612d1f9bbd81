"""Cross-validation that holds out some rows of every group, never whole groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from leaflearn.core.grouped_data import encode_groups, position_in_group


class WithinGroupKFold(BaseCrossValidator):
    """K folds that hold out some rows of each group, never a whole group.

    The rows of a group that stay in training determine the context of its held-out rows. If whole
    groups are held out, the contexts of their rows are unknown, and more contexts always look
    better. To compare numbers of contexts, hold out rows within groups. Groups of a single row
    always stay in training.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    shuffle : bool, default=False
        Whether to shuffle the rows of each group before they are divided into folds.
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

    __metadata_request__split = {"groups": True}  # as in GroupKFold

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the training rows and the test rows of each fold."""
        fold = self._assign_folds(len(X) if not hasattr(X, "shape") else X.shape[0], groups)
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        return self.n_splits

    def _assign_folds(self, n_rows: int, groups: Any) -> NDArray[np.intp]:
        """The fold in which each row is tested; -1 for rows that always stay in training."""
        if groups is None:
            raise ValueError(
                "groups is None, but WithinGroupKFold holds out rows of every group and needs the "
                "group of each row."
            )
        if self.n_splits < 2:
            raise ValueError(f"n_splits={self.n_splits}, but at least 2 folds are needed.")
        labels, group = encode_groups(groups, n_rows)
        size = np.bincount(group)
        if size.max() < 2:
            raise ValueError(
                "every group has a single row, so nothing can be held out within groups; use KFold "
                "instead."
            )
        random = check_random_state(self.random_state)
        position = position_in_group(group, random.permutation(n_rows) if self.shuffle else None)
        # Groups start at different folds; otherwise the first folds would get all rows of small
        # groups.
        first = (
            random.randint(self.n_splits, size=len(labels))
            if self.shuffle
            else np.arange(len(labels))
        )
        fold = (position + first[group]) % self.n_splits
        fold[size[group] == 1] = -1
        return fold
