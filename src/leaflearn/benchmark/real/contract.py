"""What a method of the comparison is given, what it returns, and the two ways to decline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


class NotApplicableError(Exception):
    """The method cannot be used with this table."""


class MissingProgramError(Exception):
    """A program or package that the method needs is not installed."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Labelled rows with their groups; `n_classes` is 0 in regression.

    Examples
    --------
    >>> Rows(np.zeros((2, 1)), np.array([0.5, 1.0]), np.array([0, 0])).n_classes
    0
    """

    X: Floats  #                                                                    (N, d)
    y: NDArray[Any]  # values, or class numbers                                     (N,)
    group: Ints  #                                                                  (N,)
    n_classes: int = 0


class Fitted(Protocol):
    """A fitted method. It predicts values (N,), classes (N,) or probabilities (N, C)."""

    def known(self, X: Floats, group: Ints) -> NDArray[Any]:
        """Predict rows of groups that were learnt from."""

    def new(self, labelled: Rows, X: Floats, group: Ints) -> NDArray[Any]:
        """Predict rows of new groups, of which some rows are labelled."""


Method = Callable[[Rows], Fitted]  # fits the rows
