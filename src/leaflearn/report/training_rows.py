"""The table that a model was fitted to, read once more, and what there was to say about it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.estimators.validation import check_X
from leaflearn.messages import TableWarning
from leaflearn.persistence.fingerprint import fingerprint
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.reading import find_column, to_frame
from leaflearn.tabular.rows import keep_rows_with_group, keep_rows_with_target, name_groups


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows that a model learnt from, in the user's own columns and as features.

    Parameters
    ----------
    frame
        The rows with a target and a group; its index numbers the rows of the table from 0.
    groups
        The name of each row's group, (N,).
    X, y
        Features (N, F) and targets (N,).
    warnings
        What was said while they were read.
    is_same
        Whether these are the very rows that the model was fitted to.

    Examples
    --------
    >>> import pandas
    >>> rows = TrainingRows(pandas.DataFrame({"dose": [1.0]}), np.array(["A"]), np.ones((1, 1)), np.ones(1), [], True)
    >>> rows.is_same
    True
    """

    frame: Any
    groups: NDArray[Any]
    X: NDArray[Any]
    y: NDArray[Any]
    warnings: list[str]
    is_same: bool


def read_training_rows(model: Any, frame: Any, what: str = "the table") -> TrainingRows:
    """The rows of a table as `TableModel.fit` sees them; an error in one sentence, where the model cannot have been fitted to it.

    Examples
    --------
    >>> import pandas
    >>> from leaflearn.tabular.table_model import TableModel
    >>> table = pandas.DataFrame({"dose": [0.1 * i for i in range(40)], "effect": [2.0 * i for i in range(40)]})
    >>> model = TableModel("effect", contexts=1, local_model="linear").fit(table)
    >>> read_training_rows(model, table).is_same, read_training_rows(model, table[::-1]).is_same
    (True, False)
    """
    frame = to_frame(frame, what)
    if model.group is not None:
        find_column(frame.columns, model.group, what)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = keep_rows_with_group(
            keep_rows_with_target(frame, model.target, what), model.group, what
        )
        X = model.features_of(rows, what)
    told = [
        str(warning.message) for warning in caught if issubclass(warning.category, TableWarning)
    ]
    groups, y = name_groups(rows, model.group), model.target_.read(rows[model.target])
    return TrainingRows(
        rows, groups, X, y, told, _are_those_of_the_fit(model.estimator_, X, y, groups)
    )


def find_background(model: Any, rows: TrainingRows | None) -> NDArray[Any] | None:
    """Features of rows to ask the contexts about: those of the table, else those the estimator remembers; None where it remembers none.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> find_background(SimpleNamespace(estimator_=SimpleNamespace(replay_buffer_=None), preparation_=None), None)
    """
    memory = model.estimator_.replay_buffer_
    if rows is not None and isinstance(model.preparation_, Preparation):
        return rows.X
    return None if memory is None else np.asarray(memory.X)


def _are_those_of_the_fit(
    estimator: Any, X: NDArray[Any], y: NDArray[Any], groups: NDArray[Any]
) -> bool:
    if len(y) != len(estimator.outliers_):
        return False
    try:
        target = estimator._check_y(y, reset=False)
        checked = check_X(estimator, X, reset=False, engine=estimator._engine)
    except ValueError:  # what the estimator refuses, it was not fitted to
        return False
    return (
        fingerprint(checked, target, np.unique(groups, return_inverse=True)[1], None)
        == estimator._fingerprint
    )
