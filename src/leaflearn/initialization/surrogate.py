"""A reading of the conflict: some rows of the data as tables of features, one for each scale, and what searches among them found.

How quickly answers change with the inputs is not known beforehand. So the search runs at several scales, and the one that explains unseen
groups best is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leaflearn.core.grouped_data import position_in_group
from leaflearn.initialization.criteria import Criteria, measure
from leaflearn.initialization.features import Projection, RandomFourierFeatures
from leaflearn.initialization.outliers import (
    CLEARER,
    FEW_ROWS,
    MANY,
    are_outliers,
    bound_losses,
    find_bound,
    find_outlier_rows,
    mean_of_inliers,
    search_with_bounded_losses,
    weigh_rows,
)  # fmt: skip
from leaflearn.initialization.search import (
    LEAST_LOSS,
    RIDGE,
    SearchResult,
    exchange,
    harden,
    judge,
    search,
    search_seeded,
)
from leaflearn.initialization.smoothers import MOST_ROWS_OF_A_GROUP, GroupTable, solve

SCALES = (0.075, 0.15, 0.3, 0.6, 1.2)  # of the waves, in units of the inputs' spread
STARTS_EACH, STARTS_MORE = 3, 8  # at each scale, and then at the best one
AGREED = 0.5  # share of starts that come to the same; where it is less, more are made
MOST_COLUMNS = 40  # of targets
MOST_ROWS = 2000  # that are searched; the other groups follow in training


@dataclass(frozen=True, eq=False)
class BestStart:
    """The start that explains unseen groups best, and at which scale it was found."""

    scale: int
    found: SearchResult  # of one start
    bound: float | None = (
        None  # beyond which the loss of a row is far off, where strangers were set aside
    )

    @property
    def contexts(self) -> NDArray[np.intp]:
        """The context of each group that was searched, (m',)."""
        return self.found.contexts[0].numpy()

    @property
    def row_losses(self) -> Tensor:
        """Loss of every row under every model that has not seen its group, (K, m', n)."""
        return self.found.row_losses[0]

    @property
    def error(self) -> float:
        """Mean over groups of the loss under the best model."""
        return float(self.found.error[0])

    @property
    def held_out(self) -> NDArray[np.float64]:
        """Loss of each row in the context that the others of its group chose, nan where there are none, (m', n)."""
        return self.found.held_out[0].numpy()


@dataclass(frozen=True, eq=False)
class SmoothSurrogate:
    """Tables of features at several scales, and the best starts so far, by the number of contexts.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.sampling import sample_groups
    >>> from leaflearn.benchmark.datasets import functions
    >>> sample, _ = sample_groups(functions(), random_state=0)
    >>> reading = SmoothSurrogate.of(sample.x, sample.y[:, None], sample.groups, n_classes=0, seed=0)
    >>> reading.find(3).error < 0.01 * reading.find(1).error
    True
    """

    x: NDArray[np.floating]  #                                                  (N, ...)
    y: Targets
    group: NDArray[np.intp]  #                                                  (N,)
    rows: NDArray[np.intp]  # that are searched                                 (N',)
    groups: NDArray[np.intp]  # whose rows they are                             (m',)
    project: Projection
    waves: list[RandomFourierFeatures]
    tables: list[GroupTable]
    generator: torch.Generator
    seeded: bool = False  # begin with groups that are explained badly, not at random
    best: dict[int, BestStart] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        x: NDArray[np.floating],
        y: NDArray[np.generic],
        group: NDArray[np.intp],
        n_classes: int,
        seed: int,
        seeded: bool = False,
    ) -> SmoothSurrogate:
        """Lay out the rows of as many groups as are searched. Arguments as in `find_start`."""
        generator, rng = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
        rows, groups = choose_rows(group, rng)
        project, targets = Projection.of(x[rows]), Targets(y, n_classes, rows)
        z, numbers = project(x[rows]), np.searchsorted(groups, group[rows])
        waves = [RandomFourierFeatures.of(z, scale, generator) for scale in SCALES]
        tables = [GroupTable.of(wave(z), targets(rows), numbers) for wave in waves]
        return cls(x, targets, group, rows, groups, project, waves, tables, generator, seeded)

    def find(self, n_contexts: int, among: Sequence[int] | None = None) -> BestStart:
        """The best of several starts with so many contexts, at these scales or all."""
        if n_contexts not in self.best:
            self.best[n_contexts] = self._search(
                n_contexts, range(len(SCALES)) if among is None else among
            )
        return self.best[n_contexts]

    def judge(self, contexts: NDArray[np.intp], n_contexts: int, scale: int) -> BestStart:
        """What contexts (m,) of all groups, which come from elsewhere, leave unexplained at this scale."""
        return BestStart(
            scale, judge(self.tables[scale], torch.as_tensor(contexts[self.groups]), n_contexts)
        )

    def exclude_outliers(self, best: BestStart) -> tuple[BestStart, NDArray[np.bool_]]:
        """Where many rows do not belong to their group, contexts that these did not decide; and which of those searched that are, (N,).

        A row that is far off may also be the one row of its group that tells: contexts may differ in few places. Then to set such rows
        aside leaves the others as they were. Where they are strangers, the others are explained much better without them.
        """
        is_outlier = np.zeros(len(self.group), dtype=bool)
        table, contexts = self.tables[best.scale], best.found.contexts[0]
        suspect = find_outlier_rows(best.row_losses, contexts, table)
        if suspect.sum() <= MANY * len(self.rows):
            return best, is_outlier
        again = search_with_bounded_losses(table, contexts, len(best.row_losses))
        found = find_outlier_rows(again.row_losses[0], again.contexts[0], table)
        before = mean_of_inliers(best.row_losses, contexts, suspect, table)
        after = mean_of_inliers(again.row_losses[0], again.contexts[0], found, table)
        if after > CLEARER * before:
            return best, is_outlier
        is_outlier[self.rows[table.row[found.numpy()]]] = True
        return BestStart(
            best.scale, again, find_bound(again.row_losses[0], again.contexts[0], table)
        ), is_outlier

    def mark_remaining_outliers(
        self, best: BestStart, contexts: NDArray[np.intp]
    ) -> NDArray[np.bool_]:
        """Which rows beyond those that were searched do not belong to their group, (N,), by the same test, given all contexts (m,)."""
        is_outlier = np.zeros(len(self.group), dtype=bool)
        if best.bound is None:
            return is_outlier
        large = np.bincount(self.group)[self.group] > FEW_ROWS
        large[self.rows] = False
        beyond, coefficients = np.flatnonzero(large), self._solve(best, best.bound)
        for start in range(0, len(beyond), MOST_ROWS):
            rows = beyond[start : start + MOST_ROWS]
            losses = self._losses(
                best, coefficients, self.x[rows], self.y.y[rows]
            )  #                      (n, K)
            own = losses.gather(1, torch.as_tensor(contexts[self.group[rows]])[:, None])[:, 0]
            is_outlier[rows] = are_outliers(own, losses.amin(1), best.bound).numpy()
        return is_outlier

    def measure(self, n_contexts: int) -> Criteria:
        """AIC, BIC and ICL of what was found with so many contexts."""
        best = self.best[n_contexts]
        return measure(self.tables[best.scale], best.found)

    def extend(self, best: BestStart) -> NDArray[np.intp]:
        """Contexts for all groups: those that were searched keep theirs, the others go to the smoother that explains them best."""
        contexts = np.empty(int(self.group.max()) + 1, dtype=np.intp)
        if len(self.groups) < len(contexts):
            contexts = self.allocate(best, self.x, self.y.y, self.group, best.bound)
        contexts[self.groups] = best.contexts
        return contexts

    def allocate(
        self,
        best: BestStart,
        x: NDArray[np.floating],
        y: NDArray[np.generic],
        group: NDArray[np.intp],
        bound: float | None = None,
    ) -> NDArray[np.intp]:
        """The smoother that explains each of any groups best; inputs (N, ...), targets as `of` took them, and the group of each row.

        With a bound, a row that is far off counts as far off and no more, neither in the choice nor in what the smoothers learn.
        """
        scores = torch.zeros(int(group.max()) + 1, best.found.losses.shape[1], dtype=torch.float64)
        coefficients = self._solve(best, bound)
        for start in range(0, len(group), MOST_ROWS):
            part = slice(start, start + MOST_ROWS)
            losses = self._losses(
                best, coefficients, x[part], y[part]
            )  #                                  (n, K)
            scores.index_add_(
                0,
                torch.as_tensor(group[part]),
                losses if bound is None else bound_losses(losses, bound),
            )
        return scores.argmin(1).numpy()

    def answer(self, best: BestStart) -> Tensor:
        """What every smoother answers to the rows that were searched, in units of `y`, (K, N', D)."""
        return self._features(best, self.x[self.rows]) @ self._solve(best)

    def _solve(self, best: BestStart, bound: float | None = None) -> Tensor:
        """The coefficients of every smoother, (K, F, D)."""
        table, n_contexts = self.tables[best.scale], best.found.losses.shape[1]
        ridge = torch.full((1,), RIDGE * max(best.error, LEAST_LOSS), dtype=table.y.dtype)
        row_weight = None if bound is None else weigh_rows(best.found.row_losses, bound)
        return solve(
            table, harden(best.found.contexts, n_contexts, table.y.dtype), ridge, row_weight
        )[0]

    def _losses(
        self, best: BestStart, coefficients: Tensor, x: NDArray[np.floating], y: NDArray[np.generic]
    ) -> Tensor:
        """Squared error of these rows under every smoother, (n, K)."""
        return (self.y.scaled(y) - self._features(best, x) @ coefficients).square().sum(-1).T

    def _features(self, best: BestStart, x: NDArray[np.floating]) -> Tensor:
        return self.waves[best.scale](self.project(x))

    def _search(self, n_contexts: int, among: Sequence[int]) -> BestStart:
        """Search at these scales, once more at the best one where its starts do not agree, and exchange models there."""
        look = search_seeded if self.seeded else search
        n_starts = 1 if n_contexts == 1 else STARTS_EACH
        found = {
            scale: look(self.tables[scale], n_contexts, n_starts, self.generator) for scale in among
        }
        scale = min(found, key=lambda s: float(found[s].error.min()))
        best, table = found[scale].take(int(found[scale].error.argmin())), self.tables[scale]
        if (found[scale].error < 1.05 * best.error).double().mean() < AGREED:
            more = look(table, n_contexts, STARTS_MORE, self.generator)
            best = min(best, more.take(int(more.error.argmin())), key=lambda f: float(f.error))
        return BestStart(scale, exchange(table, best, self.generator) if n_contexts > 1 else best)


def choose_rows(
    group: NDArray[np.intp], rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of as many groups, drawn at random, as have MOST_ROWS rows together, and these groups; some rows of large ones.

    Examples
    --------
    >>> choose_rows(np.array([0, 0, 1]), np.random.default_rng(0))
    (array([0, 1, 2]), array([0, 1]))
    """
    size = np.minimum(np.bincount(group), MOST_ROWS_OF_A_GROUP)
    order = rng.permutation(len(size))
    taken = np.sort(
        order[: max(1, int(np.searchsorted(np.cumsum(size[order]), MOST_ROWS, side="right")))]
    )
    is_shown = position_in_group(group, rng.permutation(len(group))) < MOST_ROWS_OF_A_GROUP
    return np.flatnonzero(np.isin(group, taken) & is_shown), taken


class Targets:
    """Targets (N, D) with mean 0 and a variance of 1 in all, made from rows when they are asked for.

    Values are in units of their spread, classes are columns of zeros and ones; very many classes are thrown onto fewer columns, which keeps
    their distances. The mean and the scale are those of `rows`.

    Examples
    --------
    >>> Targets(np.array([0, 1]), 2, np.arange(2))(slice(0, 1)).round(decimals=1)
    tensor([[ 0.7000, -0.7000]], dtype=torch.float64)
    """

    def __init__(self, y: NDArray[np.generic], n_classes: int, rows: NDArray[np.intp]) -> None:
        self.y, self.n_classes = y, n_classes
        self.codes = torch.eye(
            n_classes, dtype=torch.float64
        )  #                                            (C, D)
        if n_classes > MOST_COLUMNS:
            draw = torch.randn(
                n_classes,
                MOST_COLUMNS,
                generator=torch.Generator().manual_seed(0),
                dtype=torch.float64,
            )
            self.codes = draw / MOST_COLUMNS**0.5
        values = self._columns(y[rows])
        self.mean = values.mean(0)
        self.scale = (
            torch.ones_like(self.mean)
            if n_classes
            else values.std(0, correction=0).clamp(min=1e-12)
        )
        self.scale = self.scale * ((values - self.mean) / self.scale).var(
            0, correction=0
        ).sum().sqrt().clamp(min=1e-12)

    def __call__(self, rows: NDArray[np.intp] | slice) -> Tensor:
        """The targets of these rows, (n, D)."""
        return self.scaled(self.y[rows])

    def scaled(self, y: NDArray[np.generic]) -> Tensor:
        """Any targets in the same units, (n, D)."""
        return (self._columns(y) - self.mean) / self.scale

    def _columns(self, y: NDArray[np.generic]) -> Tensor:
        values = torch.as_tensor(y)
        return self.codes[values] if self.n_classes else values.to(torch.float64)
