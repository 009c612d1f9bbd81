"""Tables of answers to items: whether the items themselves have to be learnt, or columns that describe them are enough."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from leaflearn.initialization.items import start_from_items
from leaflearn.tabular.column_kinds import Column, find_kind
from leaflearn.tabular.feature_choice import are_associated_with_target
from leaflearn.tabular.held_out import HELPS, hold_out, row_losses
from leaflearn.tabular.items import (
    find_item_column,
    list_columns_of_answers,
    read_codes,
    warn_about_item_sets,
)
from leaflearn.tabular.local_model_names import make_named
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.reading import list_names
from leaflearn.tabular.text_encoding import warn

DESCRIBED = "names items that other columns describe well enough"
OF_ANSWERS = "tells of the answer or the group, not of the item"
N_SPLITS = 3  # into rows that are learnt from and rows that are held out

Rows = NDArray[np.intp]


def find_item_columns(
    frame: Any, y: NDArray[Any], group: Rows, group_name: str | None, n_contexts: int | None, is_named: bool, is_linear: bool
) -> list[Column]:  # fmt: skip
    """What is known of columns, where one of them names the items that were labelled; nothing in other tables.

    Either every item is told apart, or none, where other columns describe them well enough. These are preferred, since they also tell of
    items that nobody has labelled yet. Columns that are not about items, such as the time that an answer took, are left out where items
    are told apart. But where such a column goes with the target, the table is not one of mere answers, and is read like any other.

    Parameters
    ----------
    frame
        The columns that may be learnt from.
    y, group
        Targets, and the group of each row, 0..m-1, shape (N,).
    group_name
        The column of groups; where there is none, nobody can be compared.
    n_contexts
        How many there are; None where that is to be found out.
    is_named
        Whether somebody chose these columns; then all are kept.
    is_linear
        Whether local models will be straight lines, for which columns have to describe items in a simpler way.

    Examples
    --------
    >>> import pandas
    >>> worker, item = np.divmod(np.arange(600), 60)
    >>> frame, y = pandas.DataFrame({"item": [f"Q{i}" for i in item], "length": item % 9}), item % 2
    >>> [len(column.values) for column in find_item_columns(frame, y, worker, "worker", None, False, False)]
    [60]
    >>> find_item_columns(frame, (item % 9 > 4).astype(int), worker, "worker", None, False, False)[0].form
    'names items that other columns describe well enough'
    """
    if group_name is None:
        return []
    warn_about_item_sets(frame, group, group_name)
    column = find_item_column(frame, y, group)
    if column is None or is_named:
        return [] if column is None else [column]
    kind = find_kind(frame[column.name], column.name)
    of_answers = list_columns_of_answers(frame, column.name)
    telling = _find_telling(frame[of_answers], y, group)
    others = frame.drop(
        columns=[] if kind.kind == "text" else [column.name]
    )  # prose names an item, and describes it
    found = _prepare(others if telling else others.drop(columns=of_answers), y, group)
    are_needed = found is None or _are_missed(
        found[1], read_codes(frame[column.name]), y, group, n_contexts, is_linear
    )
    if telling:
        if are_needed:
            _tell_other_columns(column, telling)
        return []
    if are_needed:
        return [column, *(Column(name, "nothing", OF_ANSWERS) for name in of_answers)]
    return [] if kind.kind == "text" else [Column(column.name, "nothing", DESCRIBED)]


def _find_telling(frame: Any, y: NDArray[Any], group: Rows) -> list[str]:
    """The columns that go with the target inside the groups."""
    found = _prepare(frame, y, group)
    if found is None:
        return []
    is_telling = are_associated_with_target(found[1], y, group, seed=0)
    return list(dict.fromkeys(np.array(found[0].feature_columns)[is_telling].tolist()))


def _tell_other_columns(column: Column, telling: list[str]) -> None:
    others = f"{list_names(telling)} {'differs' if len(telling) == 1 else 'differ'} between rows of one name"
    warn(
        f"Column {column.name!r} may name what was labelled, but {others} and {'tells' if len(telling) == 1 else 'tell'} something of the "
        "target, so only its most common values are told apart; to tell all of them apart, name the columns to learn from."
    )


def _prepare(
    frame: Any, y: NDArray[Any], group: Rows
) -> tuple[Preparation, NDArray[np.float64]] | None:
    """How columns become features, and the features (N, F); None where they give none."""
    if not frame.shape[1]:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they come again when the columns are read for good
        try:
            prepare = Preparation.of(frame, y, group, seed=0)
        except ValueError:
            return None
        return prepare, prepare(frame)


def _are_missed(
    features: NDArray[np.float64], item: Rows, y: NDArray[Any], group: Rows, n_contexts: int | None, is_linear: bool
) -> bool:  # fmt: skip
    """Are held-out rows foretold better by mean answers to the items than by the features, with models for each context that items tell?"""
    is_value = y.dtype.kind == "f"
    classes, targets = (np.empty(0), y[:, None]) if is_value else np.unique(y, return_inverse=True)
    start = start_from_items(item, targets, group, n_contexts, len(classes), seed=0)
    context = (start.contexts if start.is_trusted else np.zeros_like(start.contexts))[group]
    trees = (HistGradientBoostingRegressor if is_value else HistGradientBoostingClassifier)(
        random_state=0, max_iter=50
    )
    models = [make_named("linear", not is_value), *([] if is_linear else [trees])]
    losses = [
        _hold_against(features, item, y, context, models, split)
        for seed in range(N_SPLITS)
        if (split := hold_out(group, seed))
    ]
    by_item, *by_feature = np.concatenate(losses, axis=1)
    described = min(by_feature, key=np.mean)
    gain = described - by_item
    return bool(
        by_item.mean() < HELPS * described.mean()
        and gain.mean() > 2.0 * gain.std() / math.sqrt(len(gain))
    )


def _hold_against(
    features: NDArray[np.float64], item: Rows, y: NDArray[Any], context: Rows, models: Sequence[Any], split: tuple[Rows, Rows]
) -> NDArray[np.float64]:  # fmt: skip
    """Losses of held-out rows: by mean answers to the items, then by models of the features, (1 + n_models, H)."""
    learn, held = split
    losses = np.empty((1 + len(models), len(held)))
    for k in np.unique(context[held]):
        mine = context[held] == k
        rows, ask = learn[context[learn] == k], held[mine]
        rows = rows if len(rows) else learn
        answers = [
            _answer_by_item(item, y, rows, ask),
            *(_answer_by_feature(model, features, y, rows, ask) for model in models),
        ]
        losses[:, mine] = [row_losses(answer, y[ask]) for answer in answers]
    return losses


def _answer_by_item(item: Rows, y: NDArray[Any], learn: Rows, ask: Rows) -> NDArray[Any]:
    """The mean value, or the commonest label, of each item, where it is known; else of all rows."""
    if y.dtype.kind == "f":
        total, count = (
            np.bincount(item[learn] + 1, weight, item.max() + 2)
            for weight in (y[learn], np.ones(len(learn)))
        )
        return np.asarray(
            np.where(count > 0, total / np.maximum(count, 1), y[learn].mean())[item[ask] + 1]
        )
    classes, label = np.unique(y[learn], return_inverse=True)
    counts = np.zeros((item.max() + 2, len(classes)))
    np.add.at(counts, (item[learn] + 1, label), 1.0)
    return np.asarray(
        classes[(counts + np.bincount(label) / (2 * len(label))).argmax(1)[item[ask] + 1]]
    )


def _answer_by_feature(
    model: Any, features: NDArray[np.float64], y: NDArray[Any], learn: Rows, ask: Rows
) -> NDArray[Any]:
    if len(np.unique(y[learn])) == 1:
        return np.repeat(y[learn[:1]], len(ask))
    return np.asarray(model.fit(features[learn], y[learn]).predict(features[ask]))
