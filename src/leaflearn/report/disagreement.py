"""The section on where the contexts disagree: charts of columns, and rows as examples."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from leaflearn.report import settings
from leaflearn.report.charts import draw_categories, draw_curve, to_inline_svg
from leaflearn.report.column_curves import MISSING, ColumnCurve, find_drawn, predict_drawn
from leaflearn.report.contexts import name_prediction
from leaflearn.report.formatting import count, show_at_scale, show_number, show_share
from leaflearn.report.rendering import isolate
from leaflearn.report.training_rows import TrainingRows
from leaflearn.tabular.images import ImageFiles
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.table_model import TableModel

MAX_CHARTS, MAX_LISTED = 6, 30
MAX_VALUES = 12  # of a category in a chart
SHORT = 16  # characters of a cell that stay on one line
N_EXAMPLES = 6
N_ALIKE = 2  # examples on which the contexts differ in the same way, before others are shown


@dataclass(frozen=True)
class Example:
    """A row of the table, and what each context predicts for it.

    Parameters
    ----------
    row
        Its number, from 1, without the header.
    group
        Its group.
    context
        The context of the group; None if the group is not in the model.
    cells
        Of the selected columns, as they are in the table.
    truth
        The target in the table.
    predictions
        Of each drawn context.
    png
        The image as the model sees it, if it was fitted to images.

    Examples
    --------
    >>> Example(1, "site 7", 0, ["3.5"], "good", ["good (90 %)", "bad (80 %)"]).truth
    'good'
    """

    row: int
    group: str
    context: int | None
    cells: list[str]
    truth: str
    predictions: list[str]
    png: bytes | None = None


def describe_disagreement(
    model: TableModel,
    curves: Sequence[ColumnCurve],
    examples: Sequence[Example],
    columns: Sequence[str],
) -> dict[str, Any]:
    """The values of `disagreement.html`; the cells of the examples are from the given columns.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> estimator = SimpleNamespace(usage_=np.ones(1))
    >>> model = SimpleNamespace(preparation_=None, estimator_=estimator, target="kind")
    >>> describe_disagreement(model, [], [], [])["why_no_curves"]
    'The model was fitted to images, so there are no columns to compare the contexts on.'
    """
    n_drawn = len(find_drawn(model))
    return {
        "n_drawn": n_drawn,
        "introduction": _introduce(model, curves, n_drawn) if curves else "",
        "why_no_curves": "" if curves else _explain_no_curves(model),
        "charts": [
            _describe_chart(model, curve, number)
            for number, curve in enumerate(curves[:MAX_CHARTS])
            if curve.is_clear
            and curve.difference >= settings.REPORT.worth_drawing * curves[0].difference
        ],
        "ranking": _rank_columns(model, curves) if curves else None,
        "examples": _describe_examples(model, examples, columns) if examples else None,
    }


def find_examples(model: TableModel, rows: TrainingRows, columns: Sequence[str]) -> list[Example]:
    """Up to six rows on which the contexts differ most; none if there is one context only.

    Examples
    --------
    >>> import pandas
    >>> from leaflearn.tabular.table_model import TableModel
    >>> from leaflearn.report.training_rows import read_training_rows
    >>> site, dose = np.repeat(np.arange(20), 10), np.tile(np.linspace(-1.0, 1.0, 10), 20)
    >>> effect = dose * np.where(site % 2 == 0, 1.0, -1.0)
    >>> table = pandas.DataFrame({"site": site, "dose": dose, "effect": effect})
    >>> model = TableModel("effect", group="site", contexts=2, local_model="linear").fit(table)
    >>> examples = find_examples(model, read_training_rows(model, table), ["dose"])
    >>> sorted({example.cells[0] for example in examples})
    ['-1.0', '1.0']
    """
    examples = []
    for place, predicted in _find_most_different(model, rows.X, rows.groups):
        truth = rows.y[place]
        if not model.target_.is_label:
            truth = show_at_scale(float(truth), np.ptp(predicted))
        cells = [_show_cell(rows.frame[column].iloc[place]) for column in columns]
        number, group = int(rows.frame.index[place]) + 1, rows.groups[place]
        examples.append(_make_example(model, number, group, predicted, str(truth), cells))
    return examples


def find_image_examples(model: TableModel) -> list[Example]:
    """Examples of a model that was fitted to images, among the rows in its replay buffer.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> find_image_examples(SimpleNamespace(estimator_=SimpleNamespace(replay_buffer_=None)))
    []
    """
    estimator, stored = model.estimator_, model.estimator_.replay_buffer_
    if stored is None:
        return []
    X, groups = np.asarray(stored.X), estimator.groups_[stored.group]
    size = cast(ImageFiles, model.preparation_).size
    examples = []
    for place, predicted in _find_most_different(model, X, groups):
        target = np.ravel(stored.y[place])[0]
        is_label = model.target_.is_label
        truth = str(estimator.classes_[int(target)]) if is_label else show_number(float(target))
        number, png = int(stored.row[place]) + 1, _to_png(X[place].reshape(3, size, size))
        examples.append(_make_example(model, number, groups[place], predicted, truth, [], png))
    return examples


def _introduce(model: TableModel, curves: Sequence[ColumnCurve], n_drawn: int) -> str:
    if n_drawn == 1:
        return (
            "There is one context. The charts show its predictions along the columns that change "
            f"{isolate(model.target)} most."
        )
    more = model.estimator_.n_contexts_ - n_drawn
    rest = f" The charts show the {n_drawn} most used contexts." if more > 0 else ""
    if not curves[0].is_clear:
        return (
            "Along no single column do the contexts differ by more than the noise of their curves."
        )
    first = isolate(curves[0].column)
    return f"The charts show the columns on which the contexts differ most, {first} first.{rest}"


def _explain_no_curves(model: TableModel) -> str:
    if not isinstance(model.preparation_, Preparation):
        return "The model was fitted to images, so there are no columns to compare the contexts on."
    if model.estimator_.replay_buffer_ is None:
        return (
            "The model stores none of its training rows. Write this page with the training table "
            "to see where the contexts differ."
        )
    if any(column.kind in ("number", "date", "category") for column in model.preparation_.columns):
        return "All columns are constant within groups, so no curve can be drawn within a group."
    return "All columns are free text, along which no curve can be drawn."


def _describe_chart(model: TableModel, curve: ColumnCurve, number: int) -> dict[str, Any]:
    """Heading, chart, caption and numbers of one column."""
    shown, column = _select_values(curve), isolate(curve.column, 60)
    label = f"probability of {model.estimator_.classes_[curve.label]}" if curve.label >= 0 else ""
    predicted = isolate(label or model.target, 30)
    draw = draw_categories if curve.kind == "category" else draw_curve
    ranges = " ".join(_describe_range(model, shown, place) for place in range(curve.means.shape[1]))
    title = f"{predicted} along {column}"
    return {
        "heading": f"{name_prediction(model, curve)} along {column}",
        "svg": to_inline_svg(draw(shown, predicted), f"curve-{number}", title, ranges),
        "caption": _describe_difference(curve, len(curve.values) - len(shown.values)),
        "numbers": _list_numbers(model, curve),
    }


def _describe_range(model: TableModel, curve: ColumnCurve, place: int) -> str:
    """The lowest and the highest prediction of a context, for readers who cannot see the chart."""
    means = curve.means[:, place]
    low, high = (
        isolate(f"{curve.show_mean(means[i])} at {curve.show_value(curve.values[i])}")
        for i in (int(means.argmin()), int(means.argmax()))
    )
    return f"Context {find_drawn(model)[place]}: between {low} and {high}."


def _select_values(curve: ColumnCurve) -> ColumnCurve:
    """The most frequent values of a category; of items, those on which contexts differ most."""
    if curve.kind != "category" or len(curve.values) <= MAX_VALUES:
        return curve
    order = np.ptp(curve.means, axis=1) if _has_items(curve) else curve.share
    kept = sorted((-order).argsort(kind="stable")[:MAX_VALUES].tolist())
    values = [curve.values[i] for i in kept]
    return replace(curve, values=values, share=curve.share[kept], means=curve.means[kept])


def _has_items(curve: ColumnCurve) -> bool:
    """Whether the values are names of items, on which contexts differ one by one."""
    return len(curve.values) > settings.REPORT.many_values and curve.means.shape[1] > 1


def _describe_difference(curve: ColumnCurve, n_hidden: int) -> str:
    """How far the contexts differ along the column, and how many values are not drawn."""
    verb = "The contexts differ by" if curve.means.shape[1] > 1 else "The prediction changes by"
    are = f"{'is' if n_hidden == 1 else 'are'} not drawn"
    rest = ""
    if _has_items(curve):
        rest = f" {count(n_hidden, 'value')} on which they differ less {are}."
    elif n_hidden:
        rest = f" {count(n_hidden, 'rarer value')} {are}."
    return f"{verb} {_show_difference(curve)} along {isolate(curve.column, 60)}.{rest}"


def _show_difference(curve: ColumnCurve) -> str:
    if curve.label < 0:
        return show_number(curve.difference)
    return f"{100 * curve.difference:.0f} percentage points"


def _list_numbers(model: TableModel, curve: ColumnCurve) -> dict[str, Any]:
    is_category = curve.kind == "category"
    share = ["share"] if is_category else []
    return {
        "head": [isolate(curve.column, 60), *share, *[f"context {k}" for k in find_drawn(model)]],
        "rows": [
            [
                isolate(curve.show_value(value), 60),
                *([show_share(float(curve.share[i]))] if is_category else []),
                *(curve.show_mean(mean) for mean in curve.means[i]),
            ]
            for i, value in enumerate(curve.values)
        ],
        "text": (0,) if is_category else (),
    }


def _rank_columns(model: TableModel, curves: Sequence[ColumnCurve]) -> dict[str, Any]:
    largest = max(curves[0].difference, 1e-12)
    rows = [
        {
            "column": isolate(curve.column, 60),
            "kind": curve.kind,
            "share": curve.difference / largest,
            "difference": _show_difference(curve) + ("" if curve.is_clear else " (noise)"),
        }
        for curve in curves[:MAX_LISTED]
    ]
    columns = cast(Preparation, model.preparation_).columns
    texts = [column.name for column in columns if column.kind == "text"]
    return {"rows": rows, "texts": ", ".join(isolate(text, 60) for text in texts[:MAX_LISTED])}


def _describe_examples(
    model: TableModel, examples: Sequence[Example], columns: Sequence[str]
) -> dict[str, Any]:
    has_images = examples[0].png is not None
    cells = ["image"] if has_images else [isolate(column, 60) for column in columns]
    target = f"{isolate(model.target, 60)} in the table"
    contexts = [f"context {k} predicts" for k in find_drawn(model)]
    rows = [
        {
            "number": f"{example.row:,}",
            "group": isolate(example.group, 60),
            "png": None if example.png is None else base64.b64encode(example.png).decode(),
            "cells": [(isolate(cell, 80), len(cell) <= SHORT) for cell in example.cells],
            "truth": isolate(example.truth, 60),
            "predictions": [isolate(prediction, 80) for prediction in example.predictions],
            "context": example.context,
        }
        for example in examples
    ]
    return {"head": ["row", "group", *cells, target, *contexts], "rows": rows}


def _find_most_different(
    model: TableModel, X: NDArray[Any], groups: NDArray[Any]
) -> list[tuple[int, NDArray[np.float64]]]:
    """Places of rows, and the predictions of the contexts there (K, D)."""
    if len(find_drawn(model)) < 2:
        return []
    chosen = np.random.default_rng(0).permutation(len(X))[: settings.REPORT.max_example_rows]
    predicted = predict_drawn(model, X[chosen])  #                                (n, K, D)
    order = np.argsort(-np.ptp(predicted, axis=1).max(1), kind="stable")
    differs = [len(set(pattern)) > 1 for pattern in _patterns(predicted[order])]
    order = order[differs] if any(differs) else order  # quantities always differ
    picked = order[_pick(_patterns(predicted[order]), groups[chosen[order]])]
    return [(int(chosen[i]), predicted[i]) for i in picked]


def _patterns(predicted: NDArray[np.float64]) -> list[tuple[int, ...]]:
    """How the contexts differ: the order of their quantities, or the label of each."""
    is_quantity = predicted.shape[2] == 1
    patterns = predicted[:, :, 0].argsort(1) if is_quantity else predicted.argmax(2)
    return [tuple(row) for row in patterns.tolist()]


def _pick(patterns: Sequence[tuple[int, ...]], groups: NDArray[Any]) -> list[int]:
    """The first rows, few of them alike and each from another group; then the remaining ones."""
    seen, taken = Counter[tuple[int, ...]](), set[Any]()
    picked: list[int] = []
    for i, pattern in enumerate(patterns):
        if len(picked) < N_EXAMPLES and seen[pattern] < N_ALIKE and groups[i] not in taken:
            seen[pattern] += 1
            taken.add(groups[i])
            picked.append(i)
    rest = [i for i in range(len(patterns)) if i not in picked]
    return sorted([*picked, *rest[: N_EXAMPLES - len(picked)]])


def _make_example(
    model: TableModel,
    row: int,
    group: Any,
    predicted: NDArray[np.float64],
    truth: str,
    cells: list[str],
    png: bytes | None = None,
) -> Example:
    """An example from the outputs (K, D) of the contexts."""
    found = np.flatnonzero(model.estimator_.groups_ == group)
    context = int(model.estimator_.contexts_[found[0]]) if len(found) else None
    return Example(row, str(group), context, cells, truth, _show_predictions(model, predicted), png)


def _show_predictions(model: TableModel, predicted: NDArray[np.float64]) -> list[str]:
    """The quantity that each context predicts, or its most probable label, from outputs (K, D)."""
    if not model.target_.is_label:
        return [show_at_scale(float(value), np.ptp(predicted)) for value in predicted[:, 0]]
    return [
        f"{model.estimator_.classes_[c]} ({show_share(float(outputs[c]))})"
        for outputs, c in zip(predicted, predicted.argmax(1), strict=True)
    ]


def _show_cell(cell: Any) -> str:
    import pandas  # type: ignore[import-untyped]

    return MISSING if pandas.api.types.is_scalar(cell) and pandas.isna(cell) else str(cell)


def _to_png(image: NDArray[Any]) -> bytes:
    """An image (3, height, width) between 0 and 1 as the bytes of a PNG file."""
    from PIL import Image

    pixels = np.clip(255.0 * image.transpose(1, 2, 0), 0.0, 255.0).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return buffer.getvalue()
