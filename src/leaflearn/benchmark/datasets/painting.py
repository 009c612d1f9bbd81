"""Grey images in named colours: what makes a digit a coloured digit."""

from __future__ import annotations

import numpy as np

from leaflearn.benchmark.datasets.sources import Array

COLORS: dict[str, tuple[float, float, float]] = {  # red, green, blue
    "red": (1.0, 0.0, 0.0),
    "blue": (0.0, 0.0, 1.0),
    "yellow": (1.0, 1.0, 0.0),
    "green": (0.0, 1.0, 0.0),
    "pink": (1.0, 0.5, 0.75),
    "cyan": (0.0, 1.0, 1.0),
    "white": (1.0, 1.0, 1.0),
    "purple": (0.5, 0.0, 0.5),
}
DIGITS = tuple(str(digit) for digit in range(10))
CLASSES = (*DIGITS, *COLORS)  # one label space for both domains


def paint(images: Array, color: Array) -> Array:
    """Grey images (N, height, width) in the colours of those numbers (N,), shape (N, 3, height, width), of the images' own type.

    Examples
    --------
    >>> paint(np.ones((1, 1, 1), dtype=np.float32), np.array([0])).ravel()  # red
    array([1., 0., 0.], dtype=float32)
    """
    painted = np.empty((len(images), 3, *images.shape[1:]), dtype=images.dtype)
    channels = np.array(list(COLORS.values()), dtype=np.float32)[color]  #                    (N, 3)
    for c in range(3):  # channel by channel, so that no copy in wider numbers exists at any time
        np.multiply(images, channels[:, c, None, None], out=painted[:, c], casting="unsafe")
    return painted
