"""The protocol of the comparison on real tables, and how its results are reported.

The numbers are the same for all tables and methods.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RealSettings:
    """How tables are split, what peers are given, and which results count.

    Parameters
    ----------
    n_splits
        Splits per table; each group is new in exactly one of them.
    n_labels
        Numbers of labelled rows of a new group.
    min_test_rows
        A new group is used if this many of its rows are left to predict.
    min_groups
        A cell counts if it has this many groups over all splits. With fewer, single groups decide.
    max_values
        Values of a category that are told apart; further ones are encoded like the first.
    max_slopes
        Columns with random slopes in a mixed model. Fits with more take minutes to hours.
    r_timeout
        Seconds after which a program of R is stopped, and the run counts as failed.
    tie
        A method is as good as the best peer if its error is at most this many times as large.
    notable
        Cells in which a method's error exceeds the best peer's by more than this factor are listed.

    Examples
    --------
    >>> REAL.n_labels
    (1, 5, 10, 20)
    """

    n_splits: int = 5
    n_labels: tuple[int, ...] = (1, 5, 10, 20)
    min_test_rows: int = 5
    min_groups: int = 20
    max_values: int = 40
    max_slopes: int = 8
    r_timeout: float = 900.0
    tie: float = 1.02
    notable: float = 1.10


REAL = RealSettings()
