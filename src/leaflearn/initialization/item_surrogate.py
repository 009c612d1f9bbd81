"""Inputs that are names: each item that was labelled has a column of zeros and ones to itself. Their contexts are found by counting.

An `ItemSurrogate` stands where smooth models would: it gives a start for the fit, and a second opinion on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from leaflearn.initialization.features import Projection
from leaflearn.initialization.items import Allocated, ItemMeans
from leaflearn.initialization.n_contexts import MIN_GAIN as TENTH
from leaflearn.initialization.n_contexts import CandidateCount
from leaflearn.initialization.search import SearchResult
from leaflearn.initialization.start import MOST_CONTEXTS, TRUSTED, Start
from leaflearn.initialization.surrogate import BestStart, SmoothSurrogate, Targets

FEWEST_ITEMS = 20  # more than these; fewer values are a category, which smooth models can read
HAVE_ITEMS = 0.5  # of the rows, at least: else the columns are something else
MOST_CELLS = 10**8  # of X, which is looked at as a whole
PATIENCE = 2  # numbers of contexts in a row that may bring nothing before the count ends
CLEARLY = 3.0  # standard errors
MIN_GAIN = 0.03  # of the loss: what a context must save
MOST_FILLED = 20  # cells of a row of a sparse X, on average: texts have more words
LOOKED_AT = 1000  # rows, which say whether a closer look is worth it

Codes = NDArray[np.intp]


def find_items(X: Any, group: Codes) -> Codes | None:
    """The item of each row (N,), -1 where it has none; None where the columns (N, F) are no names, or no two groups share one.

    An item has a column that is 1 in its rows and 0 in all others. Other columns may describe items, each of which has one value there.

    Examples
    --------
    >>> group, item = np.divmod(np.arange(60), 30)
    >>> find_items(np.eye(30)[item], group)[:4], find_items(item[:, None] / 30, group)
    (array([0, 1, 2, 3]), None)
    """
    x = _read_table(X)
    if (
        x is None
        or np.bincount(group).max() == 1
        or not len(_find_flags(x[:: max(1, len(x) // LOOKED_AT)]))
    ):
        return None
    flags = _find_flags(x)
    # Rows that are equal in all columns are about one item. A name belongs to one of these distinct rows and no other.
    known = dict[bytes, int]()
    code = np.array(
        [known.setdefault((row + 0.0).tobytes(), len(known)) for row in x]
    )  # + 0.0: there is but one zero
    distinct = x[np.unique(code, return_index=True)[1]][:, flags]
    is_named = np.asarray(distinct[:, distinct.sum(0) == 1].any(1), dtype=bool)
    if is_named.sum() <= FEWEST_ITEMS or is_named[code].mean() < HAVE_ITEMS:
        return None
    item = np.where(is_named, np.cumsum(is_named) - 1, -1)[code]
    owner = np.unique(np.stack([item, group]), axis=1)[0]
    return item if np.bincount(owner[owner >= 0]).max() > 1 else None


def _read_table(X: Any) -> NDArray[Any] | None:
    """The inputs as numbers in rows and columns, where they are that, and more columns than a category has."""
    if (
        getattr(X, "ndim", 0) != 2
        or X.shape[1] <= FEWEST_ITEMS
        or X.shape[0] * X.shape[1] > MOST_CELLS
    ):
        return None
    if sparse.issparse(X):
        return np.asarray(X.toarray()) if X.nnz <= MOST_FILLED * X.shape[0] else None
    types = [X.dtype] if isinstance(X, np.ndarray) else getattr(X, "dtypes", ["unknown"])
    return (
        np.asarray(X, dtype=np.float64)
        if all(getattr(kind, "kind", "") in tuple("biuf") for kind in types)
        else None
    )


def _find_flags(x: NDArray[Any]) -> Codes:
    """The columns of zeros and ones, where they are many and most rows have a one; else none."""
    flags = np.flatnonzero(((x == 0) | (x == 1)).all(0) & x.any(0))
    return (
        flags
        if len(flags) > FEWEST_ITEMS and x[:, flags].any(1).mean() >= HAVE_ITEMS
        else flags[:0]
    )


def start_from_items(
    item: Codes,
    y: NDArray[np.generic],
    group: Codes,
    n_contexts: int | None,
    n_classes: int,
    seed: int,
) -> Start:
    """Contexts for the groups, found by counting. Arguments as in `conflict.start.find_start`, but for the item of each row.

    Examples
    --------
    >>> worker, item = np.divmod(np.arange(240), 24)
    >>> y = ((item < 12) == (worker % 2 == 0)).astype(int)
    >>> start = start_from_items(item, y, worker, None, n_classes=2, seed=0)
    >>> start.is_trusted, len(set(start.contexts))
    (True, 2)
    """
    means, found, counts = (
        ItemMeans(item, _targets(y, n_classes), group, seed),
        list[Allocated](),
        list[CandidateCount](),
    )
    for n in range(1, min(n_contexts or MOST_CONTEXTS, means.n_groups) + 1):
        found.append(means.search(n))
        counts.append(CandidateCount(n, found[-1].error, means.held_out_losses(n)[:, None]))
        if n_contexts is None and len(counts) - _choose(counts) >= PATIENCE:
            break
    n_used = _choose(counts)
    n_used = (
        n_contexts if n_contexts and n_used == 1 else n_used
    )  # who asks for two may know of a difference that shows in few places
    one, count = counts[0], counts[n_used - 1]
    is_trusted = n_used > 1 and (
        count.error < TRUSTED * one.error or _is_better_held_out(count, one)
    )
    left = f"{100 * count.error / max(one.error, 1e-12):.2g} %"
    reason = f"mean answers to the items in {n_used} contexts leave {left} of what those of all groups leave unexplained"
    return Start("conflict", found[n_used - 1].contexts, count.error, is_trusted, reason, counts)


def _choose(counts: list[CandidateCount]) -> int:
    """The smallest number of contexts that no larger one clearly beats."""
    return next(
        count.n_contexts
        for i, count in enumerate(counts)
        if not any(_is_better_held_out(c, count) for c in counts[i + 1 :])
    )


def _is_better_held_out(better: CandidateCount, worse: CandidateCount) -> bool:
    """Clearly, on rows that no search has seen: unlike where smooth models are compared, little has to be allowed for chance."""
    gain = (
        worse.held_out - better.held_out
    ).ravel()  #                                                    (m,)
    gain = gain[np.isfinite(gain)]
    if len(gain) < 2:
        return False
    return bool(
        gain.mean() > max(CLEARLY * gain.std(ddof=1) / math.sqrt(len(gain)), MIN_GAIN * worse.mean)
    )


@dataclass(frozen=True, eq=False)
class ItemSurrogate(SmoothSurrogate):
    """Answers to items as a reading of the conflict, for a second opinion.

    Examples
    --------
    >>> worker, item = np.divmod(np.arange(240), 24)
    >>> y = ((item < 12) == (worker % 2 == 0)).astype(int)
    >>> reading = ItemSurrogate.of_items(np.eye(24)[item], item, y, worker, n_classes=2, seed=0)
    >>> reading.find(2).error < 0.5 * reading.find(1).error
    True
    """

    means: ItemMeans | None = None
    item: Codes | None = None

    @classmethod
    def of_items(
        cls, x: NDArray[np.floating], item: Codes, y: NDArray[np.generic], group: Codes, n_classes: int, seed: int
    ) -> ItemSurrogate:  # fmt: skip
        """Lay out all rows. Arguments as in `start_from_items`, and the inputs (N, F)."""
        rows = np.arange(len(group))
        nowhere = Projection(
            torch.zeros(x.shape[1], dtype=torch.float64),
            torch.zeros(x.shape[1], 1, dtype=torch.float64),
        )
        means = ItemMeans(item, _targets(y, n_classes), group, seed)
        generator = torch.Generator().manual_seed(seed)
        return cls(
            x,
            Targets(y, n_classes, rows),
            group,
            rows,
            np.unique(group),
            nowhere,
            [],
            [],
            generator,
            means=means,
            item=item,
        )

    def judge(self, contexts: NDArray[np.intp], n_contexts: int, scale: int) -> BestStart:
        """What contexts (m,) that come from elsewhere leave unexplained; held-out rows are foretold by as many contexts."""
        assert self.means is not None
        return self._as_best(
            self.means.judge(contexts, n_contexts), self.find(n_contexts).found.held_out
        )

    def exclude_outliers(self, best: BestStart) -> tuple[BestStart, NDArray[np.bool_]]:
        """Groups that name items are asked as a whole, not row by row: nobody is set aside."""
        return best, np.zeros(len(self.group), dtype=bool)

    def answer(self, best: BestStart) -> Tensor:
        """The mean answer of every context to each row's item, (K, N, D)."""
        assert self.means is not None
        assert self.item is not None
        return torch.as_tensor(
            self.means.answer(best.contexts, best.found.losses.shape[1], self.item)
        )

    def _search(self, n_contexts: int, among: Sequence[int]) -> BestStart:
        assert self.means is not None
        # A second opinion asks that a context saves a tenth of the loss. Here less is enough, so what nobody expects to save is taken off.
        held_out = self.means.held_out_losses(n_contexts) - (1 - MIN_GAIN / TENTH) * np.nanmean(
            self.means.held_out_losses(1)
        )
        return self._as_best(
            self.means.search(n_contexts), torch.as_tensor(held_out)[None, :, None]
        )

    def _as_best(self, allocated: Allocated, held_out: Tensor) -> BestStart:
        losses = torch.as_tensor(allocated.losses)[
            None
        ]  #                                                 (1, K, m)
        error = torch.tensor([allocated.error], dtype=losses.dtype)
        return BestStart(
            0,
            SearchResult(
                torch.as_tensor(allocated.contexts)[None],
                losses,
                error,
                held_out,
                losses[..., None],
            ),
        )


def _targets(y: NDArray[np.generic], n_classes: int) -> NDArray[np.float64]:
    """With mean 0 and a variance of 1 in all, (N, D); of two classes, one tells the other."""
    targets = np.asarray(Targets(y, n_classes, np.arange(len(y)))(slice(None)), dtype=np.float64)
    return targets[:, :1] * math.sqrt(2) if n_classes == 2 else targets
