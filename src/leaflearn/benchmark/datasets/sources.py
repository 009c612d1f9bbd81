"""Sources of examples: a table of rows, or a function with noise.

Tables of images store bytes and convert rows to numbers when they are read: 60,000 small images
take 140 megabytes as bytes and half a gigabyte as 32-bit numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Rows = NDArray[np.intp]  # row numbers


@dataclass(frozen=True, eq=False)
class Images:
    """Images stored as bytes that read like an array of numbers between 0 and 1.

    Indexing converts the selected rows to float32, `np.asarray` converts all of them.

    Examples
    --------
    >>> images = Images(np.array([[[[0, 51], [102, 255]]]], dtype=np.uint8))
    >>> images.shape, len(images)
    ((1, 1, 2, 2), 1)
    >>> images[0]
    array([[[0. , 0.2],
            [0.4, 1. ]]], dtype=float32)
    """

    stored: NDArray[np.uint8]  # may be memory-mapped                (N, channels, height, width)

    def __post_init__(self) -> None:
        if self.stored.dtype != np.uint8 or self.stored.ndim != 4:
            raise ValueError(
                "`Images` needs bytes of shape (N, channels, height, width); this array is "
                f"{self.stored.dtype} of shape {self.stored.shape}."
            )

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, rows: Any) -> Array:
        """Return the images of these rows as numbers."""
        return np.asarray(np.divide(self.stored[rows], np.float32(255), dtype=np.float32))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of numbers."""
        return self.stored.shape

    @property
    def ndim(self) -> int:
        """Always four: rows, channels, height, width."""
        return self.stored.ndim

    @property
    def dtype(self) -> np.dtype[np.float32]:
        """The type that rows are converted to."""
        return np.dtype(np.float32)


class Source(Protocol):
    """Anything that examples can be drawn from, such as a table, a function or a recording."""

    def draw(self, n: int, generator: np.random.Generator) -> Examples:
        """Draw `n` independent examples."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and their targets, row by row. As a source, it draws rows with replacement.

    Examples
    --------
    >>> table = Examples(x=np.array([[1.0], [2.0]]), y=np.array([10, 20]))
    >>> table.draw(3, np.random.default_rng(0)).y
    array([20, 20, 20])
    """

    x: Array | Images  #                                                                  (N, ...)
    y: Array  #                                                                           (N, ...)

    def __post_init__(self) -> None:
        for name, column in (("x", self.x), ("y", self.y)):
            if not isinstance(column, np.ndarray | Images):
                raise TypeError(
                    f"{name} is a {type(column).__name__}, but a numpy array was expected; "
                    f"pass np.asarray({name})."
                )
        if len(self.x) != len(self.y):
            raise ValueError(
                f"x has {len(self.x)} rows and y has {len(self.y)}; every input needs one target."
            )

    def __len__(self) -> int:
        return len(self.x)

    def draw(self, n: int, generator: np.random.Generator) -> Examples:
        """Draw `n` rows independently and uniformly."""
        rows = generator.integers(len(self), size=n)
        return Examples(self.x[rows], self.y[rows])


@dataclass(frozen=True)
class Function:
    """A source with a known target function: x is uniform, y = target(x) plus Gaussian noise.

    Parameters
    ----------
    target
        The function of x.
    low, high
        The range of x.
    noise
        Standard deviation of the noise.

    Examples
    --------
    >>> square = Function(lambda x: x**2, low=0.0, high=1.0)
    >>> square.draw(4, np.random.default_rng(0)).x.shape
    (4, 1)
    >>> square.grid(3).y
    array([0.  , 0.25, 1.  ])
    """

    target: Callable[[Array], Array]
    low: float
    high: float
    noise: float = 0.0

    def draw(self, n: int, generator: np.random.Generator) -> Examples:
        """Draw `n` inputs and their noisy targets."""
        x = generator.uniform(self.low, self.high, n)
        return Examples(x[:, None], self.target(x) + generator.normal(0.0, self.noise, n))

    def grid(self, n: int) -> Examples:
        """Return evenly spaced inputs with noiseless targets, to test on."""
        x = np.linspace(self.low, self.high, n)
        return Examples(x[:, None], self.target(x))
