"""One-to-one matching of contexts and domains, or of the contexts of two allocations."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment


def match_contexts(
    contexts: ArrayLike,
    domains: ArrayLike,
    n_contexts: int | None = None,
    weight: NDArray[np.float64] | None = None,
) -> NDArray[np.intp]:
    """The domain of each context, matched one to one so that most groups agree, shape (K,).

    Contexts without a domain of their own have -1. Groups count equally, or by `weight` (m,).

    Examples
    --------
    >>> match_contexts([1, 1, 0, 2], [0, 0, 1, 1])
    array([ 1,  0, -1])
    """
    contexts, domains = np.asarray(contexts), np.asarray(domains)
    n_contexts = int(contexts.max()) + 1 if n_contexts is None else n_contexts
    together = np.zeros((n_contexts, int(domains.max()) + 1))  #                    (K, n_domains)
    np.add.at(together, (contexts, domains), 1.0 if weight is None else weight)
    matched = np.full(n_contexts, -1)
    rows, columns = linear_sum_assignment(together, maximize=True)
    matched[rows] = columns
    return matched
