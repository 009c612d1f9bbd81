"""Which context does a source belong to? The answer of `identify`, one entry a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.engines.calibration import posterior

SURE = 0.9  # with abstain=True, a context is named only at this probability or above


@dataclass(frozen=True, eq=False)
class Identification:
    """The contexts of some groups, as `identify` found them.

    Parameters
    ----------
    groups
        The groups' labels.
    context
        The most probable context of each; -1 where it abstains.
    probability
        Posterior over the contexts, shape (n_groups, n_contexts).
    margin
        Gap in log-posterior to the second-best context; infinite where there is only one.
    novelty
        How much worse the best context explains the group than it explains rows of its own that it has not learnt from: the larger, the
        less like any known context. Each row has a place among the losses of such rows, from 0 (the smallest) to 1 (the largest); novelty
        is the distance of their mean from 1/2 in standard deviations, for that number of rows. A known source has a novelty of about 0,
        give or take 1; ten rows that are all worse than any known one have about 4, a single row 1.7 at most. It is 0 throughout where too
        few rows were there to hold any out.
    is_new
        Whether the novelty is above 2.33, which at most about 1 % of the sources of known contexts exceed by chance, or all labels of the
        group are ones that were not there in training. One row alone is new only in the second way. With one mislabelled row in ten about
        1 % of known sources are called new, with two 4 %, with three 11 %.

    Examples
    --------
    >>> found = Identification.from_scores(np.array(["site 7"]), np.array([[0.1, 4.0]]), np.array([0.2]), np.array([False]))
    >>> found.context, found.is_new
    (array([0]), array([False]))
    """

    groups: NDArray[Any]
    context: NDArray[np.intp]
    probability: NDArray[np.float64]
    margin: NDArray[np.float64]
    novelty: NDArray[np.float64]
    is_new: NDArray[np.bool_]

    @classmethod
    def from_scores(
        cls,
        groups: NDArray[Any],
        evidence: NDArray[np.float64],
        novelty: NDArray[np.float64],
        is_new: NDArray[np.bool_],
        abstain: bool = False,
    ) -> Identification:
        """Build the answer from minus the log-likelihoods (n_groups, n_contexts) and what was found of each group's novelty."""
        probability = posterior(evidence)
        context = evidence.argmin(1)
        ordered = np.sort(evidence, 1)
        margin = (
            ordered[:, 1] - ordered[:, 0]
            if evidence.shape[1] > 1
            else np.full(len(evidence), np.inf)
        )
        if abstain:
            context = np.where(is_new | (probability.max(1) < SURE), -1, context)
        return cls(groups, context, probability, margin, novelty, is_new)

    def __len__(self) -> int:
        return len(self.groups)
