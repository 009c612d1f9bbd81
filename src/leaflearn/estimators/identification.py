"""The result of `identify`: the context of each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.diagnostics import settings
from leaflearn.engines.calibration import posterior


@dataclass(frozen=True, eq=False)
class Identification:
    """The contexts of groups, as found by `identify`.

    Parameters
    ----------
    groups
        The labels of the groups.
    context
        The most probable context of each group; -1 where `identify` abstained.
    probability
        Posterior over the contexts, shape (n_groups, n_contexts).
    margin
        Difference in log posterior to the second-best context; infinite if there is only one.
    novelty
        How much worse the best context explains the group than it explains held-out rows of its
        own groups. Large values mean that the group resembles no known context. Each row has a
        rank among the losses of the held-out rows, from 0 (the smallest) to 1 (the largest).
        Novelty is the difference between the mean rank and 1/2, in standard deviations of a mean
        of that many rows. Groups of known contexts have a mean novelty of about 0 and a standard
        deviation of about 1. Ten rows with larger losses than all held-out rows give about 4, a
        single row at most 1.7. Novelty is always 0 if there were too few rows to hold any out.
    is_new
        Whether the novelty is above 2.33, which at most about 1 % of the groups of known contexts
        exceed by chance, or none of the labels of the group is in the training data. A group of a
        single row can be new only for the second reason. With one mislabelled row in ten, about
        1 % of the groups of known contexts are called new; with two 4 %, with three 11 %.

    effects
        With group effects: the expected effects of each group in each context, shape
        (n_groups, n_contexts, n_outputs, n_effects).
    products
        With group effects: how much the labelled rows say about them, shape
        (n_groups, n_effects, n_effects), and with classes
        (n_groups, n_contexts, n_outputs, n_effects, n_effects).

    Examples
    --------
    >>> groups, evidence = np.array(["site 7"]), np.array([[0.1, 4.0]])
    >>> novelty, is_new = np.array([0.2]), np.array([False])
    >>> found = Identification.from_scores(groups, evidence, novelty, is_new)
    >>> found.context, found.is_new
    (array([0]), array([False]))
    """

    groups: NDArray[Any]
    context: NDArray[np.intp]
    probability: NDArray[np.float64]
    margin: NDArray[np.float64]
    novelty: NDArray[np.float64]
    is_new: NDArray[np.bool_]
    effects: NDArray[np.float64] | None = None
    products: NDArray[np.float64] | None = None

    @classmethod
    def from_scores(
        cls,
        groups: NDArray[Any],
        evidence: NDArray[np.float64],
        novelty: NDArray[np.float64],
        is_new: NDArray[np.bool_],
        abstain: bool = False,
    ) -> Identification:
        """Build the result from negative log-likelihoods, (n_groups, n_contexts), and novelty."""
        probability = posterior(evidence)
        context = evidence.argmin(1)
        ordered = np.sort(evidence, 1)
        margin = (
            ordered[:, 1] - ordered[:, 0]
            if evidence.shape[1] > 1
            else np.full(len(evidence), np.inf)
        )
        if abstain:
            context = np.where(
                is_new | (probability.max(1) < settings.DIAGNOSTICS.sure_probability), -1, context
            )
        return cls(groups, context, probability, margin, novelty, is_new)

    def __len__(self) -> int:
        return len(self.groups)
