"""How well contexts of groups agree with the truth, and whether stated probabilities hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leaflearn.benchmark.groups.settings import GROUPS
from leaflearn.benchmark.json_lines import Record
from leaflearn.core.matching import match_contexts


def score_contexts(
    contexts: ArrayLike, probabilities: NDArray[np.float64], truth: ArrayLike
) -> Record:
    """Compare the contexts of groups with the truth.

    Parameters
    ----------
    contexts, truth
        The context that was found for each group, and the true one, shape (m,).
    probabilities
        The stated probability of every context, shape (m, K).

    Returns
    -------
    dict
        Numbers of contexts found and true; the adjusted Rand index; the number of groups, of those
        in the right context (contexts are matched one to one), of those whose context is stated
        as at least 90 % probable, and of those among them that are wrong; and for each bin of
        stated probabilities its groups, the sum of the probabilities, and the groups that are
        right.

    Examples
    --------
    >>> stated = np.array([[0.99, 0.01], [0.97, 0.03], [0.4, 0.6], [0.96, 0.04]])
    >>> found = score_contexts([0, 0, 1, 0], stated, truth=[1, 1, 0, 0])
    >>> found["n_found"], found["n_right"], found["n_sure"], found["n_sure_wrong"]
    (2, 3, 3, 1)
    """
    from sklearn.metrics import adjusted_rand_score

    found, true = np.asarray(contexts), np.asarray(truth)
    stated = probabilities[np.arange(len(found)), found]
    is_right = match_contexts(found, true, probabilities.shape[1])[found] == true
    is_sure = stated >= GROUPS.sure
    place = np.minimum(np.searchsorted(GROUPS.bins, stated, side="right"), len(GROUPS.bins) - 1)
    bins = [
        [int((place == b).sum()), float(stated[place == b].sum()), int(is_right[place == b].sum())]
        for b in range(len(GROUPS.bins))
    ]
    return {
        "n_found": int(probabilities.shape[1]),
        "n_true": len(np.unique(true)),
        "ari": round(float(adjusted_rand_score(true, found)), 4),
        "n_groups": len(found),
        "n_right": int(is_right.sum()),
        "n_sure": int(is_sure.sum()),
        "n_sure_wrong": int((is_sure & ~is_right).sum()),
        "bins": bins,
    }


@dataclass(frozen=True)
class ReliabilityBin:
    """Groups whose stated probabilities are in one bin.

    Examples
    --------
    >>> ReliabilityBin(n_groups=10, stated=0.95, right=0.8).n_groups
    10
    """

    n_groups: int
    stated: float  # mean stated probability
    right: float  # share of groups in the right context


def collect_reliability(scores: Iterable[Record]) -> list[ReliabilityBin]:
    """Stated probabilities against rightness over data sets whose number of contexts is right.

    Data sets with one context state nothing and do not count.

    Examples
    --------
    >>> score = {"n_found": 2, "n_true": 2, "bins": [[2, 1.6, 1], [0, 0.0, 0]]}
    >>> collect_reliability([score, score])
    [ReliabilityBin(n_groups=4, stated=0.8, right=0.5)]
    """
    counted = [
        score["bins"]
        for score in scores
        if score["n_found"] == score["n_true"] and score["n_true"] > 1
    ]
    if not counted:
        return []
    return [
        ReliabilityBin(int(n), float(stated / n), float(right / n))
        for n, stated, right in np.sum(counted, axis=0)
        if n
    ]
