"""Does the fit look right? What can be seen without the truth, told in sentences that say what to do.

The search with smooth models takes a second and knows nothing of the fit. So it is a second opinion: where it explains unseen groups much
better than the fitted contexts do, or needs one context more, or where starts that explain the groups equally well disagree, the contexts
are in doubt; so are they where all groups came to be in one of several. Where contexts are right, a local model may still be wrong
(`straying.py`), or have learnt nothing at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.core.matching import match_contexts
from leaflearn.diagnostics.surrogate_gap import find_surrogate_gaps
from leaflearn.initialization.n_contexts import CandidateCount, is_significantly_better
from leaflearn.initialization.surrogate import BestStart, SmoothSurrogate, Surrogate

BETTER = 2.0  # times better must a second opinion explain unseen groups, to be believed
AS_GOOD = 1.5  # times the error of the best start: others up to here count as equally good
SAME = 0.98  # share of groups, weighed in the same way, above which two allocations are one
AGREE = 0.9  # share of groups, weighed by how clearly they tell, on which equally good starts must agree


@dataclass(frozen=True)
class Diagnosis:
    """What speaks against a fit.

    Examples
    --------
    >>> Diagnosis(["The starts disagree."]).looks_right
    False
    """

    problems: list[str] = field(default_factory=list)
    stability: float = 1.0

    @property
    def looks_right(self) -> bool:
        """Nothing speaks against it."""
        return not self.problems


def diagnose(
    reading: Surrogate | None,
    scores: NDArray[np.float64],
    restarts: Sequence[dict[str, Any]],
    unit: float,
    has_converged: bool,
    outputs: NDArray[np.float64] | None = None,
    told: NDArray[np.intp] | None = None,
    n_before: int | None = None,
) -> Diagnosis:
    """Hold a fit against a second opinion and against its own other starts.

    Parameters
    ----------
    reading
        Of the same data; None where smooth models cannot read them.
    scores
        Mean loss of every group under every local model, shape (m, K).
    restarts
        Of every start its `error` and its `contexts` (m,).
    unit
        The loss of the best constant prediction.
    has_converged
        Whether the allocation stood still in the end.
    outputs
        What the local models answer to the rows of the reading, shape (N', K, D); None where smooth models have nothing to say to that.
    told
        The contexts that labels alone tell, where groups are single rows, shape (m,).
    n_before
        How many contexts there were before some were pruned or merged; None after a fit.

    Examples
    --------
    >>> scores = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> restarts = [{"error": 0.1, "contexts": np.array([0, 1, 0, 1])}, {"error": 0.1, "contexts": np.array([0, 0, 1, 1])}]
    >>> diagnose(None, scores, restarts, 1.0, True).problems
    ['Starts that explain the groups equally well agree on 50 % of them only; give more rows a group, or more groups.']
    """
    # Contexts without groups have nothing to be doubted, unless there is but one that has any.
    used, contexts = np.unique(scores.argmin(1), return_inverse=True)
    n_asked = n_before or scores.shape[1]
    scores, n_contexts = scores[:, used], len(used)
    problems = (
        []
        if has_converged
        else ["Groups were still moving between contexts when the fit ended; raise max_epochs."]
    )
    others = [
        r["contexts"] for r in restarts if r["error"] <= AS_GOOD * min(s["error"] for s in restarts)
    ]
    weight = _tell(scores, unit)
    agreed = [_agreement(contexts, other, weight) for other in others]
    if reading is not None and n_contexts > 1:
        found = reading.find(n_contexts)
        fitted = reading.judge(contexts, n_contexts, found.scale)
        minded, is_outlier = reading.exclude_outliers(found)
        shared, shared_minded = (
            _agreement(contexts[reading.groups], best.contexts, weight[reading.groups])
            for best in (found, minded)
        )
        problems += _second_opinion(reading, fitted, found, n_contexts, is_other=shared < SAME)
        if is_outlier.any() and shared_minded < SAME and not problems:
            problems += _tell_strangers(is_outlier[reading.rows].mean(), 1 - shared_minded)
        if (
            isinstance(reading, SmoothSurrogate) and outputs is not None and not problems
        ):  # else the contexts are to be mended first
            problems += _tell_straying(
                {
                    int(used[k]): far
                    for k, far in find_surrogate_gaps(reading, fitted, outputs[:, used]).items()
                }
            )
        if found.error <= AS_GOOD * fitted.error:
            agreed.append(shared)
    elif reading is not None and n_asked > 1:
        problems += _tell_collapse(reading, n_asked, is_changed=n_before is not None)
    if reading is not None:  # wrong contexts alone make models as bad as a constant, but no worse
        problems += _tell_failure(reading, scores.min(1), BETTER * unit if problems else unit)
    if told is not None and (off := 1 - _agreement(contexts, told, np.ones(len(told)))) > 1 - SAME:
        problems.append(
            f"Labels alone tell another context for {100 * off:.0f} % of the rows; set init='conflict', which begins with these."
        )
    stability = min(agreed, default=1.0)
    if stability < AGREE:
        problems.append(
            f"Starts that explain the groups equally well agree on {100 * stability:.0f} % of them only; "
            "give more rows a group, or more groups."
        )
    return Diagnosis(problems, stability)


def _second_opinion(
    reading: Surrogate, fitted: BestStart, found: BestStart, n_contexts: int, is_other: bool
) -> list[str]:
    one, more = reading.find(1), reading.find(n_contexts + 1, [found.scale])
    told = [
        CandidateCount(n, best.error, best.held_out)
        for n, best in ((1, one), (n_contexts, fitted), (n_contexts + 1, more))
    ]
    if is_other and BETTER * found.error < fitted.error:
        times = fitted.error / max(found.error, 1e-12)
        return [
            f"Another allocation explains unseen groups {times:.0f} times better; set init='conflict', or raise n_init."
        ]
    if is_significantly_better(told[2], told[1]):
        return [
            f"{n_contexts + 1} contexts explain unseen rows clearly better than {n_contexts}; try n_contexts={n_contexts + 1}."
        ]
    if not is_significantly_better(told[1], told[0]) and fitted.error > 0.5 * one.error:
        return [
            f"{n_contexts} contexts foretell unseen rows no better than one does; there may be no conflict: try n_contexts=1."
        ]
    return []


def _tell_collapse(reading: Surrogate, n_asked: int, is_changed: bool) -> list[str]:
    """All groups are in one context: would two, or as many as were asked for, or one more, foretell held-out rows better?"""
    one = reading.find(1)
    for n in sorted({2, n_asked, n_asked + 1}):  # of three contexts, two may be no better than one
        more = reading.find(n)
        if is_significantly_better(
            CandidateCount(n, more.error, more.held_out), CandidateCount(1, one.error, one.held_out)
        ):
            better = f"{n} contexts explain unseen rows clearly better than 1"
            if is_changed:
                return [f"{better}; try n_contexts={n}."]
            return [
                f"All groups are in one context, but {better}; set init='conflict', or raise n_init."
            ]
    return []


def _tell_failure(reading: Surrogate, losses: NDArray[np.float64], most: float) -> list[str]:
    """Where the losses of the groups (m,) are not below what a constant leaves at most: do smooth models do much better?"""
    # A model that is too sure of its labels pays dearly for a few of them. So most groups must be explained badly, too.
    if losses.mean() < most or np.median(losses) < most / BETTER:
        return []
    left = min(
        best.error for best in (reading.find(1), *reading.best.values())
    )  # 1 is what a constant leaves
    if BETTER * left > 1:
        return []
    return [
        f"The local models explain the groups no better than a constant does, and smooth models leave {100 * left:.2g} % of that; "
        "give more rows, raise max_epochs, or try another local_model."
    ]


def _tell_strangers(share: float, moved: float) -> list[str]:
    return [
        f"{100 * share:.0f} % of the rows seem to belong to another context than their group's, and without them "
        f"{100 * moved:.0f} % of the groups would change theirs; set init='conflict', which sets such rows aside, or raise trim."
    ]


def _tell_straying(straying: dict[int, float]) -> list[str]:
    if not straying:
        return []
    which = "context" if len(straying) == 1 else "contexts"
    return [
        f"What was learnt in {which} {', '.join(map(str, sorted(straying)))} is up to {100 * max(straying.values()):.0f} % of the targets' "
        "spread away from smooth models that foretell unseen groups, so functions may be badly drawn between the rows; "
        "give more rows, raise max_epochs, or try another local_model."
    ]


def _tell(scores: NDArray[np.float64], unit: float) -> NDArray[np.float64]:
    """How clearly each group tells its context: 0 where another explains it as well, 1 where none comes near, shape (m,)."""
    if scores.shape[1] == 1:
        return np.ones(len(scores))
    first, second = np.partition(scores, 1, axis=1)[:, :2].T
    return np.clip((second - first) / unit, 0.0, 1.0)


def _agreement(a: NDArray[np.intp], b: NDArray[np.intp], weight: NDArray[np.float64]) -> float:
    """Share of the weight on which two allocations agree, under the best match of their contexts."""
    if not weight.sum() > 0:
        return 1.0
    return float(np.average(match_contexts(a, b, weight=weight)[a] == b, weights=weight))
