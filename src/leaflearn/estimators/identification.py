"""Which context does a source belong to? The answer of `identify`, one entry a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        Mean loss under the best context, in units of the loss of the best constant prediction: the larger, the less like any known context.
    is_new
        Whether the best context explains the group less than half as well as it explained its own training groups.

    Examples
    --------
    >>> found = Identification.from_scores(np.array(["site 7"]), np.array([[0.1, 4.0]]), np.array([0.02]), np.array([0.5]))
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
        limit: NDArray[np.float64],
        abstain: bool = False,
    ) -> Identification:
        """Build the answer from minus the log-likelihoods (n_groups, n_contexts) and the novelty that each best context tolerates."""
        probability = posterior(evidence)
        context = evidence.argmin(1)
        ordered = np.sort(evidence, 1)
        margin = ordered[:, 1] - ordered[:, 0] if evidence.shape[1] > 1 else np.full(len(evidence), np.inf)
        is_new = novelty > limit
        if abstain:
            context = np.where(is_new | (probability.max(1) < SURE), -1, context)
        return cls(groups, context, probability, margin, novelty, is_new)

    def __len__(self) -> int:
        return len(self.groups)


def posterior(evidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Softmax of minus the evidence, rows sum to 1.

    Examples
    --------
    >>> posterior(np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    """
    unnormalised = np.exp(evidence.min(1, keepdims=True) - evidence)
    return unnormalised / unnormalised.sum(1, keepdims=True)
