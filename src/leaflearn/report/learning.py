"""The sections on how the model was fitted, and on how many contexts it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leaflearn.report.charts import (
    MIN_EPOCHS,
    draw_criterion,
    draw_history,
    draw_selection,
    draw_starts,
    to_inline_svg,
)
from leaflearn.report.column_curves import MAX_DRAWN
from leaflearn.report.formatting import count, show_number, show_share
from leaflearn.report.rendering import isolate
from leaflearn.tabular.table_model import TableModel

MAX_EPOCHS, MAX_STARTS = 20, 50  # in the tables
CRITERIA = {
    "held_out": "held-out error",
    "error": "error on unseen groups",
    "train_error": "training error",
    "aic": "AIC",
    "bic": "BIC",
    "icl": "ICL",
}
SELECTION_HEADING = "Error on held-out rows by number of contexts"


def describe_learning(model: TableModel) -> dict[str, Any]:
    """The values of `learning.html`: the loss, the usage of the contexts, and every start.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> start = {"error": 0.5, "kept": True, "n_iter": 1, "converged": True, "curve": [0.5]}
    >>> history = {"epoch": np.array([1]), "loss": np.array([0.5])}
    >>> fitted = {"init_": "random", "history_": history, "restarts_": [start], "stability_": 1.0}
    >>> estimator = SimpleNamespace(**fitted, n_contexts_=1)
    >>> model = SimpleNamespace(local_model_="linear", estimator_=estimator)
    >>> describe_learning(model)["rounds"]
    'It took 1 round; the final loss is 0.5.'
    """
    estimator = model.estimator_
    history, starts = estimator.history_, estimator.restarts_
    n, last = len(history["epoch"]), show_number(float(history["loss"][-1]))
    has_curves = n >= MIN_EPOCHS
    has_start_curves = len(starts) > 1 and max(len(s["curve"]) for s in starts) >= MIN_EPOCHS
    several = estimator.n_contexts_ > 1
    return {
        "local_model": isolate(model.local_model_),
        "init": (
            f"The number of contexts: {estimator.init_}."
            if "has_effects" in getattr(estimator, "selection_", {})
            else f"Where the search began: {estimator.init_}."
        ),
        "rounds": f"It took {count(n, 'round')}; the final loss is {last}.",
        "n_in_key": min(estimator.n_contexts_, MAX_DRAWN) if several else 0,
        "loss": _chart_loss(history) if has_curves else None,
        "usage": _chart_usage(history) if has_curves and several else None,
        "history": _list_history(history),
        "starts": _describe_starts(model),
        "start_curves": _chart_starts(model) if has_start_curves else None,
        "start_rows": [_describe_start(i, start) for i, start in enumerate(starts[:MAX_STARTS])],
    }


def describe_n_contexts(model: TableModel) -> dict[str, Any]:
    """The values of `selection.html`: the held-out error for each number of contexts.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(contexts=2, estimator_=SimpleNamespace(selection_={}))
    >>> describe_n_contexts(model)
    {'how': 'You requested 2 contexts. No other number was tried.', 'svg': None}
    """
    estimator, is_given = model.estimator_, model.contexts != "auto"
    selection, selected = estimator.selection_, estimator.n_contexts_ if estimator.selection_ else 0
    how = (
        f"You requested {count(int(model.contexts), 'context')}."
        if is_given
        else "The number of contexts was selected from the data."
    )
    if len(selection.get("n_contexts", ())) < 2:
        return {"how": f"{how} No other number was tried.", "svg": None}
    if "held_out" not in selection:
        describe = _describe_densities if "bic" in selection else _describe_label_densities
        return describe(model, how)
    if not is_given:
        how += " It is the smallest number that no larger one clearly improves on."
    of_items = "mean answers to the items" in estimator.init_
    surrogates = "Mean answers to the items" if of_items else "Smooth surrogate models"
    columns = [column for column in CRITERIA if column in selection]
    pairs = list(zip(selection["n_contexts"], selection["held_out"], strict=True))
    shown = ", ".join(f"{n}: {show_number(float(error))}" for n, error in pairs)
    description = f"Error for each number of contexts: {shown}. {selected} was selected."
    chart = draw_selection(selection, selected)
    return {
        "how": (
            f"{how} {surrogates} were used in place of the local models. Errors are relative to "
            "the error of a constant prediction."
        ),
        "heading": SELECTION_HEADING,
        "svg": to_inline_svg(chart, "selection", SELECTION_HEADING, description),
        "head": ["contexts", *(CRITERIA[column] for column in columns)],
        "rows": [
            [
                f"{n}{' (selected)' if n == selected else ''}",
                *(show_number(float(selection[column][i])) for column in columns),
            ]
            for i, n in enumerate(selection["n_contexts"])
        ],
    }


def _describe_densities(model: TableModel, how: str) -> dict[str, Any]:
    """The comparison of models with group effects, by the density of whole groups."""
    selection, selected = model.estimator_.selection_, model.estimator_.n_contexts_
    bic = np.asarray(selection["bic"])
    numbers = np.unique(selection["n_contexts"])
    best = np.array([bic[selection["n_contexts"] == n].min() for n in numbers])
    shown = ", ".join(f"{n}: {show_number(float(b))}" for n, b in zip(numbers, best, strict=True))
    heading = "Bayesian information criterion by number of contexts"
    description = f"The lowest criterion for each number of contexts: {shown}."
    chart = draw_criterion(numbers, best, selected)
    is_drawn = len(numbers) > 1
    return {
        "how": (
            f"{how} Candidates are compared by the density of whole groups, with the group effects "
            "integrated out. The number with the lowest Bayesian information criterion is chosen, "
            "if the density of held-out groups rises too; in case of doubt, the smaller one."
        ),
        "heading": heading,
        "svg": to_inline_svg(chart, "selection", heading, description) if is_drawn else None,
        "head": ["contexts", "group effects", "mean functions", "BIC", "held-out log density"],
        "rows": [
            [
                f"{n}{' (selected)' if n == selected and b == best[numbers == n][0] else ''}",
                "yes" if selection["has_effects"][i] else "no",
                "own" if selection["has_own_means"][i] else "shared",
                show_number(float(b)),
                show_number(float(selection["log_density"][i])),
            ]
            for i, (n, b) in enumerate(zip(selection["n_contexts"], bic, strict=True))
        ],
    }


def _describe_label_densities(model: TableModel, how: str) -> dict[str, Any]:
    """The comparison of classifiers with group effects, by the labels of held-out groups."""
    selection, selected = model.estimator_.selection_, model.estimator_.n_contexts_
    numbers, density = selection["n_contexts"], np.asarray(selection["log_density"])
    pairs = zip(numbers, density, strict=True)
    shown = ", ".join(f"{n}: {show_number(float(value))}" for n, value in pairs)
    heading = "Labels of held-out groups by number of contexts"
    description = f"Mean log probability of the labels of a held-out group: {shown}."
    return {
        "how": (
            f"{how} Candidates are compared by the probability of all labels of held-out groups, "
            "with the group effects integrated out. A larger number is chosen if it is better by "
            "more than a standard error."
        ),
        "heading": heading,
        "svg": to_inline_svg(
            draw_criterion(numbers, density, selected, "log probability (higher is better)"),
            "selection",
            heading,
            description,
        ),
        "head": ["contexts", "group effects", "held-out log probability"],
        "rows": [
            [
                f"{n}{' (selected)' if n == selected else ''}",
                "yes" if has_effects else "no",
                show_number(float(value)),
            ]
            for n, has_effects, value in zip(
                numbers, selection["has_effects"], density, strict=True
            )
        ],
    }


def _chart_loss(history: Mapping[str, Any]) -> dict[str, Any]:
    first, last = (show_number(float(history["loss"][i])) for i in (0, -1))
    caption = f"From {first} to {last} in {count(len(history['epoch']), 'epoch')}."
    chart = draw_history(history, "loss", "loss")
    return {"svg": to_inline_svg(chart, "loss", "Loss over the epochs", caption), "words": caption}


def _chart_usage(history: Mapping[str, Any]) -> dict[str, Any]:
    shares = enumerate(history["usage"][-1][:MAX_DRAWN])
    caption = f"At the end: {', '.join(f'context {k} {show_share(s)}' for k, s in shares)}."
    chart = draw_history(history, "usage", "share of the groups")
    title = "Share of the groups in each context"
    return {"svg": to_inline_svg(chart, "usage", title, caption), "words": caption}


def _chart_starts(model: TableModel) -> dict[str, Any]:
    caption = (
        "The loss of every start over its epochs; the selected one is thick, the others are thin "
        "and dashed."
    )
    chart = draw_starts(model.estimator_.restarts_[:MAX_STARTS])
    return {"svg": to_inline_svg(chart, "starts", "Loss of the starts", caption), "words": caption}


def _list_history(history: Mapping[str, Any]) -> dict[str, Any]:
    """Some epochs of the history, with all there is except the usage."""
    n = len(history["epoch"])
    chosen = np.unique(np.linspace(0, n - 1, min(n, MAX_EPOCHS)).astype(int))
    columns = [column for column in history if np.ndim(history[column]) == 1]
    rows = [[show_number(float(history[column][i])) for column in columns] for i in chosen]
    return {"head": [column.replace("_", " ") for column in columns], "rows": rows}


def _describe_starts(model: TableModel) -> str:
    starts = model.estimator_.restarts_
    if len(starts) == 1:
        return "One start was made, and it was selected."
    selected = next((number for number, start in enumerate(starts) if start["kept"]), 0)
    return (
        f"{len(starts):,} starts were made. Number {selected} was selected: in its stage, it "
        "explains the groups best. Starts that explain the groups equally well agree on "
        f"{show_share(model.estimator_.stability_)} of them."
    )


def _describe_start(number: int, start: Mapping[str, Any]) -> list[str]:
    return [
        str(number),
        str(start.get("stage", "")),  # models of version 0.1.0 do not store it
        show_number(start["error"]),
        f"{start['n_iter']:,}",
        "yes" if start["converged"] else "no",
        "yes" if start["kept"] else "no",
    ]
