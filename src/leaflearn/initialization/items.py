"""Contexts of groups that answered named items, found from mean answers.

If inputs are names, smooth models are useless: no item is near another. Instead, the local model of
a context is the mean answer to each item. Means need no training, and leaving out a group only
takes subtracting its own answers. So the search takes about a second, with all rows.

The mean answers of a context shrink towards the pooled mean answers, because contexts agree on most
items. All means shrink towards zero, by the amount that predicts left-out groups best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array
from torch import Tensor

from leaflearn.core.grouped_data import position_in_group
from leaflearn.initialization import settings
from leaflearn.initialization.n_contexts import CandidateCount
from leaflearn.initialization.search import SearchResult
from leaflearn.initialization.surrogate import BestStart, Start, Targets

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


def find_items(X: Any, group: Codes) -> Codes | None:
    """The item of each row (N,), -1 if it has none; None if the inputs (N, F) are not items.

    Every item has an indicator column that is 1 in its rows and 0 in all others. Other columns may
    describe the items; then they have one value per item. At least one item must occur in two
    groups.

    Examples
    --------
    >>> group, item = np.divmod(np.arange(60), 30)
    >>> find_items(np.eye(30)[item], group)[:4], find_items(item[:, None] / 30, group)
    (array([0, 1, 2, 3]), None)
    """
    setting = settings.SEARCH.items
    x = _as_table(X)
    if x is None or np.bincount(group).max() == 1:
        return None
    if not len(_find_indicators(x[:: max(1, len(x) // setting.n_checked_rows)])):
        return None
    indicators = _find_indicators(x)
    # Rows that are equal in all columns are about one item, and each item has its own indicator.
    known = dict[bytes, int]()  # + 0.0 below turns -0.0 into 0.0
    code = np.array([known.setdefault((row + 0.0).tobytes(), len(known)) for row in x])
    distinct = x[np.unique(code, return_index=True)[1]][:, indicators]
    is_named = np.asarray(distinct[:, distinct.sum(0) == 1].any(1), dtype=bool)
    is_category = is_named.sum() <= setting.max_categories
    if is_category or is_named[code].mean() < setting.min_item_share:
        return None
    item = np.where(is_named, np.cumsum(is_named) - 1, -1)[code]
    owner = np.unique(np.stack([item, group]), axis=1)[0]
    return item if np.bincount(owner[owner >= 0]).max() > 1 else None


def _as_table(X: Any) -> NDArray[Any] | None:
    """The inputs as a numeric table, if they are one with more columns than a category has."""
    setting = settings.SEARCH.items
    has_columns = getattr(X, "ndim", 0) == 2 and X.shape[1] > setting.max_categories
    if not has_columns or X.shape[0] * X.shape[1] > setting.max_cells:
        return None
    if sparse.issparse(X):
        return np.asarray(X.toarray()) if X.nnz <= setting.max_nonzeros * X.shape[0] else None
    types = [X.dtype] if isinstance(X, np.ndarray) else getattr(X, "dtypes", ["unknown"])
    is_numeric = all(getattr(kind, "kind", "") in tuple("biuf") for kind in types)
    return np.asarray(X, dtype=np.float64) if is_numeric else None


def _find_indicators(x: NDArray[Any]) -> Codes:
    """The columns of zeros and ones, if there are many and most rows have a one; else none."""
    setting = settings.SEARCH.items
    found = np.flatnonzero(((x == 0) | (x == 1)).all(0) & x.any(0))
    if len(found) > setting.max_categories and x[:, found].any(1).mean() >= setting.min_item_share:
        return found
    return found[:0]


def start_from_items(
    item: Codes,
    y: NDArray[np.generic],
    group: Codes,
    n_contexts: int | None,
    n_classes: int,
    seed: int,
) -> Start:
    """Find contexts of the groups from mean answers to items.

    Arguments as in `find_start`, with the item of each row instead of its inputs.

    Examples
    --------
    >>> worker, item = np.divmod(np.arange(240), 24)
    >>> y = ((item < 12) == (worker % 2 == 0)).astype(int)
    >>> start = start_from_items(item, y, worker, None, n_classes=2, seed=0)
    >>> start.is_trusted, len(set(start.contexts))
    (True, 2)
    """
    setting = settings.SEARCH
    means = ItemMeans(item, _targets(y, n_classes), group, seed)
    found, counts = list[ItemAllocation](), list[CandidateCount]()
    for n in range(1, min(n_contexts or setting.max_contexts, means.n_groups) + 1):
        found.append(means.search(n))
        counts.append(CandidateCount(n, found[-1].error, means.held_out_losses(n)[:, None]))
        patience = setting.n_contexts.patience
        if n_contexts is None and len(counts) - _choose(counts) >= patience:
            break
    n_used = _choose(counts)
    if n_contexts and n_used == 1:  # requested contexts may differ in few places only
        n_used = n_contexts
    one, count = counts[0], counts[n_used - 1]
    is_trusted = n_used > 1 and (
        count.error < setting.trusted_share * one.error or _is_better_held_out(count, one)
    )
    left = f"{100 * count.error / max(one.error, 1e-12):.2g} %"
    reason = (
        f"mean answers to the items in {n_used} contexts leave {left} of what those of all groups "
        "leave unexplained"
    )
    return Start("conflict", found[n_used - 1].contexts, count.error, is_trusted, reason, counts)


def _choose(counts: list[CandidateCount]) -> int:
    """The smallest number of contexts that no larger one improves on significantly."""
    return next(
        count.n_contexts
        for i, count in enumerate(counts)
        if not any(_is_better_held_out(c, count) for c in counts[i + 1 :])
    )


def _is_better_held_out(better: CandidateCount, worse: CandidateCount) -> bool:
    """Whether the first predicts rows significantly better that were held out before the search.

    With smooth models, rows are held out after the search, and a larger gain is required.
    """
    gain = (worse.held_out - better.held_out).ravel()  #                            (m,)
    gain = gain[np.isfinite(gain)]
    if len(gain) < 2:
        return False
    significant = settings.SEARCH.n_contexts.n_standard_errors * gain.std(ddof=1)
    min_gain = settings.SEARCH.items.min_gain
    return bool(gain.mean() > max(significant / math.sqrt(len(gain)), min_gain * worse.mean))


def _targets(y: NDArray[np.generic], n_classes: int) -> Floats:
    """Targets with mean 0 and variances that sum to 1, (N, D); two classes need one column."""
    targets = np.asarray(Targets(y, n_classes, np.arange(len(y)))(slice(None)), dtype=np.float64)
    return targets[:, :1] * math.sqrt(2) if n_classes == 2 else targets


@dataclass(frozen=True, eq=False)
class ItemSurrogate:
    """Mean answers to items as a surrogate of the fit, for its diagnostics.

    Examples
    --------
    >>> worker, item = np.divmod(np.arange(240), 24)
    >>> y = ((item < 12) == (worker % 2 == 0)).astype(int)
    >>> x = np.eye(24)[item]
    >>> surrogate = ItemSurrogate.of(x, item, y, worker, n_classes=2, seed=0)
    >>> surrogate.find(2).error < 0.5 * surrogate.find(1).error
    True
    """

    x: NDArray[np.floating]  #                                                      (N, F)
    group: Codes  #                                                                 (N,)
    means: ItemMeans
    best: dict[int, BestStart] = field(default_factory=dict)  # by the number of contexts

    @classmethod
    def of(
        cls,
        x: NDArray[np.floating],
        item: Codes,
        y: NDArray[np.generic],
        group: Codes,
        n_classes: int,
        seed: int,
    ) -> ItemSurrogate:
        """Lay out all rows. Arguments as in `start_from_items`, and the inputs (N, F)."""
        return cls(x, group, ItemMeans(item, _targets(y, n_classes), group, seed))

    @property
    def rows(self) -> Codes:
        """The rows that are searched: all of them, (N,)."""
        return np.arange(len(self.group))

    @property
    def groups(self) -> Codes:
        """The groups that are searched: all of them, (m,)."""
        return np.unique(self.group)

    @property
    def compares_outputs(self) -> bool:
        """There is nothing between items, so that outputs of local models are not compared."""
        return False

    def find(self, n_contexts: int, among: Sequence[int] | None = None) -> BestStart:
        """Find the best of several starts with this number of contexts; there are no scales."""
        if n_contexts not in self.best:
            # Diagnostics require a gain of `CountSettings.min_gain`. Here a smaller one is enough,
            # so the share of the loss that no context is required to save is subtracted.
            share = 1 - settings.SEARCH.items.min_gain / settings.SEARCH.n_contexts.min_gain
            held_out = self.means.held_out_losses(n_contexts) - share * np.nanmean(
                self.means.held_out_losses(1)
            )
            self.best[n_contexts] = _as_best_start(
                self.means.search(n_contexts), torch.as_tensor(held_out)[None, :, None]
            )
        return self.best[n_contexts]

    def judge(self, contexts: Codes, n_contexts: int, scale: int) -> BestStart:
        """Compute the losses of given contexts (m,).

        Losses of held-out rows are those of the best start with this number of contexts.
        """
        held_out = self.find(n_contexts).found.held_out
        return _as_best_start(self.means.judge(contexts, n_contexts), held_out)

    def exclude_outliers(self, best: BestStart) -> tuple[BestStart, NDArray[np.bool_]]:
        """Exclude no rows: groups that name items are judged as a whole."""
        return best, np.zeros(len(self.group), dtype=bool)


def _as_best_start(allocation: ItemAllocation, held_out: Tensor) -> BestStart:
    contexts = torch.as_tensor(allocation.contexts)[None]
    losses = torch.as_tensor(allocation.losses)[None]  #                            (1, K, m)
    error = torch.tensor([allocation.error], dtype=losses.dtype)
    return BestStart(0, SearchResult(contexts, losses, error, held_out, losses[..., None]))


@dataclass(frozen=True, eq=False)
class ItemAllocation:
    """The contexts of groups, and their losses."""

    contexts: Codes  # of each group                                                (m,)
    losses: Floats  # mean loss of each group in contexts that have not seen it     (K, m)

    @property
    def error(self) -> float:
        """Mean over groups of the loss in their own context."""
        return float(self.losses[self.contexts, np.arange(len(self.contexts))].mean())


class ItemMeans:
    """Answers of groups to items, and losses of groups under mean answers that exclude them.

    Parameters
    ----------
    item
        The item of each row, 0..I-1, or -1 if it has none; such rows are ignored. Shape (N,).
    y
        Targets with mean 0 and variances that sum to 1, shape (N, D).
    group
        The group of each row, 0..m-1.
    seed
        Seed of the starts.
    n_items
        The number of items; by default as many as the rows name.

    Examples
    --------
    Six workers answer four questions; every other worker answers the opposite.

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
        self.n_groups = int(group.max()) + 1
        self.n_items = int(item.max()) + 1 if n_items is None else n_items
        self.item, self.group, self.y = item[self.rows], group[self.rows], y[self.rows]
        self.rng = np.random.default_rng(seed)
        self.sizes = np.maximum(np.bincount(self.group, minlength=self.n_groups), 1)
        n_rows, shape = len(self.rows), (self.n_groups, self.n_items)
        places = (self.group, np.arange(n_rows))
        self.rows_of_group = csr_array((np.ones(n_rows), places), (self.n_groups, n_rows))
        columns = [np.ones(n_rows), *self.y.T]  # counts of answers, then targets
        # (m, I) each
        self.sums = [csr_array((column, (self.group, self.item)), shape) for column in columns]
        cell = np.unique(self.group * self.n_items + self.item, return_inverse=True)[1]
        # The part of these sums that comes from the row's own group, for the item of the row.
        self.own = [np.bincount(cell, column)[cell] for column in columns]  #       (N,) each
        ridges = settings.SEARCH.items.ridges
        errors = {ridge: np.square(self.y - self._predict_pooled(ridge)).mean() for ridge in ridges}
        self.ridge = min(errors, key=lambda ridge: errors[ridge])
        self.pooled = self._predict_pooled(self.ridge)

    def search(self, n_contexts: int, n_starts: int | None = None) -> ItemAllocation:
        """Find the best of several starts: annealed, then hard until no group moves.

        The number of starts is `ItemSettings.n_starts` by default, and lower for large data.
        """
        setting = settings.SEARCH.items
        if n_contexts == 1:
            return self.judge(np.zeros(self.n_groups, dtype=np.intp), 1)
        n_starts = setting.n_starts if n_starts is None else n_starts
        n_starts = max(2, min(n_starts, setting.max_losses // (n_contexts * len(self.rows))))
        contexts = self._anneal(n_contexts, n_starts)  #                            (R, m)
        for _ in range(settings.SEARCH.hard_rounds):
            weights = np.eye(n_contexts)[contexts].swapaxes(1, 2)
            losses = self._group_losses(weights)  #                                 (R, K, m)
            before, contexts = contexts, losses.argmin(1)
            if np.array_equal(before, contexts):
                break
        best = int(losses.min(1).mean(1).argmin())
        return ItemAllocation(contexts[best], losses[best])

    def judge(self, contexts: Codes, n_contexts: int) -> ItemAllocation:
        """Compute the losses of given contexts (m,)."""
        return ItemAllocation(contexts, self._group_losses(np.eye(n_contexts)[:, contexts]))

    def answer(self, contexts: Codes, n_contexts: int, item: Codes) -> Floats:
        """Mean answer of each context to each of these items, 0 for unknown ones, (K, n, D)."""
        pooled_weight = settings.SEARCH.items.pooled_weight
        # (K, I) each
        count, *sums = ((each.T @ np.eye(n_contexts)[contexts]).T for each in self.sums)
        total = np.stack([each.sum(0) for each in self.sums[1:]], axis=-1)
        pooled = total / (self.sums[0].sum(0) + self.ridge)[:, None]  #             (I, D)
        weight = (count + pooled_weight + self.ridge)[..., None]
        means = (np.stack(sums, axis=-1) + pooled_weight * pooled) / weight  #      (K, I, D)
        return np.where((item >= 0)[:, None], means[:, item], 0.0)

    def held_out_losses(self, n_contexts: int) -> Floats:
        """Mean loss of the held-out rows of each group, nan if it has no other rows, (m,).

        Rows are held out before the search, because a search that has seen a row allocates groups
        together that agree on it. So each fold is searched separately.
        """
        n_starts = settings.SEARCH.items.n_held_out_starts
        losses = np.full(len(self.group), np.nan)
        for held, part in self._folds:
            contexts = part.search(n_contexts, n_starts).contexts
            means = part.answer(contexts, n_contexts, self.item[held])  #           (K, n, D)
            own = means[contexts[self.group[held]], np.arange(len(held))]
            losses[held] = np.square(self.y[held] - own).sum(-1)
        is_held = np.isfinite(losses)
        count = np.bincount(self.group[is_held], minlength=self.n_groups)
        total = np.bincount(self.group[is_held], losses[is_held], self.n_groups)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    @cached_property
    def _folds(self) -> list[tuple[Codes, ItemMeans]]:
        """Rows to hold out, and the means of all others; the same for every number of contexts."""
        n_folds = settings.SEARCH.items.n_folds
        fold = position_in_group(self.group, self.rng.permutation(len(self.group))) % n_folds
        has_others, seeds = self.sizes[self.group] > 1, self.rng.integers(2**31, size=n_folds)
        folds = []
        for k in range(min(n_folds, int(self.sizes.max()))):
            shown = np.where(fold == k, -1, self.item)
            means = ItemMeans(shown, self.y, self.group, int(seeds[k]), self.n_items)
            folds.append((np.flatnonzero((fold == k) & has_others), means))
        return folds

    def _anneal(self, n_contexts: int, n_starts: int) -> Codes:
        """Contexts of the groups after each start, (R, m)."""
        soft_rounds, spread = settings.SEARCH.soft_rounds, settings.SEARCH.start_spread
        weights = _softmax(spread * self.rng.normal(size=(n_starts, n_contexts, self.n_groups)))
        temperatures = np.resize(settings.SEARCH.items.start_temperatures, n_starts)[:, None, None]
        for round_ in range(soft_rounds):
            cooled = temperatures * (1 - round_ / soft_rounds)
            weights = _softmax(-self._group_losses(weights) / cooled)
        return np.asarray(weights.argmax(1))

    def _predict_pooled(self, ridge: float) -> Floats:
        """The mean answer of all other groups to each row's item, shrunk towards 0, (N, D)."""
        count, *sums = (
            each.sum(0)[self.item] - own for each, own in zip(self.sums, self.own, strict=True)
        )
        return np.stack(sums, axis=-1) / (count + ridge)[:, None]

    def _group_losses(self, weights: Floats) -> Floats:
        """Mean squared error of each group under means that exclude it, (..., K, m).

        It is 0 for groups without items.
        """
        pooled_weight = settings.SEARCH.items.pooled_weight
        flat = weights.reshape(-1, self.n_groups)  #                                (RK, m)
        own_weight = flat[:, self.group]  #                                         (RK, N)
        count, *sums = (
            (each.T @ flat.T).T[:, self.item] - own_weight * own
            for each, own in zip(self.sums, self.own, strict=True)
        )
        losses = np.zeros_like(count)
        for y, pooled, each in zip(self.y.T, self.pooled.T, sums, strict=True):
            shrunk = (each + pooled_weight * pooled) / (count + pooled_weight + self.ridge)
            losses += np.square(y - shrunk)
        return np.asarray((self.rows_of_group @ losses.T).T / self.sizes).reshape(weights.shape)


def _softmax(values: Floats) -> Floats:
    """Softmax over the contexts, (R, K, m)."""
    raised = np.exp(values - values.max(1, keepdims=True))
    return np.asarray(raised / raised.sum(1, keepdims=True))
