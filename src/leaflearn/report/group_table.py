"""The table of groups: which context each is in, and how sure that is. The page's script sorts and searches it.

All groups are in the page as JSON, and the script shows some of them at a time; without a script the first ones are there. The least sure
come first.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.report.html_parts import context_mark, paragraph
from leaflearn.report.number_text import SPACE, count, show_number, show_share
from leaflearn.report.safe_text import Html, embed_json, from_text, join, name, plain

AT_ONCE = 50  # rows that are shown
MOST_GROUPS = 20_000
MOST_BYTES = 1_500_000  # of the JSON; names are cut shorter where it would be more
LENGTHS = (200, 50, 12)  # characters of a name
COLUMNS = ("group", "context", "probability", "margin", "rows")
EXPLANATION = (
    "Probability: how sure the context is, given the rows of the group. Margin: by how much log-probability it is ahead of the "
    f"second; above 3 it is at least 95{SPACE}% sure between the two. The least sure come first."
)


def tell_groups(model: Any) -> Html:
    """The section on the groups.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> groups = {"groups_": np.array(["a", "b"]), "contexts_": np.array([0, 0]), "probabilities_": np.ones((2, 1)), "n_contexts_": 1}
    >>> estimator = SimpleNamespace(**groups, _scores=np.ones((2, 1)), _evidence_unit=1.0)
    >>> model = SimpleNamespace(estimator_=estimator, group_sizes_=np.array([7, 8]))
    >>> "<bdi>b</bdi>" in tell_groups(model)
    True
    """
    listed = list_groups(model)
    shown, m = len(listed["group"]), len(model.estimator_.groups_)
    note = (
        "" if shown == m else f" Of {count(m, 'group')}, the {shown:,} least sure ones are listed."
    )
    return join(
        [
            paragraph(f"{EXPLANATION}{note}"),
            _controls(model),
            _shown_groups(listed),
            _pages(),
            _data(listed),
        ]
    )


def list_groups(model: Any) -> dict[str, list[Any]]:
    """The columns of the table, the least sure group first; an infinite margin is None.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> scores, probabilities = np.array([[0.0, 2.0], [1.0, 0.0]]), np.array([[0.88, 0.12], [0.27, 0.73]])
    >>> groups = {"groups_": np.array(["a", "b"]), "contexts_": np.array([0, 1]), "probabilities_": probabilities}
    >>> model = SimpleNamespace(estimator_=SimpleNamespace(**groups, _scores=scores, _evidence_unit=1.0), group_sizes_=np.array([7, 8]))
    >>> list_groups(model)["group"], list_groups(model)["margin"]
    (['b', 'a'], [1.0, 2.0])
    """
    estimator = model.estimator_
    margin = find_margins(estimator._scores / estimator._evidence_unit)
    names = [str(group) for group in estimator.groups_.tolist()]
    order = sorted(range(len(names)), key=lambda i: (margin[i], _natural(names[i])))[:MOST_GROUPS]
    return {
        "group": [names[i] for i in order],
        "context": [int(estimator.contexts_[i]) for i in order],
        "probability": [math.floor(1e5 * estimator.probabilities_[i].max()) / 1e5 for i in order],
        "margin": [float(f"{margin[i]:.4g}") if np.isfinite(margin[i]) else None for i in order],
        "rows": [int(model.group_sizes_[i]) for i in order],
    }


def find_margins(evidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much log-probability the best context is ahead of the second, from minus the log-likelihoods (m, K); shape (m,).

    Examples
    --------
    >>> find_margins(np.array([[0.0, 900.0, 950.0]])).tolist(), find_margins(np.array([[3.0]])).tolist()
    ([900.0], [inf])
    """
    if evidence.shape[1] == 1:
        return np.full(len(evidence), np.inf)
    first, second = np.partition(evidence, 1, axis=1)[:, :2].T
    return np.asarray(second - first)


def _natural(text: str) -> list[tuple[int, str]]:
    """Group 2 before group 10."""
    return [
        (int(piece), "") if piece.isdecimal() else (-1, piece)
        for piece in re.split(r"(\d+)", text[:100])
    ]


def _fit_into_page(listed: dict[str, list[Any]]) -> Html:
    """As JSON, with names as long as there is room for."""
    for most in LENGTHS:
        content = embed_json({**listed, "group": [plain(group, most) for group in listed["group"]]})
        if len(content.encode("utf-8", "replace")) <= MOST_BYTES:
            break
    return content


def _shown_groups(listed: dict[str, list[Any]]) -> Html:
    shown = min(len(listed["group"]), AT_ONCE)
    head, body = (
        join(_head_cell(column) for column in COLUMNS),
        join(_row(listed, i) for i in range(shown)),
    )
    return Html(
        f"<p id='group-count' role='status'>{count(shown, 'group')} of {len(listed['group']):,}</p>"
        "<div class='wide' role='region' tabindex='0' aria-label='Groups and their contexts'><table id='group-table'>"
        f"<caption>Groups and their contexts</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _pages() -> Html:
    return Html(
        "<p class='pages needs-script' hidden><button type='button' id='previous'>Previous</button> <span id='page-number'></span> "
        "<button type='button' id='next'>Next</button></p>"
    )


def _data(listed: dict[str, list[Any]]) -> Html:
    return Html(
        f"<script type='application/json' id='group-data'>{_fit_into_page(listed)}</script>"
    )


def _controls(model: Any) -> Html:
    options = join(
        f"<option value='{k}'>context {k}</option>" for k in range(model.estimator_.n_contexts_)
    )
    return Html(
        "<form class='controls needs-script' hidden role='search' aria-label='Groups'>"
        "<div><label for='find'>Find a group</label><input type='search' id='find' autocomplete='off'></div>"
        f"<div><label for='in-context'>Context</label><select id='in-context'><option value=''>all</option>{options}</select></div></form>"
    )


def _head_cell(column: str) -> Html:
    sort = " aria-sort='ascending'" if column == "margin" else ""
    kind = "" if column in ("group", "context") else " class='number'"
    return Html(
        f"<th scope='col'{kind}{sort}><button type='button' data-column='{column}'>{from_text(column)}</button></th>"
    )


def _row(listed: dict[str, list[Any]], i: int) -> Html:
    margin = listed["margin"][i]
    numbers = (
        show_share(listed["probability"][i]),
        show_number(np.inf if margin is None else margin),
        f"{listed['rows'][i]:,}",
    )
    cells = join(f"<td class='number'>{cell}</td>" for cell in numbers)
    return Html(
        f"<tr><th scope='row'>{name(listed['group'][i])}</th><td>{context_mark(listed['context'][i])}</td>{cells}</tr>"
    )
