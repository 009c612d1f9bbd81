"""Tables of answers (item, worker, label): the column that names the labelled items.

Such a column has hundreds of values, each in few rows, and every value matters: two groups that
labelled the same item differently disagree. Therefore each item gets a feature of its own, unlike
the rare values of other categories; unless other columns describe the items well enough.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator

from leaflearn.initialization.items import start_from_items
from leaflearn.messages import (
    GroupsShareNoItems,
    MayNameItems,
    MessageError,
    TableWarning,
    TooManyItems,
)
from leaflearn.tabular import settings
from leaflearn.tabular.column_kinds import (
    DESCRIBED,
    ITEM,
    OF_ANSWERS,
    RARE,
    Column,
    find_kind,
    read_numbers,
    read_texts,
)
from leaflearn.tabular.held_out import are_better, hold_out, make_trees, row_losses
from leaflearn.tabular.informative_columns import are_associated_with_target, is_order_informative
from leaflearn.tabular.local_model_names import make_linear
from leaflearn.tabular.preparation import Preparation

ITEM_WORDS = {"id", "ids", "item", "items", "task", "tasks", "question", "questions"}

Codes = NDArray[np.intp]
Floats = NDArray[np.float64]


def find_item_columns(
    frame: Any,
    y: NDArray[Any],
    group: Codes,
    group_name: str | None,
    n_contexts: int | None,
    is_named: bool,
    is_linear: bool,
) -> list[Column]:
    """How to use columns if one of them names the labelled items; an empty list in other tables.

    Either every item gets a feature, or none, if other columns describe the items well enough.
    Columns that describe items are preferred, because they apply to new items too. Columns that do
    not describe items, such as the time that an answer took, are left out where items get
    features. But if such a column is associated with the target, the table does not only hold
    answers to items, and its columns are used like those of any other table.

    Parameters
    ----------
    frame
        The columns that may be used.
    y, group
        Targets, and the group of each row, 0..m-1, shape (N,).
    group_name
        The column of groups; None if there is none, and no groups can be compared.
    n_contexts
        The number of contexts; None if it is to be determined.
    is_named
        Whether the user chose these columns; then all are used.
    is_linear
        Whether local models will be linear, for which columns have to describe items in a simpler
        way.

    Examples
    --------
    >>> import pandas
    >>> worker, item = np.divmod(np.arange(600), 60)
    >>> frame = pandas.DataFrame({"item": [f"Q{i}" for i in item], "length": item % 9})
    >>> columns = find_item_columns(frame, item % 2, worker, "worker", None, False, False)
    >>> [len(column.values) for column in columns]
    [60]
    >>> is_long = (item % 9 > 4).astype(int)
    >>> find_item_columns(frame, is_long, worker, "worker", None, False, False)[0].form
    'names items that other columns describe well enough'
    """
    if group_name is None:
        return []
    warn_about_item_sets(frame, group, group_name)
    column = find_item_column(frame, y, group)
    if column is None or is_named:
        return [] if column is None else [column]
    is_prose = find_kind(frame[column.name], column.name).kind == "text"  # names and describes
    of_answers = list_columns_of_answers(frame, column.name)
    informative = _find_informative(frame[of_answers], y, group)
    others = frame.drop(columns=[] if is_prose else [column.name])
    prepared = _prepare(others if informative else others.drop(columns=of_answers), y, group)
    need_features = prepared is None or _predict_better(
        read_codes(frame[column.name]), prepared[1], y, group, n_contexts, is_linear
    )
    if informative:
        if need_features:
            warnings.warn(TableWarning(MayNameItems(column.name, tuple(informative))), stacklevel=2)
        return []
    if need_features:
        return [column, *(Column(name, "nothing", OF_ANSWERS) for name in of_answers)]
    return [] if is_prose else [Column(column.name, "nothing", DESCRIBED)]


def find_item_column(frame: Any, y: NDArray[Any], group: Codes) -> Column | None:
    """The column that names the labelled items, as a category of many values; or None.

    A group hardly ever labels an item twice, and several groups label the same item. Whole numbers
    are names if the name of their column says so, or if their order is not informative about `y`.

    Parameters
    ----------
    frame
        The columns that may be used.
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
    if len(group) < 2 * len(np.unique(group)):  # single rows cannot be compared
        return None
    kinds = [find_kind(frame[name], name) for name in frame.columns]
    for column in sorted(kinds, key=lambda column: column.kind == "text"):  # prose comes last
        cells = frame[column.name]
        if _looks_like_items(cells, column, group) and (
            column.kind != "number" or _are_names(cells, y, group)
        ):
            return Column(column.name, "category", ITEM, _choose_values(cells))
    return None


def list_columns_of_answers(frame: Any, item: str) -> list[str]:
    """The columns that vary between the rows of an item, and so describe answers or groups.

    Examples
    --------
    >>> import pandas
    >>> seconds = [4, 1, 5, 9, 2, 6]
    >>> columns = {"item": list("abcabc"), "length": [1, 2, 3] * 2, "seconds": seconds}
    >>> list_columns_of_answers(pandas.DataFrame(columns), "item")
    ['seconds']
    """
    code = read_codes(frame[item])
    n_items = len(np.unique(code))
    most = max(settings.TABLES.max_values_per_item * n_items, n_items + 1)
    others = [name for name in frame.columns if name != item]
    return [
        name
        for name in others
        if np.unique(np.stack([code, read_codes(frame[name])]), axis=1).shape[1] > most
    ]


def read_codes(cells: Any) -> Codes:
    """An integer for each different value of a column, -1 for missing values, shape (N,).

    Examples
    --------
    >>> import pandas
    >>> read_codes(pandas.Series(["b", None, "a"]))
    array([ 1, -1,  0])
    """
    is_plain = isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "biuf"
    values = cells.to_numpy() if is_plain else np.array(read_texts(cells), dtype=str)
    is_present = ~np.asarray(cells.isna(), dtype=bool)
    codes = np.full(len(values), -1, dtype=np.intp)
    codes[is_present] = np.unique(values[is_present], return_inverse=True)[1]
    return codes


def count_sets(item: Codes, group: Codes) -> int:
    """The number of sets of groups without common items; 1 if all groups can be compared.

    Two groups without a common item can be compared through other groups.

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
    """Warn if names of items are the only column and groups have no item in common.

    It is an error if the column cannot be used as a category either.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"item": ["a", "b", "c", "d"]})
    >>> warn_about_item_sets(frame, np.array([0, 0, 1, 1]), "worker")
    Traceback (most recent call last):
    ...
    leaflearn.messages.MessageError: No two groups in 'worker' have a value of 'item' in common, \
so no group can be compared with another; let several groups label the same items, or add columns \
that describe them.
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
    n_sets = count_sets(codes, group)
    message = GroupsShareNoItems(group_name, column.name, n_groups, n_sets)
    if is_left_out and n_sets == n_groups:
        raise MessageError(message)
    if n_sets > 1:
        warnings.warn(TableWarning(message), stacklevel=2)


# ---- which column names items -------------------------------------------------------------------


def _looks_like_items(cells: Any, column: Column, group: Codes) -> bool:
    """Whether a column has many values, rarely twice in a group, mostly in several groups."""
    limits = settings.TABLES
    if column.kind == "date" or (column.kind == "nothing" and column.form not in RARE):
        return False
    if column.kind == "number" and not _are_whole(cells):
        return False
    codes = read_codes(cells)
    has_many = codes.max() >= limits.max_values or (
        column.kind == "number" and _has_item_name(column.name)
    )
    if not has_many or (codes >= 0).mean() < limits.min_single_answers:
        return False
    pairs = np.unique(np.stack([codes, group]), axis=1)
    is_shared = np.bincount(pairs[0] + 1)[codes + 1] > 1
    return bool(
        pairs.shape[1] >= limits.min_single_answers * len(codes)
        and is_shared.mean() >= limits.min_shared_items
    )


def _are_whole(cells: Any) -> bool:
    values = read_numbers(cells)
    return bool(np.all(np.isnan(values) | (values == np.round(values))))


def _are_names(cells: Any, y: NDArray[Any], group: Codes) -> bool:
    """Whether numbers are names: by the name of their column, or because of their order."""
    return _has_item_name(str(cells.name)) or not is_order_informative(
        read_numbers(cells), y, group, seed=0
    )


def _has_item_name(name: str) -> bool:
    """Whether the last word of a name is "id", "item" or the like, as in "taskId", "ITEM_ID"."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return bool(words) and words[-1].lower() in ITEM_WORDS


def _choose_values(cells: Any) -> tuple[str, ...]:
    """The items with the most answers, sorted."""
    limits = settings.TABLES
    values, counts = np.unique([text for text in read_texts(cells) if text], return_counts=True)
    most = min(limits.max_items, max(limits.max_values, limits.max_item_cells // len(cells)))
    if len(values) > most:
        warnings.warn(TableWarning(TooManyItems(str(cells.name), len(values), most)), stacklevel=2)
    return tuple(np.sort(values[np.argsort(-counts, kind="stable")[:most]]).tolist())


# ---- whether items need features ----------------------------------------------------------------


def _find_informative(frame: Any, y: NDArray[Any], group: Codes) -> list[str]:
    """The columns that are associated with the target within the groups."""
    prepared = _prepare(frame, y, group)
    if prepared is None:
        return []
    preparation, features = prepared
    is_informative = are_associated_with_target(features, y, group, seed=0)
    return list(dict.fromkeys(np.array(preparation.feature_columns)[is_informative].tolist()))


def _prepare(frame: Any, y: NDArray[Any], group: Codes) -> tuple[Preparation, Floats] | None:
    """How columns become features, and the features (N, F); None if there are no features."""
    if not frame.shape[1]:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are given when the columns are read for the fit
        try:
            prepare = Preparation.of(frame, y, group, seed=0)
        except ValueError:
            return None
        return prepare, prepare(frame)


def _predict_better(
    item: Codes,
    features: Floats,
    y: NDArray[Any],
    group: Codes,
    n_contexts: int | None,
    is_linear: bool,
) -> bool:
    """Whether mean answers to the items predict held-out rows better than models of the features.

    Both are fitted per context, with the contexts that the answers to the items imply.
    """
    is_value = y.dtype.kind == "f"
    classes, targets = (np.empty(0), y[:, None]) if is_value else np.unique(y, return_inverse=True)
    start = start_from_items(item, targets, group, n_contexts, len(classes), seed=0)
    context = (start.contexts if start.is_trusted else np.zeros_like(start.contexts))[group]
    models = [make_linear(not is_value)]
    if not is_linear:
        models.append(make_trees(not is_value, seed=0))
    losses = [
        _held_out_losses(item, features, y, context, models, split)
        for seed in range(settings.TABLES.n_item_splits)
        if (split := hold_out(group, seed))
    ]
    by_item, *by_features = np.concatenate(losses, axis=1)
    return are_better(by_item, min(by_features, key=np.mean))


def _held_out_losses(
    item: Codes,
    features: Floats,
    y: NDArray[Any],
    context: Codes,
    models: Sequence[BaseEstimator],
    split: tuple[Codes, Codes],
) -> Floats:
    """Held-out losses of mean answers to the items, then of each model, (1 + n_models, H)."""
    learn, held = split
    losses = np.empty((1 + len(models), len(held)))
    for k in np.unique(context[held]):
        mine = context[held] == k
        rows, ask = learn[context[learn] == k], held[mine]
        rows = rows if len(rows) else learn
        predictions = [
            _predict_by_item(item, y, rows, ask),
            *(_predict_by_features(model, features, y, rows, ask) for model in models),
        ]
        losses[:, mine] = [row_losses(predicted, y[ask]) for predicted in predictions]
    return losses


def _predict_by_item(item: Codes, y: NDArray[Any], learn: Codes, ask: Codes) -> NDArray[Any]:
    """The mean value, or the most common label, of each item; of all rows for new items."""
    if y.dtype.kind == "f":
        total, count = (
            np.bincount(item[learn] + 1, weight, item.max() + 2)
            for weight in (y[learn], np.ones(len(learn)))
        )
        means = np.where(count > 0, total / np.maximum(count, 1), y[learn].mean())
        return np.asarray(means[item[ask] + 1])
    classes, label = np.unique(y[learn], return_inverse=True)
    counts = np.zeros((item.max() + 2, len(classes)))
    np.add.at(counts, (item[learn] + 1, label), 1.0)
    most_common = (counts + np.bincount(label) / (2 * len(label))).argmax(1)
    return np.asarray(classes[most_common[item[ask] + 1]])


def _predict_by_features(
    model: BaseEstimator, features: Floats, y: NDArray[Any], learn: Codes, ask: Codes
) -> NDArray[Any]:
    if len(np.unique(y[learn])) == 1:
        return np.repeat(y[learn[:1]], len(ask))
    return np.asarray(model.fit(features[learn], y[learn]).predict(features[ask]))
