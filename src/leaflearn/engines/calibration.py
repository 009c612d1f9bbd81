"""How much does a difference in loss say about the context? Calibration on held-out rows.

The probability of a context falls with its loss, in units of the noise. The noise that remains in
training is too small a unit: networks overfit, so new rows have higher losses than training rows,
in their own context too, and with too small a unit every context looks certain. Therefore the unit
is multiplied by the factor under which the contexts of held-out rows are most probable.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leaflearn.engines import settings


def find_evidence_factor(evidence: NDArray[np.float64], context: NDArray[np.intp]) -> float:
    """The factor of the unit under which the contexts of held-out rows are most probable.

    Parameters
    ----------
    evidence
        Loss of each held-out row under each local model, in units of the training noise, (H, K).
    context
        The context of its group, (H,).

    Examples
    --------
    One row in ten supports the wrong context as strongly as the others support the right one.

    >>> evidence, context = np.tile([0.0, 20.0], (10, 1)), np.array([0] * 9 + [1])
    >>> round(find_evidence_factor(evidence, context))  # 20 / 9 is about log(9)
    9
    >>> find_evidence_factor(evidence, np.zeros(10, dtype=int))
    1.0
    """
    limits = settings.HELD_OUT
    factors = np.geomspace(1.0, limits.max_evidence_factor, limits.n_evidence_factors)
    right = np.arange(len(context)), context
    log_losses = [
        -np.log(np.maximum(posterior(evidence / factor)[right], limits.min_probability)).mean()
        for factor in factors
    ]
    return float(factors[int(np.argmin(log_losses))])


def posterior(evidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Softmax of minus the evidence; rows sum to 1.

    Examples
    --------
    >>> posterior(np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    """
    unnormalised = np.exp(evidence.min(1, keepdims=True) - evidence)
    return unnormalised / unnormalised.sum(1, keepdims=True)
