"""The steps of fitting a table: columns become features, contexts are found, and they are held against one model for all."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from leaflearn.core.training import Callback
from leaflearn.diagnostics.identifiability import count_answers_needed, warn_about_few_answers
from leaflearn.estimators.classifier import LeafClassifier
from leaflearn.estimators.regressor import LeafRegressor
from leaflearn.messages import RecoveryWarning
from leaflearn.tabular.feature_choice import find_informative_features
from leaflearn.tabular.frames import to_frame
from leaflearn.tabular.held_out import are_needed, compare_with_pooled_model
from leaflearn.tabular.images import ImageFiles, find_image_column
from leaflearn.tabular.item_columns import find_item_columns
from leaflearn.tabular.local_model_names import make_named
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.reading import find_column
from leaflearn.tabular.rows import (
    choose_columns,
    keep_rows_with_group,
    keep_rows_with_target,
    name_groups,
    warn_about_groups,
)
from leaflearn.tabular.targets import find_target
from leaflearn.tabular.text_encoding import warn
from leaflearn.tabular.warning_log import hold_warnings, reissue

if TYPE_CHECKING:
    from leaflearn.tabular.table_model import TableModel

BETTER = 0.8  # of the error, or less: then another local model is worth a word

Rows = NDArray[np.intp]


def fit_table(
    model: TableModel, frame: Any, what: str, on_stage: Callable[[str], None], callbacks: Sequence[Callback]
) -> None:  # fmt: skip
    """Fit a `TableModel` to a frame, and keep in it what was found; see `TableModel.fit`."""
    on_stage("looking at the columns")
    frame = to_frame(frame, what)
    columns = choose_columns(
        list(frame.columns), model.target, model.group, model.features, model.drop, what
    )
    rows = keep_rows_with_group(keep_rows_with_target(frame, model.target, what), model.group, what)
    model.target_ = find_target(rows[model.target], model.task)
    y = model.target_.read(rows[model.target])
    names = name_groups(rows, model.group)
    known, group = np.unique(names, return_inverse=True)
    if not isinstance(model.contexts, str) and model.contexts > len(known):
        raise ValueError(
            f"There are {len(known)} groups, fewer than the {model.contexts} contexts that were asked for; ask for fewer."
        )
    model.preparation_ = _choose_preparation(model, rows[columns], y, group, what)
    model.local_model_ = model.local_model or _choose_local_model(model)
    X = model.features_of(rows[columns], what)
    warn_about_groups(model.group, len(known), len(rows))
    on_stage("looking for contexts")
    model.estimator_ = _make_estimator(model, callbacks)
    with (
        warnings.catch_warnings()
    ):  # of single rows `warn_about_groups` has spoken, which knows the column
        warnings.filterwarnings("ignore", "Every group has a single row", RecoveryWarning)
        X = _fit_estimator(model, X, y, names, group, rows)
    model.estimator_.set_params(callbacks=None)  # they belong to this run
    on_stage("comparing with one model")
    model.errors_ = compare_with_pooled_model(
        model.estimator_, X, y, group, model.estimator_.contexts_, model.random_state
    )
    _advise_straight_lines(model, X, y, group)
    model.n_rows_, model.group_sizes_ = len(rows), np.bincount(group)
    _warn_of_few_answers(model)


def _choose_preparation(
    model: TableModel, frame: Any, y: NDArray[Any], group: Rows, what: str
) -> Preparation | ImageFiles:
    """How rows become features: by their columns, or by the pictures that one of them names."""
    if model.images is None:
        is_named = model.features is not None
        n_contexts = None if model.contexts == "auto" else int(model.contexts)
        known = find_item_columns(
            frame, y, group, model.group, n_contexts, is_named, model.local_model == "linear"
        )
        return Preparation.of(frame, y, group, model.random_state, is_named, known)
    if model.image_column is not None:
        return ImageFiles(find_column(frame.columns, model.image_column, what))
    return ImageFiles(find_image_column(frame, model.images))


def _choose_local_model(model: TableModel) -> str:
    if isinstance(model.preparation_, Preparation):
        return "linear" if _has_items(model) else "mlp"
    return "convnet" if model.target_.is_label else "mlp"  # only the second standardises quantities


def _has_items(model: TableModel) -> bool:
    """Are these answers to items that are told apart one by one?"""
    return isinstance(model.preparation_, Preparation) and bool(model.preparation_.is_item.any())


def _make_estimator(model: TableModel, callbacks: Sequence[Callback]) -> Any:
    kind = LeafClassifier if model.target_.is_label else LeafRegressor
    local_model = make_named(model.local_model_, model.target_.is_label, of_items=_has_items(model))
    return kind(
        model.contexts,
        local_model=local_model,
        random_state=model.random_state,
        callbacks=list(callbacks) or None,
    )


def _fit_estimator(
    model: TableModel,
    X: NDArray[Any],
    y: NDArray[Any],
    names: NDArray[Any],
    group: Rows,
    frame: Any,
) -> NDArray[Any]:
    """Fit to the features that tell something, and to all of them where the others are missed; gives back the features.

    Columns that have nothing to do with the target hide the contexts from the search, and networks learn them by heart.
    """
    telling = np.arange(X.shape[1])
    if (
        isinstance(model.preparation_, Preparation)
        and model.features is None
        and not _has_items(model)
    ):
        telling = find_informative_features(X, y, group, model.random_state)
    with hold_warnings() as said:
        model.estimator_.fit(X[:, telling], y, groups=names)
    if len(telling) == X.shape[1]:
        reissue(said)
        return X
    if are_needed(
        X, telling, y, group, model.estimator_.contexts_, model.random_state
    ):  # what was said of the first fit is void
        model.estimator_.set_params(n_contexts=model.estimator_.n_contexts_).fit(X, y, groups=names)
        model.estimator_.set_params(n_contexts=model.contexts)
        return X
    reissue(said)
    assert isinstance(model.preparation_, Preparation)
    model.preparation_ = model.preparation_.narrowed(frame, telling, model.random_state)
    return X[:, telling]


def _advise_straight_lines(
    model: TableModel, X: NDArray[Any], y: NDArray[Any], group: Rows
) -> None:
    """Networks learn small tables by heart; where straight lines do better on held-out rows, say so."""
    if model.local_model_ != "mlp" or model.errors_ is None:
        return
    lines = clone(model.estimator_).set_params(
        local_model=make_named("linear", model.target_.is_label)
    )
    errors = compare_with_pooled_model(
        lines, X, y, group, model.estimator_.contexts_, model.random_state
    )
    if errors is not None and errors.contexts < BETTER * model.errors_.contexts:
        warn(
            f"Straight lines foretell held-out rows better than networks here ({errors.metric} {errors.contexts:.3g} instead of "
            f"{model.errors_.contexts:.3g}); try the local model 'linear'."
        )


def _warn_of_few_answers(model: TableModel) -> None:
    """Say so where yes or no to items is all that is known, and it is too little to tell contexts apart."""
    is_yes_or_no = model.target_.is_label and len(model.estimator_.classes_) == 2
    if (
        _has_items(model)
        and is_yes_or_no
        and len(model.informative_columns_) == 1
        and model.contexts != 1
    ):
        n_contexts = max(2, model.estimator_.n_contexts_)
        warn_about_few_answers(
            model.group_sizes_,
            n_contexts,
            count_answers_needed(n_contexts),
            f"groups in {model.group!r}",
            "group",
        )
