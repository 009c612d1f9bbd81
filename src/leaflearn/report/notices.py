"""The section on warnings: problems of the data or the fit, each with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leaflearn.messages import (
    ColumnsLeftOut,
    Message,
    NoGroupColumn,
    OneRowPerGroup,
    SavedText,
    SingleRowGroups,
    message_from_json,
)
from leaflearn.report import settings
from leaflearn.report.advice import Advice
from leaflearn.report.findings import count_used
from leaflearn.report.formatting import count, show_share
from leaflearn.report.rendering import isolate
from leaflearn.report.training_rows import TrainingRows
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.table_model import TableModel

MAX_COLUMNS, MAX_ROWS = 12, 20
LONGEST_MESSAGE = 1000
ABOUT_SINGLE_ROWS = (SingleRowGroups, NoGroupColumn, OneRowPerGroup)
ADVICE = {  # other messages say themselves what to do
    "fit": "Follow the advice in the message, fit again, and write this page again.",
    "cells": "Check these cells; if they are correct, nothing has to be done.",
}


@dataclass(frozen=True)
class Notice:
    """A problem, what to do about it, and whether it is about the fit or about the data.

    Examples
    --------
    >>> Notice("Four rows have no target.", "Label them.").about
    'data'
    """

    problem: str
    advice: str
    about: str = "data"


def collect_notices(model: TableModel, rows: TrainingRows | None, advice: Advice) -> list[Notice]:
    """Problems of the fit first, then those of the data.

    Warnings of the fit are included if the model stores them.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from leaflearn.report.advice import python_advice
    >>> from leaflearn.tabular.table_model import TableModel
    >>> model = TableModel("effect")
    >>> model.errors_, model.preparation_, model.group_sizes_ = None, None, np.array([2])
    >>> fitted = {"n_contexts_": 1, "usage_": np.ones(1), "stability_": 1.0, "converged_": True}
    >>> model.estimator_ = SimpleNamespace(**fitted, outliers_=np.array([True, False]))
    >>> [notice.problem[:5] for notice in collect_notices(model, None, python_advice(model))]
    ['1 row']
    """
    stored = [
        message_from_json(message) if isinstance(message, str) else message
        for message in getattr(model, "warnings_", ())
    ]
    notices = [
        _from_message(message, model, advice)
        for message in dict.fromkeys([*stored, *([] if rows is None else rows.warnings)])
        if not isinstance(message, ColumnsLeftOut)  # `_list_unused_columns` adds advice to it
    ]
    if not any(notice.about == "fit" for notice in notices):
        notices = [*_check_fit(model, advice), *notices]
    notices += _list_unused_columns(model, advice)
    if not any(isinstance(message, ABOUT_SINGLE_ROWS) for message in stored):
        notices += _check_single_rows(model, advice)
    notices += _list_outliers(model, rows) + _check_gain(model, advice) + _check_table(rows)
    return sorted(notices, key=lambda notice: notice.about != "fit")


def _from_message(message: Message, model: TableModel, advice: Advice) -> Notice:
    about = "data" if isinstance(message, SavedText) else message.about
    if isinstance(message, ABOUT_SINGLE_ROWS) and _has_contexts_of_single_rows(model):
        about = "fit"
    text = isolate(advice.message(message), LONGEST_MESSAGE)
    return Notice(text, ADVICE.get(about, ""), "fit" if about == "fit" else "data")


def _check_fit(model: TableModel, advice: Advice) -> list[Notice]:
    """Problems that the estimator stores, for models that do not store their warnings."""
    estimator = model.estimator_
    if estimator.stability_ < settings.REPORT.min_agreement:
        agreement = show_share(estimator.stability_)
        problem = f"Starts that explain the groups equally well agree on only {agreement} of them."
        return [Notice(problem, "Provide more rows per group, or more groups.", "fit")]
    if estimator.converged_:
        return []
    auto = "" if model.contexts == "auto" else f"`{advice.option('contexts', 'auto')}` or "
    return [
        Notice(
            "The diagnostics of the fit contradict the contexts: another allocation, or another "
            "number of contexts, may be right.",
            f"Fit again with {auto}another `{advice.option('random_state', None)}` and compare; "
            "the warnings of the fit give the reasons.",
            "fit",
        )
    ]


def _list_unused_columns(model: TableModel, advice: Advice) -> list[Notice]:
    """Columns that were not used, by reason."""
    if not isinstance(model.preparation_, Preparation):
        return []
    reasons: dict[str, list[str]] = {}
    for column in model.preparation_.columns:
        if column.kind == "nothing":
            reasons.setdefault(column.form, []).append(column.name)
    option = advice.option("features", None)
    notices = []
    for reason, columns in reasons.items():
        shown = ", ".join(isolate(column, 60) for column in columns[:MAX_COLUMNS])
        n_more = len(columns) - MAX_COLUMNS
        more = f" and {n_more} more" if n_more > 0 else ""
        was, them = ("was", "it") if len(columns) == 1 else ("were", "them")
        problem = f"{count(len(columns), 'column')} {was} not used ({reason}): {shown}{more}."
        notices.append(
            Notice(problem, f"To use {them} anyway, name all columns to use with `{option}`.")
        )
    return notices


def _has_contexts_of_single_rows(model: TableModel) -> bool:
    return bool(model.estimator_.n_contexts_ > 1 and model.group_sizes_.max() == 1)


def _check_single_rows(model: TableModel, advice: Advice) -> list[Notice]:
    if not _has_contexts_of_single_rows(model):
        return []
    return [
        Notice(
            "Every group is a single row, and contexts can hardly be identified from single rows.",
            f"Name with `{advice.option('group', None)}` a column of rows that belong together: "
            "annotator, site, session, device.",
            "fit",
        )
    ]


def _list_outliers(model: TableModel, rows: TrainingRows | None) -> list[Notice]:
    places = np.flatnonzero(model.estimator_.outliers_)
    if not len(places):
        return []
    share = show_share(len(places) / len(model.estimator_.outliers_))
    where = ""
    if rows is not None and rows.is_same:
        numbers = ", ".join(f"{rows.frame.index[i] + 1:,}" for i in places[:MAX_ROWS])
        where = f" (counted from 1: {numbers}{' and others' if len(places) > MAX_ROWS else ''})"
    return [
        Notice(
            f"{count(len(places), 'row')} ({share}) of the training table{where} contradict the "
            "rest of their group or context, and were excluded from the fit.",
            "They may be mislabelled, or in the wrong group; look at them.",
        )
    ]


def _check_gain(model: TableModel, advice: Advice) -> list[Notice]:
    errors = model.errors_
    if errors is None or count_used(model) == 1 or errors.contexts < errors.one_model:
        return []
    return [
        Notice(
            "The contexts predict held-out rows no better than a pooled model.",
            f"Fit with `{advice.option('contexts', 1)}`, or provide more rows per group.",
            "fit",
        )
    ]


def _check_table(rows: TrainingRows | None) -> list[Notice]:
    if rows is None or rows.is_same:
        return []
    return [
        Notice(
            "This page was written with a different table than the model was fitted to: their "
            "fingerprints differ.",
            "Curves and examples are from the table that was given; everything else is from the "
            "fit. Write this page with the training table so that both agree.",
        )
    ]
