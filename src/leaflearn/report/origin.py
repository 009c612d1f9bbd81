"""The section on how to do it again: the command, the versions, and a fingerprint of the rows."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from leaflearn.persistence.folder import LIBRARIES
from leaflearn.report.html_parts import command, opening, paragraph, table
from leaflearn.report.next_commands import DATA, MODEL, PICTURES, has_pictures, quote_path
from leaflearn.report.number_text import count
from leaflearn.report.safe_text import Html, from_text, join, name
from leaflearn.report.training_rows import TrainingRows


@dataclass(frozen=True)
class Origin:
    """Where a model and its table come from, as far as it is known.

    Parameters
    ----------
    model, data
        The names of the model folder and of the table.
    library
        Versions of the libraries that wrote the model.

    Examples
    --------
    >>> Origin().data
    'DATA.csv'
    """

    model: str = MODEL
    data: str = DATA
    library: Mapping[str, str] = field(default_factory=dict)


def tell_origin(model: Any, origin: Origin, rows: TrainingRows | None) -> Html:
    """How to do it again: the command, the versions, and a fingerprint of the rows.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from leaflearn.tabular.table_model import TableModel
    >>> model = TableModel("effect")
    >>> model.target_, model.local_model_, model.preparation_ = SimpleNamespace(task="regression"), "mlp", None
    >>> model.estimator_ = SimpleNamespace(outliers_=[False] * 40, _fingerprint="0123abcd")
    >>> "leaflearn fit DATA.csv --target effect --seed 0 -o MODEL" in tell_origin(model, Origin(), None)
    True
    """
    now = {
        "python": platform.python_version(),
        **{library: version(library) for library in LIBRARIES},
    }
    libraries = [
        [
            name(library),
            name(origin.library.get(library, "not known")),
            name(now.get(library, "not here")),
        ]
        for library in dict.fromkeys([*now, *origin.library])
    ]
    same = (
        ""
        if rows is None
        else " The table of this page has the same."
        if rows.is_same
        else " The table of this page has another."
    )
    return join(
        [
            paragraph(
                "The same table, options, seed and versions on the same machine give the same model:"
            ),
            command(" ".join(list_command(model, origin))),
            *_tell_what_to_fill_in(model, origin),
            paragraph(
                f"Seed: {model.random_state}. Task: {model.target_.task}. Local model: {name(model.local_model_)}."
            ),
            paragraph(
                f"Fingerprint of the {count(len(model.estimator_.outliers_), 'training row')} (SHA-256 of features, targets and groups): "
                f"<code class='long'>{from_text(model.estimator_._fingerprint)}</code>.{same}"
            ),
            opening(
                "Versions",
                table(
                    "Versions",
                    ["library", "the model was written with", "this page"],
                    libraries,
                    texts=(0, 1, 2),
                ),
            ),
        ]
    )


def list_command(model: Any, origin: Origin) -> list[str]:
    """The words of the command that fits the model again.

    Examples
    --------
    >>> from leaflearn.tabular.table_model import TableModel
    >>> model = TableModel("the effect", group="site", contexts=2)
    >>> model.preparation_ = None
    >>> " ".join(list_command(model, Origin()))
    "leaflearn fit DATA.csv --target 'the effect' --group site --contexts 2 --seed 0 -o MODEL"
    """
    options: list[tuple[str, Any]] = [
        ("--target", model.target),
        ("--group", model.group),
        ("--contexts", model.contexts if model.contexts != "auto" else None),
        ("--task", model.task if model.task != "auto" else None),
        ("--local-model", model.local_model),
        ("--features", _joined(model.features)),
        ("--drop", _joined(model.drop)),
        ("--images", model.images or (PICTURES if has_pictures(model) else None)),
        ("--image-column", model.image_column),
        ("--seed", model.random_state),
        ("-o", origin.model),
    ]
    words = [(option, shlex.quote(str(value))) for option, value in options if value is not None]
    return ["leaflearn", "fit", quote_path(origin.data), *(word for pair in words for word in pair)]


def _tell_what_to_fill_in(model: Any, origin: Origin) -> list[Html]:
    """Words in capitals stand for names that this page was not told."""
    told = [f"{DATA}: the training table"] if origin.data == DATA else []
    told += [f"{MODEL}: the folder of the model"] if origin.model == MODEL else []
    told += (
        [f"{PICTURES}: the folder with the pictures"]
        if has_pictures(model) and model.images is None
        else []
    )
    return (
        [
            paragraph(
                f"To be filled in, since this page was not told their names: {'; '.join(told)}.",
                "note",
            )
        ]
        if told
        else []
    )


def _joined(columns: Sequence[str] | None) -> str | None:
    return ",".join(columns) if columns else None
