"""Surrogate models of the data: some rows as tables of features, and the best starts found there.

How quickly targets change with the inputs is not known beforehand. So the search runs at several
scales, and the scale that explains held-out groups best is kept.

`SmoothSurrogate` serves inputs in general, `ItemSurrogate` in `items.py` serves inputs that are
names. Both follow the protocol `Surrogate`, which the diagnostics of a fit use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leaflearn.core.grouped_data import position_in_group
from leaflearn.initialization import settings
from leaflearn.initialization.features import Projection, RandomFourierFeatures
from leaflearn.initialization.n_contexts import CandidateCount, Criteria, compute_criteria
from leaflearn.initialization.outliers import (
    are_outliers,
    bound_losses,
    find_bound,
    find_outlier_rows,
    mean_of_inliers,
    search_with_bounded_losses,
    weigh_rows,
)
from leaflearn.initialization.search import (
    GroupTable,
    SearchResult,
    harden,
    judge,
    ridge_at,
    search,
    search_seeded,
    solve,
    split_and_merge,
)


@dataclass(frozen=True, eq=False)
class BestStart:
    """The start that explains held-out groups best, and the scale at which it was found."""

    scale: int
    found: SearchResult  # of one start
    bound: float | None = None  # of the loss of a row, where outlier rows were excluded

    @property
    def contexts(self) -> NDArray[np.intp]:
        """The context of each group that was searched, (m',)."""
        return self.found.contexts[0].numpy()

    @property
    def row_losses(self) -> Tensor:
        """Loss of every row under models that have not seen its group, (K, m', n)."""
        return self.found.row_losses[0]

    @property
    def error(self) -> float:
        """Mean over groups of the loss under the best model."""
        return float(self.found.error[0])

    @property
    def held_out(self) -> NDArray[np.float64]:
        """Loss of each row in the context that the other rows of its group choose, (m', n).

        It is nan where a group has no other rows.
        """
        return self.found.held_out[0].numpy()


class Surrogate(Protocol):
    """Models in closed form that find contexts independently of the fit, and judge given ones."""

    @property
    def x(self) -> NDArray[np.floating]:
        """The inputs, (N, ...)."""

    @property
    def group(self) -> NDArray[np.intp]:
        """The group of each row, (N,)."""

    @property
    def rows(self) -> NDArray[np.intp]:
        """The rows that are searched, (N',)."""

    @property
    def groups(self) -> NDArray[np.intp]:
        """The groups of these rows, (m',)."""

    @property
    def best(self) -> dict[int, BestStart]:
        """The best starts so far, by the number of contexts."""

    @property
    def compares_outputs(self) -> bool:
        """Whether its models are functions that outputs of local models can be compared with."""

    def find(self, n_contexts: int, among: Sequence[int] | None = None) -> BestStart:
        """Find the best start with this number of contexts, at these scales or all."""

    def judge(self, contexts: NDArray[np.intp], n_contexts: int, scale: int) -> BestStart:
        """Compute the losses of given contexts (m,) of all groups at this scale."""

    def exclude_outliers(self, best: BestStart) -> tuple[BestStart, NDArray[np.bool_]]:
        """Find contexts without the influence of outlier rows, and mark these rows, (N,)."""


@dataclass(frozen=True, eq=False)
class SmoothSurrogate:
    """Tables of features at several scales, and the best starts so far.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.sampling import sample_groups
    >>> from leaflearn.benchmark.datasets import functions
    >>> data, _ = sample_groups(functions(), random_state=0)
    >>> surrogate = SmoothSurrogate.of(data.x, data.y[:, None], data.groups, n_classes=0, seed=0)
    >>> surrogate.find(3).error < 0.01 * surrogate.find(1).error
    True
    """

    x: NDArray[np.floating]  #                                                      (N, ...)
    y: Targets
    group: NDArray[np.intp]  #                                                      (N,)
    rows: NDArray[np.intp]  # that are searched                                     (N',)
    groups: NDArray[np.intp]  # of these rows                                       (m',)
    project: Projection
    features: list[RandomFourierFeatures]  # one per scale
    tables: list[GroupTable]  # one per scale
    generator: torch.Generator
    seeded: bool = False  # whether starts add one model at a time, instead of random starts
    best: dict[int, BestStart] = field(default_factory=dict)  # by the number of contexts

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
        scales = settings.SEARCH.scales
        features = [RandomFourierFeatures.of(z, scale, generator) for scale in scales]
        tables = [GroupTable.of(make(z), targets(rows), numbers) for make in features]
        return cls(x, targets, group, rows, groups, project, features, tables, generator, seeded)

    @property
    def compares_outputs(self) -> bool:
        """Its models are functions of the inputs, so that their predictions can be compared."""
        return True

    def find(self, n_contexts: int, among: Sequence[int] | None = None) -> BestStart:
        """Find the best of several starts with this number of contexts, at these scales or all."""
        if n_contexts not in self.best:
            scales = range(len(self.tables)) if among is None else among
            self.best[n_contexts] = self._search(n_contexts, scales)
        return self.best[n_contexts]

    def judge(self, contexts: NDArray[np.intp], n_contexts: int, scale: int) -> BestStart:
        """Compute the losses of given contexts (m,) of all groups at this scale."""
        own = torch.as_tensor(contexts[self.groups])
        return BestStart(scale, judge(self.tables[scale], own, n_contexts))

    def exclude_outliers(self, best: BestStart) -> tuple[BestStart, NDArray[np.bool_]]:
        """Find contexts without the influence of outlier rows, if there are many of them.

        Returns the start and a mask of the outlier rows among those that were searched, (N,).

        A row with a large loss may also be the only informative row of its group, because contexts
        may differ in few places. Excluding such rows leaves the loss of the others as it was. If
        the rows are outliers, the others are explained much better without them.
        """
        setting = settings.SEARCH.outliers
        is_outlier = np.zeros(len(self.group), dtype=bool)
        table, contexts = self.tables[best.scale], best.found.contexts[0]
        suspect = find_outlier_rows(best.row_losses, contexts, table)
        if suspect.sum() <= setting.min_share * len(self.rows):
            return best, is_outlier
        bounded = search_with_bounded_losses(table, contexts, len(best.row_losses))
        row_losses, bounded_contexts = bounded.row_losses[0], bounded.contexts[0]
        found = find_outlier_rows(row_losses, bounded_contexts, table)
        before = mean_of_inliers(best.row_losses, contexts, suspect, table)
        after = mean_of_inliers(row_losses, bounded_contexts, found, table)
        if after > setting.max_loss_ratio * before:
            return best, is_outlier
        is_outlier[self.rows[table.row[found.numpy()]]] = True
        bound = find_bound(row_losses, bounded_contexts, table)
        return BestStart(best.scale, bounded, bound), is_outlier

    def mark_remaining_outliers(
        self, best: BestStart, contexts: NDArray[np.intp]
    ) -> NDArray[np.bool_]:
        """Mark outlier rows among those that were not searched, (N,), given all contexts (m,)."""
        is_outlier = np.zeros(len(self.group), dtype=bool)
        if best.bound is None:
            return is_outlier
        is_open = np.bincount(self.group)[self.group] > settings.SEARCH.outliers.undecidable_size
        is_open[self.rows] = False
        remaining, coefficients = np.flatnonzero(is_open), self._solve(best, best.bound)
        max_rows = settings.SEARCH.max_rows
        for start in range(0, len(remaining), max_rows):
            rows = remaining[start : start + max_rows]
            losses = self._losses(best, coefficients, self.x[rows], self.y.y[rows])  # (n, K)
            own = losses.gather(1, torch.as_tensor(contexts[self.group[rows]])[:, None])[:, 0]
            is_outlier[rows] = are_outliers(own, losses.amin(1), best.bound).numpy()
        return is_outlier

    def criteria(self, n_contexts: int) -> Criteria:
        """AIC, BIC and ICL of the best start with this number of contexts."""
        best = self.best[n_contexts]
        return compute_criteria(self.tables[best.scale], best.found)

    def extend(self, best: BestStart) -> NDArray[np.intp]:
        """Return contexts of all groups, (m,); groups that were not searched are allocated."""
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
        """Return the best context of each of any groups.

        Inputs (N, ...), targets and the group of each row are as in `of`. With a bound, the losses
        of rows are bounded, both in the fit of the models and in the choice of the context.
        """
        scores = torch.zeros(int(group.max()) + 1, best.found.losses.shape[1], dtype=torch.float64)
        coefficients = self._solve(best, bound)
        max_rows = settings.SEARCH.max_rows
        for start in range(0, len(group), max_rows):
            part = slice(start, start + max_rows)
            losses = self._losses(best, coefficients, x[part], y[part])  #          (n, K)
            losses = losses if bound is None else bound_losses(losses, bound)
            scores.index_add_(0, torch.as_tensor(group[part]), losses)
        return scores.argmin(1).numpy()

    def answer(self, best: BestStart) -> Tensor:
        """Predict the rows that were searched with every model, in units of `y`, (K, N', D)."""
        return self._features(best, self.x[self.rows]) @ self._solve(best)

    def _solve(self, best: BestStart, bound: float | None = None) -> Tensor:
        """The coefficients of every model, (K, F, D)."""
        table, n_contexts = self.tables[best.scale], best.found.losses.shape[1]
        weights = harden(best.found.contexts, n_contexts, table.y.dtype)
        row_weight = None if bound is None else weigh_rows(best.found.row_losses, bound)
        return solve(table, weights, ridge_at(best.found.error), row_weight)[0]

    def _losses(
        self, best: BestStart, coefficients: Tensor, x: NDArray[np.floating], y: NDArray[np.generic]
    ) -> Tensor:
        """Squared error of these rows under every model, (n, K)."""
        return (self.y.scaled(y) - self._features(best, x) @ coefficients).square().sum(-1).T

    def _features(self, best: BestStart, x: NDArray[np.floating]) -> Tensor:
        return self.features[best.scale](self.project(x))

    def _search(self, n_contexts: int, among: Sequence[int]) -> BestStart:
        """Search at these scales, with more starts at the best one if its starts disagree."""
        setting = settings.SEARCH
        run = search_seeded if self.seeded else search
        n_starts = 1 if n_contexts == 1 else setting.n_starts
        found = {
            scale: run(self.tables[scale], n_contexts, n_starts, self.generator) for scale in among
        }
        scale = min(found, key=lambda s: float(found[s].error.min()))
        errors, table = found[scale].error, self.tables[scale]
        best = found[scale].take(int(errors.argmin()))
        is_close = errors < setting.close_error * best.error
        if is_close.double().mean() < setting.min_agreement:
            more = run(table, n_contexts, setting.n_extra_starts, self.generator)
            best = min(best, more.take(int(more.error.argmin())), key=lambda f: float(f.error))
        if n_contexts > 1:
            best = split_and_merge(table, best, self.generator)
        return BestStart(scale, best)


@dataclass(frozen=True, eq=False)
class Start:
    """Contexts to start the fit from.

    Parameters
    ----------
    kind
        How they were found: `"conflict"`, `"seeded"` or `"labels"`.
    contexts
        The context of each group.
    error
        The loss that the contexts leave, 1 if they explain nothing.
    is_trusted
        Whether they are good enough to train from.
    reason
        Why, or why not, in a sentence.
    counts
        The losses with 1, 2, ... contexts.
    is_outlier
        Which rows seem to belong to another context than their group's.
    surrogate
        The surrogate that was searched; None if contexts come from labels or items.
    best
        The best start of the surrogate.
    block
        The context of each label, if contexts come from labels.
    mass_variance
        By the number of blocks of labels: the largest share of its labels' variance that the mass
        of a block keeps.
    """

    kind: str
    contexts: NDArray[np.intp]  #                                                   (m,)
    error: float
    is_trusted: bool
    reason: str
    counts: list[CandidateCount] = field(default_factory=list)
    is_outlier: NDArray[np.bool_] | None = None  #                                  (N,)
    surrogate: SmoothSurrogate | None = None
    best: BestStart | None = None
    block: NDArray[np.intp] | None = None  #                                        (C,)
    mass_variance: dict[int, float] = field(default_factory=dict)

    def allocate(
        self, x: NDArray[np.floating], y: NDArray[np.generic], group: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Return the context of each of any groups, by squared losses or by labels.

        Only a trusted start that does not come from items can allocate.
        """
        if self.block is not None:
            contexts = np.zeros(int(group.max()) + 1, dtype=np.intp)
            contexts[group] = self.block[y]
            return contexts
        assert self.surrogate is not None, "there is no start to allocate by"
        assert self.best is not None, "there is no start to allocate by"
        return self.surrogate.allocate(self.best, x, y, group)


def choose_rows(
    group: NDArray[np.intp], rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draw groups until they have `SearchSettings.max_rows` rows, and return rows and groups.

    Groups larger than `SearchSettings.max_rows_per_group` are represented by a part of their rows.

    Examples
    --------
    >>> choose_rows(np.array([0, 0, 1]), np.random.default_rng(0))
    (array([0, 1, 2]), array([0, 1]))
    """
    setting = settings.SEARCH
    size = np.minimum(np.bincount(group), setting.max_rows_per_group)
    order = rng.permutation(len(size))
    n_taken = int(np.searchsorted(np.cumsum(size[order]), setting.max_rows, side="right"))
    taken = np.sort(order[: max(1, n_taken)])
    is_shown = position_in_group(group, rng.permutation(len(group))) < setting.max_rows_per_group
    return np.flatnonzero(np.isin(group, taken) & is_shown), taken


class Targets:
    """Targets as columns (N, D) with mean 0 and variances that sum to 1, computed on demand.

    Values are standardized, classes are indicator columns. Very many classes are projected onto
    fewer columns, which approximately keeps their distances. The mean and the scale are those of
    `rows`.

    Examples
    --------
    >>> Targets(np.array([0, 1]), 2, np.arange(2))(slice(0, 1)).round(decimals=1)
    tensor([[ 0.7000, -0.7000]], dtype=torch.float64)
    """

    def __init__(self, y: NDArray[np.generic], n_classes: int, rows: NDArray[np.intp]) -> None:
        self.y, self.n_classes = y, n_classes
        self.codes = torch.eye(n_classes, dtype=torch.float64)  #                   (C, D)
        n_columns = settings.SEARCH.max_target_columns
        if n_classes > n_columns:
            generator = torch.Generator().manual_seed(0)
            draw = torch.randn(n_classes, n_columns, generator=generator, dtype=torch.float64)
            self.codes = draw / n_columns**0.5
        values = self._columns(y[rows])
        self.mean = values.mean(0)
        deviation = values.std(0, correction=0).clamp(min=1e-12)
        self.scale = torch.ones_like(self.mean) if n_classes else deviation
        variance = ((values - self.mean) / self.scale).var(0, correction=0).sum()
        self.scale = self.scale * variance.sqrt().clamp(min=1e-12)

    def __call__(self, rows: NDArray[np.intp] | slice) -> Tensor:
        """Return the targets of these rows, (n, D)."""
        return self.scaled(self.y[rows])

    def scaled(self, y: NDArray[np.generic]) -> Tensor:
        """Return any targets in the same units, (n, D)."""
        return (self._columns(y) - self.mean) / self.scale

    def _columns(self, y: NDArray[np.generic]) -> Tensor:
        values = torch.as_tensor(y)
        return self.codes[values] if self.n_classes else values.to(torch.float64)
