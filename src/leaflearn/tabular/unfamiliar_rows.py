"""Rows unlike the training table: numbers far outside its range, and values it does not contain."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.diagnostics.input_range import find_far, find_range
from leaflearn.messages import InputWarning, LeafWarning, UnfamiliarRows
from leaflearn.tabular import settings
from leaflearn.tabular.column_kinds import Column, read_columns, read_texts


@dataclass(frozen=True)
class TrainingValues:
    """What the columns of the training table held.

    Parameters
    ----------
    ranges
        The least and the largest number of a column; of dates, in days.
    categories
        The different values of a column, without missing ones.

    Examples
    --------
    >>> import pandas
    >>> table = pandas.DataFrame({"dose": [1.0, 2.0], "ward": ["north", "south"]})
    >>> columns = [Column("dose", "number"), Column("ward", "category", values=("north",))]
    >>> known = TrainingValues.of(table, columns)
    >>> known.ranges, known.categories
    ({'dose': (1.0, 2.0)}, {'ward': ('north', 'south')})
    >>> new = pandas.DataFrame({"dose": [1.5, 9.0, 2.5], "ward": ["north", "south", "west"]})
    >>> print(known.describe_unfamiliar(new, columns, "the table"))
    2 of 3 rows of the table are unlike the training table: 1 has a number far outside its range \
in 'dose' (by more than the width of the range), 1 has an unknown value in 'ward'; do not rely on \
the results for these rows.
    """

    ranges: Mapping[str, tuple[float, float]]
    categories: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, frame: Any, columns: Sequence[Column]) -> TrainingValues:
        """The values of the columns that are used; a column with very many values is left out."""
        numbers = _of_kind(columns, frame, "number", "date")
        known = find_range(_read(frame, numbers)) if numbers else None
        ends = [] if known is None else known.T.tolist()  #                        F times (2,)
        ranges = {
            column.name: (low, high) for column, (low, high) in zip(numbers, ends, strict=True)
        }
        categories = {
            column.name: tuple(sorted(set(read_texts(frame[column.name])) - {""}))
            for column in _of_kind(columns, frame, "category")
        }
        most = settings.TABLES.max_known_values
        return cls(ranges, {name: seen for name, seen in categories.items() if len(seen) <= most})

    def describe_unfamiliar(
        self, frame: Any, columns: Sequence[Column], what: str
    ) -> UnfamiliarRows | None:
        """How many rows of another table are unlike this one, and in which columns.

        None if all are alike. Columns that are missing in the table are left to others.
        """
        numbers = [c for c in _of_kind(columns, frame, "number", "date") if c.name in self.ranges]
        is_far = np.zeros((len(frame), 0), dtype=bool)
        if numbers:
            known = np.array([self.ranges[column.name] for column in numbers]).T  #     (2, F)
            is_far = find_far(_read(frame, numbers), known)
        names = [c.name for c in _of_kind(columns, frame, "category") if c.name in self.categories]
        is_unknown = np.zeros((len(frame), len(names)), dtype=bool)
        for place, name in enumerate(names):
            seen = {*self.categories[name], ""}
            is_unknown[:, place] = [text not in seen for text in read_texts(frame[name])]
        if not (is_far.any() or is_unknown.any()):
            return None
        return UnfamiliarRows(
            what,
            n_rows=len(frame),
            n_unfamiliar=int((is_far.any(1) | is_unknown.any(1)).sum()),
            n_far=int(is_far.any(1).sum()),
            far_columns=tuple(numbers[i].name for i in np.flatnonzero(is_far.any(0))),
            n_unknown=int(is_unknown.any(1).sum()),
            unknown_columns=tuple(names[i] for i in np.flatnonzero(is_unknown.any(0))),
        )

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "categories": {name: list(values) for name, values in self.categories.items()},
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> TrainingValues:
        """From `to_json`; a `TypeError` if it is malformed."""
        ranges = {
            name: (float(low), float(high)) for name, (low, high) in content["ranges"].items()
        }
        return cls(
            ranges,
            {name: tuple(map(str, values)) for name, values in content["categories"].items()},
        )


def warn_about_unfamiliar(
    known: TrainingValues | None, frame: Any, columns: Sequence[Column], what: str
) -> None:
    """Warn about rows that are unlike the training table, where it is known.

    Examples
    --------
    >>> warn_about_unfamiliar(None, None, [], "the table")
    """
    message = None if known is None else known.describe_unfamiliar(frame, columns, what)
    if message is not None:
        warnings.warn(InputWarning(message), stacklevel=3)


@contextmanager
def warned_already() -> Iterator[None]:
    """Without the warnings of an estimator, which knows features and not columns.

    It sees a slice of the rows at a time, so that it would also count unknown groups in parts.

    Examples
    --------
    >>> with warned_already():
    ...     warnings.warn(InputWarning("This is not given."), stacklevel=1)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeafWarning)
        yield


def _of_kind(columns: Sequence[Column], frame: Any, *kinds: str) -> list[Column]:
    present = set(frame.columns)
    return [column for column in columns if column.kind in kinds and column.name in present]


def _read(frame: Any, columns: list[Column]) -> NDArray[np.float64]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the preparation of the features warns about these cells
        return read_columns(frame, columns)
