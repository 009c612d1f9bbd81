"""A fitted estimator as a section of `model.json` and parts beside it. `loading.py` is the way back."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from leaflearn.core.grouped_data import GroupedData
from leaflearn.estimators.model_io import CLASSES, describe_local_models, describe_object
from leaflearn.persistence import pack_arrays, table_to_json, to_json
from leaflearn.persistence.values import Arrays

FITTED = "fitted.safetensors"  # the larger arrays of what was fitted, and of the rows in `replay_buffer_`
ESTIMATORS = ("LeafRegressor", "LeafClassifier")
STATE = (  # what a fit leaves behind, but for the local models and the memory; not every estimator has all of it
    *("n_features_in_", "feature_names_in_", "classes_", "groups_"),
    *("n_contexts_", "contexts_", "probabilities_", "usage_", "context_order_"),
    *("history_", "restarts_", "best_restart_", "n_iter_", "init_", "selection_"),
    *("converged_", "stability_", "empirical_error_", "outliers_"),
    *(
        "_input_shape",
        "_y_shape",
        "_fingerprint",
        "_constant_loss",
        "_temperature",
        "_sizes",
        "_is_unexplained",
        "_scores",
        "_held_out",
    ),
)
SAVED_AS = {"_is_unexplained": "_is_aside"}  # attributes whose name in the folder is older


def describe_estimator(estimator: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The section and the parts of a fitted `LeafRegressor` or `LeafClassifier`, for `write_model`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from leaflearn import LeafRegressor
    >>> X, groups = np.arange(8.0)[:, None], np.repeat(np.arange(4), 2)
    >>> leaf = LeafRegressor(1, local_model=LinearRegression()).fit(X, X[:, 0], groups)
    >>> section, parts = describe_estimator(leaf)
    >>> section["class"], sorted(parts)
    ('LeafRegressor', ['fitted.safetensors', 'local-models.skops'])
    """
    check_is_fitted(estimator, "local_models_")
    name = type(estimator).__name__
    if name not in ESTIMATORS or not type(estimator).__module__.startswith("leaflearn."):
        raise ValueError(
            f"{name} is a class of your own, but only {' and '.join(ESTIMATORS)} can be saved; fit one of these."
        )
    arrays: Arrays = {}
    local_models, parts = describe_local_models(estimator, arrays)
    section = {
        "class": name,
        "parameters": {
            key: describe_object(value) for key, value in _parameters(estimator).items()
        },
        "data": {
            "rows": len(estimator.outliers_),
            "groups": len(estimator.groups_),
            "sha256": estimator._fingerprint,
        },
        "fitted": {
            SAVED_AS.get(key, key): to_json(vars(estimator)[key], arrays, CLASSES, key)
            for key in STATE
            if key in vars(estimator)
        },
        "memory": _describe_replay_buffer(estimator.replay_buffer_, arrays),
        "local_models": local_models,
    }
    return section, {**parts, FITTED: pack_arrays(arrays)}


def _parameters(estimator: Any) -> dict[str, Any]:
    """The parameters without callbacks, which belong to a run and not to a model."""
    return {**estimator.get_params(deep=False), "callbacks": None}


def _describe_replay_buffer(memory: GroupedData | None, arrays: Arrays) -> dict[str, Any] | None:
    if memory is None:
        return None
    try:
        content = {
            key: to_json(value, arrays, name=f"replay_buffer_.{key}")
            for key, value in vars(memory).items()
            if key != "X"
        }
        return {**content, "X": table_to_json(memory.X, arrays, "replay_buffer_.X")}
    except ValueError as error:
        raise ValueError(
            f"{error} Or set replay_buffer_ to None: then no training rows are saved, and the model cannot learn on."
        ) from None
