"""The section on the groups: a table with the context of each, and how certain it is.

All groups are on the page as JSON, and the page's script sorts, searches and shows some of them at
a time. Without a script the first ones are shown. The least certain groups come first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup
from numpy.typing import NDArray

from leaflearn.report.formatting import count, natural_key, show_number, show_share
from leaflearn.report.rendering import isolate, plain
from leaflearn.tabular.table_model import TableModel

N_SHOWN = 50  # rows that are shown at once
MAX_GROUPS = 20_000
MAX_BYTES = 1_500_000  # of the JSON; names are shortened until it fits
NAME_LENGTHS = (200, 50, 12)
COLUMNS = ("group", "context", "probability", "margin", "rows")
JSON_STYLE: dict[str, Any] = {
    "ensure_ascii": False,
    "allow_nan": False,
    "separators": (",", ":"),
}


def describe_groups(model: TableModel) -> dict[str, Any]:
    """The values of `groups.html`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> fitted = {"contexts_": np.array([0, 0]), "probabilities_": np.ones((2, 1))}
    >>> fitted |= {"groups_": np.array(["a", "b"]), "n_contexts_": 1}
    >>> state = SimpleNamespace(scores=np.ones((2, 1)), evidence_unit=1.0)
    >>> estimator = SimpleNamespace(**fitted, fitted_state_=state)
    >>> model = SimpleNamespace(estimator_=estimator, group_sizes_=np.array([7, 8]))
    >>> describe_groups(model)["rows"][1]
    {'group': '\\u2068b\\u2069', 'context': 0, 'numbers': ['100\\xa0%', '∞', '8']}
    """
    listed = list_groups(model)
    n_listed, m = len(listed["group"]), len(model.estimator_.groups_)
    n_shown = min(n_listed, N_SHOWN)
    note = f" Of {count(m, 'group')}, the {n_listed:,} least certain ones are listed."
    return {
        "note": "" if n_listed == m else note,
        "columns": COLUMNS,
        "contexts": range(model.estimator_.n_contexts_),
        "shown": f"{count(n_shown, 'group')} of {n_listed:,}",
        "rows": [_describe_row(listed, i) for i in range(n_shown)],
        "json": _to_json(listed),
    }


def list_groups(model: TableModel) -> dict[str, list[Any]]:
    """The columns of the table, the least certain group first; an infinite margin is None.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> scores = np.array([[0.0, 2.0], [1.0, 0.0]])
    >>> fitted = {"probabilities_": np.array([[0.88, 0.12], [0.27, 0.73]])}
    >>> fitted |= {"groups_": np.array(["a", "b"]), "contexts_": np.array([0, 1])}
    >>> state = SimpleNamespace(scores=scores, evidence_unit=1.0)
    >>> estimator = SimpleNamespace(**fitted, fitted_state_=state)
    >>> model = SimpleNamespace(estimator_=estimator, group_sizes_=np.array([7, 8]))
    >>> list_groups(model)["group"], list_groups(model)["margin"]
    (['b', 'a'], [1.0, 2.0])
    """
    estimator = model.estimator_
    state = estimator.fitted_state_
    margin = find_margins(state.scores / state.evidence_unit)
    names = [str(group) for group in estimator.groups_.tolist()]
    keys = [(margin[i], natural_key(name)) for i, name in enumerate(names)]
    order = sorted(range(len(names)), key=lambda i: keys[i])[:MAX_GROUPS]
    return {
        "group": [names[i] for i in order],
        "context": [int(estimator.contexts_[i]) for i in order],
        "probability": [math.floor(1e5 * estimator.probabilities_[i].max()) / 1e5 for i in order],
        "margin": [float(f"{margin[i]:.4g}") if np.isfinite(margin[i]) else None for i in order],
        "rows": [int(model.group_sizes_[i]) for i in order],
    }


def find_margins(evidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """The log-probability of the best context minus that of the second, shape (m,).

    Parameters
    ----------
    evidence
        Negative log-likelihoods of the groups under the contexts, (m, K).

    Examples
    --------
    >>> find_margins(np.array([[0.0, 900.0, 950.0]])).tolist()
    [900.0]
    >>> find_margins(np.array([[3.0]])).tolist()
    [inf]
    """
    if evidence.shape[1] == 1:
        return np.full(len(evidence), np.inf)
    first, second = np.partition(evidence, 1, axis=1)[:, :2].T
    return np.asarray(second - first)


def _describe_row(listed: dict[str, list[Any]], i: int) -> dict[str, Any]:
    margin = listed["margin"][i]
    numbers = [
        show_share(listed["probability"][i]),
        show_number(np.inf if margin is None else margin),
        f"{listed['rows'][i]:,}",
    ]
    group, context = isolate(listed["group"][i]), listed["context"][i]
    return {"group": group, "context": context, "numbers": numbers}


def _to_json(listed: dict[str, list[Any]]) -> Markup:
    """The table as JSON that can stand inside a page, with names as long as there is room for."""
    for longest in NAME_LENGTHS:
        names = [plain(group, longest) for group in listed["group"]]
        content = htmlsafe_json_dumps({**listed, "group": names}, **JSON_STYLE)
        if len(content.encode("utf-8", "replace")) <= MAX_BYTES:
            break
    return content
