"""Validation of parameters and of data."""

from __future__ import annotations

import numbers
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, validate_data

from leaflearn.core.grouped_data import count_missing
from leaflearn.core.training import SCHEDULES, Callback
from leaflearn.engines.engine import choose_engine
from leaflearn.engines.parameters import Parameters
from leaflearn.engines.recipe import OPTIMIZERS

# ---- parameters ---------------------------------------------------------------------------------

# Parameters that may be one of some strings, and these strings.
NAMES: dict[str, Collection[str]] = {
    "init": ("auto", "conflict", "seeded", "random"),
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
}
# Parameters that are positive integers, and other values that they may have.
COUNTS: dict[str, tuple[Any, ...]] = {
    "n_init": ("auto",),
    "max_epochs": ("auto",),
    "groups_per_step": (),
    "rows_per_group": (None,),
    "n_iter_no_change": (None,),
}
# Parameters that are positive numbers, and other values that they may have.
POSITIVE: dict[str, tuple[Any, ...]] = {
    "learning_rate": (),
    "temperature": ("auto",),
    "max_grad_norm": (None,),
}


def check_parameters(parameters: Parameters) -> None:
    """Refuse invalid parameters.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> check_parameters(LeafRegressor(learning_rate=0))
    Traceback (most recent call last):
    ValueError: learning_rate=0, but a positive number was expected.
    """
    n_contexts: Any = parameters.n_contexts
    is_number = (
        isinstance(n_contexts, numbers.Integral)
        and not isinstance(n_contexts, bool)
        and int(n_contexts) >= 1
    )
    if not is_number and n_contexts != "auto":
        raise ValueError(
            f"n_contexts={n_contexts!r}, but a whole number of at least 1, or 'auto', was expected."
        )
    for name, known in NAMES.items():
        value = getattr(parameters, name)
        if isinstance(value, str) and value not in known:
            raise ValueError(
                f"{name}={value!r} is not known; choose one of {', '.join(map(repr, known))}."
            )
    for name, special in COUNTS.items():
        value = getattr(parameters, name)
        if value not in special and (not isinstance(value, numbers.Integral) or value < 1):
            raise ValueError(f"{name}={value!r}, but a whole number of at least 1 was expected.")
    for name, special in POSITIVE.items():
        value = getattr(parameters, name)
        if value not in special and (not isinstance(value, numbers.Real) or not float(value) > 0):
            raise ValueError(f"{name}={value!r}, but a positive number was expected.")
    if not isinstance(parameters.tol, numbers.Real) or float(parameters.tol) < 0:
        raise ValueError(f"tol={parameters.tol!r}, but a number of at least 0 was expected.")
    if (
        isinstance(parameters.trim, bool)
        or not isinstance(parameters.trim, numbers.Real)
        or not 0 <= float(parameters.trim) < 0.5
    ):
        raise ValueError(
            f"trim={parameters.trim!r}, but a number of at least 0 and less than 0.5 was expected."
        )
    if parameters.out_of_fold not in (True, False, "auto"):
        raise ValueError(
            f"out_of_fold={parameters.out_of_fold!r} is not known; choose one of True, False, "
            "'auto'."
        )
    if not all(isinstance(callback, Callback) for callback in parameters.callbacks or ()):
        raise ValueError(
            "callbacks holds something that is not a leaflearn.core.training.Callback; pass a list "
            "of such objects."
        )
    _check_local_model(parameters)
    _check_group_effects(parameters)


def _check_local_model(parameters: Parameters) -> None:
    kind = get_tags(parameters).estimator_type
    if (
        choose_engine(parameters.local_model) == "refit"
        and get_tags(parameters.local_model).estimator_type != kind
    ):
        raise ValueError(
            f"local_model={parameters.local_model!r} is not a {kind}, but "
            f"{type(parameters).__name__} needs {kind}s as local models."
        )


def _check_group_effects(parameters: Parameters) -> None:
    known = (None, "intercept", "slopes", "auto")
    if parameters.group_effects not in known:
        raise ValueError(
            f"group_effects={parameters.group_effects!r} is not known; choose one of "
            f"{', '.join(map(repr, known))}."
        )
    may_have_effects = choose_engine(parameters.local_model) in ("chosen", "closed_form")
    if parameters.group_effects in ("intercept", "slopes") and not may_have_effects:
        raise ValueError(
            f"group_effects={parameters.group_effects!r}, but only local_model='linear', 'smooth' "
            "and 'boosting', or None, have group effects; choose one of these, or "
            "group_effects=None."
        )


# ---- data ---------------------------------------------------------------------------------------


def to_numpy(values: Any) -> Any:
    """A torch tensor as a numpy array; anything else as it is.

    Examples
    --------
    >>> import torch
    >>> to_numpy(torch.ones(2))
    array([1., 1.], dtype=float32)
    """
    return values.detach().cpu().numpy() if hasattr(values, "detach") else values


def check_X(estimator: BaseEstimator, X: Any, *, reset: bool, engine: str) -> Any:
    """Check the inputs: numbers for networks, anything that the local model accepts for "refit"."""
    if engine == "refit" and hasattr(X, "columns") and len(X):
        # Frames are passed on as they are, because pipelines select their columns by name.
        return validate_data(estimator, X, reset=reset, skip_check_array=True)
    if hasattr(X, "columns"):
        _refuse_columns(X)
    if engine in ("chosen", "mlp", "closed_form") and len(getattr(X, "shape", ())) > 2:
        raise ValueError(
            f"X has shape {tuple(X.shape)}, but the default local model takes rows of features; "
            "pass a module factory as local_model, or reshape X to (n_samples, n_features)."
        )
    tags = estimator.__sklearn_tags__().input_tags
    X = validate_data(
        estimator,
        to_numpy(X),
        reset=reset,
        accept_sparse=["csr", "csc"] if tags.sparse else False,
        dtype={"module": np.float32, "refit": "numeric"}.get(engine, np.float64),
        ensure_all_finite=False,
        allow_nd=engine == "module",
    )
    if not tags.allow_nan:
        refuse_non_finite(
            X.data if hasattr(X, "tocsr") else X, "X", getattr(estimator, "feature_names_in_", None)
        )
    return X


def _refuse_columns(X: Any) -> None:
    """Refuse frames with columns that networks cannot use, and name these columns."""
    if not len(X.columns):
        raise ValueError(
            f"X is a frame of shape {tuple(X.shape)} without columns, but at least one column of "
            "numbers was expected."
        )
    not_numeric = [str(name) for name in X.columns if not _is_numeric(X[name])]
    if not_numeric:
        shown = ", ".join(map(repr, not_numeric[:5])) + (", ..." if len(not_numeric) > 5 else "")
        raise ValueError(
            f"X holds columns that are not numbers ({shown}); encode them as numbers or leave them "
            "out."
        )


def _is_numeric(column: Any) -> bool:
    values = np.asarray(column)
    if values.dtype.kind != "O":
        return values.dtype.kind in "biuf"
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def check_regression_y(y: Any, name: str) -> NDArray[np.float64]:
    """Check regression targets: finite numbers, (n_samples,) or (n_samples, n_outputs)."""
    y = np.asarray(_refuse_missing_y(y, name))
    if y.ndim not in (1, 2) or y.size == 0:
        raise ValueError(
            f"y has shape {y.shape}, but numbers of shape (n_samples,) or (n_samples, n_outputs) "
            "were expected."
        )
    if y.dtype.kind == "c":
        raise ValueError(
            "Complex data not supported: y holds complex numbers, but real ones were expected."
        )
    try:
        y = y.astype(np.float64)
    except (TypeError, ValueError):
        example = y.ravel()[:1].tolist()[0]
        raise ValueError(
            f"y holds {example!r}, but {name} needs numbers; use LeafClassifier for labels."
        ) from None
    refuse_non_finite(y, "y")
    return y


def _refuse_missing_y(y: Any, name: str) -> Any:
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    return to_numpy(y)


def check_classification_y(y: Any, name: str) -> NDArray[Any]:
    """Check class labels: one for each row, of a type that can be compared, none missing."""
    y = column_or_1d(_refuse_missing_y(y, name), warn=True)
    if y.dtype.kind == "O" and count_missing(y):
        raise ValueError(
            f"y holds {count_missing(y)} missing labels; leave these rows out, or give them a "
            "label of their own."
        )
    if y.dtype.kind == "f":
        refuse_non_finite(y, "y")
    check_classification_targets(y)
    return y


def check_weights(sample_weight: Any, X: Any) -> NDArray[np.float64] | None:
    """Check sample weights: one for each row, none negative, not all zero; scaled to at most 1."""
    if sample_weight is None:
        return None
    sample_weight = np.asarray(to_numpy(sample_weight))
    if not np.any(sample_weight):
        raise ValueError(
            "sample_weight is zero for every row, so there is nothing to learn from; give at least "
            "one row a positive weight."
        )
    weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True, dtype=np.float64)
    # Only ratios matter, and networks hold the weights in single precision.
    return weight / weight.max()


def check_rows(X: Any, y: Any) -> None:
    """Refuse inputs and targets of different length."""
    check_consistent_length(X, y)


def refuse_non_finite(values: NDArray[Any], name: str, columns: NDArray[Any] | None = None) -> None:
    """Refuse missing and infinite values; the error says how many there are and where.

    Examples
    --------
    >>> refuse_non_finite(np.array([[1.0, np.nan]]), "X")
    Traceback (most recent call last):
    ...
    ValueError: X holds 1 NaN or infinite values, the first in row 0, column 1; impute them or leave
    these rows out.
    """
    if values.dtype.kind != "f":
        return
    bad = ~np.isfinite(values)
    count = int(bad.sum())
    if count:
        first = np.argwhere(bad)[0]
        where = f"row {first[0]}" + "".join(
            f", column {i if columns is None else repr(columns[i])}" for i in first[1:2]
        )
        raise ValueError(
            f"{name} holds {count} NaN or infinite values, the first in {where}; impute them or "
            "leave these rows out."
        )
