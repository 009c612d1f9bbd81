"""Sentences on the column in which the contexts differ most, for the report and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from leaflearn.report import settings
from leaflearn.report.column_curves import (
    MISSING,
    OTHER,
    PRESENT,
    ColumnCurve,
    find_curves,
    find_drawn,
    predict_sample,
)
from leaflearn.report.formatting import enumerate_names, show_at_scale
from leaflearn.report.group_columns import find_constant_columns
from leaflearn.report.training_rows import find_background, find_labelled_rows
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.table_model import TableModel

MAX_COLUMNS = 3  # that are named
MAX_CONTEXTS = 3  # whose predictions are all given
IN_A_SENTENCE = {MISSING: "missing", OTHER: "anything else", PRESENT: "known"}

Quote = Callable[[object], str]


def describe_difference_without_table(model: TableModel, quote: Quote) -> list[str]:
    """The sentences for a model without its table, from the rows in its replay buffer.

    The list is empty if the model stored no rows, or has one context.

    Examples
    --------
    >>> import pandas
    >>> from leaflearn.tabular.table_model import TableModel
    >>> site, dose = np.repeat(np.arange(20), 10), np.tile(np.linspace(-1.0, 1.0, 10), 20)
    >>> effect = dose * np.where(site % 3 == 0, -1.0, 1.0)
    >>> table = pandas.DataFrame({"site": site, "dose": dose, "effect": effect})
    >>> model = TableModel("effect", group="site", contexts=2, local_model="linear").fit(table)
    >>> print(describe_difference_without_table(model, repr)[0])
    The contexts differ most in 'dose': 'effect' rises along it in context 0 and falls in context 1.
    """
    X = find_background(model, None) if isinstance(model.preparation_, Preparation) else None
    if X is None or len(find_drawn(model)) < 2:
        return []
    stored = model.estimator_.replay_buffer_
    left_out = find_constant_columns(model, X, None if stored is None else stored.group)
    curves = find_curves(model, X, None, find_labelled_rows(model, None), left_out)
    return describe_difference(model, curves, X, quote)


def describe_difference(
    model: TableModel, curves: Sequence[ColumnCurve], X: NDArray[Any] | None, quote: Quote
) -> list[str]:
    """One or two sentences on where the contexts differ most: in one column, in several, or not.

    Parameters
    ----------
    model
        A fitted `TableModel`.
    curves
        Of its columns, the most informative first.
    X
        Features of some rows, (N, F).
    quote
        How names that come from a file are written.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(estimator_=SimpleNamespace(usage_=np.ones(1)))
    >>> describe_difference(model, [], None, repr)
    []
    """
    if len(find_drawn(model)) < 2 or X is None:
        return []
    curves, thresholds = [curve for curve in curves if curve.is_clear], settings.REPORT
    predicted = predict_sample(model, X)  #                                       (n, K, D)
    offset, explained = _decompose(predicted, curves)
    largest = curves[0].difference if curves else 0.0
    if offset > thresholds.constant_offset * largest and explained >= thresholds.min_explained:
        return [
            "The contexts differ by about the same amount everywhere, regardless of the columns.",
            _describe_offset(model, predicted.mean(0), quote),
        ]
    if explained < thresholds.min_explained or not curves:
        columns = cast(Preparation, model.preparation_).columns
        has_text = any(column.kind == "text" for column in columns)
        return [
            "The contexts do not differ in a single column, but in how columns act together"
            f"{', or in free text' if has_text else ''}."
        ]
    first, least = curves[0], thresholds.as_informative * largest
    alike = [curve.column for curve in curves if curve.difference >= least]
    where = (
        f"in more than one column, about equally in {_list_columns(alike, quote)}"
        if len(alike) > 1
        else f"most in {quote(first.column)}{_describe_shapes(model, first, quote)}"
    )
    return [f"The contexts differ {where}.", _describe_gap(model, first, quote)]


def _decompose(
    predicted: NDArray[np.float64], curves: Sequence[ColumnCurve]
) -> tuple[float, float]:
    """The constant offset between the contexts, and the share of differences that is explained.

    The offset is in the unit of the predictions. Differences are explained by the offset and by
    single columns.
    """
    offset, total = predicted.mean(0).var(0), predicted.var(1).mean(0)  #         (D,)
    place = int(total.argmax())
    explained = offset[place] + sum(curve.difference**2 for curve in curves)
    return float(np.sqrt(offset.max())), float(explained / max(total[place], 1e-300))


def _list_columns(columns: Sequence[str], quote: Quote) -> str:
    names = [quote(column) for column in columns[:MAX_COLUMNS]]
    if len(columns) > MAX_COLUMNS:
        names.append(f"{len(columns) - MAX_COLUMNS} more")
    return enumerate_names(names)


def _describe_shapes(model: TableModel, curve: ColumnCurve, quote: Quote) -> str:
    """What few contexts predict along a number, if they do not all have the same shape."""
    drawn = find_drawn(model)
    shapes = [curve.shape(place) for place in range(len(drawn))]
    if curve.kind == "category" or len(drawn) > MAX_CONTEXTS or len(set(shapes)) == 1:
        return ""
    clauses = [
        f"{shape}{' along it' if place == 0 else ''} in context {k}"
        for place, (k, shape) in enumerate(zip(drawn, shapes, strict=True))
    ]
    return f": {_name_prediction(model, curve, quote)} {enumerate_names(clauses)}"


def _describe_gap(model: TableModel, curve: ColumnCurve, quote: Quote) -> str:
    """Where the contexts are furthest apart, and where they nearly agree."""
    gap = np.ptp(curve.means, axis=1)
    far, near = int(gap.argmax()), int(gap.argmin())
    has_more_labels = curve.label >= 0 and len(model.estimator_.classes_) > 2
    agreement = (
        f"; where it is {_show_value(curve, near, quote)}, they nearly agree"
        f"{' on that' if has_more_labels else ''}"
    )
    is_near = gap[near] < settings.REPORT.near_agreement * gap[far]
    return (
        f"They are furthest apart where {quote(curve.column)} is {_show_value(curve, far, quote)}: "
        f"there {_name_prediction(model, curve, quote)} is on average "
        f"{_list_means(model, curve, curve.means[far])}{agreement if is_near else ''}."
    )


def _describe_offset(model: TableModel, means: NDArray[np.float64], quote: Quote) -> str:
    """The mean predictions (K, D) of contexts that differ by a constant."""
    output = int(means.var(0).argmax())
    label = output if model.target_.is_label else -1
    curve = ColumnCurve("", "number", [], np.ones(0), means[None, :, output], label, 0.0)
    shown = _list_means(model, curve, means[:, output])
    return f"On average {_name_prediction(model, curve, quote)} is {shown}."


def _show_value(curve: ColumnCurve, place: int, quote: Quote) -> str:
    if curve.kind == "number":
        return show_at_scale(curve.values[place], float(np.ptp(curve.values)))
    value = curve.show_value(curve.values[place])
    return IN_A_SENTENCE.get(value, quote(value)) if curve.kind == "category" else value


def _name_prediction(model: TableModel, curve: ColumnCurve, quote: Quote) -> str:
    if curve.label < 0:
        return quote(model.target)
    return f"the probability of {quote(model.estimator_.classes_[curve.label])}"


def _list_means(model: TableModel, curve: ColumnCurve, means: NDArray[np.float64]) -> str:
    """The mean predictions of all contexts if they are few, else the lowest and the highest."""
    drawn, spread = find_drawn(model), float(np.ptp(means))
    ends = [int(means.argmin()), int(means.argmax())]
    places = ends if len(drawn) > MAX_CONTEXTS else range(len(drawn))
    shown = [
        show_at_scale(float(m), spread) if curve.label < 0 else curve.show_mean(float(m))
        for m in means
    ]
    return enumerate_names([f"{shown[place]} in context {drawn[place]}" for place in places])
