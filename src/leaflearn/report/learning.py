"""The section on how the contexts were learnt: the loss, the use of the contexts, and the fate of every start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leaflearn.report.column_curves import MOST_DRAWN
from leaflearn.report.html_parts import figure, key_to_lines, opening, paragraph, table
from leaflearn.report.inline_svg import to_inline_svg
from leaflearn.report.number_text import count, show_number, show_share
from leaflearn.report.report_charts import FEWEST_MOMENTS, draw_history, draw_starts
from leaflearn.report.safe_text import Html, from_text, join, name

MOST_MOMENTS, MOST_STARTS = 20, 50


def tell_learning(model: Any) -> Html:
    """Learning and usage curves, and the fate of every start.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> start = {"error": 0.5, "kept": True, "n_iter": 1, "converged": True, "curve": np.array([0.5])}
    >>> history = {"epoch": np.array([1]), "loss": np.array([0.5])}
    >>> estimator = SimpleNamespace(init_="random", history_=history, restarts_=[start], stability_=1.0, n_contexts_=1)
    >>> "One start was made, and it was kept." in tell_learning(SimpleNamespace(local_model_="linear", estimator_=estimator))
    True
    """
    estimator = model.estimator_
    start = paragraph(
        Html(
            f"The local models are of the kind {name(model.local_model_)}. Where the search began: {from_text(estimator.init_)}."
        )
    )
    return join(
        [start, *_tell_history(estimator), Html("<h3>Starts</h3>"), *_tell_starts(estimator)]
    )


def _tell_history(estimator: Any) -> list[Html]:
    history = estimator.history_
    n, loss = len(history["epoch"]), history["loss"]
    rounds = f"It took {count(n, 'round')}; the loss ended at {show_number(float(loss[-1]))}."
    numbers = _history_numbers(history)
    if n < FEWEST_MOMENTS:
        return [
            paragraph(f"{rounds} That is too short for a curve."),
            opening("The numbers", numbers),
        ]
    fell = f"From {show_number(float(loss[0]))} to {show_number(float(loss[-1]))} in {count(n, 'epoch')}."
    parts = [
        figure(
            Html("Loss"),
            to_inline_svg(
                draw_history(history, "loss", "loss"), "loss", "Loss over the epochs", fell
            ),
            Html(fell),
            numbers,
        )
    ]
    if estimator.n_contexts_ > 1:
        ends = ", ".join(
            f"context {k} {show_share(share)}"
            for k, share in enumerate(history["usage"][-1][:MOST_DRAWN])
        )
        svg = to_inline_svg(
            draw_history(history, "usage", "share of the groups"),
            "usage",
            "Share of the groups in each context",
            f"At the end: {ends}.",
        )
        parts.append(
            figure(Html("Usage of the contexts"), svg, from_text(f"At the end: {ends}."), Html(""))
        )
    charts = Html(f"<div class='charts'>{join(parts)}</div>")
    key = (
        [key_to_lines(min(estimator.n_contexts_, MOST_DRAWN))] if estimator.n_contexts_ > 1 else []
    )
    return [*key, charts]


def _history_numbers(history: Mapping[str, Any]) -> Html:
    """Some moments of the history, with all there is but the usage."""
    n = len(history["epoch"])
    chosen = np.unique(np.linspace(0, n - 1, min(n, MOST_MOMENTS)).astype(int))
    columns = [column for column in history if np.ndim(history[column]) == 1]
    rows = [[Html(show_number(float(history[column][i]))) for column in columns] for i in chosen]
    return table(
        "Moments of the fit", [column.replace("_", " ") for column in columns], rows, texts=()
    )


def _tell_starts(estimator: Any) -> list[Html]:
    starts = estimator.restarts_
    kept = next((number for number, start in enumerate(starts) if start["kept"]), 0)
    agree = (
        f"Starts that explain the groups equally well agree on {show_share(estimator.stability_)}."
    )
    one = "One start was made, and it was kept."
    said = paragraph(
        one
        if len(starts) == 1
        else f"{len(starts):,} starts, of which number {kept} was kept: of its stage, it explains the groups best. {agree}"
    )
    rows = [
        [
            Html(f"{number}"),
            from_text(str(start.get("stage", ""))),  # models of older versions do not tell it
            Html(show_number(start["error"])),
            Html(f"{start['n_iter']:,}"),
            _yes(start["converged"]),
            _yes(start["kept"]),
        ]
        for number, start in enumerate(starts[:MOST_STARTS])
    ]
    fates = table(
        "Every start and its fate",
        ["start", "stage", "error", "rounds", "stood still", "kept"],
        rows,
        texts=(1, 4, 5),
    )
    if len(starts) < 2 or max(len(start["curve"]) for start in starts) < FEWEST_MOMENTS:
        return [said, fates]
    words = "The loss of every start over its epochs; the one that was kept is thick, the others are thin and dashed."
    chart = figure(
        Html("Loss of the starts"),
        to_inline_svg(draw_starts(starts[:MOST_STARTS]), "starts", "Loss of the starts", words),
        Html(words),
        Html(""),
    )
    return [said, Html(f"<div class='charts'>{chart}<div>{fates}</div></div>")]


def _yes(value: Any) -> Html:
    return Html("yes" if value else "no")
