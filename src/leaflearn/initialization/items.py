"""Contexts of groups that answered named items: local models are nothing but the mean answer to each item, and are found by counting.

Smooth models cannot read names: no item is near another. But means need no training, and to leave a group out of them only its own answers
have to be taken off. So the search that smooth models make in half a minute takes a second here, with every row.

A context's mean answer to an item is drawn to that of all groups as if one more answer had been given, since contexts agree on most items;
and all means are drawn to the mean of all answers, as strongly as foretells groups best that were left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from leaflearn.core.grouped_data import position_in_group

N_STARTS, FEWER_STARTS = 10, 5  # to find contexts, and to see how they foretell what was held out
MOST_LOSSES = 5 * 10**6  # of rows in contexts of starts, at once; above it there are fewer starts
SOFT_ROUNDS, HARD_ROUNDS = 30, 20
START_TEMPERATURES = (0.25, 0.125)  # of the targets' variance, in turn over the starts
DRAWN = 1.0  # answers' worth by which a context's mean is drawn to that of all groups
HELD_DOWN = (
    0.5,
    1.0,
    2.0,
    4.0,
    8.0,
)  # answers' worth by which means are drawn to 0: the more, the more answers contradict each other
N_FOLDS = 4  # of the rows of each group, one of which is held out at a time

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Allocated:
    """What a search has come to."""

    contexts: Codes  # of each group                                                        (m,)
    losses: Floats  # mean loss of every context on groups that it has not seen             (K, m)

    @property
    def error(self) -> float:
        """Mean over groups of the loss in their own context."""
        return float(self.losses[self.contexts, np.arange(len(self.contexts))].mean())


class ItemMeans:
    """Answers to items by groups, and what mean answers of contexts say of groups they have not seen.

    Parameters
    ----------
    item
        The item of each row, 0..I-1, or -1 where it has none, of which nothing is said, shape (N,).
    y
        Targets with mean 0 and variance 1 in all, shape (N, D).
    group
        The group of each row, 0..m-1.
    seed
        Of the starts.
    n_items
        How many items there are; by default as many as rows name.

    Examples
    --------
    Six workers answer four questions; every other one answers the opposite.

    >>> worker, item = np.divmod(np.arange(24), 4)
    >>> y = np.where((item < 2) == (worker % 2 == 0), 1.0, -1.0)[:, None]
    >>> found = ItemMeans(item, y, worker, seed=0).search(2)
    >>> found.contexts == found.contexts[0]
    array([ True, False,  True, False,  True, False])
    """

    def __init__(
        self, item: Codes, y: Floats, group: Codes, seed: int, n_items: int | None = None
    ) -> None:
        self.rows = np.flatnonzero(item >= 0)
        self.n_groups, self.n_items = (
            int(group.max()) + 1,
            int(item.max()) + 1 if n_items is None else n_items,
        )
        self.item, self.group, self.y = item[self.rows], group[self.rows], y[self.rows]
        self.rng = np.random.default_rng(seed)
        self.sizes = np.maximum(np.bincount(self.group, minlength=self.n_groups), 1)
        shape = (self.n_groups, self.n_items)
        places = (self.group, np.arange(len(self.rows)))
        self.rows_of_group = csr_array(
            (np.ones(len(self.rows)), places), (self.n_groups, len(self.rows))
        )
        columns = [np.ones(len(self.rows)), *self.y.T]
        self.sums = [
            csr_array((column, (self.group, self.item)), shape) for column in columns
        ]  # answers, then targets   (m, I)
        cell = np.unique(self.group * self.n_items + self.item, return_inverse=True)[1]
        self.own = [
            np.bincount(cell, column)[cell] for column in columns
        ]  # what the row's own group said of its item        (N,)
        errors = {ridge: np.square(self.y - self._predict_all(ridge)).mean() for ridge in HELD_DOWN}
        self.ridge = min(errors, key=lambda ridge: errors[ridge])
        self.pooled = self._predict_all(self.ridge)

    def search(self, n_contexts: int, n_starts: int = N_STARTS) -> Allocated:
        """The best of several starts: annealed, then hard until nothing moves."""
        if n_contexts == 1:
            return self.judge(np.zeros(self.n_groups, dtype=np.intp), 1)
        n_starts = max(2, min(n_starts, MOST_LOSSES // (n_contexts * len(self.rows))))
        contexts = self._anneal(
            n_contexts, n_starts
        )  #                                                    (R, m)
        for _ in range(HARD_ROUNDS):
            losses = self._group_losses(
                np.eye(n_contexts)[contexts].swapaxes(1, 2)
            )  #                     (R, K, m)
            before, contexts = contexts, losses.argmin(1)
            if np.array_equal(before, contexts):
                break
        best = int(losses.min(1).mean(1).argmin())
        return Allocated(contexts[best], losses[best])

    def judge(self, contexts: Codes, n_contexts: int) -> Allocated:
        """What contexts (m,) that nobody may change leave unexplained, each group in its own."""
        return Allocated(contexts, self._group_losses(np.eye(n_contexts)[:, contexts]))

    def answer(self, contexts: Codes, n_contexts: int, item: Codes) -> Floats:
        """The mean answer of each context to each of these items, 0 where there is none, (K, n, D)."""
        count, *sums = (
            (each.T @ np.eye(n_contexts)[contexts]).T for each in self.sums
        )  #                 (K, I) each
        total = (
            np.stack([each.sum(0) for each in self.sums[1:]], axis=-1)
            / (self.sums[0].sum(0) + self.ridge)[:, None]
        )
        means = (np.stack(sums, axis=-1) + DRAWN * total) / (count + DRAWN + self.ridge)[
            ..., None
        ]  #                   (K, I, D)
        return np.where((item >= 0)[:, None], means[:, item], 0.0)

    def held_out_losses(self, n_contexts: int) -> Floats:
        """Mean loss of rows that were held out before contexts were looked for, of each group, nan where it has no others, (m,).

        A search that has seen a row puts groups together because they agree on it. So each fold is searched anew.
        """
        losses = np.full(len(self.group), np.nan)
        for held, part in self._folds:
            contexts = part.search(n_contexts, FEWER_STARTS).contexts
            answers = part.answer(contexts, n_contexts, self.item[held])[
                contexts[self.group[held]], np.arange(len(held))
            ]
            losses[held] = np.square(self.y[held] - answers).sum(-1)
        is_there = np.isfinite(losses)
        count = np.bincount(self.group[is_there], minlength=self.n_groups)
        total = np.bincount(self.group[is_there], losses[is_there], self.n_groups)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    @cached_property
    def _folds(self) -> list[tuple[Codes, ItemMeans]]:
        """Rows to be held out, and the means of all others; the same for every number of contexts, so that these can be compared."""
        fold = position_in_group(self.group, self.rng.permutation(len(self.group))) % N_FOLDS
        has_others, seeds = self.sizes[self.group] > 1, self.rng.integers(2**31, size=N_FOLDS)
        return [
            (
                np.flatnonzero((fold == k) & has_others),
                ItemMeans(
                    np.where(fold == k, -1, self.item),
                    self.y,
                    self.group,
                    int(seeds[k]),
                    self.n_items,
                ),
            )
            for k in range(min(N_FOLDS, int(self.sizes.max())))
        ]

    def _anneal(self, n_contexts: int, n_starts: int) -> Codes:
        """Contexts of the groups after each start, (R, m)."""
        weights = _softmax(2 * self.rng.normal(size=(n_starts, n_contexts, self.n_groups)))
        temperatures = np.resize(START_TEMPERATURES, n_starts)[:, None, None]
        for round_ in range(SOFT_ROUNDS):
            weights = _softmax(
                -self._group_losses(weights) / (temperatures * (1 - round_ / SOFT_ROUNDS))
            )
        return np.asarray(weights.argmax(1))

    def _predict_all(self, ridge: float) -> Floats:
        """The mean answer of all other groups to each row's item, drawn to 0, (N, D)."""
        count, *sums = (
            each.sum(0)[self.item] - own for each, own in zip(self.sums, self.own, strict=True)
        )
        return np.stack(sums, axis=-1) / (count + ridge)[:, None]

    def _group_losses(self, weights: Floats) -> Floats:
        """Mean squared error of each group in every context as if it had not been learnt from, 0 where it has no items; (..., K, m)."""
        flat = weights.reshape(
            -1, self.n_groups
        )  #                                                        (RK, m)
        own_weight = flat[
            :, self.group
        ]  #                                                                 (RK, N)
        count, *sums = (
            (each.T @ flat.T).T[:, self.item] - own_weight * own
            for each, own in zip(self.sums, self.own, strict=True)
        )
        losses = np.zeros_like(count)
        for y, pooled, each in zip(self.y.T, self.pooled.T, sums, strict=True):
            losses += np.square(y - (each + DRAWN * pooled) / (count + DRAWN + self.ridge))
        return np.asarray((self.rows_of_group @ losses.T).T / self.sizes).reshape(weights.shape)


def _softmax(values: Floats) -> Floats:
    """Over the contexts, (R, K, m)."""
    raised = np.exp(values - values.max(1, keepdims=True))
    return np.asarray(raised / raised.sum(1, keepdims=True))
