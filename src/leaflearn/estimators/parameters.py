"""Parameters of the estimators, checked before anything is fitted: each mistake has a sentence of its own."""

from __future__ import annotations

import numbers
from collections.abc import Collection
from typing import Any

from sklearn.utils import get_tags

from leaflearn.core.training import SCHEDULES, Callback
from leaflearn.engines import OPTIMIZERS
from leaflearn.engines.engine import choose_engine

NAMES: dict[str, Collection[str]] = {
    "init": ("auto", "conflict", "seeded", "random"),
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
}
COUNTS: dict[str, tuple[Any, ...]] = {  # whole numbers, and what else they may be
    "n_init": ("auto",),
    "max_epochs": ("auto",),
    "groups_per_step": (),
    "rows_per_group": (None,),
    "n_iter_no_change": (None,),
}
POSITIVE: dict[str, tuple[Any, ...]] = {
    "learning_rate": (),
    "temperature": ("auto",),
    "max_grad_norm": (None,),
}


def check_parameters(estimator: Any) -> None:
    """Refuse parameters that cannot be meant.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> check_parameters(LeafRegressor(learning_rate=0))
    Traceback (most recent call last):
    ValueError: learning_rate=0, but a positive number was expected.
    """
    n_contexts: Any = estimator.n_contexts
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
        value = getattr(estimator, name)
        if isinstance(value, str) and value not in known:
            raise ValueError(
                f"{name}={value!r} is not known; choose one of {', '.join(map(repr, known))}."
            )
    for name, special in COUNTS.items():
        value = getattr(estimator, name)
        if value not in special and (not isinstance(value, numbers.Integral) or value < 1):
            raise ValueError(f"{name}={value!r}, but a whole number of at least 1 was expected.")
    for name, special in POSITIVE.items():
        value = getattr(estimator, name)
        if value not in special and (not isinstance(value, numbers.Real) or not float(value) > 0):
            raise ValueError(f"{name}={value!r}, but a positive number was expected.")
    if not isinstance(estimator.tol, numbers.Real) or float(estimator.tol) < 0:
        raise ValueError(f"tol={estimator.tol!r}, but a number of at least 0 was expected.")
    if (
        isinstance(estimator.trim, bool)
        or not isinstance(estimator.trim, numbers.Real)
        or not 0 <= float(estimator.trim) < 0.5
    ):
        raise ValueError(
            f"trim={estimator.trim!r}, but a number of at least 0 and less than 0.5 was expected."
        )
    if estimator.out_of_fold not in (True, False, "auto"):
        raise ValueError(
            f"out_of_fold={estimator.out_of_fold!r} is not known; choose one of True, False, 'auto'."
        )
    if not all(isinstance(callback, Callback) for callback in estimator.callbacks or ()):
        raise ValueError(
            "callbacks holds something that is not a leaflearn.core.training.Callback; pass a list of such objects."
        )
    _check_local_model(estimator)


def _check_local_model(estimator: Any) -> None:
    kind = get_tags(estimator).estimator_type
    if (
        choose_engine(estimator.local_model) == "refit"
        and get_tags(estimator.local_model).estimator_type != kind
    ):
        raise ValueError(
            f"local_model={estimator.local_model!r} is not a {kind}, but {type(estimator).__name__} needs {kind}s as local models."
        )
