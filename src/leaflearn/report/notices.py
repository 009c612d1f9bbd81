"""Everything that was odd about the data or the fit, each with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leaflearn.report.findings import count_used
from leaflearn.report.html_parts import paragraph
from leaflearn.report.number_text import count, show_share
from leaflearn.report.safe_text import Html, from_text, join, name, plain
from leaflearn.report.training_rows import TrainingRows
from leaflearn.tabular.preparation import Preparation

MOST_COLUMNS, MOST_ROWS = 12, 20
AGREE = 0.9  # of the groups, weighed by how clearly they tell: below, equally good starts disagree
SINGLE_ROWS = (
    "Every group has a single row",
    "Every group in ",
    "No column of groups was given",
)  # how warnings of these begin
DOUBTS = (
    "The fit may not be right",
    "The contexts may not be",
    "Half of the ",
    "The groups in ",
    "No two groups",
    SINGLE_ROWS[0],
)
OF_CELLS = ("as missing.", " is missing in ")  # what stands in warnings of single cells
ADVICE_ON_A_ROW = "Check these cells; if they are what they should be, nothing has to be done."
ADVICE_ON_A_FIT = "Follow the advice in the sentence, fit again, and write this page anew."


@dataclass(frozen=True)
class Notice:
    """What was odd, what to do, and whether it is about the fit itself.

    Examples
    --------
    >>> Notice(Html("Four rows have no target."), Html("Label them.")).is_about_the_fit
    False
    """

    what: Html
    advice: Html
    is_about_the_fit: bool = False


def collect_notices(model: Any, rows: TrainingRows | None) -> list[Notice]:
    """Of the fit first, then of the data; what was said during the fit is there where the model has kept it.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> estimator = SimpleNamespace(n_contexts_=1, usage_=np.ones(1), stability_=1.0, converged_=True, outliers_=np.array([True, False]))
    >>> model = SimpleNamespace(estimator_=estimator, preparation_=None, errors_=None, group_sizes_=np.array([2]))
    >>> [notice.what.split(" (")[0] for notice in collect_notices(model, None)]
    ['1 row']
    """
    kept = [str(sentence) for sentence in getattr(model, "warnings_", ())]
    told = list(dict.fromkeys([*kept, *([] if rows is None else rows.warnings)]))
    told = [
        sentence for sentence in told if not sentence.startswith("Columns were left out: ")
    ]  # that comes with advice
    found = [_from_sentence(sentence, bool(_single_rows(model))) for sentence in told]
    if not any(notice.is_about_the_fit for notice in found):
        found = [*_doubts(model), *found]
    found += _left_out(model) + (
        [] if any(sentence.startswith(SINGLE_ROWS) for sentence in kept) else _single_rows(model)
    )
    found += _outliers(model, rows) + _no_gain(model) + _other_rows(rows)
    return sorted(found, key=lambda notice: not notice.is_about_the_fit)


def tell_notices(notices: list[Notice]) -> Html:
    """The section on warnings.

    Examples
    --------
    >>> tell_notices([])
    '<p>Nothing was found to warn of.</p>'
    """
    if not notices:
        return paragraph("Nothing was found to warn of.")
    items = (
        f"<li{' class=doubt' if notice.is_about_the_fit else ''}><strong>{'The fit' if notice.is_about_the_fit else 'The data'}:</strong> "
        f"{notice.what} <span class='advice'>{notice.advice}</span></li>"
        for notice in notices
    )
    return Html(f"<ul class='notices'>{join(items)}</ul>")


def _from_sentence(sentence: str, is_of_single_rows: bool) -> Notice:
    """A warning in the words that the user saw, in which names of columns stand; contexts that were found in single rows are doubtful."""
    is_doubt = sentence.startswith(DOUBTS) or (
        is_of_single_rows and sentence.startswith(SINGLE_ROWS)
    )
    is_of_cells = any(words in sentence for words in OF_CELLS)
    advice = (
        ADVICE_ON_A_FIT if is_doubt else ADVICE_ON_A_ROW if is_of_cells else ""
    )  # all others say themselves what to do
    return Notice(Html(f"<bdi>{from_text(plain(sentence, 1000))}</bdi>"), Html(advice), is_doubt)


def _doubts(model: Any) -> list[Notice]:
    estimator = model.estimator_
    found = []
    if estimator.stability_ < AGREE:
        what = f"Starts that explain the groups equally well agree on {show_share(estimator.stability_)} of them only."
        found.append(
            Notice(Html(what), Html("Give more rows for each group, or more groups."), True)
        )
    if not estimator.converged_ and not found:
        what = "The checks at the end of the fit speak against the contexts: another allocation, or another number of contexts, may be right."
        auto = "" if model.contexts == "auto" else "<code>--contexts auto</code> or "
        advice = f"Fit again with {auto}another <code>--seed</code> and compare; the fit prints on the terminal what speaks against it."
        found.append(Notice(Html(what), Html(advice), True))
    return found


def _left_out(model: Any) -> list[Notice]:
    """Columns that were not learnt from, by reason."""
    if not isinstance(model.preparation_, Preparation):
        return []
    reasons: dict[str, list[str]] = {}
    for column in model.preparation_.columns:
        if column.kind == "nothing":
            reasons.setdefault(column.form, []).append(column.name)
    return [_left_out_for(reason, columns) for reason, columns in reasons.items()]


def _left_out_for(reason: str, columns: list[str]) -> Notice:
    shown = join((name(column, 60) for column in columns[:MOST_COLUMNS]), ", ")
    more = f" and {len(columns) - MOST_COLUMNS} more" if len(columns) > MOST_COLUMNS else ""
    what = f"{count(len(columns), 'column')} {'was' if len(columns) == 1 else 'were'} not learnt from ({from_text(reason)}): {shown}{more}."
    them = "it" if len(columns) == 1 else "them"
    return Notice(
        Html(what),
        Html(
            f"To learn from {them} nevertheless, name all columns to learn from with <code>--features</code>."
        ),
    )


def _single_rows(model: Any) -> list[Notice]:
    if model.estimator_.n_contexts_ == 1 or model.group_sizes_.max() > 1:
        return []
    return [
        Notice(
            Html("Every group is a single row, and single rows hardly tell contexts apart."),
            Html(
                "Name with <code>--group</code> a column of rows that belong together: annotator, site, session, device."
            ),
            True,
        )
    ]


def _outliers(model: Any, rows: TrainingRows | None) -> list[Notice]:
    places = np.flatnonzero(model.estimator_.outliers_)
    if not len(places):
        return []
    what = f"{count(len(places), 'row')} ({show_share(len(places) / len(model.estimator_.outliers_))}) of the training table"
    if rows is not None and rows.is_same:
        numbers = ", ".join(f"{rows.frame.index[i] + 1:,}" for i in places[:MOST_ROWS])
        what += f" (counted from 1: {numbers}{' and others' if len(places) > MOST_ROWS else ''})"
    what += " contradict the rest of their group or context, and taught nobody."
    return [
        Notice(Html(what), Html("They may be mislabelled, or in the wrong group; look at them."))
    ]


def _no_gain(model: Any) -> list[Notice]:
    errors = model.errors_
    if errors is None or count_used(model) == 1 or errors.contexts < errors.one_model:
        return []
    return [
        Notice(
            Html("On held-out rows the contexts answer no better than one model for all."),
            Html("Fit with <code>--contexts 1</code>, or give more rows for each group."),
            True,
        )
    ]


def _other_rows(rows: TrainingRows | None) -> list[Notice]:
    if rows is None or rows.is_same:
        return []
    return [
        Notice(
            Html(
                "The table that this page was written with is not the one that the model was fitted to: their fingerprints differ."
            ),
            Html(
                "Curves and examples are of the rows at hand; all else is of the fit. Give the training table to have both agree."
            ),
        )
    ]
