"""A report on a fitted table model: one HTML page, for readers who decide and readers who check.

The page loads nothing from the network, and its content security policy forbids it: only its own
style and script, identified by their hashes, and images inside the page are allowed.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from markupsafe import Markup

from leaflearn.persistence.atomic_files import write_file
from leaflearn.report.advice import Advice, python_advice
from leaflearn.report.column_curves import find_curves, find_drawn
from leaflearn.report.contexts import describe_contexts
from leaflearn.report.disagreement import (
    describe_disagreement,
    find_examples,
    find_image_examples,
)
from leaflearn.report.findings import describe_findings
from leaflearn.report.group_columns import (
    describe_association,
    describe_group_columns,
    find_associations,
    find_constant_columns,
    find_group_columns,
)
from leaflearn.report.groups import describe_groups
from leaflearn.report.informative_column import describe_difference
from leaflearn.report.kind_or_degree import describe_kind_or_degree
from leaflearn.report.learning import describe_learning, describe_n_contexts
from leaflearn.report.notices import collect_notices
from leaflearn.report.origin import Origin, describe_origin
from leaflearn.report.rendering import isolate, render
from leaflearn.report.training_rows import find_background, find_labelled_rows, read_training_rows
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.table_model import TableModel

N_CELLS = 4  # columns of an example


def _ignore(_: str) -> None:
    """Do nothing with the name of a stage."""


def write_report(
    model: TableModel,
    frame: Any,
    path: str | Path,
    *,
    origin: Origin | None = None,
    advice: Advice | None = None,
    on_stage: Callable[[str], None] = _ignore,
) -> None:
    """Write a page about a fitted model, completely or not at all.

    Parameters
    ----------
    model : TableModel
        Fitted or loaded.
    frame : pandas.DataFrame or None
        The training table. Without it the page shows what the model folder contains.
    path : str or path
        The file to write.
    origin : Origin, default=None
        Names and versions that say where the model and the table come from.
    advice : Advice, default=None
        Code and options that the page shows; by default those of Python.
    on_stage : callable
        Called with a few words on what is being done.

    Examples
    --------
    >>> import numpy, pandas, tempfile
    >>> from leaflearn.tabular.table_model import TableModel
    >>> dose = numpy.linspace(0.0, 4.0, 40)
    >>> table = pandas.DataFrame({"dose": dose, "effect": 2.0 * dose})
    >>> model = TableModel("effect", contexts=1, local_model="linear").fit(table)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, table, f"{folder}/report.html")
    ...     page = Path(f"{folder}/report.html").read_text(encoding="utf-8")
    >>> page.startswith("<!doctype html>"), page.count("<h1")
    (True, 1)
    """
    page = render_report(model, frame, origin or Origin(), advice=advice, on_stage=on_stage)
    write_file(Path(path), page.encode("utf-8", "replace"))


def render_report(
    model: TableModel,
    frame: Any,
    origin: Origin,
    *,
    advice: Advice | None = None,
    on_stage: Callable[[str], None] = _ignore,
) -> str:
    """The page as text; the parameters are those of `write_report`.

    Examples
    --------
    >>> import numpy, pandas
    >>> from leaflearn.tabular.table_model import TableModel
    >>> site, dose = numpy.arange(40) // 10, numpy.arange(40) % 10
    >>> table = pandas.DataFrame({"site": site, "dose": dose, "effect": 2.0 * dose})
    >>> model = TableModel("effect", "site", contexts=1, local_model="linear").fit(table)
    >>> '<h2 id="groups-heading">The groups</h2>' in render_report(model, None, Origin())
    True
    """
    advice = advice or python_advice(model)
    has_columns = isinstance(model.preparation_, Preparation)
    on_stage("reading the rows")
    what = "the table" if origin.data is None else f"'{origin.data}'"
    rows = read_training_rows(model, frame, what) if frame is not None and has_columns else None
    on_stage("comparing the contexts")
    X = find_background(model, rows)
    table = None if rows is None else rows.frame
    labelled = find_labelled_rows(model, rows) if has_columns else None
    several = len(find_drawn(model)) > 1
    left_out: frozenset[str] = frozenset()
    if labelled is not None and several:
        left_out = find_constant_columns(model, labelled.X, labelled.group)
    curves = []
    if X is not None and has_columns:
        curves = find_curves(model, X, table, labelled, left_out)
    own = find_group_columns(model, rows) if rows is not None else []
    associations = find_associations(model, own, X)
    columns = _select_columns(model, [curve.column for curve in curves]) if has_columns else []
    if has_columns:
        examples = [] if rows is None else find_examples(model, rows, columns)
    else:
        examples = find_image_examples(model)
    on_stage("drawing the charts")
    notices = collect_notices(model, rows, advice)
    difference = describe_difference(model, curves, X, isolate)
    disagreement = "Where the contexts disagree" if several else "What the prediction depends on"
    reasons = [describe_association(model, found) for found in associations if found.is_significant]
    kind_or_degree = describe_kind_or_degree(model, X) if has_columns else None
    groups_differ = "" if kind_or_degree is None else kind_or_degree["sentence"]
    sections = (
        ("found", "What was found", "findings.html",
         describe_findings(model, len(notices), difference, advice, reasons, groups_differ)),
        ("kind-or-degree", "Kind or degree", "kind_or_degree.html", kind_or_degree),
        ("contexts", "The contexts", "contexts.html", describe_contexts(model, curves, X)),
        ("disagreement", disagreement, "disagreement.html",
         describe_disagreement(model, curves, examples, columns)),
        ("group-columns", "What groups have in common", "group_columns.html",
         describe_group_columns(model, own, associations, X)),
        ("groups", "The groups", "groups.html", describe_groups(model)),
        ("learning", "How it was fitted", "learning.html", describe_learning(model)),
        ("selection", "How many contexts", "selection.html", describe_n_contexts(model)),
        ("warnings", "Warnings", "notices.html", {"notices": notices}),
        ("reproduce", "How to reproduce it", "origin.html",
         describe_origin(model, origin, rows, advice)),
    )  # fmt: skip
    style, script = _read("model_report.css"), _read("model_report.js")
    return render(
        "model_report.html",
        target=isolate(model.target, 60),
        group="" if model.group is None else isolate(model.group, 60),
        sections=[
            (identifier, heading, Markup(render(template, **values)))
            for identifier, heading, template, values in sections
            if values is not None
        ],
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        version=version("leaflearn"),
    )


def _select_columns(model: TableModel, informative: list[str]) -> list[str]:
    """The most informative columns; free text has no curve and comes after them."""
    used = dict.fromkeys(cast(Preparation, model.preparation_).feature_columns)
    return [*informative, *(column for column in used if column not in informative)][:N_CELLS]


def _read(file: str) -> str:
    return files("leaflearn.report").joinpath("templates", file).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    """How a content security policy identifies a style or a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
