"""AIC, BIC and ICL of a number of contexts, for readers who know mixtures of regressions.

The smooth models are taken as a mixture of Gaussian regressions with one variance, each group wholly in its context. What they cost in
parameters is their effective number: the trace of the matrix that turns targets into answers. Held-out rows decide how many contexts there
are; these are shown beside them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from leaflearn.initialization.search import LEAST_LOSS, RIDGE, SearchResult, harden
from leaflearn.initialization.smoothers import GroupTable, solve


class Criteria(NamedTuple):
    """What a number of contexts costs; the smallest is best."""

    train_error: float  # mean squared error of the rows that were learnt from
    aic: float
    bic: float
    icl: float


def measure(table: GroupTable, found: SearchResult) -> Criteria:
    """The criteria of one start.

    Examples
    --------
    >>> import numpy as np
    >>> from leaflearn.initialization.search import refine
    >>> y = torch.tensor([[1.0], [1.1], [-1.0], [-1.1]], dtype=torch.float64).repeat(5, 1)
    >>> table = GroupTable.of(torch.ones(20, 1, dtype=torch.float64), y, np.arange(20) // 2)
    >>> one, two = (measure(table, refine(table, torch.arange(10)[None] % k, k, torch.full((1,), 0.1))) for k in (1, 2))
    >>> two.aic < one.aic, two.bic < one.bic, two.icl < one.icl
    (True, True, True)
    """
    n_contexts, contexts = found.losses.shape[1], found.contexts
    ridge = RIDGE * found.error.clamp(min=LEAST_LOSS)
    coefficients, root, learnt = solve(table, harden(contexts, n_contexts, table.y.dtype), ridge)
    x = table.features.reshape(
        -1, table.features.shape[-1]
    )  #                                 (M, F)
    squares = (
        (table.y.reshape(len(x), -1) - x @ coefficients).square().sum(-1)
    )  #              (K, M)
    squares = squares.reshape(n_contexts, *table.weight.shape).sum(
        -1
    )  #                       (K, m)
    reach = torch.linalg.solve_triangular(root, x.T.expand(n_contexts, -1, -1), upper=False)
    n_effective = float((reach.square().sum(1) * learnt[:, 0]).sum())
    return _criteria(squares, contexts[0], n_effective, int(table.weight.sum()), table.y.shape[-1])


def _criteria(
    squares: Tensor, contexts: Tensor, n_effective: float, n_rows: int, n_outputs: int
) -> Criteria:
    n_contexts, n_values = len(squares), n_rows * n_outputs
    own = squares.gather(0, contexts[None]).sum()
    variance = max(float(own) / n_values, LEAST_LOSS / n_outputs)
    share = torch.bincount(contexts, minlength=n_contexts).to(squares.dtype) / len(contexts)  # (K,)
    logarithm = torch.log(share.clamp(min=1e-12))
    deviance = (
        n_values * math.log(2 * math.pi * variance)
        + float(own) / variance
        - 2 * float(logarithm[contexts].sum())
    )
    n_parameters = n_effective * n_outputs + n_contexts  # shares sum to 1, and there is a variance
    posterior = torch.softmax(
        logarithm[:, None] - squares / (2 * variance), 0
    )  #              (K, m)
    entropy = float(torch.special.entr(posterior).sum())
    bic = deviance + n_parameters * math.log(n_rows)
    return Criteria(float(own) / n_rows, deviance + 2 * n_parameters, bic, bic + 2 * entropy)
