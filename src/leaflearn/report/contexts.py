"""The section on the contexts: their sizes, what each predicts, and their held-out errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.diagnostics import settings as diagnostic_settings
from leaflearn.report.column_curves import ColumnCurve, find_drawn, predict_sample
from leaflearn.report.formatting import (
    PERCENT,
    count,
    show_error,
    show_interval,
    show_number,
    show_share,
)
from leaflearn.report.rendering import isolate
from leaflearn.tabular import settings as table_settings
from leaflearn.tabular.held_out import HeldOutErrors, Interval
from leaflearn.tabular.table_model import TableModel

MAX_COLUMNS, MAX_NAMES, MAX_LISTED = 3, 8, 50


def describe_contexts(
    model: TableModel, curves: Sequence[ColumnCurve], X: NDArray[Any] | None
) -> dict[str, Any]:
    """The values of `contexts.html`.

    Parameters
    ----------
    model
        A fitted `TableModel`.
    curves
        Of its columns, the most informative first.
    X
        Features of some rows, (N, F), or None.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> fitted = {"contexts_": np.array([0, 0]), "probabilities_": np.ones((2, 1))}
    >>> estimator = SimpleNamespace(n_contexts_=1, usage_=np.ones(1), **fitted)
    >>> model = SimpleNamespace(group="site", estimator_=estimator, errors_=None)
    >>> model.group_sizes_ = np.array([7, 8])
    >>> describe_contexts(model, [], None)["sizes"]
    [{'context': 0, 'n': '2', 'share': 1.0, 'percent': '100\\xa0%', 'rows': '15', 'sure': '2 of 2'}]
    """
    n_contexts, drawn = model.estimator_.n_contexts_, find_drawn(model)
    clear = [curve for curve in curves if curve.is_clear]
    means = None if X is None else predict_sample(model, X).mean(0)  #             (K, D)
    cards = []
    for place, context in enumerate(drawn if len(drawn) > 1 else ()):
        sentences = [
            *([] if means is None else [_describe_mean(model, means[place])]),
            *(describe_along(model, curve, place) for curve in clear[:MAX_COLUMNS]),
        ]
        members = _name_members(model, context)
        cards.append({"context": int(context), "sentences": sentences, "members": members})
    more = n_contexts - MAX_LISTED
    return {
        "has_groups": model.group is not None,
        "sizes": [_describe_size(model, k) for k in range(min(n_contexts, MAX_LISTED))],
        "more": count(more, "smaller context") if more > 0 else "",
        "cards": cards,
        "errors": _describe_errors(model),
    }


def describe_along(model: TableModel, curve: ColumnCurve, place: int) -> str:
    """A sentence on what one context predicts along a column.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(target="effect", target_=SimpleNamespace(is_label=False))
    >>> means = np.array([[0.0, 1.0], [1.0, 1.0]])
    >>> curve = ColumnCurve("dose", "number", [0.0, 1.0], np.full(2, 0.5), means, -1, 0.5)
    >>> for place in (0, 1):
    ...     print(describe_along(model, curve, place).replace("\\u2068", "").replace("\\u2069", ""))
    effect rises along dose, from 0 (at 0) to 1 (at 1).
    effect hardly changes along dose.
    """
    means, shape = curve.means[:, place], curve.shape(place)
    predicted, column = name_prediction(model, curve), isolate(curve.column)
    if shape == "hardly changes":
        return f"{predicted} hardly changes along {column}."
    low, high = (_show_point(curve, int(i), place) for i in (means.argmin(), means.argmax()))
    if curve.kind == "category":
        return f"{predicted} is highest for {high} and lowest for {low} of {column}."
    if shape == "bends":
        return f"{predicted} bends along {column}: lowest, {low}; highest, {high}."
    first, last = _show_point(curve, 0, place), _show_point(curve, len(means) - 1, place)
    return f"{predicted} {shape} along {column}, from {first} to {last}."


def name_prediction(model: TableModel, curve: ColumnCurve) -> str:
    """What is predicted: the target, or the probability of one of its labels.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> estimator = SimpleNamespace(classes_=np.array(["bad", "good"]))
    >>> model = SimpleNamespace(target="verdict", estimator_=estimator)
    >>> curve = ColumnCurve("dose", "number", [], np.ones(0), np.ones((0, 1)), 1, 0.0)
    >>> name_prediction(model, curve)
    'The probability of \\u2068good\\u2069'
    """
    if curve.label < 0:
        return isolate(model.target)
    return f"The probability of {isolate(model.estimator_.classes_[curve.label], 60)}"


def _show_point(curve: ColumnCurve, i: int, place: int) -> str:
    value, mean = curve.show_value(curve.values[i]), curve.show_mean(float(curve.means[i, place]))
    return f"{isolate(value, 60)} ({mean})" if curve.kind == "category" else f"{mean} (at {value})"


def _describe_mean(model: TableModel, means: NDArray[np.float64]) -> str:
    """What a context predicts on average, from its mean outputs (D,)."""
    if not model.target_.is_label:
        return f"{isolate(model.target)} is {show_number(float(means[0]))} on average."
    best = int(means.argmax())
    label = isolate(model.estimator_.classes_[best], 60)
    return f"Over all rows, {label} is the most probable label ({show_share(float(means[best]))})."


def _describe_size(model: TableModel, context: int) -> dict[str, Any]:
    estimator = model.estimator_
    mine = np.flatnonzero(estimator.contexts_ == context)
    share = float(estimator.usage_[context])
    limit = diagnostic_settings.DIAGNOSTICS.sure_probability
    sure = int((estimator.probabilities_[mine].max(1) >= limit).sum()) if len(mine) else 0
    return {
        "context": context,
        "n": f"{len(mine):,}",
        "share": share,
        "percent": show_share(share),
        "rows": f"{int(model.group_sizes_[mine].sum()):,}",
        "sure": f"{sure:,} of {len(mine):,}",
    }


def _name_members(model: TableModel, context: int) -> str:
    """The groups of a context, the most probable ones first."""
    if model.group is None:
        return ""
    estimator = model.estimator_
    mine = np.flatnonzero(estimator.contexts_ == context)
    first = mine[np.argsort(-estimator.probabilities_[mine, context], kind="stable")][:MAX_NAMES]
    shown = ", ".join(isolate(estimator.groups_[i], 40) for i in first)
    more = f" and {len(mine) - len(first):,} more" if len(mine) > len(first) else ""
    return f"Groups: {shown}{more}."


def _describe_errors(model: TableModel) -> dict[str, Any] | None:
    """The held-out error of each context, and that of a pooled model on the same rows."""
    errors = model.errors_
    if errors is None or len(errors.by_context) < 2:
        return None
    rmse = f"root mean squared error, in the unit of {isolate(model.target, 60)}"
    rows = [
        {
            "context": part.context,
            "own": _show_with_interval(errors, part.own, part.own_interval),
            "pooled": _show_with_interval(errors, part.one_model, part.one_model_interval),
            "groups": f"{part.n_groups:,}",
            "rows": f"{part.n_rows:,}",
        }
        for part in errors.by_context[:MAX_LISTED]
    ]
    fewest = table_settings.TABLES.min_interval_groups
    has_few = any(part.n_groups < fewest for part in errors.by_context)
    condition = f", for contexts with held-out rows of at least {fewest} groups"
    return {
        "caption": f"Errors on held-out rows: {'error rate' if errors.is_rate else rmse}",
        "rows": rows,
        "note": f"In brackets: {PERCENT} intervals, as explained above{condition * has_few}.",
    }


def _show_with_interval(errors: HeldOutErrors, error: float, interval: Interval | None) -> str:
    ends = "" if interval is None else f" ({show_interval(errors, interval)})"
    return f"{show_error(errors, error)}{ends}"
