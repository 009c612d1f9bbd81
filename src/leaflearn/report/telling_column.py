"""In which column the contexts differ most, and how, in a sentence or two: for the first screen of the page, and for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.report.column_curves import (
    MISSING,
    OTHER,
    THERE,
    ColumnCurve,
    ask_each,
    find_curves,
    find_drawn,
)
from leaflearn.report.curve_words import name_shape, show_answer, show_value
from leaflearn.report.number_text import show_beside
from leaflearn.report.training_rows import find_background
from leaflearn.tabular.preparation import Preparation

N_ROWS = 500  # of which answers are compared
SAME_EVERYWHERE = 3.0  # times as far apart on the whole as along any column: then it is no column
TOGETHER = (
    0.5  # of what the contexts differ by, if columns one by one explain less, they act together
)
AS_MUCH = 0.7  # of the first column's parting: others from here on count as much
MOST_COLUMNS = 3  # that are named
MOST_CONTEXTS = 3  # whose answers are all given
IN_A_SENTENCE = {
    MISSING: "missing",
    OTHER: "anything else",
    THERE: "known",
}  # values of a category that are no names
AGREE = 0.15  # of the widest gap: contexts that are so close nearly agree

Quote = Callable[[object], str]


def tell_difference_from_memory(model: Any, quote: Quote) -> list[str]:
    """The sentences for a model without its table, from the rows that it remembers; nothing where it remembers none, or has one context.

    Examples
    --------
    >>> import pandas
    >>> from leaflearn.tabular.table_model import TableModel
    >>> site, dose = np.repeat(np.arange(20), 10), np.tile(np.linspace(-1.0, 1.0, 10), 20)
    >>> table = pandas.DataFrame({"site": site, "dose": dose, "effect": dose * np.where(site % 3 == 0, -1.0, 1.0)})
    >>> model = TableModel("effect", group="site", contexts=2, local_model="linear").fit(table)
    >>> print(tell_difference_from_memory(model, repr)[0])
    The contexts differ most in 'dose': 'effect' rises along it in context 0 and falls in context 1.
    """
    X = find_background(model, None) if isinstance(model.preparation_, Preparation) else None
    if X is None or len(find_drawn(model.estimator_)) < 2:
        return []
    return tell_difference(model, find_curves(model, X), X, quote)


def tell_difference(
    model: Any, curves: Sequence[ColumnCurve], X: NDArray[Any] | None, quote: Quote
) -> list[str]:
    """One or two sentences on the column along which the contexts part most, or that it is not one column.

    Parameters
    ----------
    model
        A fitted `TableModel`.
    curves
        Of its columns, the most telling first.
    X
        Features of some rows, (N, F).
    quote
        How names that came from a file are shown.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> tell_difference(SimpleNamespace(estimator_=SimpleNamespace(usage_=np.ones(1))), [], None, repr)
    []
    """
    if len(find_drawn(model.estimator_)) < 2 or not curves or X is None:
        return []
    first = curves[0]
    level, explained = _compare(model, curves, X)
    if level > SAME_EVERYWHERE * first.parting:
        return [
            "The contexts differ by about the same amount everywhere, whatever the columns hold.",
            _tell_level(model, X, quote),
        ]
    if explained < TOGETHER:
        texts = any(column.kind == "text" for column in model.preparation_.columns)
        return [
            f"The contexts do not differ in one column, but in how columns act together{', or in free text' if texts else ''}."
        ]
    alike = [curve.column for curve in curves if curve.parting >= AS_MUCH * first.parting]
    if len(alike) > 1:
        where = f"The contexts differ in more than one column, about as much in {_list_some(alike, quote)}."
    else:
        where = (
            f"The contexts differ most in {quote(first.column)}{_tell_shapes(model, first, quote)}."
        )
    return [where, _tell_gap(model, first, quote)]


def _compare(model: Any, curves: Sequence[ColumnCurve], X: NDArray[Any]) -> tuple[float, float]:
    """How far the contexts differ on the whole, in the unit of the answers, and the share of their differences that columns one by one,
    or the whole, explain."""
    answers = _ask(
        model, X
    )  #                                                                     (n, K, D)
    level, total = (
        answers.mean(0).var(0),
        answers.var(1).mean(0),
    )  #                                (D,)
    place = int(total.argmax())
    explained = level[place] + sum(curve.parting**2 for curve in curves)
    return float(np.sqrt(level.max())), float(explained / max(total[place], 1e-300))


def _ask(model: Any, X: NDArray[Any]) -> NDArray[np.float64]:
    return ask_each(model, X[np.random.default_rng(1).permutation(len(X))[:N_ROWS]])


def _list_some(columns: Sequence[str], quote: Quote) -> str:
    names = [quote(column) for column in columns[:MOST_COLUMNS]]
    if len(columns) > MOST_COLUMNS:
        names.append(f"{len(columns) - MOST_COLUMNS} more")
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _tell_shapes(model: Any, curve: ColumnCurve, quote: Quote) -> str:
    """What the answers do along a number, where the contexts are few and do not all do the same."""
    drawn = find_drawn(model.estimator_)
    shapes = [name_shape(curve, place) for place in range(len(drawn))]
    if curve.kind == "category" or len(drawn) > MOST_CONTEXTS or len(set(shapes)) == 1:
        return ""
    told = [
        f"{shape}{' along it' if place == 0 else ''} in context {k}"
        for place, (k, shape) in enumerate(zip(drawn, shapes, strict=True))
    ]
    return f": {_name_answer(model, curve, quote)} {', '.join(told[:-1])} and {told[-1]}"


def _tell_gap(model: Any, curve: ColumnCurve, quote: Quote) -> str:
    """Where the contexts are furthest apart, and where they nearly agree."""
    gap = np.ptp(curve.answers, axis=1)
    far, near = int(gap.argmax()), int(gap.argmin())
    on_what = (
        " on that" if curve.label >= 0 and len(model.estimator_.classes_) > 2 else ""
    )  # other labels may be another matter
    agree = (
        f"; where it is {_show(curve, near, quote)}, they nearly agree{on_what}"
        if gap[near] < AGREE * gap[far]
        else ""
    )
    return (
        f"They are furthest apart where {quote(curve.column)} is {_show(curve, far, quote)}: "
        f"there {_name_answer(model, curve, quote)} is on average {_list_answers(model, curve, curve.answers[far])}{agree}."
    )


def _tell_level(model: Any, X: NDArray[Any], quote: Quote) -> str:
    means = _ask(model, X).mean(
        0
    )  #                                                               (K, D)
    output = int(means.var(0).argmax())
    curve = ColumnCurve(
        "",
        "number",
        [],
        np.ones(0),
        means[None, :, output],
        output if model.target_.is_label else -1,
        0.0,
    )
    return f"On average {_name_answer(model, curve, quote)} is {_list_answers(model, curve, means[:, output])}."


def _show(curve: ColumnCurve, place: int, quote: Quote) -> str:
    if curve.kind == "number":
        return show_beside(curve.values[place], float(np.ptp(curve.values)))
    value = show_value(curve, curve.values[place])
    return IN_A_SENTENCE.get(value, quote(value)) if curve.kind == "category" else value


def _name_answer(model: Any, curve: ColumnCurve, quote: Quote) -> str:
    return (
        quote(model.target)
        if curve.label < 0
        else f"the chance of {quote(model.estimator_.classes_[curve.label])}"
    )


def _list_answers(model: Any, curve: ColumnCurve, answers: NDArray[np.float64]) -> str:
    """The answers of all contexts where they are few, else the lowest and the highest."""
    drawn = find_drawn(model.estimator_)
    places = (
        list(range(len(drawn)))
        if len(drawn) <= MOST_CONTEXTS
        else [int(answers.argmin()), int(answers.argmax())]
    )
    spread = float(np.ptp(answers))
    shown = [
        show_beside(float(a), spread) if curve.label < 0 else show_answer(curve, float(a))
        for a in answers
    ]
    told = [f"{shown[place]} in context {drawn[place]}" for place in places]
    return f"{', '.join(told[:-1])} and {told[-1]}"
