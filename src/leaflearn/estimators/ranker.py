"""`LeafRanker`: groups of workers with the same preferences, and a ranking for each.

Each answer says that a worker preferred one item to another. In every context an item has a
utility u, and one item is preferred to another with probability
1 / (1 + exp(u_other - u_preferred)): the Bradley-Terry model. This is a logistic regression on the
difference between the features of two items, so that LEAF finds the contexts with a logistic
regression as local model. The groups are workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from leaflearn.diagnostics.identifiability import warn_about_few_answers
from leaflearn.estimators.classifier import LeafClassifier
from leaflearn.estimators.identification import Identification

Array = NDArray[Any]


class LeafRanker(BaseEstimator):
    """Contexts of preferences from pairwise comparisons.

    Parameters
    ----------
    n_contexts : int or "auto", default="auto"
        Number of contexts; "auto" chooses it from the answers.
    strength : float, default=1.0
        Inverse of the regularization of the utilities. Smaller values shrink them more, for few
        answers.
    random_state : int or None, default=None
        Seed of the fit.

    Attributes
    ----------
    leaf_ : LeafClassifier
        The fitted classifier, with its diagnostics.
    items_ : ndarray of shape (n_items,)
        The items, sorted.
    utilities_ : ndarray of shape (n_contexts_, n_items)
        Utility of each item in each context; the mean over items is 0.
    n_contexts_, groups_, contexts_, probabilities_, usage_, converged_
        As in `LeafClassifier`; the groups are workers.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> taste = {"tea": 2.0, "milk": 1.0, "beer": -1.0, "wine": -2.0}
    >>> pairs = rng.permuted(np.tile(list(taste), (1200, 1)), axis=1)[:, :2]
    >>> worker = np.repeat(np.arange(60), 20)
    >>> sign = np.where(worker % 2, -1, 1)  # every other worker has the opposite preferences
    >>> gain = sign * np.array([taste[a] - taste[b] for a, b in pairs])
    >>> first = rng.random(1200) < 1 / (1 + np.exp(-2 * gain))
    >>> winner, loser = np.where(first[:, None], pairs, pairs[:, ::-1]).T
    >>> ranker = LeafRanker(n_contexts=2, random_state=0).fit(winner, loser, worker)
    >>> sorted(ranker.ranking(k).tolist()[0] for k in range(2))
    ['tea', 'wine']
    """

    def __init__(
        self,
        n_contexts: int | Literal["auto"] = "auto",
        *,
        strength: float = 1.0,
        random_state: int | None = None,
    ) -> None:
        self.n_contexts = n_contexts
        self.strength = strength
        self.random_state = random_state

    def fit(
        self,
        winner: Any,
        loser: Any,
        workers: Any,
        items: Mapping[Any, Sequence[float]] | None = None,
    ) -> Self:
        """Find the contexts.

        Parameters
        ----------
        winner, loser : array-like of shape (n_answers,)
            The items of each comparison.
        workers : array-like of shape (n_answers,)
            The worker of each answer.
        items : mapping from item to features, default=None
            Numbers that describe each item. Without them, each item that was compared has a utility
            of its own.

        Returns
        -------
        LeafRanker
        """
        winner, loser, workers = (np.asarray(column) for column in (winner, loser, workers))
        counts = [len(winner), len(loser), len(workers)]
        if len(set(counts)) > 1 or not counts[0]:
            raise ValueError(
                "winner, loser and workers need one entry for each answer, and at least one answer;"
                f" they have {counts[0]}, {counts[1]} and {counts[2]} entries."
            )
        if np.any(same := winner == loser):
            raise ValueError(
                f"Answer {int(np.flatnonzero(same)[0])} compares {winner[same].tolist()[0]!r} with "
                "itself; leave such answers out."
            )
        self.items_ = np.unique(
            np.concatenate([winner, loser]) if items is None else np.asarray(list(items))
        )
        self._features = self._describe(items)
        X, y = self._differences(winner, loser)
        model = LogisticRegression(C=self.strength, fit_intercept=False, max_iter=500)
        self.leaf_ = LeafClassifier(
            self.n_contexts, local_model=model, random_state=self.random_state
        ).fit(X, y, groups=workers)
        for name in (
            "n_contexts_",
            "groups_",
            "contexts_",
            "probabilities_",
            "usage_",
            "converged_",
        ):
            setattr(self, name, getattr(self.leaf_, name))
        self._warn_if_too_few(workers)
        coefficients = np.stack([local.coef_[0] for local in self.leaf_.local_models_])
        utilities = coefficients @ self._features.T  #                              (K, n_items)
        self.utilities_ = utilities - utilities.mean(axis=1, keepdims=True)
        return self

    def ranking(self, context: int = 0) -> Array:
        """The items of a context, from the largest to the smallest utility."""
        check_is_fitted(self, "utilities_")
        return np.asarray(self.items_[np.argsort(-self.utilities_[context], kind="stable")])

    def identify(self, winner: Any, loser: Any, workers: Any = None) -> Identification:
        """Find the contexts of new workers from a few of their answers."""
        check_is_fitted(self, "utilities_")
        X, y = self._differences(np.asarray(winner), np.asarray(loser))
        return self.leaf_.identify(X, y, groups=workers)

    def disagreement(self) -> Array:
        """Share of pairs of items that two contexts order differently.

        Returns
        -------
        ndarray of shape (n_contexts_, n_contexts_)
            Symmetric, with zeros on the diagonal.
        """
        check_is_fitted(self, "utilities_")
        first, second = np.triu_indices(len(self.items_), k=1)
        order = np.sign(self.utilities_[:, first] - self.utilities_[:, second])  #  (K, pairs)
        return np.asarray((order[:, None] * order[None] < 0).mean(axis=-1))

    def choose(self) -> Any:
        """The item to offer if the context is unknown: the one with the smallest maximum regret.

        The regret of an item in a context is 1/2 minus the probability that it is preferred to the
        best item of the context.
        """
        check_is_fitted(self, "utilities_")
        return self.items_[int(self.regrets().max(axis=0).argmin())]

    def regrets(self) -> Array:
        """Regret of each item in each context; see `choose`.

        Returns
        -------
        ndarray of shape (n_contexts_, n_items)
            Between 0, for the best item of a context, and 1/2.
        """
        check_is_fitted(self, "utilities_")
        behind = self.utilities_.max(axis=1, keepdims=True) - self.utilities_
        return np.asarray(0.5 - 1.0 / (1.0 + np.exp(behind)))

    def _describe(self, items: Mapping[Any, Sequence[float]] | None) -> Array:
        """Features of each item, (n_items, d)."""
        if items is None:
            return np.eye(len(self.items_))
        features = np.asarray([items[item] for item in self.items_.tolist()], dtype=float)
        if features.ndim != 2 or not np.isfinite(features).all():
            raise ValueError("items must give every item the same number of finite features.")
        return features

    def _differences(self, winner: Array, loser: Array) -> tuple[Array, Array]:
        """Differences between the features of two items, and whether the first was preferred.

        The winner is the first item in every other answer, so that both classes occur.
        """
        places = np.searchsorted(self.items_, [winner, loser]).clip(max=len(self.items_) - 1)
        unknown = self.items_[places] != np.stack([winner, loser])
        if unknown.any():
            item = np.stack([winner, loser])[unknown].tolist()[0]
            raise ValueError(
                f"Item {item!r} is not known; items are those that were fitted, or described in "
                "`items`."
            )
        first_won = np.arange(len(winner)) % 2 == 0
        gain = self._features[places[0]] - self._features[places[1]]
        return np.where(first_won[:, None], gain, -gain), first_won.astype(int)

    def _warn_if_too_few(self, workers: Array) -> None:
        """Warn if workers gave too few answers: K contexts need 2K - 1 binary answers of each."""
        sizes = np.unique(workers, return_counts=True)[1]
        warn_about_few_answers(
            sizes, self.leaf_.n_contexts_, 2 * self.leaf_.n_contexts_ - 1, "workers", "worker"
        )
