"""Does a source belong to a known context, or to one that is not in the training data?

Training losses cannot answer this: networks overfit, so any new row has a higher loss than the
training rows. Therefore, once the contexts are found, local models are fitted again without some of
the groups, and the losses of these held-out groups are kept. They show how a known context looks on
rows that its model has not seen. Predictions come from the models that were fitted on all rows.

A new source is compared by ranks. Each of its losses has a rank, scaled to lie between 0 and 1,
among the held-out losses of the best context; for a source of a known context the ranks are uniform
with mean 1/2. The novelty is the distance of their mean above 1/2, in standard deviations (the rank
test of Wilcoxon, Mann and Whitney). The rank of a mislabelled row is at most 1, so that one such
row among n moves the mean by at most 1/(2n).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.core.grouped_data import sum_by_group
from leaflearn.engines import settings

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HeldOut:
    """Losses of known contexts on rows that their models have not seen.

    Parameters
    ----------
    losses
        Sorted losses of each context.
    spread
        Standard deviation of the mean rank between sources, beyond what the number of rows
        explains.
    least
        Losses below it count as equal.
    evidence_factor
        Differences in loss are divided by this factor, because training losses overstate how much
        new rows say about their context; see `calibration.py`.

    Examples
    --------
    >>> held_out = HeldOut([np.linspace(0.1, 1.0, 200)], spread=0.05, least=0.0)
    >>> known, new = np.linspace(0.1, 1.0, 10), np.linspace(0.9, 2.0, 10)
    >>> losses, group = np.concatenate([known, new])[:, None], np.repeat([0, 1], 10)
    >>> held_out.novelty(losses, group, np.array([0, 0])).round(1).tolist()
    [0.0, 4.6]
    """

    losses: list[Floats]  #                                                       K arrays
    spread: float
    least: float
    # model folders have stored it as `doubt` since version 0.1.0
    evidence_factor: float = field(default=1.0, metadata={"saved_as": "doubt"})

    @classmethod
    def of(
        cls,
        losses: Floats,
        group: NDArray[np.intp],
        constant_loss: float,
        evidence_factor: float = 1.0,
    ) -> HeldOut:
        """From the losses (H, K) of rows that the models have not seen, and their groups (H,)."""
        limits = settings.HELD_OUT
        _, group = np.unique(group, return_inverse=True)
        best = sum_by_group(losses, group).argmin(1)  # as in `identify`                     (m,)
        context, own = best[group], losses[np.arange(len(group)), best[group]]
        by_context = [np.sort(own[context == k]) for k in range(losses.shape[1])]
        pooled = np.sort(own)
        known = cls(
            [each if len(each) >= limits.min_held_out_rows else pooled for each in by_context],
            limits.min_spread,
            limits.negligible_loss * constant_loss,
        )
        spread = known._spread_of(losses, group, best)
        return cls(known.losses, spread, known.least, evidence_factor)

    @classmethod
    def unknown(cls, n_contexts: int) -> HeldOut:
        """Where nothing could be held out: every source then has novelty 0."""
        return cls([np.empty(0)] * n_contexts, settings.HELD_OUT.min_spread, 0.0)

    def novelty(self, losses: Floats, group: NDArray[np.intp], best: NDArray[np.intp]) -> Floats:
        """How far the mean rank of each group's losses is above 1/2, in standard deviations, (m,).

        Parameters
        ----------
        losses
            Loss of every row under every local model, NaN where the label is new, shape (N, K).
        group
            The group of each row, 0..m-1, shape (N,).
        best
            The best context of each group, shape (m,).
        """
        ranks = self._ranks(losses[np.arange(len(group)), best[group]], best[group])
        n_rows, n_held_out = np.bincount(group), np.array([len(each) for each in self.losses])[best]
        by_chance = (n_rows + n_held_out + 1) / (12.0 * n_rows * np.maximum(n_held_out, 1))
        variance = by_chance + self.spread**2
        return np.asarray((np.bincount(group, ranks) / n_rows - 0.5) / np.sqrt(variance))

    def _ranks(self, own: Floats, context: NDArray[np.intp]) -> Floats:
        """Rank of each loss among the held-out ones of its context, scaled to lie between 0 and 1.

        Ties share a rank; NaN comes last.
        """
        ranks = np.full(len(own), 0.5)
        for k, known in enumerate(self.losses):
            rows = np.flatnonzero(context == k)
            ordered, new = np.maximum(known, self.least), np.maximum(own[rows], self.least)
            below, up_to = (np.searchsorted(ordered, new, side) for side in ("left", "right"))
            ranks[rows] = (0.5 * (below + up_to) + 0.5) / (len(known) + 1)
        return ranks

    def _spread_of(self, losses: Floats, group: NDArray[np.intp], best: NDArray[np.intp]) -> float:
        """By how much held-out groups differ beyond chance; one standard error is subtracted."""
        min_spread = settings.HELD_OUT.min_spread
        size = np.bincount(group)
        ranks = self._ranks(losses[np.arange(len(group)), best[group]], best[group])
        excess = (np.bincount(group, ranks) / size - 0.5) ** 2 - 1.0 / (12.0 * size)
        excess = excess[size > 1]  # single rows do not show it
        if len(excess) < 2:
            return min_spread
        lower = excess.mean() - excess.std(ddof=1) / np.sqrt(len(excess))
        return float(np.sqrt(max(lower, min_spread**2)))


def choose_held_out(
    X: Any, group: NDArray[np.intp], contexts: NDArray[np.intp], rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to train on and rows to hold out.

    A fifth of the groups of each context is held out, or a fifth of its rows where groups are few.
    A copy of a held-out row in the same context reveals its target, so copies are left out of
    training as well, unless too few rows would remain.

    Examples
    --------
    >>> X, group = np.arange(40.0)[:, None], np.repeat(np.arange(20), 2)
    >>> contexts, rng = np.zeros(20, dtype=int), np.random.default_rng(0)
    >>> train, held = choose_held_out(X, group, contexts, rng)
    >>> len(train), len(held), np.intersect1d(group[train], group[held]).tolist()
    (32, 8, [])
    """
    limits = settings.HELD_OUT
    copy_of = _number_inputs(X, len(group))
    train, held = [], []
    for k in np.unique(contexts):
        rows = np.flatnonzero(contexts[group] == k)
        has_groups = np.sum(contexts == k) >= limits.min_groups_to_hold_out
        is_held = _draw_units(group[rows] if has_groups else rows, rng)
        # Held-out rows count as copies of themselves.
        is_copy = np.isin(copy_of[rows], copy_of[rows[is_held]])
        is_enough = np.sum(~is_copy) >= limits.min_training_share * len(rows)
        train.append(rows[~is_copy] if is_enough else rows[~is_held])
        held.append(rng.permutation(rows[is_held])[: limits.max_held_out_rows])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(held))


def _draw_units(unit: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which rows belong to a fifth of the units, or to as many units as have enough rows."""
    limits = settings.HELD_OUT
    units = rng.permutation(np.unique(unit))
    enough = int(np.ceil(limits.max_held_out_rows * len(units) / len(unit)))
    return np.isin(unit, units[: min(int(limits.held_out_share * len(units)), enough)])


def _number_inputs(X: Any, n_rows: int) -> NDArray[np.int64]:
    """A number per row, the same for equal inputs.

    In containers other than numeric arrays all rows count as different.
    """
    if not isinstance(X, np.ndarray) or X.dtype == object:
        return np.arange(n_rows)
    return np.array([hash(row.tobytes()) for row in X], dtype=np.int64)
