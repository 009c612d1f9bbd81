"""Inputs as features that a linear model can draw smooth functions with: the inputs themselves and random waves over them.

A sum of many cosines of random direction and phase draws any smooth function, and its coefficients are found by solving one small system
of equations (random Fourier features). How quickly the waves go up and down, their scale, is for the search to choose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

MOST_DIRECTIONS = 30  # of inputs with more columns, such as pictures, the directions in which they differ most are kept
N_FOURIER_FEATURES = 50


@dataclass(frozen=True, eq=False)
class Projection:
    """Inputs as few columns of about one size.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0, 5.0], [2.0, 5.0]])
    >>> Projection.of(x)(x)
    tensor([[-1.,  0.],
            [ 1.,  0.]], dtype=torch.float64)
    """

    mean: Tensor  #                                                             (n_columns,)
    directions: Tensor  #                                                       (n_columns, d)

    @classmethod
    def of(cls, x: NDArray[np.floating]) -> Projection:
        """Standardise few columns one by one; of many, take the principal directions, all in the unit of the widest."""
        table = _flat(x)
        mean = table.mean(0)
        centred = table - mean
        if table.shape[1] <= MOST_DIRECTIONS:
            scale = centred.std(0, correction=0)
            return cls(mean, torch.diag(torch.where(scale > 1e-12, 1 / scale, 0.0)))
        covariance = centred.T @ centred / len(table) if table.shape[1] <= len(table) else None
        if covariance is not None:
            values, vectors = torch.linalg.eigh(covariance)
            top, width = vectors[:, -MOST_DIRECTIONS:].flip(-1), values[-1]
        else:  # fewer rows than columns: the small side of the table decides
            values, rows = torch.linalg.eigh(centred @ centred.T / len(table))
            top = centred.T @ rows[:, -MOST_DIRECTIONS:].flip(-1)
            top, width = top / top.norm(dim=0).clamp(min=1e-12), values[-1]
        return cls(mean, top / width.clamp(min=1e-12).sqrt())

    def __call__(self, x: NDArray[np.floating]) -> Tensor:
        """The inputs (N, ...) as columns (N, d)."""
        return (_flat(x) - self.mean) @ self.directions


@dataclass(frozen=True, eq=False)
class RandomFourierFeatures:
    """A constant, the columns themselves, and random waves over them.

    Examples
    --------
    >>> z = torch.zeros(4, 2, dtype=torch.float64)
    >>> RandomFourierFeatures.of(z, 0.5, torch.Generator().manual_seed(0))(z).shape
    torch.Size([4, 53])
    """

    directions: Tensor  #                                                       (d, n_waves)
    phases: Tensor  #                                                           (n_waves,)
    spread: Tensor

    @classmethod
    def of(cls, z: Tensor, scale: float, generator: torch.Generator) -> RandomFourierFeatures:
        """Waves over the columns `z` (N, d) whose length is `scale` times the spread of these."""
        spread = z.var(0, correction=0).sum().sqrt().clamp(min=1e-12)
        directions = torch.randn(
            z.shape[1], N_FOURIER_FEATURES, generator=generator, dtype=z.dtype
        ) / (scale * spread)
        return cls(
            directions,
            torch.rand(N_FOURIER_FEATURES, generator=generator, dtype=z.dtype) * 2 * torch.pi,
            spread,
        )

    def __call__(self, z: Tensor) -> Tensor:
        """Features of the rows, (N, F)."""
        waves = (
            torch.cos(z @ self.directions + self.phases) * (2 / N_FOURIER_FEATURES) ** 0.5
        )  # together about as large as the constant
        return torch.cat([torch.ones_like(z[:, :1]), z / self.spread, waves], 1)


def _flat(x: NDArray[np.floating]) -> Tensor:
    return torch.as_tensor(np.asarray(x).reshape(len(x), -1), dtype=torch.float64)
