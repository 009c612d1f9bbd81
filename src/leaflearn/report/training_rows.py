"""The training table of a model, read again, and the warnings about it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.messages import Message, TableWarning
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.reading import find_column, to_frame
from leaflearn.tabular.rows import keep_rows_with_group, keep_rows_with_target, name_groups
from leaflearn.tabular.table_model import TableModel


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows of the training table, in the user's own columns and as features.

    Parameters
    ----------
    frame
        The rows with a target and a group; its index numbers the rows of the table from 0.
    groups
        The name of each row's group, (N,).
    X, y
        Features (N, F) and targets (N,).
    warnings
        Warnings that were given while they were read.
    is_same
        Whether the model was fitted to exactly these rows.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"dose": [1.0]})
    >>> rows = TrainingRows(frame, np.array(["A"]), np.ones((1, 1)), np.ones(1), [], True)
    >>> rows.is_same
    True
    """

    frame: Any
    groups: NDArray[Any]
    X: NDArray[Any]
    y: NDArray[Any]
    warnings: list[Message]
    is_same: bool


def read_training_rows(model: TableModel, frame: Any, what: str = "the table") -> TrainingRows:
    """The rows of a table as `TableModel.fit` prepares them.

    A ValueError says why, if the model cannot have been fitted to this table.

    Examples
    --------
    >>> import pandas
    >>> from leaflearn.tabular.table_model import TableModel
    >>> table = pandas.DataFrame({"dose": np.arange(40) / 10, "effect": np.arange(40) * 2.0})
    >>> model = TableModel("effect", contexts=1, local_model="linear").fit(table)
    >>> read_training_rows(model, table).is_same, read_training_rows(model, table[::-1]).is_same
    (True, False)
    """
    frame = to_frame(frame, what)
    if model.group is not None:
        find_column(frame.columns, model.group, what)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = keep_rows_with_target(frame, model.target, what)
        rows = keep_rows_with_group(rows, model.group, what)
        X = model.features_of(rows, what)
    groups, y = name_groups(rows, model.group), model.target_.read(rows[model.target])
    given = [warning.message for warning in caught]
    messages = [m for w in given if isinstance(w, TableWarning) for m in w.messages]
    return TrainingRows(rows, groups, X, y, messages, _is_training_data(model, X, y, groups))


def find_background(model: TableModel, rows: TrainingRows | None) -> NDArray[Any] | None:
    """Features of rows to predict: those of the table, or else those of the replay buffer.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> estimator = SimpleNamespace(replay_buffer_=None)
    >>> find_background(SimpleNamespace(estimator_=estimator, preparation_=None), None)
    """
    if rows is not None and isinstance(model.preparation_, Preparation):
        return rows.X
    stored = model.estimator_.replay_buffer_
    return None if stored is None else np.asarray(stored.X)


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Some rows with their targets and groups, from the table or from the replay buffer.

    Parameters
    ----------
    X
        Features, (N, F).
    y
        Quantities, or the numbers of labels, (N,).
    group
        The number of each row's group among the groups of the model, (N,).

    Examples
    --------
    >>> LabelledRows(np.ones((1, 1)), np.ones(1), np.zeros(1, dtype=int)).X.shape
    (1, 1)
    """

    X: NDArray[Any]
    y: NDArray[Any]
    group: NDArray[np.intp]


def find_labelled_rows(model: TableModel, rows: TrainingRows | None) -> LabelledRows | None:
    """The rows of the table whose groups are in the model, or else those of the replay buffer.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> estimator = SimpleNamespace(replay_buffer_=None)
    >>> find_labelled_rows(SimpleNamespace(estimator_=estimator, preparation_=None), None)
    """
    estimator = model.estimator_
    if rows is not None and isinstance(model.preparation_, Preparation):
        order = np.argsort(estimator.groups_, kind="stable")
        place = np.searchsorted(estimator.groups_[order], rows.groups)
        number = order[np.minimum(place, len(order) - 1)]
        is_known = estimator.groups_[number] == rows.groups
        y = rows.y
        if model.target_.is_label:
            is_known = is_known & np.isin(y, estimator.classes_)
            y = np.minimum(np.searchsorted(estimator.classes_, y), len(estimator.classes_) - 1)
        if not is_known.any():
            return None
        return LabelledRows(rows.X[is_known], y[is_known], number[is_known])
    stored = estimator.replay_buffer_
    if stored is None:
        return None
    y = np.asarray(stored.y)
    return LabelledRows(np.asarray(stored.X), y.reshape(len(y), -1)[:, 0], stored.group)


def _is_training_data(
    model: TableModel, X: NDArray[Any], y: NDArray[Any], groups: NDArray[Any]
) -> bool:
    estimator = model.estimator_
    if len(y) != len(estimator.outliers_):
        return False
    try:
        return estimator.was_fitted_on(X, y, groups)
    except ValueError:  # the estimator cannot have been fitted to what it rejects
        return False
