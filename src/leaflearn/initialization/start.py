"""A start from the conflict: contexts for all groups, found in closed form, and how far they can be trusted.

groups of several rows    search with smoothers, at several scales; the scale and the start that explain unseen groups best are kept
groups of one row         label masses, where the domains have labels of their own
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import one_hot

from leaflearn.initialization.features import Projection, RandomFourierFeatures
from leaflearn.initialization.label_blocks import partition_labels, predict_left_out
from leaflearn.initialization.n_contexts import (
    CandidateCount,
    choose,
    count_down,
    count_up,
    is_significantly_better,
)
from leaflearn.initialization.surrogate import MOST_ROWS, BestStart, SmoothSurrogate, choose_rows

MOST_CONTEXTS = 10  # that are looked for where their number is not given
EXPLAINED = (
    0.02  # of the loss of a single smoother: where so little is left, the right scale is known
)
TRUSTED = 0.5  # of the loss of a single smoother: what a start must come below to be trusted
MOST_SINGLE_ROWS = 8000  # that labels are counted on, where groups are single rows: it takes less work and more rows
LABEL_SCALE = 0.6  # of the waves that probabilities of labels are learnt with
CONSTANT, SURELY_CONSTANT = (
    0.5,
    0.25,
)  # how much the mass of a block of labels may vary: given their number, and to find it
CUT = 2.0  # times more varies the mass of a block where a true one was cut in two


@dataclass(frozen=True, eq=False)
class Start:
    """Contexts to start from.

    Parameters
    ----------
    kind
        Where they come from: `"conflict"`, `"seeded"` or `"labels"`.
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
    is_outlier
        Which rows seem to belong to another context than their group's.
    reading
        What the search saw; None where labels told.
    best
        What it found there.
    block
        The context of each label, where labels told.
    mass_variance
        By the number of blocks that labels were put into: how much of its labels' variance the mass of the worst block keeps.
    """

    kind: str
    contexts: NDArray[np.intp]  #                                               (m,)
    error: float
    is_trusted: bool
    reason: str
    counts: list[CandidateCount] = field(default_factory=list)
    is_outlier: NDArray[np.bool_] | None = None  #                             (N,)
    reading: SmoothSurrogate | None = None
    best: BestStart | None = None  # what was found in it
    block: NDArray[np.intp] | None = None  # the context of each label          (C,)
    mass_variance: dict[int, float] = field(default_factory=dict)

    def allocate(
        self, x: NDArray[np.floating], y: NDArray[np.generic], group: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """The context of any groups, by what was found and by squared losses: one a group. Only a start that is trusted can tell."""
        if self.block is not None:
            contexts = np.zeros(int(group.max()) + 1, dtype=np.intp)
            contexts[group] = self.block[y]
            return contexts
        assert self.reading is not None, "there is no start to allocate by"
        assert self.best is not None, "there is no start to allocate by"
        return self.reading.allocate(self.best, x, y, group)


def find_start(
    x: NDArray[np.floating], y: NDArray[np.generic], group: NDArray[np.intp], n_contexts: int | None, n_classes: int, seed: int,
    seeded: bool = False,
) -> Start:  # fmt: skip
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
    seeded
        Begin the search with groups that are explained badly, one context after the other, and not at random.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.sampling import sample_groups
    >>> from leaflearn.benchmark.datasets import functions
    >>> from leaflearn.benchmark.evaluation import allocation_agreement
    >>> sample, truth = sample_groups(functions(), random_state=0)
    >>> start = find_start(sample.x, sample.y[:, None], sample.groups, n_contexts=3, n_classes=0, seed=0)
    >>> start.is_trusted, allocation_agreement(start.contexts, truth.domain) > 0.98
    (True, True)
    """
    if np.bincount(group).max() == 1:
        if n_classes:
            return _by_labels(x, y, group, n_contexts, n_classes, seed)
        return Start(
            "conflict",
            np.zeros(len(group), dtype=np.intp),
            1.0,
            False,
            "single rows with values cannot tell contexts apart",
        )
    return _by_search(SmoothSurrogate.of(x, y, group, n_classes, seed, seeded), n_contexts)


def _by_search(reading: SmoothSurrogate, n_contexts: int | None) -> Start:
    def find(n: int) -> CandidateCount:
        # The number that was asked for comes first, and chooses the scale; so does one that explains nearly all.
        explained = (
            [
                best
                for best in reading.best.values()
                if best.error < EXPLAINED * reading.best[1].error
            ]
            if 1 in reading.best
            else []
        )
        chosen = reading.best.get(n_contexts or 0) or min(
            explained, key=lambda best: best.error, default=None
        )
        best = reading.find(n, None if chosen is None or n == 1 else [chosen.scale])
        return CandidateCount(n, best.error, best.held_out)

    if n_contexts is None:
        counts = count_up(find, min(MOST_CONTEXTS, len(reading.groups)))
        n_used = choose(counts)
    else:
        n_used, counts = count_down(find, n_contexts)
    one, count = counts[0], next(count for count in counts if count.n_contexts == n_used)
    is_trusted = n_used > 1 and (
        count.error < TRUSTED * one.error or is_significantly_better(count, one)
    )
    left = f"{100 * count.error / max(one.error, 1e-12):.2g} %"
    reason = f"smooth models of {n_used} contexts leave {left} of what one model leaves unexplained"
    best = reading.best[n_used]
    best, is_outlier = reading.exclude_outliers(best)
    kind, contexts = "seeded" if reading.seeded else "conflict", reading.extend(best)
    is_outlier |= reading.mark_remaining_outliers(best, contexts)
    return Start(kind, contexts, count.error, is_trusted, reason, counts, is_outlier, reading, best)


def _by_labels(
    x: NDArray[np.floating],
    y: NDArray[np.generic],
    group: NDArray[np.intp],
    n_contexts: int | None,
    n_classes: int,
    seed: int,
) -> Start:
    generator, rng = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    project = Projection.of(x[choose_rows(group, rng)[0]])
    rows = np.sort(rng.permutation(len(group))[:MOST_SINGLE_ROWS])
    parts = np.array_split(rows, -(-len(rows) // MOST_ROWS))  # not all at once: pictures are large
    z = torch.cat([project(x[part]) for part in parts])
    labels = one_hot(torch.as_tensor(y[rows]), n_classes).to(z.dtype)
    probabilities = predict_left_out(RandomFourierFeatures.of(z, LABEL_SCALE, generator)(z), labels)
    tried, chosen = _make_blocks(np.atleast_2d(np.cov(probabilities.numpy().T)), n_contexts, rng)
    contexts = np.empty(len(group), dtype=np.intp)
    contexts[group] = chosen.block[y]
    reason = f"the probabilities of each context's labels sum to a constant, but for {100 * chosen.worst:.2g} % of their variance"
    is_trusted = chosen.n_blocks > 1 and chosen.worst < CONSTANT
    variances = {
        blocks.n_blocks: blocks.worst
        for blocks in sorted(tried, key=lambda blocks: blocks.n_blocks)
    }
    return Start(
        "labels",
        contexts,
        chosen.worst,
        is_trusted,
        reason,
        block=chosen.block,
        mass_variance=variances,
    )


class _Blocks(NamedTuple):
    n_blocks: int
    block: NDArray[np.intp]  # of each label                                    (C,)
    worst: float  # how much the mass of the worst block varies


def _make_blocks(
    covariance: NDArray[np.float64], n_contexts: int | None, rng: np.random.Generator
) -> tuple[list[_Blocks], _Blocks]:
    """Labels put into blocks, all that was tried and what is used.

    Blocks that belong together can always be joined, and their mass is as constant as before; a block that is cut in two is not. So the
    largest number that leaves all masses constant is the right one. Who asks for more gets these, and the other contexts stay empty.
    """
    n_classes = len(covariance)
    if n_contexts is None:
        tried = [
            _Blocks(1, np.zeros(n_classes, dtype=np.intp), 0.0)
        ]  # all labels together always sum to one
        tried += [
            _Blocks(n, *partition_labels(covariance, n, rng))
            for n in range(2, min(MOST_CONTEXTS, n_classes) + 1)
        ]
        return tried, max(
            (blocks for blocks in tried if blocks.worst < SURELY_CONSTANT),
            key=lambda blocks: blocks.n_blocks,
        )
    asked = _Blocks(n_contexts, *partition_labels(covariance, n_contexts, rng))
    tried = [asked]
    while tried[-1].worst >= SURELY_CONSTANT and tried[-1].n_blocks > 2:
        tried.append(
            _Blocks(
                tried[-1].n_blocks - 1, *partition_labels(covariance, tried[-1].n_blocks - 1, rng)
            )
        )
    fewer = tried[-1]
    was_cut = fewer.worst < SURELY_CONSTANT and asked.worst > CUT * fewer.worst
    return tried, fewer if was_cut else asked
