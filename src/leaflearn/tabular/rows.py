"""Which rows and columns of a table a model learns from, and the names of its groups."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.messages import (
    GroupMissing,
    Message,
    NoGroupColumn,
    OneGroup,
    OneRowPerGroup,
    TableWarning,
    TargetMissing,
)
from leaflearn.tabular.column_kinds import row_of
from leaflearn.tabular.reading import find_column
from leaflearn.tabular.targets import to_names

ALL_ROWS = "all rows"  # the name of the only group to identify, if a table has no groups


def choose_columns(
    names: Sequence[str],
    target: str,
    group: str | None,
    features: Sequence[str] | None,
    drop: Sequence[str],
    what: str,
) -> list[str]:
    """The columns to learn from: `features`, or all but the target, the group and `drop`.

    Examples
    --------
    >>> names = ["site", "dose", "day", "effect"]
    >>> choose_columns(names, "effect", "site", None, ["day"], "trial.csv")
    ['dose']
    """
    for name in [target, *([] if group is None else [group]), *(features or ()), *drop]:
        find_column(names, name, what)
    if group == target:
        raise ValueError(
            f"Column {target!r} is both the target and the group; choose two different columns."
        )
    for name in features or ():
        if name in (target, group):
            raise ValueError(
                f"Column {name!r} is the {'target' if name == target else 'group'} and cannot be a "
                "feature; leave it out of the features."
            )
    chosen = [
        name for name in dict.fromkeys(features or names) if name not in (target, group, *drop)
    ]
    if not chosen:
        besides = "the target" if group is None else "the target and the group"
        raise ValueError(f"No column of {what} is left to learn from besides {besides}.")
    return chosen


def keep_rows_with_target(frame: Any, target: str, what: str) -> Any:
    """The rows that have a target, with a warning about the others.

    Examples
    --------
    >>> import pandas
    >>> keep_rows_with_target(pandas.DataFrame({"y": [None, None]}), "y", "trial.csv")
    Traceback (most recent call last):
    ...
    ValueError: The target 'y' is missing in every row of trial.csv.
    """
    is_present = frame[find_column(frame.columns, target, what)].notna()
    if not is_present.any():
        raise ValueError(f"The target {target!r} is missing in every row of {what}.")
    if not is_present.all():
        message = TargetMissing(target, int((~is_present).sum()), len(frame))
        warnings.warn(TableWarning(message), stacklevel=2)
    return frame[is_present]


def keep_rows_with_group(frame: Any, group: str | None, what: str) -> Any:
    """The rows that have a group, with a warning about the others; all rows if `group` is None.

    Examples
    --------
    >>> import pandas
    >>> len(keep_rows_with_group(pandas.DataFrame({"site": ["A", "B"]}), "site", "trial.csv"))
    2
    """
    if group is None:
        return frame
    cells = frame[group]
    is_present = cells.notna()
    if not is_present.any():
        raise ValueError(f"The group {group!r} is missing in every row of {what}.")
    if not is_present.all():
        message = GroupMissing(group, int((~is_present).sum()), row_of(cells[~is_present], 0))
        warnings.warn(TableWarning(message), stacklevel=2)
    return frame[is_present]


def name_groups(frame: Any, group: str | None) -> NDArray[np.str_]:
    """The name of each training row's group, shape (N,); without a column, each row is a group.

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
    """The name of each new row's group, shape (N,); without the column, all rows are one group.

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
            f"The group {group!r} is missing in row {row_of(cells[cells.isna()], 0)}; name it, or "
            "leave the row out."
        )
    return np.array(to_names(cells))


def warn_about_groups(group: str | None, n_groups: int, n_rows: int) -> None:
    """Warn where contexts cannot be identified from groups like these.

    Examples
    --------
    >>> warn_about_groups("site", n_groups=30, n_rows=600)
    """
    message: Message
    if group is None:
        message = NoGroupColumn()
    elif n_groups == 1:
        message = OneGroup(group)
    elif n_groups == n_rows:
        message = OneRowPerGroup(group)
    else:
        return
    warnings.warn(TableWarning(message), stacklevel=2)
