"""`load`: an estimator from a model folder. No code in the folder is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from leaflearn.core.grouped_data import GroupedData
from leaflearn.effects.group_effects import GroupEffects, LogisticEffects
from leaflearn.engines.engine import choose_engine, suits_engine
from leaflearn.engines.fitted_state import FittedState
from leaflearn.estimators.classifier import LeafClassifier
from leaflearn.estimators.model_io import (
    ATTRIBUTES,
    CLASSES,
    FITTED,
    STATE,
    YOURS,
    rebuild_local_models,
)
from leaflearn.estimators.regressor import LeafRegressor
from leaflearn.persistence import (
    Model,
    expecting,
    from_json,
    read_model,
    table_from_json,
    unpack_arrays,
)
from leaflearn.persistence.values import Arrays

ADDED_PARAMETERS = ("group_effects",)  # since version 0.1.0, whose folders lack them
ESTIMATORS: dict[str, type[LeafClassifier] | type[LeafRegressor]] = {
    "LeafClassifier": LeafClassifier,
    "LeafRegressor": LeafRegressor,
}


def load(
    folder: str | Path, local_model: Any = None, **parameters: Any
) -> LeafClassifier | LeafRegressor:
    """Load an estimator that was saved with `save`; no code in the folder is run.

    Parameters
    ----------
    folder : str or path
        The folder.
    local_model : callable, default=None
        The factory of torch modules, where one was used: a folder holds their weights, and no code.
    **parameters
        Other parameters of the estimator, in place of the saved ones: objects of your own that are
        code, such as a loss or an optimizer; callbacks, which are never saved; or the `device` of
        this machine.

    Returns
    -------
    LeafRegressor or LeafClassifier
        It predicts like the one that was saved, and can be pruned, merged and updated like it.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import leaflearn
    >>> from sklearn.linear_model import LinearRegression
    >>> X, groups = np.arange(8.0)[:, None], np.repeat(np.arange(4), 2)
    >>> leaf = leaflearn.LeafRegressor(1, local_model=LinearRegression())
    >>> leaf = leaf.fit(X, 2 * X[:, 0], groups)
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     leaf.save(f"{parent}/model")
    ...     again = leaflearn.load(f"{parent}/model")
    >>> again.predict([[3.0]]).round(3)
    array([6.])
    """
    return rebuild_estimator(read_model(folder), local_model, **parameters)


def rebuild_estimator(
    model: Model, local_model: Any = None, **parameters: Any
) -> LeafClassifier | LeafRegressor:
    """The estimator of a model folder that was read; the arguments are those of `load`.

    Examples
    --------
    >>> rebuild_estimator(Model({}, {}, {}))
    Traceback (most recent call last):
    ...
    ValueError: The model folder holds no estimator; give one that an estimator's save wrote.
    """
    if "estimator" not in model.sections:
        raise ValueError(
            "The model folder holds no estimator; give one that an estimator's save wrote."
        )
    given = parameters if local_model is None else {"local_model": local_model, **parameters}
    section, arrays = model.sections["estimator"], unpack_arrays(model.part(FITTED), FITTED)
    with expecting("an estimator of leaflearn"):
        estimator = ESTIMATORS[section["class"]]()
        kind = section["local_models"]["kind"]
    _refuse_parameters(estimator, kind, given)
    estimator.set_params(**_read_parameters(estimator, kind, section, given))
    with expecting("an estimator of leaflearn"):
        if kind != "refit" and not suits_engine(estimator.local_model, kind):
            raise ValueError(f"local models of kind {kind!r} belong to another local_model")
        saved = {key: from_json(value, arrays, CLASSES) for key, value in section["fitted"].items()}
        attributes = {name: saved[key] for key, name in ATTRIBUTES.items() if key in saved}
        buffer = _rebuild_replay_buffer(section["memory"], arrays)
        shapes = attributes["n_features_in_"], tuple(attributes["input_shape_"])
    described = section["local_models"]
    local_models, inner = rebuild_local_models(estimator, *shapes, model, described, arrays)
    if kind == "refit":
        estimator.set_params(local_model=inner)
    with expecting("an estimator of leaflearn"):
        values = {name: saved[key] for key, name in STATE.items() if key in saved}
        _check_shapes(attributes, values, len(local_models.models), buffer)
        state = FittedState(
            local_models,
            history=attributes["history_"],
            restarts=attributes["restarts_"],
            best_restart=attributes["best_restart_"],
            converged=attributes["converged_"],
            stability=attributes["stability_"],
            init=attributes["init_"],
            selection=attributes["selection_"],
            context_order=attributes["context_order_"],
            replay_buffer=buffer,
            **values,
        )
        return estimator.restore(state, attributes)


def _refuse_parameters(
    estimator: LeafClassifier | LeafRegressor, kind: str, given: Mapping[str, Any]
) -> None:
    unknown = [name for name in given if name not in estimator.get_params(deep=False)]
    if unknown:
        raise ValueError(
            f"{unknown[0]} is no parameter of {type(estimator).__name__}; leave it out."
        )
    if "local_model" in given and kind != "module":
        raise ValueError(
            "local_model was given, but the folder holds the local models themselves; leave it out."
        )
    if "local_model" in given and choose_engine(given["local_model"]) != "module":
        raise ValueError(
            f"local_model={given['local_model']!r}, but a factory of torch modules was expected, "
            "the one of the fit."
        )


def _read_parameters(
    estimator: LeafClassifier | LeafRegressor,
    kind: str,
    section: Mapping[str, Any],
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """The saved parameters, or those that are given instead."""
    with expecting("an estimator of leaflearn"):
        saved = section["parameters"]
        names = [
            name
            for name in estimator.get_params(deep=False)
            if (name in saved or name not in ADDED_PARAMETERS)
            and name not in given
            and not (name == "local_model" and kind == "refit")
        ]
        missing = {
            name: saved[name][YOURS]
            for name in names
            if isinstance(saved[name], dict) and YOURS in saved[name]
        }
        found = {
            name: from_json(saved[name], None, CLASSES) for name in names if name not in missing
        }
    for name, what in missing.items():
        raise ValueError(
            f"The model was saved with {name}={what}, which is code and not in the folder; pass it "
            f"again: {name}=..."
        )
    return {**found, **given}


def _rebuild_replay_buffer(content: Any, arrays: Arrays) -> GroupedData | None:
    if content is None:
        return None
    fields = {name: from_json(value, arrays) for name, value in content.items() if name != "X"}
    return GroupedData(X=table_from_json(content["X"], arrays), **fields)


def _check_shapes(
    attributes: Mapping[str, Any],
    state: Mapping[str, Any],
    n_models: int,
    buffer: GroupedData | None,
) -> None:
    """Refuse a folder whose pieces do not fit together, before it gives wrong predictions."""
    m, K = len(attributes["groups_"]), attributes["n_contexts_"]
    expected = {
        **dict.fromkeys(("contexts_", "sizes", "is_unexplained"), (m,)),
        **dict.fromkeys(("scores", "probabilities_"), (m, K)),
        **dict.fromkeys(("usage_", "context_order_"), (K,)),
    }
    values = {**attributes, **state}
    for name, shape in expected.items():
        if values[name].shape != shape:
            raise ValueError(f"{name} is not of shape {shape}")
    known = attributes.get("input_range_")  # None in older folders, and of images
    if known is not None and known.shape != (2, attributes["n_features_in_"]):
        raise ValueError("input_range_ does not have two numbers for each input")
    if state.get("effects") is not None:
        _check_effects(state["effects"], m, K)
    n_held_out = len(state["held_out"].losses)
    if not n_models == n_held_out == K >= 1 or _outside(attributes["contexts_"], K):
        raise ValueError(f"there are not {K} contexts")
    if buffer is not None:
        lengths = {buffer.X.shape[0], len(buffer.y), len(buffer.row)}
        if lengths != {len(buffer.group)} or _outside(buffer.group, m):
            raise ValueError("replay_buffer_ holds rows of other groups")


def _check_effects(effects: GroupEffects, m: int, K: int) -> None:
    D, q = effects.noise.shape[1], len(effects.columns)
    expected = {
        "roots": (K, D, q, q),
        "noise": (K, D),
        "priors": (K,),
        "effects": (m, K, D, q),
        "products": (m, K, D, q, q) if isinstance(effects, LogisticEffects) else (m, q, q),
        "sums": (m, K, D, q + 1),
    }
    for name, shape in expected.items():
        values = getattr(effects, name)
        if values is not None and values.shape != shape:
            raise ValueError(f"{name} is not of shape {shape}")


def _outside(numbers: Any, end: int) -> bool:
    return bool(np.any((numbers < 0) | (numbers >= end)))
