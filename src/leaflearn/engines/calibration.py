"""How much may be made of a difference in loss? Rows that were held out tell.

The probability of a context falls with its loss, in units of the noise. The noise that is left in training is too small a unit: networks
learn their rows by heart, so a new row is farther off than any old one was, in its own context too. With too small a unit everything is
certain. So the unit is stretched until contexts are as probable on held-out rows as they are right there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FACTORS = np.geomspace(
    1.0, 100.0, 41
)  # of the unit, that are tried; never below 1: few held-out rows may look clearer than they are
IMPOSSIBLE = 1e-12  # a smaller probability of the right context counts like this: one wrong row must not decide alone


def find_evidence_factor(evidence: NDArray[np.float64], context: NDArray[np.intp]) -> float:
    """The factor of the unit that makes the contexts of held-out rows most probable.

    Parameters
    ----------
    evidence
        Loss of each held-out row under each local model, in units of the noise in training, (H, K).
    context
        The context of its group, (H,).

    Examples
    --------
    One row in ten speaks as clearly for the wrong context as the others do for the right one.

    >>> evidence, context = np.tile([0.0, 20.0], (10, 1)), np.array([0] * 9 + [1])
    >>> round(find_evidence_factor(evidence, context))  # 20 / 9 is the logarithm of 9 to 1
    9
    >>> find_evidence_factor(evidence, np.zeros(10, dtype=int))
    1.0
    """
    right = np.arange(len(context)), context
    misfit = [
        -np.log(np.maximum(posterior(evidence / factor)[right], IMPOSSIBLE)).mean()
        for factor in FACTORS
    ]
    return float(FACTORS[int(np.argmin(misfit))])


def posterior(evidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Softmax of minus the evidence, rows sum to 1.

    Examples
    --------
    >>> posterior(np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    """
    unnormalised = np.exp(evidence.min(1, keepdims=True) - evidence)
    return unnormalised / unnormalised.sum(1, keepdims=True)
