"""A report on a fitted table model: one page in one file, for whoever decides and for whoever checks.

The page asks nothing of the network, and forbids itself to: its policy allows its own style and its own script, known by their hashes,
and pictures that it holds itself.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from leaflearn.persistence.atomic_files import write_file
from leaflearn.report.column_curves import find_curves, find_drawn
from leaflearn.report.context_words import tell_contexts
from leaflearn.report.disagreement import tell_disagreement
from leaflearn.report.example_rows import find_examples, find_pictures
from leaflearn.report.findings import tell_findings
from leaflearn.report.group_table import tell_groups
from leaflearn.report.how_many import describe_selection
from leaflearn.report.html_parts import section
from leaflearn.report.learning import tell_learning
from leaflearn.report.notices import collect_notices, tell_notices
from leaflearn.report.origin import Origin, tell_origin
from leaflearn.report.safe_text import Html, from_text, isolated, join, name
from leaflearn.report.telling_column import tell_difference
from leaflearn.report.training_rows import find_background, read_training_rows
from leaflearn.tabular.preparation import Preparation

N_CELLS = 4  # of an example: the columns on which the contexts part most


def _ignore(_: Any) -> None:
    """Who has nothing to show need not be told."""


def write_report(
    model: Any, frame: Any, path: str | Path, *, origin: Origin | None = None, on_stage: Callable[[str], None] = _ignore
) -> None:  # fmt: skip
    """Write a page about a fitted model, whole or not at all.

    Parameters
    ----------
    model : TableModel
        Fitted or loaded.
    frame : pandas.DataFrame or None
        The training table. Without it the page tells what the model folder knows.
    path : str or path
        Where to.
    origin : Origin
        Names and versions to tell how the model came about.
    on_stage : callable
        Told in a few words what is being done.

    Examples
    --------
    >>> import pandas, tempfile
    >>> from leaflearn.tabular.table_model import TableModel
    >>> table = pandas.DataFrame({"dose": [0.1 * i for i in range(40)], "effect": [2.0 * i for i in range(40)]})
    >>> model = TableModel("effect", contexts=1, local_model="linear").fit(table)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, table, f"{folder}/report.html")
    ...     page = Path(f"{folder}/report.html").read_text(encoding="utf-8")
    >>> page.startswith("<!doctype html>"), page.count("<h1")
    (True, 1)
    """
    write_file(
        Path(path),
        render_report(model, frame, origin or Origin(), on_stage).encode("utf-8", "replace"),
    )


def render_report(
    model: Any, frame: Any, origin: Origin, on_stage: Callable[[str], None] = _ignore
) -> str:
    """The page as text; the arguments are those of `write_report`.

    Examples
    --------
    >>> import pandas
    >>> from leaflearn.tabular.table_model import TableModel
    >>> table = pandas.DataFrame({"site": [i // 10 for i in range(40)], "dose": [i % 10 for i in range(40)]})
    >>> model = TableModel("dose2", "site", contexts=1, local_model="linear").fit(table.assign(dose2=2.0 * table.dose))
    >>> "<h2 id='groups-heading'>The groups</h2>" in render_report(model, None, Origin())
    True
    """
    on_stage("reading the rows")
    is_of_columns = isinstance(model.preparation_, Preparation)
    what = "the table" if origin == Origin() else f"'{origin.data}'"
    rows = read_training_rows(model, frame, what) if frame is not None and is_of_columns else None
    on_stage("asking the contexts")
    X = find_background(model, rows)
    curves = (
        find_curves(model, X, None if rows is None else rows.frame)
        if X is not None and is_of_columns
        else []
    )
    columns = _choose_columns(model, [curve.column for curve in curves])
    examples = (
        find_pictures(model)
        if not is_of_columns
        else []
        if rows is None
        else find_examples(model, rows, columns)
    )
    on_stage("drawing")
    notices = collect_notices(model, rows)
    sections = {
        ("found", "What was found"): tell_findings(
            model, len(notices), tell_difference(model, curves, X, name), origin.model
        ),
        ("contexts", "The contexts"): tell_contexts(model, curves, X),
        ("disagreement", _name_disagreement(model)): tell_disagreement(
            model, curves, examples, columns
        ),
        ("groups", "The groups"): tell_groups(model),
        ("learning", "How it was learnt"): tell_learning(model),
        ("selection", "How many contexts"): describe_selection(model),
        ("warnings", "Warnings"): tell_notices(notices),
        ("reproduce", "How to do it again"): tell_origin(model, origin, rows),
    }
    return _lay_out(model, sections)


def _choose_columns(model: Any, telling: list[str]) -> list[str]:
    """The most telling columns; free text has no curve, and comes after them."""
    if not isinstance(model.preparation_, Preparation):
        return []
    used = dict.fromkeys(model.preparation_.feature_columns)
    return [*telling, *(column for column in used if column not in telling)][:N_CELLS]


def _name_disagreement(model: Any) -> str:
    return (
        "Where the contexts disagree"
        if len(find_drawn(model.estimator_)) > 1
        else "What the answer depends on"
    )


def _lay_out(model: Any, sections: dict[tuple[str, str], Html]) -> str:
    style, script = _read("model_report.css"), _read("model_report.js")
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; base-uri 'none'; form-action 'none'"
    group = "" if model.group is None else f" by {isolated(model.group, 60)}"
    links = join(
        f"<li><a href='#{identifier}'>{from_text(heading)}</a></li>"
        for identifier, heading in sections
    )
    body = join(
        section(identifier, heading, content) for (identifier, heading), content in sections.items()
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{from_text(f"Contexts in {isolated(model.target, 60)}{group}")}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#found">To the findings</a>
<header><p class="kind">Report on a fitted model</p>
<h1>Contexts in {name(model.target, 60)}{"" if model.group is None else f" by {name(model.group, 60)}"}</h1>
<button type="button" id="theme" class="needs-script" hidden>Dark page</button></header>
<nav aria-label="Contents"><ul>{links}</ul></nav>
<main>
{body}
</main>
<footer><p>Written by leaflearn {from_text(version("leaflearn"))}.</p></footer>
<script>{script}</script>
</body>
</html>
"""


def _read(file: str) -> str:
    return files("leaflearn.report").joinpath(file).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    """How the policy of a page names a style or a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
