"""The steps of a fit to a table: make features, find contexts, compare them with a pooled model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from leaflearn.core.training import Callback
from leaflearn.diagnostics.identifiability import count_answers_needed, warn_about_few_answers
from leaflearn.estimators.classifier import LeafClassifier
from leaflearn.estimators.regressor import LeafRegressor
from leaflearn.messages import (
    ImageFolderMissing,
    LinearModelBetter,
    MessageError,
    SingleRowGroups,
    TableWarning,
)
from leaflearn.tabular import settings
from leaflearn.tabular.column_kinds import Column, find_row_numbers
from leaflearn.tabular.held_out import HeldOutErrors, are_needed, compare_with_pooled_model
from leaflearn.tabular.images import ImageFiles, find_image_column
from leaflearn.tabular.informative_columns import find_informative_features
from leaflearn.tabular.items import find_item_columns
from leaflearn.tabular.local_model_names import AUTO, FROM_FILE, make_named
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.reading import find_column, to_frame
from leaflearn.tabular.rows import (
    choose_columns,
    keep_rows_with_group,
    keep_rows_with_target,
    name_groups,
    warn_about_groups,
)
from leaflearn.tabular.targets import Target, find_target
from leaflearn.tabular.unfamiliar_rows import TrainingValues
from leaflearn.tabular.warning_log import hold_warnings, list_messages, reissue

if TYPE_CHECKING:
    from leaflearn.tabular.table_model import TableModel

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class FittedTable:
    """What a fit to a table found; `TableModel` holds these values as its fitted attributes."""

    estimator: LeafClassifier | LeafRegressor
    preparation: Preparation | ImageFiles
    target: Target
    local_model: str
    errors: HeldOutErrors | None
    group_sizes: Rows
    n_rows: int
    training_values: TrainingValues | None


def fit_table(
    options: TableModel,
    frame: Any,
    what: str,
    on_stage: Callable[[str], None],
    callbacks: Sequence[Callback],
) -> FittedTable:
    """Fit to a table with the options of a `TableModel`; see `TableModel.fit`."""
    on_stage("looking at the columns")
    frame = to_frame(frame, what)
    columns = choose_columns(
        list(frame.columns), options.target, options.group, options.features, options.drop, what
    )
    numbers = find_row_numbers(frame, columns)  # before rows are left out
    rows = keep_rows_with_target(frame, options.target, what)
    rows = keep_rows_with_group(rows, options.group, what)
    target = find_target(rows[options.target], options.task)
    y = target.read(rows[options.target])
    names = name_groups(rows, options.group)
    known, group = np.unique(names, return_inverse=True)
    if not isinstance(options.contexts, str) and options.contexts > len(known):
        raise ValueError(
            f"There are {len(known)} groups, fewer than the requested {options.contexts} contexts; "
            "request fewer."
        )
    preparation = _choose_preparation(options, rows[columns], y, group, numbers, what)
    local_model = options.local_model or _choose_local_model(preparation, target)
    X = read_features(preparation, local_model, rows[columns], options.images, what)
    warn_about_groups(options.group, len(known), len(rows))
    on_stage("looking for contexts")
    has_effects = isinstance(preparation, Preparation) and _can_have_effects(np.bincount(group))
    value = make_named(local_model, target.is_label, _has_items(preparation), has_effects)
    estimator = _make_estimator(options, target, value, callbacks)
    X, preparation = _fit_estimator(estimator, options, preparation, X, y, names, group, rows)
    estimator.set_params(callbacks=None)  # they belong to this run
    if local_model == AUTO:
        local_model = estimator.local_model_
    on_stage("comparing with a pooled model")
    errors = compare_with_pooled_model(
        estimator, X, y, group, estimator.contexts_, options.random_state
    )
    if local_model == "mlp" and errors is not None:
        _recommend_linear_model(estimator, errors, X, y, group, options.random_state)
    sizes = np.bincount(group)
    _warn_about_few_answers(estimator, preparation, options, sizes)
    values = None
    if isinstance(preparation, Preparation):
        values = TrainingValues.of(rows, preparation.columns)
    found = estimator, preparation, target, local_model
    return FittedTable(*found, errors, sizes, len(rows), values)


def read_features(
    preparation: Preparation | ImageFiles,
    local_model: str,
    frame: Any,
    folder: Path | None,
    what: str,
) -> NDArray[Any]:
    """The inputs of the estimator: features (N, F), or images (N, 3, height, width).

    Local models that take no images get their pixels as features.

    Examples
    --------
    >>> read_features(ImageFiles("file"), "mlp", None, None, "the table")
    Traceback (most recent call last):
    ...
    leaflearn.messages.MessageError: The model was fitted to images; pass the folder of the new \
images as images=.
    """
    if isinstance(preparation, Preparation):
        return preparation(frame, what)
    if folder is None:
        raise MessageError(ImageFolderMissing())
    images = preparation.read(frame, folder, what)
    takes_images = local_model == "convnet" or local_model.startswith(FROM_FILE)
    return images if takes_images else images.reshape(len(images), -1)


def _choose_preparation(
    options: TableModel,
    frame: Any,
    y: NDArray[Any],
    group: Rows,
    row_numbers: list[Column],
    what: str,
) -> Preparation | ImageFiles:
    """How rows become features: from their columns, or from the images that a column names."""
    if options.images is None:
        is_named = options.features is not None
        n_contexts = None if options.contexts == "auto" else int(options.contexts)
        is_linear = options.local_model == "linear"
        left_out = [] if is_named else [column.name for column in row_numbers]
        others, group_name = frame.drop(columns=left_out), options.group
        items = []
        if len(others.columns):
            items = find_item_columns(others, y, group, group_name, n_contexts, is_named, is_linear)
        known = [*row_numbers, *items]
        return Preparation.of(frame, y, group, options.random_state, is_named, known)
    if options.image_column is not None:
        return ImageFiles(find_column(frame.columns, options.image_column, what))
    return ImageFiles(find_image_column(frame, options.images))


def _choose_local_model(preparation: Preparation | ImageFiles, target: Target) -> str:
    if isinstance(preparation, Preparation):
        return "linear" if _has_items(preparation) else AUTO
    return "convnet" if target.is_label else "mlp"  # only the second standardizes quantities


def _has_items(preparation: Preparation | ImageFiles) -> bool:
    """Whether each labelled item has a feature of its own."""
    return isinstance(preparation, Preparation) and bool(preparation.is_item.any())


def _can_have_effects(sizes: Rows) -> bool:
    """Whether effects of groups of these sizes (m,) can be told from noise and from contexts."""
    return len(sizes) >= settings.TABLES.min_effect_groups and int(sizes.max()) > 1


def _make_estimator(
    options: TableModel,
    target: Target,
    local_model: Any,
    callbacks: Sequence[Callback],
) -> LeafClassifier | LeafRegressor:
    return (LeafClassifier if target.is_label else LeafRegressor)(
        options.contexts,
        local_model=local_model,
        random_state=options.random_state,
        callbacks=list(callbacks) or None,
    )


def _fit_estimator(
    estimator: LeafClassifier | LeafRegressor,
    options: TableModel,
    preparation: Preparation | ImageFiles,
    X: NDArray[Any],
    y: NDArray[Any],
    names: NDArray[Any],
    group: Rows,
    frame: Any,
) -> tuple[NDArray[Any], Preparation | ImageFiles]:
    """Fit to the informative features, or to all features if the others are needed too.

    Columns that are not associated with the target hide the contexts from the search, and networks
    overfit them. Returns the features that were used, and their preparation.
    """
    seed = options.random_state
    selected = np.arange(X.shape[1])
    chooses = options.features is None and not _has_items(preparation)
    if isinstance(preparation, Preparation) and chooses:
        selected = find_informative_features(X, y, group, seed)
    with hold_warnings() as held:
        estimator.fit(X[:, selected], y, groups=names)
    if isinstance(preparation, Preparation) and len(selected) < X.shape[1]:
        if not are_needed(X, selected, y, group, estimator.contexts_, seed):
            _reissue_unless_single_rows(held)
            return X[:, selected], preparation.narrowed(frame, selected, seed)
        with hold_warnings() as held:  # those of the first fit no longer apply
            estimator.set_params(n_contexts=estimator.n_contexts_).fit(X, y, groups=names)
        estimator.set_params(n_contexts=options.contexts)
    _reissue_unless_single_rows(held)
    return X, preparation


def _reissue_unless_single_rows(held: Sequence[warnings.WarningMessage]) -> None:
    """Give the warnings of a fit; `warn_about_groups` has already warned about single rows."""
    reissue(
        warning
        for warning in held
        if not any(isinstance(message, SingleRowGroups) for message in list_messages([warning]))
    )


def _recommend_linear_model(
    estimator: LeafClassifier | LeafRegressor,
    errors: HeldOutErrors,
    X: NDArray[Any],
    y: NDArray[Any],
    group: Rows,
    seed: int,
) -> None:
    """Networks overfit small tables; warn if linear models predict held-out rows better."""
    is_classifier = isinstance(estimator, LeafClassifier)
    value = make_named("linear", is_classifier, False, _can_have_effects(np.bincount(group)))
    linear = clone(estimator).set_params(local_model=value)
    others = compare_with_pooled_model(linear, X, y, group, estimator.contexts_, seed)
    if (
        others is not None
        and others.contexts < settings.TABLES.linear_error_ratio * errors.contexts
    ):
        message = LinearModelBetter(others.metric, others.contexts, errors.contexts)
        warnings.warn(TableWarning(message), stacklevel=2)


def _warn_about_few_answers(
    estimator: LeafClassifier | LeafRegressor,
    preparation: Preparation | ImageFiles,
    options: TableModel,
    sizes: Rows,
) -> None:
    """Warn if there is nothing but yes-or-no answers to items, and too few of them per group."""
    is_binary = isinstance(estimator, LeafClassifier) and len(estimator.classes_) == 2
    has_only_items = _has_items(preparation) and len(preparation.used) == 1
    if is_binary and has_only_items and options.contexts != 1:
        n_contexts = max(2, estimator.n_contexts_)
        warn_about_few_answers(
            sizes,
            n_contexts,
            count_answers_needed(n_contexts),
            f"groups in {options.group!r}",
            "group",
        )
