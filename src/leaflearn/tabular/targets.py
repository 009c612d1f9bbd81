"""The two columns that are no features: the target, whose labels or numbers are to be foretold, and the group.

Is the target a label or a quantity? Text is a label, and so are few whole numbers, such as 1 to 5; other numbers are quantities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.tabular.cells import describe_cell, read_numbers, refuse_infinite, to_name

FEW = 10  # different whole numbers, at most, are labels
ROWS_EACH = (
    5  # on average, that such labels need: of 1, 2, ..., 9 in nine rows nobody knows what they are
)
MANY_TEXTS = 20  # different texts, of which most rows have one of their own, are no labels
TASKS = ("classification", "regression")


@dataclass(frozen=True)
class Target:
    """What is to be foretold.

    Parameters
    ----------
    name
        Of the column.
    task
        `"classification"` or `"regression"`.
    has_numbers
        Whether the labels of a classification are whole numbers, and not text.
    reason
        Why it is this task.

    Examples
    --------
    >>> import pandas
    >>> find_target(pandas.Series([1.5, 2.5, 3.5], name="length"))
    Target(name='length', task='regression', has_numbers=True, reason='it holds numbers')
    """

    name: str
    task: str
    has_numbers: bool
    reason: str

    @property
    def is_label(self) -> bool:
        """Labels, and not quantities."""
        return self.task == "classification"

    def read(self, cells: Any) -> NDArray[Any]:
        """The labels or quantities of a column without holes, shape (N,)."""
        if self.is_label and not self.has_numbers:
            return np.array(to_names(cells), dtype=str)
        values = read_numbers(cells)
        strange = np.flatnonzero(np.isnan(values))
        if len(strange):
            cure = (
                "correct it"
                if self.is_label
                else "correct it, or say that the task is classification"
            )
            raise ValueError(
                f"The target {self.name!r} holds numbers, but {describe_cell(cells, strange[0])} is none; {cure}."
            )
        refuse_infinite(values, cells, "correct it, or leave the row out")
        if not self.is_label:
            return values
        if np.any(values != np.round(values)):
            strange = np.flatnonzero(values != np.round(values))
            raise ValueError(
                f"The labels in {self.name!r} are whole numbers, but {describe_cell(cells, strange[0])} is none; correct it."
            )
        return values.astype(np.int64)


def find_target(cells: Any, task: str = "auto") -> Target:
    """Say what the target is, from a column of pandas without holes.

    Examples
    --------
    >>> import pandas
    >>> find_target(pandas.Series([1, 2, 1, 2, 1, 1, 2, 1, 1, 2], name="rating")).reason
    'it holds 2 different whole numbers'
    """
    name, n_rows = str(cells.name), len(cells)
    numbers = read_numbers(cells)
    is_truth = cells.map(lambda cell: isinstance(cell, bool | np.bool_)).all()
    share = 0.0 if is_truth else float(1.0 - np.isnan(numbers).mean())
    if task == "auto" and 0.5 < share < 1.0:
        first = int(np.flatnonzero(np.isnan(numbers))[0])
        raise ValueError(
            f"The target {name!r} holds numbers, but {describe_cell(cells, first)} is none; correct it, or say which task it is."
        )
    is_whole = (
        share == 1.0
        and bool(np.all(numbers == np.round(numbers)))
        and bool(np.all(np.abs(numbers) < 2**53))
    )
    n_different = len(np.unique(numbers)) if share == 1.0 else len(set(to_names(cells)))
    if n_different == 1:
        raise ValueError(
            f"The target {name!r} is {describe_cell(cells, 0).rsplit(' in row', 1)[0]} in every row; there is nothing to learn."
        )
    found = task
    if task == "auto":
        found = (
            "regression"
            if share == 1.0
            and not (is_whole and n_different <= FEW and n_rows >= ROWS_EACH * n_different)
            else TASKS[0]
        )
    reason = (
        f"it holds {n_different} different whole numbers"
        if is_whole and found == TASKS[0]
        else "it holds numbers"
        if share
        else "it holds text"
    )
    target = Target(
        name,
        found,
        is_whole if found == TASKS[0] else True,
        reason if task == "auto" else "you said so",
    )
    if target.is_label and not is_whole and n_different > max(MANY_TEXTS, n_rows / 2):
        raise ValueError(
            f"The target {name!r} holds {n_different:,} different labels in {n_rows:,} rows, too many to learn; choose another."
        )
    return target


def to_names(cells: Any) -> list[str]:
    """Labels or groups as text: a whole number without its decimal point.

    Examples
    --------
    >>> import pandas
    >>> to_names(pandas.Series([7.0, 8.0]))
    ['7', '8']
    """
    return [to_name(cell) for cell in cells.tolist()]
