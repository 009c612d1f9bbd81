"""Words and numbers for the curve of a column: values and answers as they are written, and the shape in a word."""

from __future__ import annotations

from typing import Any

import numpy as np

from leaflearn.report.column_curves import ColumnCurve
from leaflearn.report.number_text import show_day, show_number, show_share

HARDLY = 0.1  # of the widest range of any context: what moves less hardly changes
BENDS = 0.25  # of its own range must a curve come back, to be no slope


def name_shape(curve: ColumnCurve, place: int) -> str:
    """What the answers of one context do along the column: a verb.

    Examples
    --------
    >>> answers = np.array([[0.0, 1.0, 0.0], [0.5, 1.0, 2.0], [1.0, 1.0, 0.0]])
    >>> curve = ColumnCurve("dose", "number", [0.0, 1.0, 2.0], np.full(3, 1 / 3), answers, -1, 0.5)
    >>> [name_shape(curve, k) for k in range(3)]
    ['rises', 'hardly changes', 'bends']
    """
    answers = curve.answers[:, place]
    widest = max(float(np.ptp(curve.answers, axis=0).max()), 1e-12)
    if np.ptp(answers) < HARDLY * widest:
        return "hardly changes"
    if curve.kind == "category":
        return "varies"
    if abs(answers[-1] - answers[0]) < (1.0 - BENDS) * np.ptp(answers):
        return "bends"
    return "rises" if answers[-1] > answers[0] else "falls"


def show_value(curve: ColumnCurve, value: Any) -> str:
    """A value of the column as it is written.

    Examples
    --------
    >>> show_value(ColumnCurve("day", "date", [], np.ones(0), np.ones((0, 1)), -1, 0.0), 19723.0)
    '2024-01-01'
    """
    return (
        str(value)
        if curve.kind == "category"
        else show_day(value)
        if curve.kind == "date"
        else show_number(value)
    )


def show_answer(curve: ColumnCurve, answer: float) -> str:
    """A mean answer as it is written.

    Examples
    --------
    >>> show_answer(ColumnCurve("day", "date", [], np.ones(0), np.ones((0, 1)), -1, 0.0), 2.0)
    '2'
    """
    return show_number(answer) if curve.label < 0 else show_share(answer)
