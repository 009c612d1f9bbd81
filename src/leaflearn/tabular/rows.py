"""Which rows and columns of a table are learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.tabular.cells import row_of
from leaflearn.tabular.reading import find_column
from leaflearn.tabular.targets import to_names
from leaflearn.tabular.text_encoding import warn

ALL_ROWS = "all rows"  # the name of the one source, where a table has no groups


def choose_columns(
    names: Sequence[str], target: str, group: str | None, features: Sequence[str] | None, drop: Sequence[str], what: str
) -> list[str]:  # fmt: skip
    """The columns to learn from: those that are named, or all but the target, the group and those to drop.

    Examples
    --------
    >>> choose_columns(["site", "dose", "day", "effect"], "effect", "site", None, ["day"], "trial.csv")
    ['dose']
    """
    for name in [target, *([] if group is None else [group]), *(features or ()), *drop]:
        find_column(names, name, what)
    if group == target:
        raise ValueError(
            f"Column {target!r} is both the target and the group; they have to differ."
        )
    for name in features or ():
        if name in (target, group):
            raise ValueError(
                f"Column {name!r} is the {'target' if name == target else 'group'} and cannot be learnt from."
            )
    chosen = [
        name for name in dict.fromkeys(features or names) if name not in (target, group, *drop)
    ]
    if not chosen:
        raise ValueError(
            f"No column of {what} is left to learn from beside the target{'' if group is None else ' and the group'}."
        )
    return chosen


def keep_rows_with_target(frame: Any, target: str, what: str) -> Any:
    """The rows that have a target, with a warning for the others.

    Examples
    --------
    >>> import pandas
    >>> keep_rows_with_target(pandas.DataFrame({"y": [None, None]}), "y", "trial.csv")
    Traceback (most recent call last):
    ...
    ValueError: The target 'y' is missing in every row of trial.csv.
    """
    is_there = frame[find_column(frame.columns, target, what)].notna()
    if not is_there.any():
        raise ValueError(f"The target {target!r} is missing in every row of {what}.")
    if not is_there.all():
        warn(
            f"The target {target!r} is missing in {int((~is_there).sum()):,} of {len(frame):,} rows, which were left out."
        )
    return frame[is_there]


def keep_rows_with_group(frame: Any, group: str | None, what: str) -> Any:
    """The rows that have a group, with a warning for the others: of a row that belongs to nobody, nothing can be learnt.

    Examples
    --------
    >>> import pandas
    >>> len(keep_rows_with_group(pandas.DataFrame({"site": ["A", "B"]}), "site", "trial.csv"))
    2
    """
    if group is None:
        return frame
    cells = frame[group]
    is_there = cells.notna()
    if not is_there.any():
        raise ValueError(f"The group {group!r} is missing in every row of {what}.")
    if not is_there.all():
        first = row_of(cells[~is_there], 0)
        warn(
            f"The group {group!r} is missing in {int((~is_there).sum()):,} rows, the first is row {first}; they were left out."
        )
    return frame[is_there]


def name_groups(frame: Any, group: str | None) -> NDArray[np.str_]:
    """The name of each row's group, to learn from; every row is its own where no column says so, shape (N,).

    Examples
    --------
    >>> import pandas
    >>> name_groups(pandas.DataFrame({"site": [7.0, 8.0]}), "site")
    array(['7', '8'], dtype='<U1')
    """
    return np.array(
        [f"row {i + 1}" for i in frame.index] if group is None else to_names(frame[group])
    )


def name_sources(frame: Any, group: str | None) -> NDArray[np.str_]:
    """The name of each row's source, to be identified; all rows are one source where no column says so, shape (N,).

    Examples
    --------
    >>> import pandas
    >>> name_sources(pandas.DataFrame({"dose": [1.0, 2.0]}), "site")
    array(['all rows', 'all rows'], dtype='<U8')
    """
    if group is None or group not in frame.columns:
        return np.repeat(ALL_ROWS, len(frame))
    cells = frame[group]
    if cells.isna().any():
        raise ValueError(
            f"The group {group!r} is missing in row {row_of(cells[cells.isna()], 0)}; name it, or leave the row out."
        )
    return np.array(to_names(cells))


def warn_about_groups(group: str | None, n_groups: int, n_rows: int) -> None:
    """Say so where the groups cannot tell contexts apart.

    Examples
    --------
    >>> warn_about_groups("site", n_groups=30, n_rows=600)
    """
    if group is None:
        warn(
            "No column of groups was given, so every row is a group of its own; single rows hardly tell contexts apart, "
            "pass group= (annotator, site, session, ...) so that rows known to share one stay together."
        )
    elif n_groups == 1:
        warn(
            f"Column {group!r} holds one group only, and one group has one context; contexts show where groups differ."
        )
    elif n_groups == n_rows:
        warn(
            f"Every group in {group!r} has one row, and single rows hardly tell contexts apart; group rows that share one."
        )
