"""Inputs far outside the training data, where the predictions of any model are extrapolations.

An input is far outside if it lies beyond the range of its column by more than the width of the
range. A column that was constant in training has no width, so that any other value is far outside.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.diagnostics import settings
from leaflearn.messages import InputsFarOutside, InputWarning

Floats = NDArray[np.float64]


def find_range(X: Any) -> Floats | None:
    """The least and the largest value of each column, (2, F); None for images and sparse inputs.

    Columns of a frame that are not numbers have a range of NaN, and so has an empty column.

    Examples
    --------
    >>> find_range(np.array([[1.0, np.nan], [3.0, np.nan]]))
    array([[ 1., nan],
           [ 3., nan]])
    """
    values = _read_numbers(X)
    if values is None:
        return None
    is_empty = np.isnan(values).all(0)
    low = np.min(values, axis=0, where=~np.isnan(values), initial=np.inf)
    high = np.max(values, axis=0, where=~np.isnan(values), initial=-np.inf)
    return np.where(is_empty, np.nan, np.stack([low, high]))


def join_ranges(first: Floats | None, second: Floats | None) -> Floats | None:
    """The range of the rows of both; None if one of them is not known.

    Examples
    --------
    >>> join_ranges(np.array([[0.0], [1.0]]), np.array([[0.5], [2.0]])).ravel()
    array([0., 2.])
    """
    if first is None or second is None:
        return None
    return np.stack([np.fmin(first[0], second[0]), np.fmax(first[1], second[1])])


def find_far(values: Floats, known: Floats) -> NDArray[np.bool_]:
    """Which values (N, F) are far outside a range (2, F).

    Examples
    --------
    >>> values, known = np.array([[-1.1], [-1.0], [2.0], [2.1], [np.nan]]), np.array([[0.0], [1.0]])
    >>> find_far(values, known).ravel()
    array([ True, False, False,  True, False])
    """
    low, high = known
    # A constant that was computed in another way may differ in its last digits.
    rounding = 1e-9 * np.maximum(np.abs(low), np.abs(high))
    slack = settings.DIAGNOSTICS.far_widths * (high - low) + rounding
    return np.asarray((values < low - slack) | (values > high + slack))


def warn_about_far(X: Any, known: Floats | None, names: Sequence[str] | None) -> None:
    """Warn about rows that are far outside the range of the training rows, where it is known.

    Examples
    --------
    >>> warn_about_far(np.array([[1.5]]), np.array([[0.0], [1.0]]), ["dose"])
    """
    values = None if known is None else _read_numbers(X)
    if known is None or values is None or values.shape[1] != known.shape[1]:
        return
    is_far = find_far(values, known)
    if is_far.any():
        columns = [int(i) for i in np.flatnonzero(is_far.any(0))]
        named = tuple(i if names is None else str(names[i]) for i in columns)
        message = InputsFarOutside(int(is_far.any(1).sum()), len(values), named)
        warnings.warn(InputWarning(message), stacklevel=4)


def _read_numbers(X: Any) -> Floats | None:
    """Inputs as numbers (N, F), NaN in columns of a frame that hold something else."""
    if hasattr(X, "columns"):
        columns = [np.asarray(X[name]) for name in X.columns]
        return np.stack(
            [
                column.astype(np.float64)
                if column.dtype.kind in "iuf"
                else np.full(len(column), np.nan)
                for column in columns
            ],
            axis=1,
        )
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "iuf":
        return None
    return X.astype(np.float64, copy=False)
