"""Is a source of a known context, or of one that nobody has seen?

Training losses cannot tell: networks learn their rows by heart, so any new row looks worse than the old ones. So, once the contexts are
found, local models learn them again without some of the groups, and the losses of these groups are kept: that is what a known context
looks like on rows it has not seen. The models that answer have learnt from all rows.

A new source is judged by ranks. Each of its losses has a place between 0 and 1 among the held-out losses of the best context; for a
known source the places are spread evenly, with mean 1/2. How far their mean is above that, in standard deviations, is the novelty
(the rank test of Wilcoxon, Mann and Whitney). A mislabelled row cannot be worse than worst, so it moves the mean by 1/(2n) at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.core.grouped_data import sum_by_group

ALARM_RATE = 0.01  # share of known sources that may be called new
LIMIT = NormalDist().inv_cdf(1.0 - ALARM_RATE)  # the novelty that this share exceeds by chance
HELD_OUT = 0.2  # share of a context's groups
FEW_GROUPS = 10  # in a context with fewer, rows are held out instead of groups
MOST_ROWS = 1000  # held out of a context: more would tell little more
FEW_ROWS = 20  # a context with fewer held-out rows is judged by those of all contexts
LEAST_LEFT = (
    1 / 3
)  # of a context's rows must be left to learn from, where copies of held-out rows leave too
EXPLAINED = (
    1e-4  # of the best constant's loss: smaller losses are all the same, whether 1e-9 or 1e-30
)
TOLERANCE = 0.05  # standard deviation of the mean place among known sources of many rows, at least: no two are quite alike

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HeldOut:
    """Losses that known contexts show on rows they have not learnt from.

    Parameters
    ----------
    losses
        Of each context, sorted.
    spread
        Standard deviation of the mean place from source to source, beyond what the number of rows explains.
    least
        Losses below it count as equal.
    doubt
        How many times less such rows tell of their context than training losses would make believe, see `calibration.py`.

    Examples
    --------
    >>> held_out = HeldOut([np.linspace(0.1, 1.0, 200)], spread=0.05, least=0.0)
    >>> alike, worse = np.linspace(0.1, 1.0, 10), np.linspace(0.9, 2.0, 10)
    >>> losses, group = np.concatenate([alike, worse])[:, None], np.repeat([0, 1], 10)
    >>> held_out.novelty(losses, group, np.array([0, 0])).round(1).tolist()
    [0.0, 4.6]
    """

    losses: list[Floats]  #                                                     K arrays
    spread: float
    least: float
    doubt: float = 1.0

    @classmethod
    def of(
        cls, losses: Floats, group: NDArray[np.intp], constant_loss: float, doubt: float = 1.0
    ) -> HeldOut:
        """From the losses (H, K) of rows that these local models have not seen, and the group of each."""
        _, group = np.unique(group, return_inverse=True)
        best = sum_by_group(losses, group).argmin(
            1
        )  # as `identify` does: the context is the one that explains the group best   (m,)
        context, own = best[group], losses[np.arange(len(group)), best[group]]
        by_context = [np.sort(own[context == k]) for k in range(losses.shape[1])]
        everywhere = np.sort(own)
        kept = cls(
            [each if len(each) >= FEW_ROWS else everywhere for each in by_context],
            TOLERANCE,
            EXPLAINED * constant_loss,
        )
        return cls(kept.losses, kept._spread_of(losses, group, best), kept.least, doubt)

    @classmethod
    def unknown(cls, n_contexts: int) -> HeldOut:
        """Where nothing could be held out: every source then has novelty 0."""
        return cls([np.empty(0)] * n_contexts, TOLERANCE, 0.0)

    def novelty(self, losses: Floats, group: NDArray[np.intp], best: NDArray[np.intp]) -> Floats:
        """How far above 1/2 the mean place of each group's losses is, in standard deviations, shape (m,).

        Takes the losses (N, K) of the rows, NaN where none can be told because a label is new, the group of each, 0..m-1, and the best
        context of each group.
        """
        places = self._places(losses[np.arange(len(group)), best[group]], best[group])
        n_rows, n_held_out = np.bincount(group), np.array([len(each) for each in self.losses])[best]
        variance = (n_rows + n_held_out + 1) / (
            12.0 * n_rows * np.maximum(n_held_out, 1)
        ) + self.spread**2
        return np.asarray((np.bincount(group, places) / n_rows - 0.5) / np.sqrt(variance))

    def _places(self, own: Floats, context: NDArray[np.intp]) -> Floats:
        """The place of each loss among the held-out ones of its context, between 0 and 1; ties share theirs, NaN comes last."""
        places = np.full(len(own), 0.5)
        for k, known in enumerate(self.losses):
            rows = np.flatnonzero(context == k)
            ordered, new = np.maximum(known, self.least), np.maximum(own[rows], self.least)
            below, up_to = (np.searchsorted(ordered, new, side) for side in ("left", "right"))
            places[rows] = (0.5 * (below + up_to) + 0.5) / (len(known) + 1)
        return places

    def _spread_of(self, losses: Floats, group: NDArray[np.intp], best: NDArray[np.intp]) -> float:
        """By how much held-out groups differ from each other beyond chance; only what is clearly there counts."""
        size = np.bincount(group)
        places = self._places(losses[np.arange(len(group)), best[group]], best[group])
        excess = (np.bincount(group, places) / size - 0.5) ** 2 - 1.0 / (12.0 * size)
        excess = excess[size > 1]  # single rows tell nothing of it
        if len(excess) < 2:
            return TOLERANCE
        clearly = excess.mean() - excess.std(ddof=1) / np.sqrt(len(excess))
        return float(np.sqrt(max(clearly, TOLERANCE**2)))


def choose_held_out(
    X: Any, group: NDArray[np.intp], contexts: NDArray[np.intp], rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to learn from, and rows to hold out: a fifth of the groups of each context, or of its rows where groups are few.

    A copy of a held-out row in the same context teaches its answer, so it is not learnt from either, unless too little would be left.

    Examples
    --------
    >>> X, group, contexts = np.arange(40.0)[:, None], np.repeat(np.arange(20), 2), np.zeros(20, dtype=int)
    >>> learn, held = choose_held_out(X, group, contexts, np.random.default_rng(0))
    >>> len(learn), len(held), np.intersect1d(group[learn], group[held]).tolist()
    (32, 8, [])
    """
    copy_of = _number_inputs(X, len(group))
    learn, held = [], []
    for k in np.unique(contexts):
        rows = np.flatnonzero(contexts[group] == k)
        unit = group[rows] if np.sum(contexts == k) >= FEW_GROUPS else rows
        mine = _draw_units(unit, rng)
        is_copy = np.isin(
            copy_of[rows], copy_of[rows[mine]]
        )  # the held-out rows are copies of themselves
        learn.append(rows[~is_copy] if np.sum(~is_copy) >= LEAST_LEFT * len(rows) else rows[~mine])
        held.append(rng.permutation(rows[mine])[:MOST_ROWS])
    return np.sort(np.concatenate(learn)), np.sort(np.concatenate(held))


def _draw_units(unit: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which rows are of a fifth of the units, or of as many as have enough rows."""
    units = rng.permutation(np.unique(unit))
    enough = int(np.ceil(MOST_ROWS * len(units) / len(unit)))
    return np.isin(unit, units[: min(int(HELD_OUT * len(units)), enough)])


def _number_inputs(X: Any, n_rows: int) -> NDArray[np.int64]:
    """A number for each row, the same for equal inputs; in containers other than plain arrays all rows count as different."""
    if not isinstance(X, np.ndarray) or X.dtype == object:
        return np.arange(n_rows)
    return np.array([hash(row.tobytes()) for row in X], dtype=np.int64)
