"""A table model as a folder: the parts of the estimator, and what is known about the columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from leaflearn.estimators.loading import rebuild_estimator
from leaflearn.estimators.model_io import describe_estimator
from leaflearn.messages import (
    LocalModelCodeMissing,
    LocalModelInFolder,
    Message,
    MessageError,
    message_from_json,
    message_to_json,
)
from leaflearn.persistence import Model, pack_objects, read_model, unpack_objects, write_model
from leaflearn.tabular.fitting import FittedTable
from leaflearn.tabular.held_out import read_errors
from leaflearn.tabular.images import ImageFiles
from leaflearn.tabular.local_model_names import FROM_FILE, make_named
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.targets import Target
from leaflearn.tabular.unfamiliar_rows import TrainingValues

if TYPE_CHECKING:
    from leaflearn.tabular.table_model import TableModel

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

Made = TypeVar("Made")


def save_table_model(model: TableModel, folder: str | Path) -> None:
    """Write a fitted `TableModel` into a folder; see `TableModel.save`."""
    section, parts = describe_estimator(model.estimator_)
    prepare, known = model.preparation_, model.training_values_
    about: dict[str, Any] = {
        "options": {name: _plain(getattr(model, name)) for name in OPTIONS},
        "local_model": model.local_model_,
        "target": asdict(model.target_),
        "pictures": asdict(prepare) if isinstance(prepare, ImageFiles) else None,
        "table": prepare.to_json() if isinstance(prepare, Preparation) else None,
        "rows": model.n_rows_,
        "group_sizes": model.group_sizes_.tolist(),
        "errors": None if model.errors_ is None else asdict(model.errors_),
        "training_values": None if known is None else known.to_json(),
        "warnings": [message_to_json(message) for message in model.warnings_],
    }
    if isinstance(prepare, Preparation):
        parts = {**parts, PARTS: pack_objects(prepare.parts, "the preparation of the columns")}
    write_model(folder, {"estimator": section, SECTION: about}, parts)


def load_table_model(
    make: Callable[..., Made], folder: str | Path, local_model: str | None = None
) -> tuple[Made, FittedTable, list[Message]]:
    """Read a `TableModel` from a folder; see `TableModel.load`.

    Returns `make(**options)` with the saved options, what was fitted, and the warnings of the fit.
    """
    model = read_model(folder)
    if SECTION not in model.sections:
        raise ValueError(
            f"'{folder}' holds an estimator that was not fitted to a table; load it in Python with "
            "leaflearn.load."
        )
    try:
        unfitted = make(**model.sections[SECTION]["options"])
        state, messages = _read_state(model)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(
            f"'{folder}' does not describe the columns of a table; save the model again, or get a "
            "fresh copy."
        ) from error
    factory = _find_factory(state["local_model"], state["target"].is_label, local_model)
    return unfitted, FittedTable(rebuild_estimator(model, factory), **state), messages


def _read_state(model: Model) -> tuple[dict[str, Any], list[Message]]:
    """The fields of a `FittedTable` without the estimator, and the warnings of the fit."""
    about = model.sections[SECTION]
    preparation: Preparation | ImageFiles
    if about["table"] is None:
        preparation = ImageFiles(**about["pictures"])
    else:
        parts = unpack_objects(model.part(PARTS), PARTS)
        preparation = Preparation.from_json(about["table"], parts)
    known = about.get("training_values")  # older folders have none
    state = {
        "preparation": preparation,
        "target": Target(**about["target"]),
        "local_model": about["local_model"],
        "errors": read_errors(about["errors"]),
        "group_sizes": np.array(about["group_sizes"], dtype=np.intp),
        "n_rows": int(about["rows"]),
        "training_values": None if known is None else TrainingValues.from_json(known),
    }
    return state, _read_messages(about.get("warnings", []))  # older folders may have none


def _read_messages(saved: Any) -> list[Message]:
    if not isinstance(saved, list):
        raise TypeError("warnings are a list")
    return [message_from_json(content) for content in saved]


def _find_factory(name: str, is_classifier: bool, given: str | None) -> Any:
    """The factory of the networks whose weights the folder holds; None for other local models."""
    if name.startswith(FROM_FILE):
        if given is None:
            raise MessageError(LocalModelCodeMissing(name))
        return make_named(given, is_classifier)
    if given is not None:
        raise MessageError(LocalModelInFolder())
    return make_named(name, is_classifier) if name == "convnet" else None


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, list | tuple) else value
