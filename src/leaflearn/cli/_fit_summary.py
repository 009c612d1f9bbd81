"""What a fit found, as plain data and as sentences, and the commands to continue with."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from leaflearn.cli._commands import ANSWERS, FEW, IMAGES, NEW, quote_path, write_command
from leaflearn.cli._text import shorten, table_of
from leaflearn.diagnostics import settings as diagnostic_settings
from leaflearn.report.advice import has_images
from leaflearn.report.formatting import (
    PERCENT,
    SPACE,
    describe_gain,
    explain_intervals,
    name_compared,
    natural_key,
    question_gain,
    show_error,
    show_interval,
)
from leaflearn.report.informative_column import describe_difference_without_table
from leaflearn.report.kind_or_degree import describe_shares, describe_shares_as_data, find_shares
from leaflearn.tabular import settings as table_settings
from leaflearn.tabular.column_kinds import NOT_INFORMATIVE
from leaflearn.tabular.held_out import HeldOutErrors
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.reading import list_names
from leaflearn.tabular.table_model import TableModel

MAX_GROUPS = 6  # that a sentence names
WIDTH = 60  # characters for the names of a context's groups


def describe(model: TableModel) -> dict[str, Any]:
    """What the fit found, as plain data for programs."""
    estimator, prepare = model.estimator_, model.preparation_
    features = None
    if isinstance(prepare, Preparation):
        pairs = zip(prepare.feature_names, prepare.feature_columns, strict=True)
        features = [{"name": name, "column": column} for name, column in pairs]
    return {
        "target": model.target,
        "task": model.target_.task,
        "why_this_task": model.target_.reason,
        "other_task": model.target_.alternative or None,
        "labels": estimator.classes_.tolist() if model.target_.is_label else None,
        "group": model.group,
        "rows": model.n_rows_,
        "groups": len(estimator.groups_),
        "local_model": model.local_model_,
        "columns": prepare.used,
        "features": features,
        "n_contexts": estimator.n_contexts_,
        "why_this_number": estimator.init_,
        "kind_or_degree": describe_shares_as_data(find_shares(model)),
        "contexts": [_describe_context(model, k) for k in range(estimator.n_contexts_)],
        "where_contexts_differ": " ".join(_summarize_difference(model)) or None,
        "looks_right": bool(estimator.converged_),
        "stability": float(estimator.stability_),
        "held_out": _describe_errors(model.errors_),
    }


def summarize(model: TableModel) -> str:
    """What the fit found, as sentences and a table."""
    parts = [
        _summarize_data(model),
        _summarize_contexts(model),
        _summarize_shares(model),
        *_summarize_difference(model),
        _summarize_certainty(model),
        _summarize_errors(model),
    ]
    return "\n".join(part for part in parts if part)


def describe_next_steps(model: TableModel, place: Path, data: Path, report: Path | None) -> str:
    """Commands to continue with after a fit, each with what it does and what to fill in.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from leaflearn.tabular.images import ImageFiles
    >>> model = SimpleNamespace(
    ...     estimator_=SimpleNamespace(n_contexts_=1), preparation_=ImageFiles("file"),
    ...     local_model_="convnet", group=None, target="kind",
    ... )
    >>> print(describe_next_steps(model, Path("my model"), Path("a.csv"), Path("page.html")))
    The model is in 'my model'. Next steps:
    <BLANKLINE>
      leaflearn predict 'my model' NEW.csv -o answers.csv --images IMAGES
          its predictions. Fill in NEW.csv: a table of new rows; IMAGES: their folder
    <BLANKLINE>
    The report is in 'page.html'. Open it in a browser.
    """
    commands = [_predict_command(model, place), *_identify_command(model, place)]
    if report is None:
        write = write_command(
            model, "report", str(place), quote_path(str(data)), "-o", "report.html"
        )
        commands.append((write, "a page about the model, to open in a browser"))
    lines = [f"  {command}\n      {words}" for command, words in commands]
    end = [] if report is None else ["", f"The report is in '{report}'. Open it in a browser."]
    return "\n".join([f"The model is in '{place}'. Next steps:", "", *lines, *end])


def _describe_context(model: TableModel, context: int) -> dict[str, Any]:
    estimator = model.estimator_
    mine = np.flatnonzero(estimator.contexts_ == context)
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
            for i, p in zip(mine, estimator.probabilities_[mine].max(1), strict=True)
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
        "has_group_effects": errors.has_effects,
        "by_context": [asdict(part) for part in errors.by_context],
    }


def _summarize_data(model: TableModel) -> str:
    estimator, prepare = model.estimator_, model.preparation_
    task = "a label" if model.target_.is_label else "a quantity"
    groups = (
        "every row a group of its own"
        if model.group is None
        else f"{len(estimator.groups_):,} groups by {shorten(model.group)!r}"
    )
    images = "" if isinstance(prepare, Preparation) else "images in "
    uninformative = (
        [c.name for c in prepare.columns if c.form == NOT_INFORMATIVE]
        if isinstance(prepare, Preparation)
        else []
    )
    left_out = (
        f" Left out as uninformative about the target: {list_names(uninformative)}."
        if uninformative
        else ""
    )
    return (
        f"{model.n_rows_:,} rows, {groups}. The target {shorten(model.target)!r} is treated as "
        f"{task} ({model.target_.reason}{_mention_other_task(model)}).\n"
        f"Learned from {images}{list_names(prepare.used)}.{left_out}\n"
    )


def _mention_other_task(model: TableModel) -> str:
    other = model.target_.alternative
    words = "labels" if other == "classification" else "quantities"
    return f"; --task {other} treats them as {words}" if other else ""


def _summarize_contexts(model: TableModel) -> str:
    estimator = model.estimator_
    has_effects = estimator.fitted_state_.effects is not None
    if model.contexts == 1 and has_effects:
        return (
            "One context, as requested: one model predicts for all groups, with effects of each.\n"
        )
    if model.contexts == 1:
        return "One context, as requested: a pooled model predicts for all groups.\n"
    if estimator.n_contexts_ == 1 and has_effects:
        return "One context: no group contradicts the others, but each may have its own effects.\n"
    if estimator.n_contexts_ == 1:
        return (
            "One context: the groups do not clearly contradict each other, so a pooled model "
            f"predicts for all of them.{_hint_at_more(model)}\n"
        )
    if model.group is None:
        counts = np.bincount(estimator.contexts_, minlength=estimator.n_contexts_)
        table = table_of(
            ("", "rows"), [(f"context {k}", f"{count:,}") for k, count in enumerate(counts)]
        )
        return f"{_count_contexts(model)}\n\n{table}\n"
    rows = [_row_of(model, k) for k in range(estimator.n_contexts_)]
    table = table_of(
        ("", "groups", "rows", "sure", "which"), rows, right=lambda column: 0 < column < 4
    )
    return f"{_count_contexts(model)}\n\n{table}\n"


def _summarize_shares(model: TableModel) -> str:
    """How groups differ, and why there are this many contexts; nothing without group effects."""
    shares, estimator = find_shares(model), model.estimator_
    if shares is None:
        return ""
    used = int((estimator.usage_ > 0).sum())
    choice = "" if model.contexts != "auto" else f"\nThe number of contexts: {estimator.init_}."
    sentence = describe_shares(shares, used).replace(SPACE, " ")
    between = f"{100 * shares.between_share:.0f} %"
    return (
        f"{sentence}\nOf the variance of rows with the same inputs, {between} is between groups; "
        f"the rest is noise.{choice}"
    )


def _count_contexts(model: TableModel) -> str:
    n_contexts, used = model.estimator_.n_contexts_, int((model.estimator_.usage_ > 0).sum())
    if used == n_contexts:
        question = "" if model.errors_ is None else question_gain(model.errors_)
        return f"{n_contexts} contexts were found{f', but {question}' if question else ''}."
    have = "has" if used == 1 else "have"
    return (
        f"{n_contexts} contexts were requested, but only {used} {have} groups; try another --seed, "
        "or fewer contexts."
    )


def _hint_at_more(model: TableModel) -> str:
    """Where few groups differ by much, the gain on held-out rows is large but not significant."""
    tried, errors = (
        np.asarray(model.estimator_.selection_.get(key, ())) for key in ("n_contexts", "held_out")
    )
    if (
        len(errors) < 2
        or not errors.min() < table_settings.TABLES.more_contexts_error_ratio * errors[0]
    ):
        return ""
    n_contexts = int(
        tried[
            np.flatnonzero(errors < table_settings.TABLES.more_contexts_error_ratio * errors[0])[0]
        ]
    )
    left = errors[tried == n_contexts][0] / errors[0]
    return (
        f"\nBut with {n_contexts} contexts only {100 * left:.0f} % of its error on held-out rows "
        "remains, although too few groups improve for a clear decision; "
        f"inspect them with --contexts {n_contexts}."
    )


def _row_of(model: TableModel, context: int) -> tuple[str, ...]:
    found = _describe_context(model, context)
    groups = sorted(found["groups"], key=lambda group: natural_key(group["group"]))
    names = _name_some([shorten(group["group"], 30) for group in groups])
    sure = sum(
        group["probability"] >= diagnostic_settings.DIAGNOSTICS.sure_probability for group in groups
    )
    return (
        f"context {context}",
        f"{len(groups):,}",
        f"{found['rows']:,}",
        f"{sure:,} of {len(groups):,}",
        names,
    )


def _name_some(names: list[str]) -> str:
    """As many names as fit into a line, at least one, and the number of further ones."""
    ends = np.cumsum([len(name) + 2 for name in names])
    shown = max(1, int(np.searchsorted(ends, WIDTH, side="right")))
    return ", ".join(names[:shown]) + (
        f" and {len(names) - shown:,} more" if len(names) > shown else ""
    )


def _summarize_difference(model: TableModel) -> list[str]:
    """The column in which the contexts differ most, and how they differ."""
    return [
        sentence.replace(SPACE, " ")
        for sentence in describe_difference_without_table(model, lambda text: repr(shorten(text)))
    ]


def _summarize_certainty(model: TableModel) -> str:
    estimator = model.estimator_
    if estimator.n_contexts_ == 1 or model.group is None:
        return ""
    sure, limit = estimator.probabilities_.max(1), diagnostic_settings.DIAGNOSTICS.sure_probability
    unsure = np.argsort(sure)[: int((sure < limit).sum())]
    if not len(unsure):
        return f"Every group belongs to its context with at least {100 * limit:.0f} % probability."
    names = ", ".join(
        f"{shorten(estimator.groups_[i], 30)} ({100 * sure[i]:.0f} %)" for i in unsure[:MAX_GROUPS]
    )
    more = f" and {len(unsure) - MAX_GROUPS:,} more" if len(unsure) > MAX_GROUPS else ""
    return (
        f"Less than {100 * limit:.0f} % sure: {names}{more}. A few more labelled rows of these "
        "groups would determine their contexts."
    )


def _summarize_errors(model: TableModel) -> str:
    errors = model.errors_
    if errors is None:
        return ""
    metric = "Error rate" if errors.is_rate else "Root mean squared error"
    pooled = _show_error(errors, errors.one_model, errors.one_model_interval)
    contexts, gain = "", []
    if model.estimator_.n_contexts_ > 1 or errors.has_effects:
        compared = name_compared(errors).removeprefix("the ")
        error = _show_error(errors, errors.contexts, errors.contexts_interval)
        contexts = f", {'with ' if errors.has_effects else ''}{compared} {error}"
        gain = ["".join(describe_gain(errors))]
    sentence = (
        f"{metric} on {errors.n_rows:,} rows held out within the groups: "
        f"pooled model {pooled}{contexts}."
    )
    return "\n".join([sentence, *gain, explain_intervals(errors)]).replace(SPACE, " ")


def _show_error(errors: HeldOutErrors, error: float, ends: tuple[float, float] | None) -> str:
    interval = "" if ends is None else f" ({PERCENT} interval: {show_interval(errors, ends)})"
    return f"{show_error(errors, error)}{interval}"


def _predict_command(model: TableModel, place: Path) -> tuple[str, str]:
    several, images = model.estimator_.n_contexts_ > 1, has_images(model)
    command = write_command(model, "predict", str(place), NEW, *["--each"] * several, "-o", ANSWERS)
    result = "the prediction of every context" if several else "its predictions"
    columns = "" if images else ", with the columns that the model was fitted to"
    folder = f"; {IMAGES}: their folder" if images else ""
    return command, f"{result}. Fill in {NEW}: a table of new rows{columns}{folder}"


def _identify_command(model: TableModel, place: Path) -> list[tuple[str, str]]:
    if model.estimator_.n_contexts_ == 1:
        return []
    source = "new source" if model.group is None else f"new {shorten(model.group)!r}"
    words = (
        f"the context of a {source}. "
        f"Fill in {FEW}: a table of a few of its rows, including {shorten(model.target)!r}"
    )
    return [(write_command(model, "identify", str(place), FEW), words)]
