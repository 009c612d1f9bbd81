"""Features in which linear and smooth local models, and group effects, are linear.

The columns are a constant, the standardized inputs, hat functions of some inputs (linear B-splines:
1 at a knot, falling to 0 at its neighbours) and random Fourier features. They are fixed by one pass
over the rows for the scaling.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


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
        center, scale = X.mean(0), X.std(0)
        is_constant = scale <= 1e-9 * np.maximum(np.abs(center), 1e-300)
        scale = np.where(is_constant, 1.0, scale)
        z = (X - center) / scale
        return cls(center, scale, z.min(0), z.max(0))

    @property
    def n_linear(self) -> int:
        """Number of columns up to the last standardized input."""
        return 1 + len(self.center)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        n_cosines = 0 if self.phases is None else len(self.phases)
        return self.n_linear + len(self.hat_input) + n_cosines

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
            heights = np.eye(len(nodes))[1:-1]
            parts.append(np.stack([np.interp(z[:, j], nodes, hat) for hat in heights], 1))
        if self.directions is not None and self.phases is not None:
            inside = np.clip(z, self.low, self.high)
            cosines = np.cos(inside @ self.directions + self.phases)
            parts.append(cosines * (2 / len(self.phases)) ** 0.5)
        return np.concatenate(parts, 1)
