"""A start from the conflict: contexts for all groups, found in closed form, and how far they can be trusted.

groups of several rows    search with smoothers, at several scales; the scale and the start that explain unseen groups best are kept
groups of one row         label masses, where the domains have labels of their own
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from leaflearn.conflict.features import Projection, Waves
from leaflearn.conflict.label_masses import partition_labels, predict_left_out
from leaflearn.conflict.search import LEAST_LOSS, RIDGE, harden, search
from leaflearn.conflict.selection import Counted, beats, choose, count_down, count_up
from leaflearn.conflict.smoothers import MOST_ROWS_OF_A_GROUP, GroupTable, solve
from leaflearn.conflict.strangers import MANY, find_strangers, set_strangers_aside
from leaflearn.data.grouping import position_in_group

SCALES = (0.075, 0.15, 0.3, 0.6, 1.2)  # of the waves, in units of the inputs' spread
STARTS_EACH, STARTS_MORE = 3, 8  # at each scale, and then at the best one
AGREED = 0.5  # share of starts that come to the same; where it is less, more are made
MOST_CONTEXTS = 10  # that are looked for where their number is not given
MOST_ROWS = 2000  # that are searched; the other groups follow in training
TRUSTED = 0.5  # of the loss of a single smoother: what a start must come below to be trusted
MOST_SINGLE_ROWS = 8000  # that labels are counted on, where groups are single rows: it takes less work and more rows
LABEL_SCALE = 0.6  # of the waves that probabilities of labels are learnt with
CONSTANT, SURELY_CONSTANT = 0.5, 0.25  # how much the mass of a block of labels may vary: given their number, and to find it


@dataclass(frozen=True, eq=False)
class Start:
    """Contexts to start from.

    Parameters
    ----------
    kind
        Where they come from: `"conflict"` or `"labels"`.
    contexts
        The context of each group.
    error
        What is left unexplained, 1 where nothing is explained.
    is_trusted
        Whether it is good enough to train from.
    reason
        Why, or why not, in a sentence.
    counts
        What was found with 1, 2, ... contexts.
    is_stranger
        Which rows seem to belong to another context than their group's, among those that were looked at.
    """

    kind: str
    contexts: NDArray[np.intp]  #                                               (m,)
    error: float
    is_trusted: bool
    reason: str
    counts: list[Counted] = field(default_factory=list)
    is_stranger: NDArray[np.bool_] | None = None  #                             (N,)


def find_start(
    x: NDArray[np.floating], y: NDArray[np.generic], group: NDArray[np.intp], n_contexts: int | None, n_classes: int, seed: int
) -> Start:
    """Contexts for the groups, found without training.

    Parameters
    ----------
    x
        Inputs (N, ...).
    y
        Class numbers (N,) or values (N, D).
    group
        The group of each row, 0..m-1.
    n_contexts
        How many contexts to find; None finds out how many there are.
    n_classes
        How many classes there are; 0 in regression.
    seed
        Of all that is drawn.

    Examples
    --------
    >>> from leaflearn.data.sampling import sample_groups
    >>> from leaflearn.datasets import functions
    >>> from leaflearn.evaluation import allocation_agreement
    >>> sample, truth = sample_groups(functions(), random_state=0)
    >>> start = find_start(sample.x, sample.y[:, None], sample.groups, n_contexts=3, n_classes=0, seed=0)
    >>> start.is_trusted, allocation_agreement(start.contexts, truth.domain) > 0.98
    (True, True)
    """
    generator, rng = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    rows, groups = _choose_rows(group, rng)
    project = Projection.of(x[rows])
    if np.bincount(group).max() == 1 and n_classes:
        rows = np.sort(rng.permutation(len(group))[:MOST_SINGLE_ROWS])
        z = torch.cat(
            [project(x[part]) for part in np.array_split(rows, -(-len(rows) // MOST_ROWS))]
        )  # not all at once: pictures are large
        return _by_labels(z, y, rows, group, n_contexts, n_classes, generator, rng)
    return _by_search(project, x, _Targets(y, n_classes, rows), group, rows, groups, n_contexts, generator)


def _by_search(
    project: Projection, x: NDArray[np.floating], y: _Targets, group: NDArray[np.intp], rows: NDArray[np.intp], groups: NDArray[np.intp],
    n_contexts: int | None, generator: torch.Generator,
) -> Start:  # fmt: skip
    z, numbers = project(x[rows]), np.searchsorted(groups, group[rows])
    waves = [Waves.of(z, scale, generator) for scale in SCALES]
    tables = [GroupTable.of(wave(z), y(rows), numbers) for wave in waves]
    found: dict[int, _Best] = {}

    def find(n: int) -> Counted:
        chosen = found.get(n_contexts or 0)  # the number that was asked for comes first, and chooses the scale
        among = range(len(tables)) if chosen is None or n == 1 else [chosen.scale]
        found[n] = _search_scales(tables, among, n, generator)
        return Counted(n, found[n].error, found[n].held_out)

    if n_contexts is None:
        counts = count_up(find, min(MOST_CONTEXTS, len(groups)))
        n_used = choose(counts)
    else:
        n_used, counts = count_down(find, n_contexts)
    one, best = counts[0], next(count for count in counts if count.n_contexts == n_used)
    is_trusted = n_used > 1 and (best.error < TRUSTED * one.error or beats(best, one))
    left = f"{100 * best.error / max(one.error, 1e-12):.2g} %"
    reason = f"smooth models of {n_used} contexts leave {left} of what one model leaves unexplained"
    scale = found[n_used].scale
    found[n_used], stranger = _mind_strangers(found[n_used], tables[scale], len(rows))
    contexts = _extend(found[n_used], tables[scale], lambda part: waves[scale](project(x[part])), y, group, groups)
    is_stranger = np.zeros(len(group), dtype=bool)
    is_stranger[rows] = stranger
    return Start("conflict", contexts, best.error, is_trusted, reason, counts, is_stranger)


def _extend(
    best: _Best, table: GroupTable, describe: Callable[[slice], Tensor], y: _Targets, group: NDArray[np.intp], groups: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Contexts for all groups: those that were searched keep theirs, the others go to the smoother that explains them best."""
    contexts = np.empty(int(group.max()) + 1, dtype=np.intp)
    if len(groups) < len(contexts):
        n_contexts = int(best.contexts.max()) + 1
        weights = harden(torch.as_tensor(best.contexts)[None], n_contexts, table.y.dtype)
        coefficients, *_ = solve(table, weights, torch.full((1,), RIDGE * max(best.error, LEAST_LOSS), dtype=table.y.dtype))  # (K, F, D)
        scores = torch.zeros(len(contexts), n_contexts, dtype=table.y.dtype)
        for start in range(0, len(group), MOST_ROWS):
            part = slice(start, start + MOST_ROWS)
            losses = (y(part) - describe(part) @ coefficients).square().sum(-1).T  #              (rows, K)
            scores.index_add_(0, torch.as_tensor(group[part]), losses)
        contexts = scores.argmin(1).numpy()
    contexts[groups] = best.contexts
    return contexts


def _mind_strangers(best: _Best, table: GroupTable, n_rows: int) -> tuple[_Best, NDArray[np.bool_]]:
    """Where many rows do not belong to their group, contexts that these did not decide; and which rows that are, (n_rows,)."""
    is_stranger = np.zeros(n_rows, dtype=bool)
    contexts = torch.as_tensor(best.contexts)
    found = find_strangers(best.row_losses, contexts, table)
    if found.sum() > MANY * n_rows:
        again = set_strangers_aside(table, contexts, len(best.row_losses))
        best = best._replace(contexts=again.contexts[0].numpy(), row_losses=again.row_losses[0])
        found = find_strangers(best.row_losses, again.contexts[0], table)
        is_stranger[table.row[found.numpy()]] = True
    return best, is_stranger


class _Best(NamedTuple):
    """The start that explains unseen groups best, and at which scale it was found."""

    scale: int
    contexts: NDArray[np.intp]  #                                               (m',)
    error: float
    held_out: NDArray[np.float64]  #                                            (m',)
    row_losses: Tensor  #                                                       (K, m', n)


def _search_scales(tables: list[GroupTable], among: Sequence[int], n_contexts: int, generator: torch.Generator) -> _Best:
    """Search at these scales, and once more at the best one where its starts do not agree."""
    n_starts = 1 if n_contexts == 1 else STARTS_EACH
    found = [search(tables[scale], n_contexts, n_starts, generator) for scale in among]
    scales = list(among)
    first = int(np.argmin([float(f.error.min()) for f in found]))
    if (found[first].error < 1.05 * found[first].error.min()).double().mean() < AGREED:
        found.append(search(tables[scales[first]], n_contexts, STARTS_MORE, generator))
        scales.append(scales[first])
    which = int(np.argmin([float(f.error.min()) for f in found]))
    best, start = found[which], int(found[which].error.argmin())
    return _Best(
        scales[which],
        best.contexts[start].numpy(),
        float(best.error[start]),
        best.held_out[start].nanmean(-1).numpy(),
        best.row_losses[start],
    )


def _by_labels(
    z: Tensor, y: NDArray[np.generic], rows: NDArray[np.intp], group: NDArray[np.intp], n_contexts: int | None, n_classes: int,
    generator: torch.Generator, rng: np.random.Generator,
) -> Start:  # fmt: skip
    labels = one_hot(torch.as_tensor(y[rows]), n_classes).to(z.dtype)
    probabilities = predict_left_out(Waves.of(z, LABEL_SCALE, generator)(z), labels)
    covariance = np.cov(probabilities.numpy().T)
    tried = [n_contexts] if n_contexts else range(2, min(MOST_CONTEXTS, n_classes) + 1)
    partitions = [(0, np.zeros(n_classes, dtype=np.intp), 0.0)] if n_contexts is None else []  # all labels together always sum to one
    partitions += [(n, *partition_labels(covariance, n, rng)) for n in tried]
    limit = CONSTANT if n_contexts else SURELY_CONSTANT
    n_used, block, worst = max((p for p in partitions if p[2] < limit), key=lambda p: p[0], default=partitions[-1])
    contexts = np.empty(len(group), dtype=np.intp)
    contexts[group] = block[y]
    reason = f"the probabilities of each context's labels sum to a constant, but for {100 * worst:.2g} % of their variance"
    return Start("labels", contexts, worst, n_used > 1 and worst < CONSTANT, reason)


def _choose_rows(group: NDArray[np.intp], rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of as many groups, drawn at random, as have MOST_ROWS rows together, and these groups; some rows of large ones."""
    size = np.minimum(np.bincount(group), MOST_ROWS_OF_A_GROUP)
    order = rng.permutation(len(size))
    taken = np.sort(order[: max(1, int(np.searchsorted(np.cumsum(size[order]), MOST_ROWS, side="right")))])
    is_shown = position_in_group(group, rng.permutation(len(group))) < MOST_ROWS_OF_A_GROUP
    return np.flatnonzero(np.isin(group, taken) & is_shown), taken


class _Targets:
    """Targets (N, D) with mean 0 and a variance of 1 in all, made from rows when they are asked for.

    Values are in units of their spread, classes are columns of zeros and ones. The mean and the scale are those of `rows`.
    """

    def __init__(self, y: NDArray[np.generic], n_classes: int, rows: NDArray[np.intp]) -> None:
        self.y, self.n_classes = y, n_classes
        values = self._columns(rows)
        self.mean = values.mean(0)
        self.scale = torch.ones_like(self.mean) if n_classes else values.std(0, correction=0).clamp(min=1e-12)
        self.scale = self.scale * ((values - self.mean) / self.scale).var(0, correction=0).sum().sqrt().clamp(min=1e-12)

    def __call__(self, rows: NDArray[np.intp] | slice) -> Tensor:
        return (self._columns(rows) - self.mean) / self.scale

    def _columns(self, rows: NDArray[np.intp] | slice) -> Tensor:
        values = torch.as_tensor(self.y[rows])
        return one_hot(values, self.n_classes).to(torch.float64) if self.n_classes else values.to(torch.float64)
