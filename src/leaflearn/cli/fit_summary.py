"""What a fitted table model found, as plain data for programs and as sentences for people."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from leaflearn.cli.plain_text import shorten
from leaflearn.cli.table_verbs import table_of
from leaflearn.estimators.identification import SURE
from leaflearn.report.formatting import (
    PERCENT,
    SPACE,
    describe_gain,
    explain_intervals,
    show_error,
    show_interval,
)
from leaflearn.report.informative_column import describe_difference_without_table
from leaflearn.tabular.column_kinds import NOT_INFORMATIVE
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.reading import list_names

if TYPE_CHECKING:
    from leaflearn.tabular.held_out import HeldOutErrors
    from leaflearn.tabular.table_model import TableModel

MOST_GROUPS = 6  # that a sentence names
WIDTH = 60  # characters for the names of a context's groups
MUCH_LESS = 0.8  # of the error, or less: so much more contexts hardly ever save by chance


def describe(model: TableModel) -> dict[str, Any]:
    """Everything a program may want to know of the fit."""
    estimator, prepare = model.estimator_, model.preparation_
    features = None
    if isinstance(prepare, Preparation):
        pairs = zip(prepare.feature_names, prepare.feature_columns, strict=True)
        features = [{"name": name, "column": column} for name, column in pairs]
    return {
        "target": model.target,
        "task": model.target_.task,
        "why_this_task": model.target_.reason,
        "labels": estimator.classes_.tolist() if model.target_.is_label else None,
        "group": model.group,
        "rows": model.n_rows_,
        "groups": len(estimator.groups_),
        "local_model": model.local_model_,
        "columns": prepare.used,
        "features": features,
        "n_contexts": estimator.n_contexts_,
        "contexts": [_describe_context(model, k) for k in range(estimator.n_contexts_)],
        "where_contexts_differ": " ".join(_tell_difference(model)) or None,
        "looks_right": bool(estimator.converged_),
        "stability": float(estimator.stability_),
        "held_out": _describe_errors(model.errors_),
    }


def _describe_context(model: TableModel, context: int) -> dict[str, Any]:
    estimator = model.estimator_
    mine = np.flatnonzero(estimator.contexts_ == context)
    sure = estimator.probabilities_[mine].max(1)
    return {
        "context": context,
        "share_of_groups": float(estimator.usage_[context]),
        "rows": int(model.group_sizes_[mine].sum()),
        "groups": [
            {
                "group": str(estimator.groups_[i]),
                "rows": int(model.group_sizes_[i]),
                "probability": float(p),
            }
            for i, p in zip(mine, sure, strict=True)
        ],
    }


def _describe_errors(errors: HeldOutErrors | None) -> dict[str, Any] | None:
    if errors is None:
        return None
    return {
        "metric": errors.metric,
        "one_model": errors.one_model,
        "one_model_interval": errors.one_model_interval,
        "contexts": errors.contexts,
        "contexts_interval": errors.contexts_interval,
        "contexts_to_one_model_interval": errors.ratio_interval,
        "rows": errors.n_rows,
        "groups": errors.n_groups,
        "by_context": [asdict(part) for part in errors.by_context],
    }


def tell(model: TableModel) -> str:
    """The same in sentences and a table."""
    parts = [
        _tell_data(model),
        _tell_contexts(model),
        *_tell_difference(model),
        _tell_sureness(model),
        _tell_errors(model),
    ]
    return "\n".join(part for part in parts if part)


def _tell_data(model: TableModel) -> str:
    estimator, prepare = model.estimator_, model.preparation_
    task = "a label" if model.target_.is_label else "a quantity"
    groups = (
        "every row a group of its own"
        if model.group is None
        else f"{len(estimator.groups_):,} groups by {shorten(model.group)!r}"
    )
    pictures = "" if isinstance(prepare, Preparation) else "pictures in "
    nothing = (
        [c.name for c in prepare.columns if c.form == NOT_INFORMATIVE]
        if isinstance(prepare, Preparation)
        else []
    )
    left_out = (
        f" Left out, since they tell nothing of the target: {list_names(nothing)}."
        if nothing
        else ""
    )
    return (
        f"{model.n_rows_:,} rows, {groups}. The target {shorten(model.target)!r} is taken for {task} ({model.target_.reason}).\n"
        f"Learnt from {pictures}{list_names(prepare.used)}.{left_out}\n"
    )


def _tell_contexts(model: TableModel) -> str:
    estimator = model.estimator_
    if model.contexts == 1:
        return "One context, as you asked for: one model answers for all.\n"
    if estimator.n_contexts_ == 1:
        return f"One context: the groups do not clearly contradict each other, and one model answers for all.{_hint_at_more(estimator)}\n"
    if model.group is None:
        counts = np.bincount(estimator.contexts_, minlength=estimator.n_contexts_)
        table = table_of(
            ("", "rows"), [(f"context {k}", f"{count:,}") for k, count in enumerate(counts)]
        )
        return f"{_count_contexts(estimator)}\n\n{table}\n"
    rows = [_row_of(model, k) for k in range(estimator.n_contexts_)]
    table = table_of(
        ("", "groups", "rows", "sure", "which"), rows, right=lambda column: 0 < column < 4
    )
    return f"{_count_contexts(estimator)}\n\n{table}\n"


def _count_contexts(estimator: Any) -> str:
    n_contexts, used = estimator.n_contexts_, int((estimator.usage_ > 0).sum())
    if used == n_contexts:
        return f"{n_contexts} contexts were found."
    have = "has" if used == 1 else "have"
    return f"{n_contexts} contexts were asked for, but only {used} {have} groups; try another --seed, or fewer contexts."


def _hint_at_more(estimator: Any) -> str:
    """Where few groups differ, and much, held-out rows gain a lot, but not surely so; then a person should look."""
    tried, errors = (
        np.asarray(estimator.selection_.get(key, ())) for key in ("n_contexts", "held_out")
    )
    if len(errors) < 2 or not errors.min() < MUCH_LESS * errors[0]:
        return ""
    n_contexts = int(tried[np.flatnonzero(errors < MUCH_LESS * errors[0])[0]])
    left = errors[tried == n_contexts][0] / errors[0]
    return (
        f"\nBut {n_contexts} contexts leave {100 * left:.0f} % of its error on held-out rows, though too few groups gain to be sure; "
        f"look at them with --contexts {n_contexts}."
    )


def _row_of(model: TableModel, context: int) -> tuple[str, ...]:
    found = _describe_context(model, context)
    groups = sorted(found["groups"], key=lambda group: _natural(group["group"]))
    names = _name_some([shorten(group["group"], 30) for group in groups])
    sure = sum(group["probability"] >= SURE for group in groups)
    return (
        f"context {context}",
        f"{len(groups):,}",
        f"{found['rows']:,}",
        f"{sure:,} of {len(groups):,}",
        names,
    )


def _name_some(names: list[str]) -> str:
    """As many names as a line holds, at least one, and how many more there are."""
    ends = np.cumsum([len(name) + 2 for name in names])
    shown = max(1, int(np.searchsorted(ends, WIDTH, side="right")))
    return ", ".join(names[:shown]) + (
        f" and {len(names) - shown:,} more" if len(names) > shown else ""
    )


def _natural(name: str) -> list[tuple[int, str]]:
    """Group 2 before group 10."""
    return [
        (int(piece), "") if piece.isdecimal() else (-1, piece)
        for piece in re.split(r"(\d+)", name[:100])
    ]


def _tell_difference(model: TableModel) -> list[str]:
    """In which column the contexts differ most, and how."""
    return [
        sentence.replace(SPACE, " ")
        for sentence in describe_difference_without_table(model, lambda text: repr(shorten(text)))
    ]


def _tell_sureness(model: TableModel) -> str:
    estimator = model.estimator_
    if estimator.n_contexts_ == 1 or model.group is None:
        return ""
    sure = estimator.probabilities_.max(1)
    unsure = np.argsort(sure)[: int((sure < SURE).sum())]
    if not len(unsure):
        return f"Every group is at least {100 * SURE:.0f} % sure to belong where it is."
    names = ", ".join(
        f"{shorten(estimator.groups_[i], 30)} ({100 * sure[i]:.0f} %)" for i in unsure[:MOST_GROUPS]
    )
    more = f" and {len(unsure) - MOST_GROUPS:,} more" if len(unsure) > MOST_GROUPS else ""
    return f"Less than {100 * SURE:.0f} % sure: {names}{more}. A few more labelled rows of these would settle them."


def _tell_errors(model: TableModel) -> str:
    errors = model.errors_
    if errors is None:
        return ""
    one, each = (
        f"{show_error(errors, error)}{'' if ends is None else f' ({PERCENT} interval: {show_interval(errors, ends)})'}"
        for error, ends in (
            (errors.one_model, errors.one_model_interval),
            (errors.contexts, errors.contexts_interval),
        )
    )
    what, unit = (
        ("Wrong answers", "") if errors.is_rate else ("Typical error", " (root of the mean square)")
    )
    contexts, gain = (
        ("", [])
        if model.estimator_.n_contexts_ == 1
        else (f", the contexts {each}", ["".join(describe_gain(errors))])
    )
    told = f"{what} on {errors.n_rows:,} rows held out inside the groups{unit}: one model for all {one}{contexts}."
    return "\n".join([told, *gain, explain_intervals(errors)]).replace(SPACE, " ")
