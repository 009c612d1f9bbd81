"""Yes or no tells little: how many answers of each worker it takes to tell contexts apart, and a warning where there are fewer."""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from leaflearn.messages import RecoveryWarning


def count_answers_needed(n_contexts: int) -> int:
    """How many different items everybody must answer by yes or no, so that so many contexts can be told apart, but for rare coincidences.

    Half of them, but for one, can have a pattern of answers for each context, and so can the other half; the last ties the two together.

    Examples
    --------
    >>> [count_answers_needed(n) for n in (1, 2, 3, 4)]
    [1, 3, 5, 5]
    """
    return 2 * math.ceil(math.log2(n_contexts)) + 1


def warn_about_few_answers(
    sizes: NDArray[np.integer], n_contexts: int, needed: int, who: str, one: str
) -> None:
    """Say so where half of the groups gave fewer answers than it takes.

    Parameters
    ----------
    sizes
        Answers of each group, shape (m,).
    n_contexts, needed
        How many contexts there are, and how many answers of each group they need.
    who, one
        What the groups are called, and one of them.

    Examples
    --------
    >>> warn_about_few_answers(np.array([30, 20]), 2, needed=3, who="workers", one="worker")
    """
    answers = int(np.median(sizes))
    if answers < needed:
        warnings.warn(
            f"Half of the {who} gave at most {answers} answers. By yes or no alone {n_contexts} contexts cannot be told apart from fewer "
            f"than {needed} a {one}; ask for more answers, or for fewer contexts.",
            RecoveryWarning,
            stacklevel=4,
        )
