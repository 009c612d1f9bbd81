"""How many yes-or-no answers per group the contexts require, and a warning where there are fewer.

A yes or no carries little information, so contexts that groups reveal by such answers alone cannot
be identified from too few of them, however many groups there are.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from leaflearn.messages import RecoveryWarning, TooFewAnswers


def count_answers_needed(n_contexts: int) -> int:
    """How many different yes-or-no items per group identify the contexts, except in rare cases.

    One half of the items needs a different pattern of answers for each context, and so does the
    other half; one more item connects the two.

    Examples
    --------
    >>> [count_answers_needed(n) for n in (1, 2, 3, 4)]
    [1, 3, 5, 5]
    """
    return 2 * math.ceil(math.log2(n_contexts)) + 1


def warn_about_few_answers(
    sizes: NDArray[np.integer], n_contexts: int, needed: int, who: str, one: str
) -> None:
    """Warn where half of the groups gave fewer answers than the contexts require.

    Parameters
    ----------
    sizes
        Number of answers of each group, shape (m,).
    n_contexts, needed
        The number of contexts, and the number of answers that they require per group.
    who, one
        What the groups are called, in the plural and in the singular.

    Examples
    --------
    >>> warn_about_few_answers(np.array([30, 20]), 2, needed=3, who="workers", one="worker")
    """
    answers = int(np.median(sizes))
    if answers < needed:
        message = TooFewAnswers(who, one, answers, n_contexts, needed)
        warnings.warn(RecoveryWarning(message), stacklevel=4)
