"""The target column: whether it holds labels or quantities, and its values.

Text is a label, and so are a few different whole numbers, such as 0, 1 and 2. But those of a rating
scale, such as 1 to 5, have an order, which labels would lose: they are quantities, like all other
numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.tabular import settings
from leaflearn.tabular.column_kinds import (
    describe_cell,
    read_numbers,
    refuse_infinite,
    shorten_cell,
    to_name,
)


@dataclass(frozen=True)
class Target:
    """What is to be predicted.

    Parameters
    ----------
    name
        The name of the column.
    task
        `"classification"` or `"regression"`.
    has_numbers
        Whether the labels of a classification are whole numbers, and not text.
    reason
        Why it is this task.
    alternative
        The other task, where few different whole numbers would suit both; otherwise empty.

    Examples
    --------
    >>> import pandas
    >>> target = find_target(pandas.Series([1.5, 2.5, 3.5], name="length"))
    >>> target.task, target.reason
    ('regression', 'it holds numbers')
    """

    name: str
    task: str
    has_numbers: bool
    reason: str
    alternative: str = ""

    @property
    def is_label(self) -> bool:
        """Whether the target holds labels, and not quantities."""
        return self.task == "classification"

    def read(self, cells: Any) -> NDArray[Any]:
        """The labels or quantities of a column without missing values, shape (N,)."""
        if self.is_label and not self.has_numbers:
            return np.array(to_names(cells), dtype=str)
        values = read_numbers(cells)
        if np.isnan(values).any():
            first = int(np.flatnonzero(np.isnan(values))[0])
            advice = "" if self.is_label else ", or set the task to classification"
            raise ValueError(
                f"The target {self.name!r} holds numbers, but {describe_cell(cells, first)} is not "
                f"a number; correct it{advice}."
            )
        refuse_infinite(values, cells, "correct it, or leave the row out")
        if not self.is_label:
            return values
        if np.any(values != np.round(values)):
            first = int(np.flatnonzero(values != np.round(values))[0])
            raise ValueError(
                f"The labels in {self.name!r} are whole numbers, but {describe_cell(cells, first)} "
                "is not; correct it."
            )
        return values.astype(np.int64)


def find_target(cells: Any, task: str = "auto") -> Target:
    """Determine the task from a column of pandas without missing values.

    Examples
    --------
    >>> import pandas
    >>> find_target(pandas.Series([1, 2, 1, 2, 1, 1, 2, 1, 1, 2], name="rating")).reason
    'it holds 2 different whole numbers'
    >>> find_target(pandas.Series([1, 2, 3, 4, 5] * 5, name="rating")).reason
    'it holds ratings from 1 to 5'
    """
    limits = settings.TABLES
    name, n_rows = str(cells.name), len(cells)
    numbers = read_numbers(cells)
    is_boolean = cells.map(lambda cell: isinstance(cell, bool | np.bool_)).all()
    share = 0.0 if is_boolean else float(1.0 - np.isnan(numbers).mean())
    if task == "auto" and 0.5 < share < 1.0:
        first = int(np.flatnonzero(np.isnan(numbers))[0])
        raise ValueError(
            f"The target {name!r} holds numbers, but {describe_cell(cells, first)} is not a "
            "number; correct it, or set the task."
        )
    has_numbers = share == 1.0
    is_whole = has_numbers and bool(
        np.all(numbers == np.round(numbers)) and np.all(np.abs(numbers) < 2**53)
    )
    n_different = len(np.unique(numbers)) if has_numbers else len(set(to_names(cells)))
    if n_different == 1:
        raise ValueError(
            f"The target {name!r} is {shorten_cell(cells, 0)!r} in every row; there is nothing to "
            "learn."
        )
    alternative = ""
    are_few = (
        is_whole
        and n_different <= limits.max_label_values
        and n_rows >= limits.rows_per_label * n_different
    )
    if task != "auto":
        chosen, reason = task, "you said so"
    elif not has_numbers:
        chosen, reason = "classification", "it holds numbers" if share else "it holds text"
    elif are_few and is_rating_scale(numbers):
        chosen, alternative = "regression", "classification"
        reason = f"it holds ratings from {numbers.min():.0f} to {numbers.max():.0f}"
    elif are_few:
        chosen, reason = "classification", f"it holds {n_different} different whole numbers"
        alternative = "regression" if n_different > 2 else ""  # two numbers have no order to lose
    else:
        chosen, reason = "regression", "it holds numbers"
    has_whole_labels = is_whole if chosen == "classification" else True
    target = Target(name, chosen, has_whole_labels, reason, alternative)
    if target.is_label and not is_whole and n_different > max(limits.max_texts, n_rows / 2):
        raise ValueError(
            f"The target {name!r} holds {n_different:,} different labels in {n_rows:,} rows, too "
            "many to learn; choose another target."
        )
    return target


def is_rating_scale(numbers: NDArray[np.float64]) -> bool:
    """Whether whole numbers look like ratings: all of 1, 2, ..., at least to 4, or of -k to k.

    Other numbers that begin at 0 are more often codes of classes, except for most of 0 to 10.

    Examples
    --------
    >>> scales = [1, 2, 3, 4, 5], [-1, 0, 1], [0, 1, 2, 3], [1, 2, 3], [1, 2, 4, 8]
    >>> [is_rating_scale(np.array(scale, dtype=float)) for scale in scales]
    [True, True, False, False, False]
    """
    values = np.unique(numbers)
    is_consecutive = len(values) == values[-1] - values[0] + 1
    from_one = values[0] == 1 and len(values) >= settings.TABLES.min_ratings
    is_symmetric = values[0] == -values[-1] and len(values) > 2
    is_up_to_ten = values[0] in (0, 1) and values[-1] == 10 and len(values) > 5
    return bool(is_consecutive and (from_one or is_symmetric)) or bool(is_up_to_ten)


def to_names(cells: Any) -> list[str]:
    """Labels or groups as text: whole numbers have no decimal point.

    Examples
    --------
    >>> import pandas
    >>> to_names(pandas.Series([7.0, 8.0]))
    ['7', '8']
    """
    return [to_name(cell) for cell in cells.tolist()]
