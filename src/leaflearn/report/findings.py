"""What was found, in plain words: for somebody who decides, and has not heard of contexts before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leaflearn.estimators.identification import SURE
from leaflearn.report.html_parts import bullets, command, facts, paragraph
from leaflearn.report.interval_words import (
    PERCENT,
    explain_intervals,
    show_error,
    show_interval,
    tell_gain,
)
from leaflearn.report.next_commands import (
    ANSWERS,
    FEW,
    MODEL,
    NEW,
    PICTURES,
    has_pictures,
    write_command,
)
from leaflearn.report.number_text import count, show_share
from leaflearn.report.safe_text import Html, join, name
from leaflearn.tabular.held_out import HeldOutErrors, Interval

MOST_NAMES = 5
MOST_NAMED_CONTEXTS, MOST_NAMED_GROUPS = 3, 12  # in the first paragraph


def tell_findings(
    model: Any, n_notices: int, difference: Sequence[str] = (), place: str = MODEL
) -> Html:
    """The first section: how many contexts, in which column they differ, how sure, what one model would have done, what to do next.

    Parameters
    ----------
    model
        A fitted `TableModel`.
    n_notices
        How many warnings the page has.
    difference
        Sentences on where the contexts differ, as pieces of a page.
    place
        The folder of the model, as the reader would type it.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> fitted = {"usage_": np.ones(1), "contexts_": np.zeros(4, dtype=int), "probabilities_": np.ones((4, 1)), "groups_": np.arange(4)}
    >>> estimator = SimpleNamespace(**fitted, n_contexts_=1, converged_=True)
    >>> model = SimpleNamespace(estimator_=estimator, target="effect", group="site", n_rows_=40, errors_=None, contexts="auto")
    >>> model.preparation_, model.local_model_ = None, "mlp"
    >>> "One context was found in 4 groups (by <bdi>site</bdi>, 40 rows)" in tell_findings(model, 0)
    True
    """
    where = (
        [paragraph(f"{' '.join(difference)} <a href='#disagreement'>See the charts.</a>", "where")]
        if difference
        else []
    )
    parts = [
        paragraph(_tell_contexts(model), "lead"),
        *where,
        *_name_the_others(model),
        facts(_key_figures(model)),
        *_tell_errors(model),
    ]
    return join(
        [
            *parts,
            Html("<h3>What to do next</h3>"),
            bullets([*_steps_in_doubt(model, n_notices), *_steps_to_use(model, place)]),
        ]
    )


def count_used(model: Any) -> int:
    """How many contexts have groups.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> count_used(SimpleNamespace(estimator_=SimpleNamespace(usage_=np.array([1.0, 0.0]))))
    1
    """
    return int((model.estimator_.usage_ > 0).sum())


def _tell_contexts(model: Any) -> Html:
    estimator, used = model.estimator_, count_used(model)
    data = f"{count(model.n_rows_, 'row')}"
    if model.group is not None:
        data = f"{count(len(estimator.groups_), 'group')} (by {name(model.group)}, {data})"
    idle = estimator.n_contexts_ - used
    unused = (
        f" {count(idle, 'further context')} {'has' if idle == 1 else 'have'} no groups."
        if idle
        else ""
    )
    if model.contexts == 1:
        return Html(
            f"One context was asked for in {data}: one model answers {name(model.target)} for all of them."
        )
    if used == 1:
        return Html(
            f"One context was found in {data}: the groups do not clearly contradict each other on {name(model.target)}, "
            f"and one model answers for all.{unused}"
        )
    return Html(
        f"<strong>{used} contexts</strong> were found in {data}. Groups of one context answer alike. Groups of different contexts give "
        f"different answers for {name(model.target)} on the same input, so no single model can be right for all of them.{unused}"
    )


def _name_the_others(model: Any) -> list[Html]:
    """Who is not with the most, where two or three contexts have few enough groups to be named."""
    estimator = model.estimator_
    if model.group is None or estimator.n_contexts_ > MOST_NAMED_CONTEXTS:
        return []
    others = {
        k: estimator.groups_[estimator.contexts_ == k] for k in range(1, estimator.n_contexts_)
    }
    told = [
        f"Context {k} holds {join((name(group, 40) for group in groups), ', ')}."
        for k, groups in others.items()
        if 0 < len(groups) <= MOST_NAMED_GROUPS
    ]
    if told and all(len(groups) <= MOST_NAMED_GROUPS for groups in others.values()):
        told.append("Context 0 holds all others.")
    return [paragraph(join(told, " "))] if told else []


def _key_figures(model: Any) -> list[tuple[str, Html, Html]]:
    estimator, errors = model.estimator_, model.errors_
    sizes = [
        f"{size:,}"
        for size in np.bincount(estimator.contexts_, minlength=estimator.n_contexts_)[:MOST_NAMES]
    ]
    *first, last = [*sizes, "fewer"] if estimator.n_contexts_ > MOST_NAMES else sizes
    what = "rows" if model.group is None else "groups"
    figures = [
        (
            "Contexts",
            Html(f"{count_used(model)}"),
            Html(f"with {', '.join(first)}{' and ' if first else ''}{last} {what}"),
        )
    ]
    if estimator.n_contexts_ > 1:
        sure, m = int((estimator.probabilities_.max(1) >= SURE).sum()), len(estimator.groups_)
        figures.append(
            (
                "Sure",
                Html(show_share(sure / m)),
                Html(f"of the {what} are at least {show_share(SURE)} sure of their context"),
            )
        )
    if errors is not None:
        words = "of new answers are wrong" if errors.is_rate else "typical error of a new answer"
        figures.append(
            (
                "Error of one model for all",
                *_show_error(errors, errors.one_model, errors.one_model_interval, words),
            )
        )
        if estimator.n_contexts_ > 1:
            figures.append(
                (
                    "Error with the contexts",
                    *_show_error(errors, errors.contexts, errors.contexts_interval, words),
                )
            )
    return figures


def _show_error(
    errors: HeldOutErrors, error: float, interval: Interval | None, words: str
) -> tuple[Html, Html]:
    """The error, and words on it with its interval."""
    ends = (
        ""
        if interval is None
        else f" <span class='ends'>{PERCENT} interval: {show_interval(errors, interval)}</span>"
    )
    return Html(show_error(errors, error)), Html(f"{words}{ends}")


def _tell_errors(model: Any) -> list[Html]:
    errors = model.errors_
    if errors is None:
        return [
            paragraph(
                "No error could be measured: every group is a single row, so no rows could be held out inside the groups."
            )
        ]
    how = f"Measured on {count(errors.n_rows, 'row')} that were held out inside the groups"
    if not errors.is_rate:
        how += f", as the root of the mean squared error, in the unit of {name(model.target)}"
    clause, rest = ("", "") if model.estimator_.n_contexts_ == 1 else tell_gain(errors)
    gain = f"<strong>{clause}</strong>{rest} " if clause else ""
    return [paragraph(f"{gain}{how}."), paragraph(explain_intervals(errors), "note")]


def _steps_in_doubt(model: Any, n_notices: int) -> list[Html]:
    estimator, steps = model.estimator_, []
    if not estimator.converged_:
        steps.append(
            Html(
                "The fit has doubts about itself. Read <a href='#warnings'>the warnings</a> before you rely on the contexts."
            )
        )
    elif n_notices:
        steps.append(
            Html(
                f"Read <a href='#warnings'>{count(n_notices, 'remark')} on the data and the fit</a>."
            )
        )
    sure = estimator.probabilities_.max(1)
    unsure = np.argsort(sure, kind="stable")[: int((sure < SURE).sum())]
    if len(unsure) and model.group is not None:
        shown = join(
            (
                f"{name(estimator.groups_[i], 60)} ({show_share(sure[i])})"
                for i in unsure[:MOST_NAMES]
            ),
            ", ",
        )
        more = f" and {len(unsure) - MOST_NAMES:,} more" if len(unsure) > MOST_NAMES else ""
        steps.append(
            Html(
                f"Label a few more rows of the groups that are less than {show_share(SURE)} sure: {shown}{more}."
            )
        )
    return steps


def _steps_to_use(model: Any, place: str) -> list[Html]:
    """Commands to paste, and what has to be filled in."""
    folder = f" <code>{MODEL}</code>: the folder that the model is in." if place == MODEL else ""
    folder += (
        f" <code>{PICTURES}</code>: the folder with the pictures." if has_pictures(model) else ""
    )
    new = f"Fill in <code>{NEW}</code>: your table of rows to be answered"
    if count_used(model) == 1:
        use = command(write_command(model, "predict", place, NEW, "-o", ANSWERS))
        return [Html(f"Use it like any model:{use}{new}.{folder}")]
    identify = command(write_command(model, "identify", place, FEW))
    answer = command(write_command(model, "predict", place, NEW, "--support", FEW, "-o", ANSWERS))
    by = (
        ""
        if model.group is None
        else f", and with {name(model.group, 60)} where they are of several sources"
    )
    steps = [
        Html(
            "Find out what the groups of a context have in common, and give the contexts names: "
            "<a href='#contexts'>how they differ</a>, <a href='#groups'>which group is where</a>."
        ),
        Html(
            f"For a new source, have a few of its rows labelled. They tell its context, and with it the answers:{identify}{answer}"
            f"Fill in <code>{FEW}</code>: your table of these rows, with their {name(model.target, 60)}{by}; "
            f"<code>{NEW}</code>: your table of rows to be answered.{folder}"
        ),
    ]
    if model.group is None:
        return steps
    known = command(write_command(model, "predict", place, NEW, "--by-group", "-o", ANSWERS))
    return [
        *steps,
        Html(
            f"The groups on this page need no labelled rows:{known}{new}, with their {name(model.group, 60)}."
        ),
    ]
