"""The section on where the contexts disagree: the columns, what each context answers along them, and rows that show it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from leaflearn.report.column_curves import ColumnCurve, find_drawn
from leaflearn.report.context_words import name_answer
from leaflearn.report.curve_words import show_answer, show_value
from leaflearn.report.example_rows import Example
from leaflearn.report.html_parts import bar, figure, key_to_lines, opening, paragraph, table
from leaflearn.report.inline_svg import to_inline_svg
from leaflearn.report.number_text import count, show_number, show_share
from leaflearn.report.report_charts import draw_categories, draw_curve
from leaflearn.report.safe_text import Html, isolated, join, name
from leaflearn.tabular.preparation import Preparation

MOST_CHARTS, MOST_LISTED = 6, 30
WORTH_DRAWING = 0.1  # of the first column's parting
MOST_VALUES = 12  # of a category in a chart
MANY_VALUES = 25  # more than any column has but one that names items
SHORT = 16  # characters of a cell that stay in one line
HOW = (
    "Each curve is the mean answer of a context when the value of one column is put into the same rows and all other columns stay as they "
    "are. It does not show how columns act together, and where columns go hand in hand, some of the rows it asks about do not occur."
)


def tell_disagreement(
    model: Any, curves: Sequence[ColumnCurve], examples: Sequence[Example], columns: Sequence[str]
) -> Html:
    """Charts, the ranking of the columns, and examples, whose cells are of the given columns.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> model = SimpleNamespace(preparation_=None, estimator_=SimpleNamespace(usage_=np.ones(1)))
    >>> tell_disagreement(model, [], [], [])
    '<p>The model learnt from pictures, so there are no columns along which contexts could be compared.</p>'
    """
    n_drawn = len(find_drawn(model.estimator_))
    parts = []
    if curves:
        worth = [
            curve
            for curve in curves[:MOST_CHARTS]
            if curve.parting >= WORTH_DRAWING * curves[0].parting
        ]
        charts = join(_chart(model, curve, number) for number, curve in enumerate(worth))
        parts = [
            _introduce(model, curves, n_drawn),
            key_to_lines(n_drawn),
            Html(f"<div class='charts'>{charts}</div>"),
        ]
        parts += [
            opening("All columns", _ranking(model, curves)),
            opening("How to read the curves", paragraph(HOW)),
        ]
    else:
        parts = [paragraph(_why_no_curves(model))]
    if n_drawn > 1:
        parts += [Html("<h3>Examples</h3>"), _tell_examples(model, examples, columns)]
    return join(parts)


def _introduce(model: Any, curves: Sequence[ColumnCurve], n_drawn: int) -> Html:
    if n_drawn == 1:
        return paragraph(
            f"There is one context. The charts show what it answers along the columns that move {name(model.target)} most."
        )
    more = model.estimator_.n_contexts_ - n_drawn
    rest = f" The charts show the {n_drawn} most used contexts." if more > 0 else ""
    return paragraph(
        f"The charts are of the columns along which the contexts part most, {name(curves[0].column)} first.{rest}"
    )


def _why_no_curves(model: Any) -> str:
    if not isinstance(model.preparation_, Preparation):
        return "The model learnt from pictures, so there are no columns along which contexts could be compared."
    if model.estimator_.replay_buffer_ is None:
        return "The model keeps none of its training rows. Write this page with the training table to see where the contexts part."
    return "All columns are free text, along which no curve can be drawn."


def _chart(model: Any, curve: ColumnCurve, number: int) -> Html:
    """Heading, chart, words and numbers of one column."""
    shown = _shorten(curve)
    answer = isolated(
        model.target if curve.label < 0 else f"chance of {model.estimator_.classes_[curve.label]}",
        30,
    )
    draw = draw_categories if curve.kind == "category" else draw_curve
    title = f"{answer} along {isolated(curve.column, 60)}"
    words = join(
        (_plain_words(model, shown, place) for place in range(curve.answers.shape[1])), " "
    )
    svg = to_inline_svg(draw(shown, answer), f"curve-{number}", title, words)
    heading = Html(f"{name_answer(model, curve)} along {name(curve.column, 60)}")
    return figure(heading, svg, _caption(curve, shown), _numbers(model, curve))


def _plain_words(model: Any, curve: ColumnCurve, place: int) -> str:
    """From the lowest to the highest answer of a context, for those who do not see the chart."""
    answers = curve.answers[:, place]
    low, high = (
        f"{show_answer(curve, answers[i])} at {show_value(curve, curve.values[i])}"
        for i in (int(answers.argmin()), int(answers.argmax()))
    )
    return f"Context {find_drawn(model.estimator_)[place]}: between {isolated(low)} and {isolated(high)}."


def _shorten(curve: ColumnCurve) -> ColumnCurve:
    """The most frequent values of a category that has many; of hundreds of items, those on which the contexts differ most."""
    if curve.kind != "category" or len(curve.values) <= MOST_VALUES:
        return curve
    order = np.ptp(curve.answers, axis=1) if _has_items(curve) else curve.share
    kept = sorted((-order).argsort(kind="stable")[:MOST_VALUES].tolist())
    return ColumnCurve(
        curve.column,
        curve.kind,
        [curve.values[i] for i in kept],
        curve.share[kept],
        curve.answers[kept],
        curve.label,
        curve.parting,
    )


def _has_items(curve: ColumnCurve) -> bool:
    """Are these names of items, on which contexts differ one by one? Other categories have few values."""
    return len(curve.values) > MANY_VALUES and curve.answers.shape[1] > 1


def _caption(curve: ColumnCurve, shown: ColumnCurve) -> Html:
    """What the eye may miss: how far the contexts part, and what is not drawn."""
    verb = "The contexts part by" if curve.answers.shape[1] > 1 else "The answer moves by"
    left = len(curve.values) - len(shown.values)
    rest = (
        f" {count(left, 'rarer value')} {'is' if left == 1 else 'are'} not drawn." if left else ""
    )
    rest = (
        f" {count(left, 'value')} on which they differ less {'is' if left == 1 else 'are'} not drawn."
        if _has_items(curve)
        else rest
    )
    return Html(f"{verb} {_show_parting(curve)} along {name(curve.column, 60)}.{rest}")


def _numbers(model: Any, curve: ColumnCurve) -> Html:
    drawn = find_drawn(model.estimator_)
    head = [
        plain_head(curve),
        *(["share"] if curve.kind == "category" else []),
        *(f"context {k}" for k in drawn),
    ]
    rows = []
    for i, value in enumerate(curve.values):
        share = [Html(show_share(float(curve.share[i])))] if curve.kind == "category" else []
        rows.append(
            [
                name(show_value(curve, value), 60),
                *share,
                *(Html(show_answer(curve, a)) for a in curve.answers[i]),
            ]
        )
    return table(
        "Mean answers of the contexts", head, rows, texts=(0,) if curve.kind == "category" else ()
    )


def plain_head(curve: ColumnCurve) -> str:
    """The name of the column for the head of a table.

    Examples
    --------
    >>> import numpy as np
    >>> plain_head(ColumnCurve("dose", "number", [], np.ones(0), np.ones((0, 1)), -1, 0.0)).strip("\\u2068\\u2069")
    'dose'
    """
    return isolated(curve.column, 60)


def _show_parting(curve: ColumnCurve) -> str:
    return (
        show_number(curve.parting)
        if curve.label < 0
        else f"{100 * curve.parting:.0f} percentage points"
    )


def _ranking(model: Any, curves: Sequence[ColumnCurve]) -> Html:
    top = max(curves[0].parting, 1e-12)
    rows = [
        [
            name(curve.column, 60),
            Html(curve.kind),
            Html(f"{bar(curve.parting / top)}{_show_parting(curve)}"),
        ]
        for curve in curves[:MOST_LISTED]
    ]
    one = len(find_drawn(model.estimator_)) == 1
    head = ["column", "holds", "moves the answer by" if one else "contexts part by"]
    text = [column.name for column in model.preparation_.columns if column.kind == "text"]
    note = (
        f" Free text has no curve: {join((name(column, 60) for column in text[:MOST_LISTED]), ', ')}."
        if text
        else ""
    )
    words = f"By how far curves differ in shape: the root of the mean square over the values of a column.{note}"
    return join(
        [table("How telling the columns are", head, rows, texts=(0, 1)), paragraph(words, "note")]
    )


def _tell_examples(model: Any, examples: Sequence[Example], columns: Sequence[str]) -> Html:
    if not examples:
        return paragraph(
            "Write this page with the training table to see rows on which the contexts answer most differently."
        )
    drawn = find_drawn(model.estimator_)
    pictures = examples[0].png is not None
    head = [
        "row",
        "group",
        *(["picture"] if pictures else [isolated(column, 60) for column in columns]),
    ]
    head += [f"{isolated(model.target, 60)} in the table", *(f"context {k} says" for k in drawn)]
    rows = [_example_row(example) for example in examples]
    words = (
        "Rows of the training table on which the contexts answer most differently. Rows are counted from 1, without the header. "
        "The answer of the group's own context is in bold."
    )
    return join(
        [
            paragraph(words),
            table(
                "Rows on which the contexts disagree", head, rows, texts=tuple(range(1, len(head)))
            ),
        ]
    )


def _example_row(example: Example) -> list[Html]:
    png = [] if example.png is None else [_picture(example.png)]
    answers = [
        Html(f"<strong>{name(answer, 80)}</strong>") if k == example.context else name(answer, 80)
        for k, answer in enumerate(example.answers)
    ]
    cells = [
        Html(f"<span class='whole'>{name(cell)}</span>") if len(cell) <= SHORT else name(cell, 80)
        for cell in example.cells
    ]
    return [
        Html(f"{example.row:,}"),
        name(example.group, 60),
        *png,
        *cells,
        name(example.truth, 60),
        *answers,
    ]


def _picture(png: bytes) -> Html:
    data = base64.b64encode(png).decode()
    return Html(
        f"<img src='data:image/png;base64,{data}' alt='the picture of this row' width='56' height='56'>"
    )
