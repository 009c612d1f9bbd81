"""In a few words, how the contexts differ: what each answers on the whole, and along the columns on which they part most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.estimators.identification import SURE
from leaflearn.report.column_curves import ColumnCurve, ask_each, find_drawn
from leaflearn.report.curve_words import name_shape, show_answer, show_value
from leaflearn.report.html_parts import bar, bullets, context_mark, paragraph, table
from leaflearn.report.interval_words import PERCENT, show_error, show_interval
from leaflearn.report.number_text import count, show_number, show_share
from leaflearn.report.safe_text import Html, from_text, isolated, join, name
from leaflearn.tabular.held_out import FEWEST_GROUPS, HeldOutErrors, Interval

MOST_COLUMNS, MOST_NAMES, MOST_LISTED = 3, 8, 50
N_ROWS = 500  # of which the mean answer is taken


def tell_contexts(model: Any, curves: Sequence[ColumnCurve], X: NDArray[Any] | None) -> Html:
    """The section on the contexts: a table of their sizes, and a few words on each.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> estimator = SimpleNamespace(n_contexts_=1, usage_=np.ones(1), contexts_=np.array([0, 0]), probabilities_=np.ones((2, 1)))
    >>> model = SimpleNamespace(group="site", group_sizes_=np.array([7, 8]), estimator_=estimator, errors_=None)
    >>> "<caption>Sizes of the contexts</caption>" in tell_contexts(model, [], None)
    True
    """
    drawn = find_drawn(model.estimator_)
    means = (
        None
        if X is None
        else ask_each(model, X[np.random.default_rng(1).permutation(len(X))[:N_ROWS]]).mean(0)
    )  # (K, D)
    cards = []
    for place, context in enumerate(drawn if len(drawn) > 1 else ()):
        told = [] if means is None else [_tell_mean(model, means[place])]
        told += [describe_along(model, curve, place) for curve in curves[:MOST_COLUMNS]]
        words = bullets(told) if told else ""
        cards.append(
            f"<article class='context'><h3>{context_mark(int(context))}</h3>{words}{_members(model, context)}</article>"
        )
    return join(
        [
            _sizes(model),
            *([Html(f"<div class='cards'>{join(cards)}</div>")] if cards else []),
            *_errors(model),
        ]
    )


def describe_along(model: Any, curve: ColumnCurve, place: int) -> Html:
    """A sentence on what one context does along a column.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(target="effect", target_=SimpleNamespace(is_label=False))
    >>> curve = ColumnCurve("dose", "number", [0.0, 1.0], np.full(2, 0.5), np.array([[0.0, 1.0], [1.0, 1.0]]), -1, 0.5)
    >>> [describe_along(model, curve, k).replace("<bdi>", "").replace("</bdi>", "") for k in (0, 1)]
    ['effect rises along dose, from 0 (at 0) to 1 (at 1).', 'effect hardly changes along dose.']
    """
    answers, what, shape = (
        curve.answers[:, place],
        name_answer(model, curve),
        name_shape(curve, place),
    )
    if shape == "hardly changes":
        return Html(f"{what} hardly changes along {name(curve.column)}.")
    low, high = int(answers.argmin()), int(answers.argmax())
    if curve.kind == "category":
        return Html(
            f"{what} is highest for {_at(curve, high, place)} and lowest for {_at(curve, low, place)} of {name(curve.column)}."
        )
    if shape == "bends":
        return Html(
            f"{what} bends along {name(curve.column)}: lowest, {_at(curve, low, place)}; highest, {_at(curve, high, place)}."
        )
    return Html(
        f"{what} {shape} along {name(curve.column)}, from {_at(curve, 0, place)} to {_at(curve, len(answers) - 1, place)}."
    )


def name_answer(model: Any, curve: ColumnCurve) -> Html:
    """What is answered: the target, or the chance of one of its labels.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(target="verdict", estimator_=SimpleNamespace(classes_=np.array(["bad", "good"])))
    >>> name_answer(model, ColumnCurve("dose", "number", [], np.ones(0), np.ones((0, 1)), 1, 0.0))
    'The chance of <bdi>good</bdi>'
    """
    return (
        name(model.target)
        if curve.label < 0
        else Html(f"The chance of {name(model.estimator_.classes_[curve.label], 60)}")
    )


def _at(curve: ColumnCurve, i: int, place: int) -> Html:
    value, answer = (
        show_value(curve, curve.values[i]),
        show_answer(curve, float(curve.answers[i, place])),
    )
    return Html(
        f"{name(value, 60)} ({answer})" if curve.kind == "category" else f"{answer} (at {value})"
    )


def _tell_mean(model: Any, outputs: NDArray[np.float64]) -> Html:
    """What a context answers on the whole, from its mean outputs (D,)."""
    if not model.target_.is_label:
        return Html(f"{name(model.target)} is {show_number(float(outputs[0]))} on average.")
    best = int(outputs.argmax())
    return Html(
        f"Over all rows, {name(model.estimator_.classes_[best], 60)} is the likeliest answer ({show_share(float(outputs[best]))})."
    )


def _sizes(model: Any) -> Html:
    estimator = model.estimator_
    what = "rows" if model.group is None else "groups"
    head = ["context", what, "share", *([] if model.group is None else ["rows", "sure"])]
    rows = [_size_of(model, k) for k in range(min(estimator.n_contexts_, MOST_LISTED))]
    more = estimator.n_contexts_ - MOST_LISTED
    note = [paragraph(f"and {count(more, 'smaller context')}.")] if more > 0 else []
    return join([table("Sizes of the contexts", head, rows), *note])


def _errors(model: Any) -> list[Html]:
    """What each context gets wrong on held-out rows, beside what one model for all makes of the same rows."""
    errors = model.errors_
    if errors is None or len(errors.by_context) < 2:
        return []
    unit = (
        "share of wrong answers"
        if errors.is_rate
        else f"root of the mean squared error, in the unit of {isolated(model.target, 60)}"
    )
    head = ["context", "with its own model", "with one model for all", "groups", "rows"]
    rows = [
        [
            context_mark(part.context),
            _with_interval(errors, part.own, part.own_interval),
            _with_interval(errors, part.one_model, part.one_model_interval),
            Html(f"{part.n_groups:,}"),
            Html(f"{part.n_rows:,}"),
        ]
        for part in errors.by_context[:MOST_LISTED]
    ]
    few = any(part.n_groups < FEWEST_GROUPS for part in errors.by_context)
    condition = (
        f", for contexts that have held-out rows of at least {FEWEST_GROUPS} groups" if few else ""
    )
    note = f"In brackets: {PERCENT} intervals, as explained above{condition}."
    return [table(f"Errors on held-out rows: {unit}", head, rows), paragraph(note, "note")]


def _with_interval(errors: HeldOutErrors, error: float, interval: Interval | None) -> Html:
    return Html(
        f"{show_error(errors, error)}{f' ({show_interval(errors, interval)})' if interval else ''}"
    )


def _size_of(model: Any, context: int) -> list[Html]:
    estimator = model.estimator_
    mine = np.flatnonzero(estimator.contexts_ == context)
    share = float(estimator.usage_[context])
    cells = [
        context_mark(context),
        Html(f"{len(mine):,}"),
        Html(f"{bar(share, f'var(--context-{min(context, 6)})')}{show_share(share)}"),
    ]
    if model.group is not None:
        sure = int((estimator.probabilities_[mine].max(1) >= SURE).sum()) if len(mine) else 0
        cells += [
            Html(f"{int(model.group_sizes_[mine].sum()):,}"),
            Html(f"{sure:,} of {len(mine):,}"),
        ]
    return cells


def _members(model: Any, context: int) -> Html:
    """The groups of a context that belong there most surely."""
    if model.group is None:
        return Html("")
    estimator = model.estimator_
    mine = np.flatnonzero(estimator.contexts_ == context)
    first = mine[np.argsort(-estimator.probabilities_[mine, context], kind="stable")][:MOST_NAMES]
    shown = join((name(estimator.groups_[i], 40) for i in first), ", ")
    more = f" and {len(mine) - len(first):,} more" if len(mine) > len(first) else ""
    return paragraph(Html(f"{from_text('Groups: ')}{shown}{more}."), "note")
