"""Tables of answers: item, worker, label. Is there a column that only names what was labelled?

Such a column has hundreds of values, each in few rows, and every one of them matters: where two groups answered the same item differently,
they disagree. So its values are all told apart, and not only the most common ones, as those of other categories are.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from leaflearn.tabular.cells import read_numbers
from leaflearn.tabular.column_kinds import MOST_VALUES, RARE, Column, find_kind, read_texts
from leaflearn.tabular.feature_choice import tells_by_order
from leaflearn.tabular.text_encoding import warn

ITEM = "names the items"  # the form of such a column
MOST_ITEMS = 1000  # that are told apart, those with the most answers
MOST_CELLS = 5 * 10**7  # of zeros and ones: fewer items where rows are very many
ONCE = 0.9  # of the rows, at least, are the only answer of their group to their item
SHARED = 0.5  # of the rows, at least, are about an item that several groups answered
SAME = 1.05  # times as many different cells as items, at most, has a column that describes items
NAMES = {
    "id",
    "ids",
    "item",
    "items",
    "task",
    "tasks",
    "question",
    "questions",
}  # last words of a column whose numbers are names

Codes = NDArray[np.intp]


def find_item_column(frame: Any, y: NDArray[Any], group: Codes) -> Column | None:
    """The column that names what was labelled, as a category of many values; None where there is none.

    Groups hardly ever answer the same item twice, and several of them answer it. Whole numbers are names where their column is called so,
    or where their order tells nothing of `y`.

    Parameters
    ----------
    frame
        The columns that may be learnt from.
    y
        The targets, shape (N,).
    group
        The group of each row, 0..m-1.

    Examples
    --------
    >>> import pandas
    >>> group, item = np.divmod(np.arange(120), 30)
    >>> frame = pandas.DataFrame({"question": [f"Q{i}" for i in item], "length": item % 7})
    >>> column = find_item_column(frame, y=np.arange(120) % 2, group=group)
    >>> column.name, len(column.values)
    ('question', 30)
    """
    if len(group) < 2 * len(
        np.unique(group)
    ):  # single rows cannot be compared, whatever they are about
        return None
    kinds = [find_kind(frame[name], name) for name in frame.columns]
    for column in sorted(
        kinds, key=lambda column: column.kind == "text"
    ):  # prose describes an item that has a name beside it
        cells = frame[column.name]
        if _has_the_shape(cells, column, group) and (
            column.kind != "number" or _are_names(cells, y, group)
        ):
            return Column(column.name, "category", ITEM, _choose_values(cells))
    return None


def list_columns_of_answers(frame: Any, item: str) -> list[str]:
    """The columns that do not describe the items, each of which would have one value there, but their answers, or who gave them.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"item": list("abcabc"), "length": [1, 2, 3] * 2, "seconds": [4, 1, 5, 9, 2, 6]})
    >>> list_columns_of_answers(frame, "item")
    ['seconds']
    """
    code = read_codes(frame[item])
    most = max(SAME * len(np.unique(code)), len(np.unique(code)) + 1)
    others = [name for name in frame.columns if name != item]
    return [
        name
        for name in others
        if np.unique(np.stack([code, read_codes(frame[name])]), axis=1).shape[1] > most
    ]


def read_codes(cells: Any) -> Codes:
    """A number for each different value of a column, -1 where it is missing, shape (N,).

    Examples
    --------
    >>> import pandas
    >>> read_codes(pandas.Series(["b", None, "a"]))
    array([ 1, -1,  0])
    """
    is_plain = isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "biuf"
    values = cells.to_numpy() if is_plain else np.array(read_texts(cells), dtype=str)
    is_there = ~np.asarray(cells.isna(), dtype=bool)
    codes = np.full(len(values), -1, dtype=np.intp)
    codes[is_there] = np.unique(values[is_there], return_inverse=True)[1]
    return codes


def count_sets(item: Codes, group: Codes) -> int:
    """Into how many sets the groups fall that have no item in common; 1 where all can be compared, if only through others.

    Examples
    --------
    >>> count_sets(item=np.array([0, 1, 1, 2, 3]), group=np.array([0, 0, 1, 1, 2]))
    2
    """
    rows = np.flatnonzero(item >= 0)
    n_groups, n_items = int(group.max()) + 1, int(item.max()) + 1
    links = coo_array(
        (np.ones(len(rows)), (group[rows], n_groups + item[rows])), shape=(n_groups + n_items,) * 2
    )
    return len(np.unique(connected_components(links, directed=False)[1][:n_groups]))


def warn_about_item_sets(frame: Any, group: Codes, group_name: str) -> None:
    """Say so where one column of names is all that is known, and groups have no name in common; an error where nothing is left to learn.

    Examples
    --------
    >>> import pandas
    >>> warn_about_item_sets(pandas.DataFrame({"item": ["a", "b", "c", "d"]}), np.array([0, 0, 1, 1]), "worker")
    Traceback (most recent call last):
    ...
    ValueError: No two groups in 'worker' have a value of 'item' in common, so no group can be compared with another; let several groups \
answer the same items, or add columns that describe them.
    """
    n_groups = len(np.unique(group))
    if frame.shape[1] > 1 or not 1 < n_groups <= len(group) / 2:
        return
    column, codes = find_kind(frame.iloc[:, 0], str(frame.columns[0])), read_codes(frame.iloc[:, 0])
    is_left_out = column.kind == "nothing"
    if (
        (is_left_out and column.form not in RARE)
        or column.kind not in ("category", "nothing")
        or codes.max() < n_groups
    ):
        return
    n_sets, shared = count_sets(codes, group), f"a value of {column.name!r} in common"
    cure = "let several groups answer the same items, or add columns that describe them"
    sentence = f"No two groups in {group_name!r} have {shared}, so no group can be compared with another; {cure}."
    if n_sets < n_groups:
        sets = f"The groups in {group_name!r} fall into {n_sets:,} sets without {shared}"
        sentence = f"{sets}, so contexts of different sets cannot be compared; {cure}."
    if is_left_out and n_sets == n_groups:
        raise ValueError(sentence)
    if n_sets > 1:
        warn(sentence)


def _has_the_shape(cells: Any, column: Column, group: Codes) -> bool:
    """Many values, or numbers that are called names; hardly any of them twice in a group, most of them in several groups."""
    if column.kind == "date" or (column.kind == "nothing" and column.form not in RARE):
        return False
    if column.kind == "number" and not _are_whole(cells):
        return False
    codes = read_codes(cells)
    has_many = codes.max() >= MOST_VALUES or (
        column.kind == "number" and _is_called_a_name(column.name)
    )
    if not has_many or (codes >= 0).mean() < ONCE:
        return False
    pairs = np.unique(np.stack([codes, group]), axis=1)
    is_shared = np.bincount(pairs[0] + 1)[codes + 1] > 1
    return bool(pairs.shape[1] >= ONCE * len(codes) and is_shared.mean() >= SHARED)


def _are_whole(cells: Any) -> bool:
    values = read_numbers(cells)
    return bool(np.all(np.isnan(values) | (values == np.round(values))))


def _are_names(cells: Any, y: NDArray[Any], group: Codes) -> bool:
    """Numbers in a column that is called so, or whose order tells nothing."""
    return _is_called_a_name(str(cells.name)) or not tells_by_order(
        read_numbers(cells), y, group, seed=0
    )


def _is_called_a_name(name: str) -> bool:
    """Is its last word "id", "item" or the like? Also in "taskId" and "QUESTION_ID"."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return bool(words) and words[-1].lower() in NAMES


def _choose_values(cells: Any) -> tuple[str, ...]:
    """The items with the most answers, sorted."""
    values, counts = np.unique([text for text in read_texts(cells) if text], return_counts=True)
    most = min(MOST_ITEMS, max(MOST_VALUES, MOST_CELLS // len(cells)))
    if len(values) > most:
        warn(
            f"Column {cells.name!r} names {len(values):,} items; the {most:,} with the most answers are told apart, all others are one."
        )
    return tuple(np.sort(values[np.argsort(-counts, kind="stable")[:most]]).tolist())
