"""Features in which linear and smooth local models, and group effects, are linear.

The columns are a constant, the standardized inputs, hat functions of some inputs (linear B-splines:
1 at a knot, falling to 0 at its neighbours) and random Fourier features. They are fixed by one pass
over the rows for the scaling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

ROWS_AT_ONCE = 20_000  # features of more rows are not in memory at the same time


def in_blocks(make: Callable[[Floats], Floats], X: Floats) -> Floats:
    """What a function makes of each row, computed for some thousand rows at a time.

    Examples
    --------
    >>> in_blocks(lambda rows: rows.sum(1), np.ones((30_000, 2))).shape
    (30000,)
    """
    if len(X) <= ROWS_AT_ONCE:
        return make(X)
    starts = range(0, len(X), ROWS_AT_ONCE)
    return np.concatenate([make(X[start : start + ROWS_AT_ONCE]) for start in starts])


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """From inputs (N, d) to features (N, 1 + d + h + c).

    Parameters
    ----------
    center, scale
        Mean and standard deviation of each input; a constant input has scale 1.
    low, high
        The range of each input in training, in standard units. Cosines see inputs clipped to it,
        and hat functions are 0 outside, so that predictions are linear there.
    hat_input, hat_knot
        The input of each hat function, and its knot in standard units; the neighbours of a knot
        are the other knots of its input and the ends of its range.
    directions, phases
        Frequencies and phases of the cosines.

    Examples
    --------
    >>> features = FeatureMap.of(np.array([[1.0], [3.0]]))
    >>> features(np.array([[5.0]]))
    array([[1., 3.]])
    """

    center: Floats  #                                                               (d,)
    scale: Floats  #                                                                (d,)
    low: Floats  #                                                                  (d,)
    high: Floats  #                                                                 (d,)
    hat_input: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))  #  (h,)
    hat_knot: Floats = field(default_factory=lambda: np.empty(0))  #                (h,)
    directions: Floats | None = None  #                                             (d, c)
    phases: Floats | None = None  #                                                 (c,)

    @classmethod
    def of(cls, X: Floats) -> FeatureMap:
        """A constant and the standardized inputs."""
        center = X.mean(0)
        blocks = (X[start : start + ROWS_AT_ONCE] for start in range(0, len(X), ROWS_AT_ONCE))
        scale = np.sqrt(sum(np.square(rows - center).sum(0) for rows in blocks) / len(X))
        is_constant = scale <= 1e-9 * np.maximum(np.abs(center), 1e-300)
        scale = np.where(is_constant, 1.0, scale)
        return cls(center, scale, (X.min(0) - center) / scale, (X.max(0) - center) / scale)

    @property
    def n_linear(self) -> int:
        """Number of columns up to the last standardized input."""
        return 1 + len(self.center)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        n_cosines = 0 if self.phases is None else len(self.phases)
        return self.n_linear + len(self.hat_input) + n_cosines

    def select(self, X: Floats, columns: Ints) -> Floats:
        """Some of the features of all rows, (N, q); cosines only where they are asked for."""
        needs_cosines = bool((columns >= self.n_linear + len(self.hat_input)).any())
        features = self if needs_cosines else replace(self, directions=None, phases=None)
        return in_blocks(lambda rows: features(rows)[:, columns], X)

    def standardize(self, X: Floats) -> Floats:
        """The inputs in standard units."""
        return (X - self.center) / self.scale

    def __call__(self, X: Floats) -> Floats:
        """The features of some rows."""
        z = self.standardize(X)
        parts = [np.ones((len(z), 1)), z]
        for j in dict.fromkeys(self.hat_input.tolist()):
            knots = np.sort(self.hat_knot[self.hat_input == j])
            nodes = np.concatenate([[self.low[j]], knots, [self.high[j]]])
            left, right = nodes[:-2], nodes[2:]
            rise = (z[:, j, None] - left) / (knots - left)
            fall = (right - z[:, j, None]) / (right - knots)
            parts.append(np.maximum(np.minimum(rise, fall), 0.0))
        if self.directions is not None and self.phases is not None:
            inside = np.clip(z, self.low, self.high)
            cosines = np.cos(inside @ self.directions + self.phases)
            parts.append(cosines * (2 / len(self.phases)) ** 0.5)
        return np.concatenate(parts, 1)
