"""Contexts that change after a fit: `prune`, `merge` and `partial_fit`, each of which leaves the estimator as it was where it fails."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leaflearn.updates.partial_fit import update_contexts
from leaflearn.updates.prune_merge import ContextSet, merge, prune


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave the estimator as it was where something fails or is interrupted.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> leaf = LeafRegressor()
    >>> try:
    ...     with all_or_nothing(leaf):
    ...         leaf.n_contexts_ = 7
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt:
    ...     print(hasattr(leaf, "n_contexts_"))
    False
    """
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        raise


class ChangingContexts:
    """What `LeafRegressor` and `LeafClassifier` can do with their contexts after a fit."""

    def prune(self, min_usage: float | str = "auto", *, redundant: bool = True) -> Self:
        """Remove contexts that are superfluous: too little used, or redundant.

        A context is redundant where the others explain its groups as well, once these have taught them: each is left out in turn, the
        others learn on for a short while from the rows in `replay_buffer_`, and what they reach is compared with what all reach in the same time.
        Contexts that are needed keep their models as they are.

        Parameters
        ----------
        min_usage : float or "auto", default="auto"
            Contexts with a smaller share of the groups go, the least used first; "auto" is a tenth of a fair share. The most used context
            always stays.
        redundant : bool, default=True
            Whether to look for redundant contexts. Without it nothing is trained.

        Returns
        -------
        self
            The estimator, with `n_contexts_` and all that depends on it changed in place. Where contexts went, `converged_` and
            `stability_` are those of the ones that stayed.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from leaflearn import LeafRegressor
        >>> rng = np.random.default_rng(0)
        >>> X, site = rng.normal(size=(200, 1)), np.repeat(np.arange(20), 10)
        >>> y = np.where(site % 3 == 0, -2.0, 2.0) * X[:, 0] + rng.normal(0, 0.1, 200)
        >>> leaf = LeafRegressor(n_contexts=4, local_model=LinearRegression(), random_state=0).fit(X, y, groups=site)
        >>> leaf.prune().n_contexts_
        2
        """
        check_is_fitted(self, "local_models_")
        is_share = (
            isinstance(min_usage, numbers.Real)
            and not isinstance(min_usage, bool)
            and 0 <= float(min_usage) <= 1
        )
        if not is_share and min_usage != "auto":
            raise ValueError(
                f"min_usage={min_usage!r}, but a share between 0 and 1, or 'auto', was expected."
            )
        with all_or_nothing(self):
            n_before = self.n_contexts_  # type: ignore[attr-defined]
            self._replace_contexts(prune(self, min_usage, redundant))
            self._diagnose_again(n_before)
        return self

    def merge(self, first: int | None = None, second: int | None = None) -> Self:
        """Make two contexts one; without arguments, all pairs that do not conflict.

        The groups of both teach one model, from the rows in `replay_buffer_`. Two contexts do not conflict where that model explains them as well
        as the two do that learn on beside it for as long.

        Parameters
        ----------
        first, second : int, default=None
            The contexts, which are merged whether they conflict or not.

        Returns
        -------
        self
            The estimator, with `n_contexts_` and all that depends on it changed in place. Where contexts went, `converged_` and
            `stability_` are those of the ones that stayed.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from leaflearn import LeafRegressor
        >>> rng = np.random.default_rng(0)
        >>> X, site = rng.normal(size=(200, 1)), np.repeat(np.arange(20), 10)
        >>> y = np.where(site % 2 == 0, -2.0, 2.0) * X[:, 0] + rng.normal(0, 0.1, 200)
        >>> leaf = LeafRegressor(n_contexts=2, local_model=LinearRegression(), random_state=0).fit(X, y, groups=site)
        >>> leaf.merge().n_contexts_, leaf.merge(0, 1).n_contexts_
        (2, 1)
        """
        check_is_fitted(self, "local_models_")
        self._check_pair(first, second)
        with all_or_nothing(self):
            n_before = self.n_contexts_  # type: ignore[attr-defined]
            self._replace_contexts(merge(self, first, second))
            self._diagnose_again(n_before)
        return self

    def partial_fit(self, X: Any, y: Any, groups: Any = None, classes: Any = None) -> Self:
        """Learn from new groups, and open a context where none explains them.

        New groups go to the contexts that explain them, and these learn on, together with the rows in `replay_buffer_` so that nothing is
        forgotten. Groups that no context explains open a new one, if they are enough to learn from (20 rows at least) and a new model of
        half of their rows explains the other half clearly better than the known contexts do; else they teach nobody and are kept in mind.
        The first call on an estimator that is not fitted is `fit`.

        Parameters
        ----------
        X, y
            New rows, as for `fit`.
        groups : array of shape (n_samples,), default=None
            The group of each row; a label that is known already adds rows to its group. Without it every row is a new group of its own.
        classes : array of shape (n_classes,), default=None
            All labels that will ever come, for a classifier; only for the first call. Without it, those of the first call.

        Returns
        -------
        self
            The estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from leaflearn import LeafRegressor
        >>> rng = np.random.default_rng(0)
        >>> X, site = rng.normal(size=(300, 1)), np.repeat(np.arange(30), 10)
        >>> y = np.where(site < 20, np.where(site % 2 == 0, -2.0, 2.0), 9.0) * X[:, 0] + rng.normal(0, 0.1, 300)
        >>> leaf = LeafRegressor(n_contexts=2, local_model=LinearRegression(), random_state=0)
        >>> leaf.fit(X[:200], y[:200], groups=site[:200]).n_contexts_
        2
        >>> leaf.partial_fit(X[200:], y[200:], groups=site[200:]).n_contexts_
        3
        """
        if not hasattr(self, "local_models_"):
            return self._first_fit(X, y, groups, classes)
        if classes is not None and not np.array_equal(
            np.unique(classes), np.asarray(getattr(self, "classes_", None))
        ):
            raise ValueError(
                f"classes={np.unique(classes).tolist()} differs from the first call; all labels have to be told there."
            )
        with all_or_nothing(self):
            update_contexts(self, X, y, groups)
        return self

    def _check_pair(self, first: Any, second: Any) -> None:
        if first is None and second is None:
            return
        n_contexts: int = self.n_contexts_  # type: ignore[attr-defined]
        is_number = all(
            isinstance(k, numbers.Integral) and not isinstance(k, bool) and 0 <= int(k) < n_contexts
            for k in (first, second)
        )
        if not is_number or first == second:
            raise ValueError(
                f"merge({first!r}, {second!r}), but two different contexts of 0 to {n_contexts - 1} were expected, or none."
            )

    def _first_fit(self, X: Any, y: Any, groups: Any, classes: Any) -> Self:
        self._all_classes = classes
        try:
            return self.fit(X, y, groups=groups)  # type: ignore[attr-defined]
        finally:
            del self._all_classes

    def _replace_contexts(self, found: ContextSet) -> None:
        """Keep these contexts instead of the present ones."""
        raise NotImplementedError

    def _diagnose_again(self, n_before: int) -> None:
        """Say anew what speaks against the contexts, where some have gone: superfluous ones may have been all that did."""
        raise NotImplementedError
