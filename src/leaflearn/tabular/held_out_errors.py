"""Errors on rows that were held out inside the groups: of one model for all, of the contexts, of each context, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.tabular.error_intervals import Interval, find_interval, find_interval_of_ratio

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class ErrorsOfContext:
    """The errors on the rows of one context: with its own model, and with one model for all.

    Examples
    --------
    >>> ErrorsOfContext(0, n_rows=40, n_groups=8, own=0.1, one_model=0.5).own_interval is None
    True
    """

    context: int
    n_rows: int
    n_groups: int
    own: float
    one_model: float
    own_interval: Interval | None = None
    one_model_interval: Interval | None = None


@dataclass(frozen=True)
class HeldOutErrors:
    """The error on held-out rows: the share of wrong labels, or the root of the mean squared error.

    Intervals are of 95 % (see `error_intervals`), and None where there are too few groups for one, or the model was saved before there were
    any. `ratio_interval` is of the error with the contexts divided by that of one model.

    Examples
    --------
    >>> HeldOutErrors("error rate", one_model=0.5, contexts=0.1, n_rows=200).contexts
    0.1
    """

    metric: str
    one_model: float
    contexts: float
    n_rows: int
    n_groups: int = 0
    one_model_interval: Interval | None = None
    contexts_interval: Interval | None = None
    ratio_interval: Interval | None = None
    by_context: tuple[ErrorsOfContext, ...] = ()

    @property
    def is_rate(self) -> bool:
        """Is it the share of wrong labels?"""
        return self.metric == "error rate"


def measure_errors(
    one: Floats, each: Floats, group: Rows, context: Rows, is_rate: bool
) -> HeldOutErrors:
    """From the losses of rows to errors with intervals.

    Parameters
    ----------
    one, each
        The loss of every row under one model for all, and under the model of its context: squared errors, or which are wrong, (N,).
    group, context
        Of every row, (N,).
    is_rate
        Are these wrong labels?

    Examples
    --------
    >>> group = np.repeat(np.arange(6), 4)
    >>> errors = measure_errors(np.ones(24), np.zeros(24), group, group % 2, is_rate=True)
    >>> errors.one_model, errors.contexts, [part.own for part in errors.by_context], errors.n_groups
    (1.0, 0.0, [0.0, 0.0], 6)
    """
    rows, one_sums, each_sums = _sum_by_group(group, one, each)
    parts = [
        _measure_context(int(k), one, each, group, context == k, is_rate)
        for k in np.unique(context)
    ]
    return HeldOutErrors(
        metric="error rate" if is_rate else "RMSE",
        one_model=_error(one, is_rate),
        contexts=_error(each, is_rate),
        n_rows=len(one),
        n_groups=len(rows),
        one_model_interval=find_interval(one_sums, rows, is_rate),
        contexts_interval=find_interval(each_sums, rows, is_rate),
        ratio_interval=find_interval_of_ratio(each_sums, one_sums, is_rate),
        by_context=tuple(parts),
    )


def _measure_context(
    number: int, one: Floats, each: Floats, group: Rows, is_mine: NDArray[np.bool_], is_rate: bool
) -> ErrorsOfContext:
    rows, one_sums, each_sums = _sum_by_group(group[is_mine], one[is_mine], each[is_mine])
    return ErrorsOfContext(
        context=number,
        n_rows=int(rows.sum()),
        n_groups=len(rows),
        own=_error(each[is_mine], is_rate),
        one_model=_error(one[is_mine], is_rate),
        own_interval=find_interval(each_sums, rows, is_rate),
        one_model_interval=find_interval(one_sums, rows, is_rate),
    )


def _sum_by_group(group: Rows, *losses: Floats) -> tuple[Floats, ...]:
    """How many rows each group has, and the sums of their losses, (m,) each."""
    _, number = np.unique(group, return_inverse=True)
    return tuple(
        np.bincount(number, weight).astype(np.float64) for weight in (np.ones(len(group)), *losses)
    )


def _error(losses: Floats, is_rate: bool) -> float:
    return float(losses.mean()) if is_rate else math.sqrt(losses.mean())


def read_errors(kept: Mapping[str, Any] | None) -> HeldOutErrors | None:
    """The errors that `dataclasses.asdict` made plain, also those of before there were intervals; a `TypeError` where they are none.

    Examples
    --------
    >>> read_errors({"metric": "RMSE", "one_model": 2.0, "contexts": 1.0, "n_rows": 10}).ratio_interval is None
    True
    """
    if kept is None:
        return None
    parts = [ErrorsOfContext(**_check(part)) for part in kept.get("by_context", ())]
    return HeldOutErrors(**{**_check(kept), "by_context": tuple(parts)})


def _check(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The same, with pairs of numbers again where JSON has lists; all is to be of the kind that it is called."""
    known: dict[str, Any] = {}
    for name, value in kept.items():
        if name.endswith("_interval"):
            known[name] = None if value is None else (_number(value[0]), _number(value[1]))
        else:
            known[name] = value if name in ("metric", "by_context") else _number(value)
    return known


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("an error is a number")
    return value
