"""How many local models a set of domains needs: conflicts, conflict rank (Definitions 1 and 2 of the paper), and what is between them.

Two domains conflict where they answer the same input differently. The conflict rank is the largest number of different answers to one
input, and fewer models cannot do (Theorem 2). As many need not be enough: three domains may conflict two by two, each pair elsewhere.
Then no input has more than two answers, while two models cannot serve three functions. What is needed, and enough, is a model for each
domain such that domains in conflict have different ones: a colouring of the graph of conflicts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leaflearn.benchmark.datasets.domains import DomainSet

SAME = 1e-9  # values that are no further apart are the same answer


def conflict_rank(domains: DomainSet, at_least: float = 0.0) -> int:
    """The largest number of different answers that the domains give to one test input (R in the paper).

    Parameters
    ----------
    domains
        Domains that are tested on the same inputs.
    at_least
        Count only what happens on more than this share of the inputs.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import functions
    >>> conflict_rank(functions())
    3
    """
    answers = _answers(domains)
    counts = np.array([_n_different(column) for column in answers.swapaxes(0, 1)])  #   (n_inputs,)
    return int(
        max(
            rank
            for rank in range(1, len(answers) + 1)
            if rank == 1 or np.mean(counts >= rank) > at_least
        )
    )


def conflicts(domains: DomainSet, at_least: float = 0.0) -> NDArray[np.bool_]:
    """Which pairs of domains answer more than this share of the test inputs differently, (R, R).

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import functions
    >>> conflicts(functions(), at_least=0.9).astype(int).tolist()
    [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    """
    answers = _answers(domains)
    differ = (np.abs(answers[:, None] - answers[None]).max(-1) > SAME)  #           (R, R, n_inputs)
    return np.asarray(differ.mean(-1) > at_least)


def models_needed(domains: DomainSet, at_least: float = 0.0) -> int:
    """The smallest number of local models that can answer as every domain does, at least `conflict_rank`.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.domains import Domain
    >>> from leaflearn.benchmark.datasets.sources import Examples
    >>> x = np.arange(3.0)[:, None]
    >>> each = [Examples(x, np.eye(3)[d]) for d in range(3)]  # each is alone with its answer somewhere
    >>> domains = DomainSet("two by two", tuple(Domain(str(d), one, one) for d, one in enumerate(each)), 10, 2)
    >>> conflict_rank(domains), models_needed(domains)
    (2, 3)
    """
    pairs = conflicts(domains, at_least)
    return next(n for n in range(1, len(domains) + 1) if _can_share(pairs, [], n))


def _can_share(pairs: NDArray[np.bool_], model_of: list[int], n_models: int) -> bool:
    """Whether the domains after those that have a model can have one too, no two in conflict the same."""
    d = len(model_of)
    if d == len(pairs):
        return True
    # of models that nobody has yet, one is as good as another
    for model in range(min(n_models, max(model_of, default=-1) + 2)):
        is_free = not any(pairs[d, e] and model_of[e] == model for e in range(d))
        if is_free and _can_share(pairs, [*model_of, model], n_models):
            return True
    return False


def _answers(domains: DomainSet) -> NDArray[np.float64]:
    """What each domain answers to each test input, (R, n_inputs, D)."""
    first = domains.domains[0].test.x
    if not all(np.array_equal(domain.test.x, first) for domain in domains):
        raise ValueError(
            f"The domains of '{domains.name}' are tested on different inputs, so their answers cannot be compared."
        )
    return np.stack(
        [np.asarray(domain.test.y, dtype=np.float64).reshape(len(first), -1) for domain in domains]
    )


def _n_different(answers: NDArray[np.float64]) -> int:
    """How many different rows there are, (R, D)."""
    return len(np.unique(np.round(answers / SAME) * SAME, axis=0))
