"""The section on the number of contexts: what other numbers would have given, as far as they were tried."""

from __future__ import annotations

from typing import Any

from leaflearn.report.html_parts import figure, paragraph, table
from leaflearn.report.inline_svg import to_inline_svg
from leaflearn.report.number_text import count, show_number
from leaflearn.report.report_charts import draw_selection
from leaflearn.report.safe_text import Html

CRITERIA = {
    "held_out": "held-out error",
    "error": "error on unseen groups",
    "train_error": "training error",
    "aic": "AIC",
    "bic": "BIC",
    "icl": "ICL",
}
HEADING = "Error on held-out rows by number of contexts"
HOW = "{} stood in for the local models. Errors are in units of what a constant answer leaves unexplained."


def describe_selection(model: Any) -> Html:
    """A chart of the error for each number that was tried, and all criteria in a table.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> describe_selection(SimpleNamespace(contexts=2, estimator_=SimpleNamespace(selection_={})))
    '<p>You asked for 2 contexts. No other number was tried.</p>'
    """
    selection, given = model.estimator_.selection_, model.contexts != "auto"
    how = (
        f"You asked for {count(int(model.contexts), 'context')}."
        if given
        else "The number of contexts was read off the data."
    )
    if len(selection.get("n_contexts", ())) < 2:
        return paragraph(f"{how} No other number was tried.")
    rule = "" if given else " It is the smallest that no larger one clearly beats on held-out rows."
    stand_ins = HOW.format(
        "Mean answers to the items"
        if "mean answers to the items" in model.estimator_.init_
        else "Smooth models"
    )
    return Html(
        f"{paragraph(f'{how}{rule} {stand_ins}')}<div class='charts'>{_chart(model)}</div>{_numbers(model)}"
    )


def _chart(model: Any) -> Html:
    selection, chosen = model.estimator_.selection_, model.estimator_.n_contexts_
    pairs = zip(selection["n_contexts"], selection["held_out"], strict=True)
    told = f"Error for each number of contexts: {', '.join(f'{n}: {show_number(float(error))}' for n, error in pairs)}. {chosen} was chosen."
    svg = to_inline_svg(draw_selection(selection, chosen), "selection", HEADING, told)
    return figure(
        Html(HEADING), svg, Html("The ring is around the number that was chosen."), Html("")
    )


def _numbers(model: Any) -> Html:
    selection = model.estimator_.selection_
    columns = [column for column in CRITERIA if column in selection]
    rows = []
    for i, n in enumerate(selection["n_contexts"]):
        chosen = " (chosen)" if n == model.estimator_.n_contexts_ else ""
        rows.append(
            [
                Html(f"{n}{chosen}"),
                *(Html(show_number(float(selection[column][i]))) for column in columns),
            ]
        )
    return table(
        "What was tried", ["contexts", *(CRITERIA[column] for column in columns)], rows, texts=()
    )
