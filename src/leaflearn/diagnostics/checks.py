"""The checks of a fit: which signs that it may be wrong can be seen without the truth?

The search with smooth surrogate models takes a second and does not depend on the fit. `diagnose`
compares the two, in this order:

1. Had the allocation converged when the fit ended?
2. With several contexts in use: does the surrogate find another allocation that predicts held-out
   groups much better, would one context more be better, or is a pooled model as good?
3. Do outlier rows decide the contexts of their groups?
4. Are local models far from the surrogate models of the same contexts?
5. With one of several contexts in use: would more contexts predict held-out rows better?
6. Do the local models explain more than a constant?
7. Where groups are single rows: do the labels imply the same contexts?
8. Do starts that explain the groups equally well agree?

Checks 3 and 4 are made only where nothing was found before, because wrong contexts explain both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leaflearn.core.matching import match_contexts
from leaflearn.diagnostics import settings
from leaflearn.initialization.n_contexts import CandidateCount, is_significantly_better
from leaflearn.initialization.surrogate import BestStart, SmoothSurrogate, Surrogate
from leaflearn.messages import (
    Collapsed,
    LabelsDisagree,
    Message,
    NoBetterThanConstant,
    NoBetterThanPooled,
    OtherAllocationBetter,
    OutlierRowsDecide,
    StartsDisagree,
    StillMoving,
    SurrogateGap,
    TryMoreContexts,
)

Floats = NDArray[np.float64]
Contexts = NDArray[np.intp]


@dataclass(frozen=True)
class Diagnosis:
    """The problems of a fit, and the agreement of its starts.

    Examples
    --------
    >>> Diagnosis((StillMoving(),)).looks_right
    False
    """

    problems: tuple[Message, ...] = ()
    stability: float = 1.0

    @property
    def looks_right(self) -> bool:
        """Whether no problem was found."""
        return not self.problems


def diagnose(
    surrogate: Surrogate | None,
    scores: Floats,
    restarts: Sequence[dict[str, Any]],
    unit: float,
    has_converged: bool,
    outputs: Floats | None = None,
    label_contexts: Contexts | None = None,
    n_before: int | None = None,
) -> Diagnosis:
    """Compare a fit with smooth surrogate models and with its own other starts.

    Parameters
    ----------
    surrogate
        Smooth surrogate models of the same data; None where they cannot be fitted.
    scores
        Mean loss of every group under every local model, shape (m, K).
    restarts
        The `error` and the `contexts` (m,) of every start.
    unit
        The loss of the best constant prediction.
    has_converged
        Whether the allocation had converged when the fit ended.
    outputs
        Outputs of the local models for the rows of the surrogate, shape (N', K, D); None where they
        cannot be compared with the surrogate's.
    label_contexts
        The contexts that the labels alone imply, where groups are single rows, shape (m,).
    n_before
        The number of contexts before some were pruned or merged; None after a fit.

    Examples
    --------
    >>> scores = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> allocations = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    >>> restarts = [{"error": 0.1, "contexts": contexts} for contexts in allocations]
    >>> diagnose(None, scores, restarts, 1.0, True)
    Diagnosis(problems=(StartsDisagree(agreement=0.5),), stability=0.5)
    """
    limits = settings.DIAGNOSTICS
    # Contexts without groups are not checked, unless only one context has groups.
    used, contexts = np.unique(scores.argmin(1), return_inverse=True)
    n_requested = n_before or scores.shape[1]
    scores, n_contexts = scores[:, used], len(used)
    certainty = _certainty(scores, unit)
    problems: list[Message] = [] if has_converged else [StillMoving()]
    agreements = [_agreement(contexts, other, certainty) for other in _equally_good(restarts)]
    if surrogate is not None and n_contexts > 1:
        found = surrogate.find(n_contexts)
        fitted = surrogate.judge(contexts, n_contexts, found.scale)
        cleaned, is_outlier = surrogate.exclude_outliers(found)
        shared, shared_cleaned = (
            _agreement(contexts[surrogate.groups], best.contexts, certainty[surrogate.groups])
            for best in (found, cleaned)
        )
        is_other = shared < limits.same_allocation
        problems += _check_allocation(surrogate, fitted, found, n_contexts, is_other)
        if is_outlier.any() and shared_cleaned < limits.same_allocation and not problems:
            share = float(is_outlier[surrogate.rows].mean())
            problems.append(OutlierRowsDecide(share, 1 - shared_cleaned))
        if isinstance(surrogate, SmoothSurrogate) and outputs is not None and not problems:
            gaps = find_surrogate_gaps(surrogate, fitted, outputs[:, used])
            if gaps:
                numbers = tuple(int(used[k]) for k in sorted(gaps))
                problems.append(SurrogateGap(numbers, max(gaps.values())))
        if found.error <= limits.equal_error_ratio * fitted.error:
            agreements.append(shared)
    elif surrogate is not None and n_requested > 1:
        problems += _check_collapse(surrogate, n_requested, is_update=n_before is not None)
    if surrogate is not None:
        # Wrong contexts alone make models as bad as a constant, but not worse.
        max_loss = limits.min_error_ratio * unit if problems else unit
        problems += _check_constant(surrogate, scores.min(1), max_loss)
    if label_contexts is not None:
        moved = 1 - _agreement(contexts, label_contexts, np.ones(len(label_contexts)))
        if moved > 1 - limits.same_allocation:
            problems.append(LabelsDisagree(moved))
    stability = min(agreements, default=1.0)
    if stability < limits.min_agreement:
        problems.append(StartsDisagree(stability))
    return Diagnosis(tuple(problems), stability)


def _equally_good(restarts: Sequence[dict[str, Any]]) -> list[Contexts]:
    """The contexts of the starts whose error is close to the lowest one."""
    if not restarts:
        return []
    most = settings.DIAGNOSTICS.equal_error_ratio * min(start["error"] for start in restarts)
    return [start["contexts"] for start in restarts if start["error"] <= most]


def _check_allocation(
    surrogate: Surrogate,
    fitted: BestStart,
    found: BestStart,
    n_contexts: int,
    is_other: bool,
) -> list[Message]:
    """Compare the fitted contexts with those the surrogate found, with one more, and with one."""
    limits = settings.DIAGNOSTICS
    pooled, more = surrogate.find(1), surrogate.find(n_contexts + 1, [found.scale])
    if is_other and limits.min_error_ratio * found.error < fitted.error:
        return [OtherAllocationBetter(fitted.error / max(found.error, 1e-12))]
    candidate = _candidate(n_contexts, fitted)
    if is_significantly_better(_candidate(n_contexts + 1, more), candidate):
        return [TryMoreContexts(n_contexts + 1, n_contexts)]
    is_no_better = not is_significantly_better(candidate, _candidate(1, pooled))
    if is_no_better and fitted.error > limits.max_share_of_pooled_error * pooled.error:
        return [NoBetterThanPooled(n_contexts)]
    return []


def _check_collapse(surrogate: Surrogate, n_requested: int, is_update: bool) -> list[Message]:
    """All groups are in one context: would several contexts predict held-out rows better?

    Two contexts are tried, the requested number, and one more: of three contexts, two may be no
    better than one.
    """
    pooled = _candidate(1, surrogate.find(1))
    for n in sorted({2, n_requested, n_requested + 1}):
        if is_significantly_better(_candidate(n, surrogate.find(n)), pooled):
            return [TryMoreContexts(n, 1) if is_update else Collapsed(n)]
    return []


def _check_constant(surrogate: Surrogate, losses: Floats, max_loss: float) -> list[Message]:
    """Losses of the groups (m,) as high as a constant's: are surrogate models much better?"""
    ratio = settings.DIAGNOSTICS.min_error_ratio
    # An overconfident classifier has very high losses in a few groups, so the median counts too.
    if losses.mean() < max_loss or np.median(losses) < max_loss / ratio:
        return []
    error = min(best.error for best in (surrogate.find(1), *surrogate.best.values()))
    # The error of a constant is 1.
    return [] if ratio * error > 1 else [NoBetterThanConstant(error)]


def find_surrogate_gaps(
    surrogate: SmoothSurrogate, fitted: BestStart, outputs: Floats
) -> dict[int, float]:
    """Distance between local models and surrogate models of the same contexts, where it is large.

    The contexts may all be right, and a network with few rows may still fit poorly between them.
    Its outputs are compared with those of a surrogate model that predicts held-out groups, at the
    inputs of other contexts that lie as close to the context's own inputs as these lie to each
    other.

    Parameters
    ----------
    surrogate
        Smooth surrogate models of the data.
    fitted
        The surrogate models of the fitted contexts.
    outputs
        Outputs of the local models for the rows of the surrogate, shape (N', K, D).

    Returns
    -------
    dict
        Root mean square difference by context, in units of the targets' standard deviation.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.sampling import sample_groups
    >>> from leaflearn.benchmark.datasets import functions
    >>> sample, truth = sample_groups(functions(), random_state=0)
    >>> surrogate = SmoothSurrogate.of(sample.x, sample.y[:, None], sample.groups, 0, seed=0)
    >>> fitted = surrogate.judge(truth.domain, 3, scale=2)
    >>> outputs = surrogate.answer(fitted) * surrogate.y.scale + surrogate.y.mean
    >>> outputs = outputs.transpose(0, 1).numpy()
    >>> find_surrogate_gaps(surrogate, fitted, outputs)
    {}
    >>> outputs[:, 1] += 1.0
    >>> list(find_surrogate_gaps(surrogate, fitted, outputs))
    [1]
    """
    groups = np.searchsorted(surrogate.groups, surrogate.group[surrogate.rows])  # (N',)
    own = torch.as_tensor(fitted.contexts[groups])
    z, smooth = surrogate.project(surrogate.x[surrogate.rows]), surrogate.answer(fitted)
    gaps = {}
    for k in range(len(smooth)):
        near = torch.nonzero(_is_near(z, own == k))[:, 0]
        if len(near):
            difference = surrogate.y.scaled(outputs[near.numpy(), k]) - smooth[k, near]
            gap = difference.square().sum(-1).mean()
            unexplained = fitted.found.losses[0, k, fitted.found.contexts[0] == k].mean()
            if gap > max(settings.DIAGNOSTICS.min_surrogate_gap**2, float(unexplained)):
                gaps[k] = float(gap.sqrt())
    return gaps


def _is_near(z: Tensor, is_own: Tensor) -> Tensor:
    """Rows of other contexts (N',) whose inputs (N', d) are close to those of one context.

    Close means: no farther from the nearest of them than these lie from each other.
    """
    between = torch.cdist(z[is_own], z[is_own]).fill_diagonal_(torch.inf)
    if len(between) < 2:
        return torch.zeros_like(is_own)
    return ~is_own & (torch.cdist(z, z[is_own]).amin(1) <= between.amin(1).amax())


def _candidate(n_contexts: int, best: BestStart) -> CandidateCount:
    return CandidateCount(n_contexts, best.error, best.held_out)


def _certainty(scores: Floats, unit: float) -> Floats:
    """How clearly each group belongs to its context, between 0 and 1, shape (m,).

    0 where a second context explains the group as well, 1 where none comes close.
    """
    if scores.shape[1] == 1:
        return np.ones(len(scores))
    first, second = np.partition(scores, 1, axis=1)[:, :2].T
    return np.clip((second - first) / unit, 0.0, 1.0)


def _agreement(a: Contexts, b: Contexts, weight: Floats) -> float:
    """Weighted share of groups on which two allocations agree, under the best match of contexts."""
    if not weight.sum() > 0:
        return 1.0
    return float(np.average(match_contexts(a, b, weight=weight)[a] == b, weights=weight))
