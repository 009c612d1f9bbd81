"""A table model as a folder, and back: the estimator's own parts, and beside them what is known of the columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from leaflearn.estimators.loading import rebuild_estimator
from leaflearn.estimators.model_io import describe_estimator
from leaflearn.persistence import Model, pack_objects, read_model, unpack_objects, write_model
from leaflearn.tabular.held_out_errors import read_errors
from leaflearn.tabular.images import ImageFiles
from leaflearn.tabular.local_model_names import FROM_FILE, make_named
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.targets import Target

SECTION, PARTS = "preparation", "preparation.skops"
OPTIONS = (
    "target",
    "group",
    "contexts",
    "task",
    "local_model",
    "features",
    "drop",
    "image_column",
    "random_state",
)


def save_table_model(model: Any, folder: str | Path) -> None:
    """Write a fitted `TableModel` into a folder; see `TableModel.save`."""
    section, parts = describe_estimator(model.estimator_)
    prepare = model.preparation_
    about: dict[str, Any] = {
        "options": {name: _plain(getattr(model, name)) for name in OPTIONS},
        "local_model": model.local_model_,
        "target": asdict(model.target_),
        "pictures": asdict(prepare) if isinstance(prepare, ImageFiles) else None,
        "table": prepare.to_json() if isinstance(prepare, Preparation) else None,
        "rows": model.n_rows_,
        "group_sizes": model.group_sizes_.tolist(),
        "errors": None if model.errors_ is None else asdict(model.errors_),
        "warnings": model.warnings_,
    }
    if isinstance(prepare, Preparation):
        parts = {**parts, PARTS: pack_objects(prepare.parts, "the preparation of the columns")}
    write_model(folder, {"estimator": section, SECTION: about}, parts)


def load_table_model(
    make: Callable[..., Any], folder: str | Path, local_model: str | None = None
) -> Any:
    """Read a `TableModel` from a folder, into a new one that `make` makes; see `TableModel.load`."""
    model = read_model(folder)
    if SECTION not in model.sections:
        raise ValueError(
            f"'{folder}' holds an estimator that was not fitted to a table; load it in Python with leaflearn.load."
        )
    try:
        found = _rebuild(make, model)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(
            f"'{folder}' does not describe the columns of a table; save the model again, or get a fresh copy."
        ) from error
    found.estimator_ = rebuild_estimator(model, _factory(found, local_model))
    return found


def _rebuild(make: Callable[..., Any], model: Model) -> Any:
    """All but the estimator."""
    about = model.sections[SECTION]
    found = make(**about["options"])
    found.local_model_ = about["local_model"]
    found.target_ = Target(**about["target"])
    found.n_rows_, found.group_sizes_ = (
        int(about["rows"]),
        np.array(about["group_sizes"], dtype=np.intp),
    )
    found.errors_ = read_errors(about["errors"])
    found.warnings_ = _sentences(about.get("warnings", []))  # folders of before did not keep any
    if about["table"] is None:
        found.preparation_ = ImageFiles(**about["pictures"])
    else:
        found.preparation_ = Preparation.from_json(
            about["table"], unpack_objects(model.part(PARTS), PARTS)
        )
    return found


def _sentences(kept: Any) -> list[str]:
    if not isinstance(kept, list) or not all(isinstance(sentence, str) for sentence in kept):
        raise TypeError("warnings are a list of sentences")
    return kept


def _factory(model: Any, given: str | None) -> Any:
    """What makes the modules whose weights the folder holds; None for local models that it holds whole."""
    name = model.local_model_
    if name.startswith(FROM_FILE):
        if given is None:
            raise ValueError(
                f"The model was fitted with --local-model {name}, which is code and not in the folder; pass it again."
            )
        return make_named(given, model.target_.is_label)
    if given is not None:
        raise ValueError("The model keeps its own local models; leave --local-model out.")
    return make_named(name, model.target_.is_label) if name == "convnet" else None


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, list | tuple) else value
