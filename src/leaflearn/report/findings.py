"""The first section: what was found, for readers who decide and may not know about contexts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leaflearn.diagnostics import settings as diagnostic_settings
from leaflearn.report.advice import Advice
from leaflearn.report.formatting import (
    PERCENT,
    count,
    describe_gain,
    enumerate_names,
    explain_intervals,
    name_compared,
    question_gain,
    show_error,
    show_interval,
    show_share,
)
from leaflearn.report.rendering import isolate, plain
from leaflearn.tabular.held_out import HeldOutErrors, Interval
from leaflearn.tabular.table_model import TableModel

MAX_NAMES = 5
MAX_NAMED_CONTEXTS, MAX_NAMED_GROUPS = 3, 12  # in the first paragraphs
MAX_REASONS = 2
LONGEST_CODE = 2000  # characters that are shown


def describe_findings(
    model: TableModel,
    n_notices: int,
    difference: Sequence[str],
    advice: Advice,
    reasons: Sequence[str] = (),
    groups_differ: str = "",
) -> dict[str, Any]:
    """The values of `findings.html`.

    Parameters
    ----------
    model
        A fitted `TableModel`.
    n_notices
        The number of warnings on the page.
    difference
        Sentences on where the contexts differ.
    advice
        Code to use the model.
    reasons
        Sentences on columns that are associated with how the groups differ.
    groups_differ
        A sentence on whether groups differ in kind or by degree, for models with group effects.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from leaflearn.report.advice import python_advice
    >>> from leaflearn.tabular.table_model import TableModel
    >>> model = TableModel("effect", group="site")
    >>> model.n_rows_, model.errors_, model.preparation_ = 40, None, None
    >>> fitted = {"contexts_": np.zeros(4, dtype=int), "probabilities_": np.ones((4, 1))}
    >>> fitted |= {"usage_": np.ones(1), "groups_": np.arange(4), "n_contexts_": 1}
    >>> model.estimator_ = SimpleNamespace(**fitted, converged_=True)
    >>> values = describe_findings(model, 0, [], python_advice(model))
    >>> values["summary"][:35], values["measured"][:27]
    ('One context was found in 4 groups (', 'No error could be measured:')
    """
    errors = model.errors_
    headline, summary = _summarize(model)
    codes = (advice.identify, advice.predict_with_labels, advice.predict, advice.predict_by_group)
    identify, with_labels, predict, by_group = (plain(code, LONGEST_CODE) for code in codes)
    return {
        "headline": headline,
        "summary": summary,
        "difference": difference,
        "groups_differ": groups_differ,
        "reasons": list(reasons[:MAX_REASONS]),
        "minorities": _name_minorities(model),
        "figures": _list_figures(model),
        "gain": None if errors is None or not _are_compared(model) else describe_gain(errors),
        "measured": _describe_measurement(model),
        "intervals": "" if errors is None else explain_intervals(errors),
        "is_uncertain": not model.estimator_.converged_,
        "notices": count(n_notices, "remark") if n_notices else "",
        "uncertain_groups": _list_uncertain_groups(model),
        "is_single": count_used(model) == 1,
        "codes": {
            "identify": identify,
            "with_labels": with_labels,
            "predict": predict,
            "by_group": by_group,
        },
        "advice": advice,
        "target": isolate(model.target, 60),
        "group": "" if model.group is None else isolate(model.group, 60),
    }


def count_used(model: TableModel) -> int:
    """How many contexts have groups.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> count_used(SimpleNamespace(estimator_=SimpleNamespace(usage_=np.array([1.0, 0.0]))))
    1
    """
    return int((model.estimator_.usage_ > 0).sum())


def _are_compared(model: TableModel) -> bool:
    """Whether there is more than a pooled model: several contexts, or group effects."""
    has_effects = model.errors_ is not None and model.errors_.has_effects
    return model.estimator_.n_contexts_ > 1 or has_effects


def _summarize(model: TableModel) -> tuple[str, str]:
    """How many contexts, in bold where there are several, and what that means."""
    estimator, used, target = model.estimator_, count_used(model), isolate(model.target)
    data = count(model.n_rows_, "row")
    if model.group is not None:
        data = f"{count(len(estimator.groups_), 'group')} (by {isolate(model.group)}, {data})"
    idle = estimator.n_contexts_ - used
    have = "has" if idle == 1 else "have"
    unused = f" {count(idle, 'further context')} {have} no groups." if idle else ""
    errors = model.errors_
    predicts = "one model predicts for all"
    if errors is not None and errors.has_effects:
        predicts = "one model predicts for all, with effects of each group"
    if model.contexts == 1:
        predicts = predicts.replace("predicts", f"predicts {target}")
        return "", f"One context was requested for {data}: {predicts}."
    if used == 1:
        return "", (
            f"One context was found in {data}: the groups do not clearly contradict each other on "
            f"{target}, and {predicts}.{unused}"
        )
    question = "" if errors is None else question_gain(errors)
    if question:
        return f"{used} contexts", (
            f" were found in {data}, but {question}: the groups may not contradict each other on "
            f"{target}.{unused}"
        )
    return f"{used} contexts", (
        f" were found in {data}. Groups of the same context agree. Groups of different contexts "
        f"have different values of {target} for the same input, so no single model can be right "
        f"for all of them.{unused}"
    )


def _name_minorities(model: TableModel) -> str:
    """The groups outside the largest context, if they are few enough to be named."""
    estimator = model.estimator_
    if model.group is None or estimator.n_contexts_ > MAX_NAMED_CONTEXTS:
        return ""
    others = {
        k: estimator.groups_[estimator.contexts_ == k] for k in range(1, estimator.n_contexts_)
    }
    sentences = [
        f"Context {k} contains {', '.join(isolate(group, 40) for group in groups)}."
        for k, groups in others.items()
        if 0 < len(groups) <= MAX_NAMED_GROUPS
    ]
    if sentences and all(len(groups) <= MAX_NAMED_GROUPS for groups in others.values()):
        sentences.append("Context 0 contains all others.")
    return " ".join(sentences)


def _list_figures(model: TableModel) -> list[dict[str, str]]:
    """The key figures: a term, a number, and a few words."""
    estimator, errors = model.estimator_, model.errors_
    counts = np.bincount(estimator.contexts_, minlength=estimator.n_contexts_)
    sizes = [f"{size:,}" for size in counts[:MAX_NAMES]]
    sizes += ["fewer"] if estimator.n_contexts_ > MAX_NAMES else []
    noun = "rows" if model.group is None else "groups"
    words = f"with {enumerate_names(sizes)} {noun}"
    figures = [{"term": "Contexts", "number": str(count_used(model)), "words": words}]
    if estimator.n_contexts_ > 1:
        limit = diagnostic_settings.DIAGNOSTICS.sure_probability
        sure = int((estimator.probabilities_.max(1) >= limit).sum()) / len(estimator.groups_)
        words = (
            f"of the {noun} are in their context with a probability of at least {show_share(limit)}"
        )
        figures.append({"term": "Sure", "number": show_share(sure), "words": words})
    if errors is not None:
        pooled, contexts = errors.one_model_interval, errors.contexts_interval
        term = "Error of a pooled model"
        figures.append(_describe_error(term, errors, errors.one_model, pooled))
        if _are_compared(model):
            term = f"Error with {name_compared(errors)}"
            figures.append(_describe_error(term, errors, errors.contexts, contexts))
    return figures


def _describe_error(
    term: str, errors: HeldOutErrors, error: float, interval: Interval | None
) -> dict[str, str]:
    words = "of new predictions are wrong" if errors.is_rate else "typical error of a prediction"
    figure = {"term": term, "number": show_error(errors, error), "words": words}
    if interval is not None:
        figure["interval"] = f"{PERCENT} interval: {show_interval(errors, interval)}"
    return figure


def _describe_measurement(model: TableModel) -> str:
    errors = model.errors_
    if errors is None:
        return (
            "No error could be measured: every group is a single row, so no rows could be held out "
            "within the groups."
        )
    how = f"Measured on {count(errors.n_rows, 'row')} that were held out within the groups"
    if not errors.is_rate:
        how += f", as root mean squared error, in the unit of {isolate(model.target)}"
    return f"{how}."


def _list_uncertain_groups(model: TableModel) -> str:
    """Groups whose context is uncertain, the most uncertain first."""
    estimator = model.estimator_
    sure, limit = estimator.probabilities_.max(1), diagnostic_settings.DIAGNOSTICS.sure_probability
    order = np.argsort(sure, kind="stable")[: int((sure < limit).sum())]
    if not len(order) or model.group is None:
        return ""
    shown = ", ".join(
        f"{isolate(estimator.groups_[i], 60)} ({show_share(sure[i])})" for i in order[:MAX_NAMES]
    )
    more = f" and {len(order) - MAX_NAMES:,} more" if len(order) > MAX_NAMES else ""
    return (
        "Label a few more rows of the groups whose context has a probability of less than "
        f"{show_share(limit)}: {shown}{more}."
    )
