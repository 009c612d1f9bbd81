"""How many local models a set of domains needs: conflicts and conflict rank (Definitions 1 and 2).

Two domains conflict at an input if their targets differ. The conflict rank is the largest number of
different targets of one input; at least that many models are needed (Theorem 2). They can be too
few: three domains may conflict in pairs, each pair at different inputs. Then no input has more than
two targets, but two models cannot represent three functions. Necessary and sufficient is an
assignment of models to domains in which conflicting domains have different models: a coloring of
the conflict graph.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leaflearn.benchmark.datasets.domains import DomainSet

TOLERANCE = 1e-9  # targets that differ by no more are equal


def conflict_rank(domains: DomainSet, at_least: float = 0.0) -> int:
    """Return the largest number of different targets of one test input (R in the paper).

    Parameters
    ----------
    domains
        Domains with the same test inputs.
    at_least
        Count only what happens at more than this share of the inputs.

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
    """Return which pairs of domains differ at more than this share of the test inputs, (R, R).

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import functions
    >>> conflicts(functions(), at_least=0.9).astype(int).tolist()
    [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    """
    answers = _answers(domains)
    # (R, R, n_inputs)
    differ = np.abs(answers[:, None] - answers[None]).max(-1) > TOLERANCE
    return np.asarray(differ.mean(-1) > at_least)


def models_needed(domains: DomainSet, at_least: float = 0.0) -> int:
    """Return the smallest number of local models that can represent every domain.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.domains import Domain
    >>> from leaflearn.benchmark.datasets.sources import Examples
    >>> x = np.arange(3.0)[:, None]
    >>> tables = [Examples(x, np.eye(3)[d]) for d in range(3)]  # each differs at one input
    >>> three = tuple(Domain(str(d), table, table) for d, table in enumerate(tables))
    >>> domains = DomainSet("conflicts in pairs", three, 10, 2)
    >>> conflict_rank(domains), models_needed(domains)
    (2, 3)
    """
    pairs = conflicts(domains, at_least)
    return next(n for n in range(1, len(domains) + 1) if _can_share(pairs, [], n))


def _can_share(pairs: NDArray[np.bool_], model_of: list[int], n_models: int) -> bool:
    """Whether the remaining domains can be assigned models without a conflict."""
    d = len(model_of)
    if d == len(pairs):
        return True
    # unused models are interchangeable, so only the first one is tried
    for model in range(min(n_models, max(model_of, default=-1) + 2)):
        is_free = not any(pairs[d, e] and model_of[e] == model for e in range(d))
        if is_free and _can_share(pairs, [*model_of, model], n_models):
            return True
    return False


def _answers(domains: DomainSet) -> NDArray[np.float64]:
    """Targets of each test input in each domain, (R, n_inputs, D)."""
    first = domains.domains[0].test.x
    if not all(np.array_equal(domain.test.x, first) for domain in domains):
        raise ValueError(
            f"The domains of '{domains.name}' are tested on different inputs, so their targets "
            "cannot be compared; choose domains with the same test inputs."
        )
    return np.stack(
        [np.asarray(domain.test.y, dtype=np.float64).reshape(len(first), -1) for domain in domains]
    )


def _n_different(answers: NDArray[np.float64]) -> int:
    """Number of different rows, (R, D)."""
    return len(np.unique(np.round(answers / TOLERANCE) * TOLERANCE, axis=0))
