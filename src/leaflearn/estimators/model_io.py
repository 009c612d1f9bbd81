"""Estimators in a model folder: the section of `model.json`, and the parts beside it.

`describe_estimator` is the way in, `leaflearn.estimators.loading` the way back. Local models are
stored by kind:

mlp      weights in safetensors; the network is built again from its widths
module   weights in safetensors; the factory is code, so that `load` has to be given it again
refit    scikit-learn models, and the unfitted one that they are copies of, in skops
closed_form  coefficients and features, as arrays; boosted trees by skops
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from leaflearn.core.allocation import Annealed, Hard, Sampled, Soft
from leaflearn.core.grouped_data import GroupedData
from leaflearn.core.losses import LOSSES
from leaflearn.effects.group_effects import GroupEffects, LogisticEffects
from leaflearn.engines.boosting import BoostedColumns
from leaflearn.engines.closed_form import ClosedFormModels
from leaflearn.engines.engine import suits_engine
from leaflearn.engines.local_models import LocalModels, NetworkModels, RefittedModels, Scaling
from leaflearn.engines.networks import mlp
from leaflearn.engines.novelty import HeldOut
from leaflearn.engines.parameters import Parameters
from leaflearn.engines.recipe import resolve_device, seeded
from leaflearn.engines.refit_task import ClassRowLoss, Fitted, SquaredRowLoss
from leaflearn.moments.features import FeatureMap
from leaflearn.persistence import (
    Model,
    expecting,
    from_json,
    pack_arrays,
    pack_objects,
    pack_tensors,
    table_to_json,
    to_json,
    unpack_objects,
    unpack_tensors,
)
from leaflearn.persistence.values import Arrays

if TYPE_CHECKING:
    from leaflearn.estimators.base import BaseLeaf

FITTED = "fitted.safetensors"  # the larger fitted arrays, and the rows of the replay buffer
WEIGHTS, SKOPS = "weights.safetensors", "local-models.skops"
YOURS = "$yours"  # an object of the user's that is code, and has to be passed again
ESTIMATORS = ("LeafRegressor", "LeafClassifier")

# Attributes in a folder, by their names there; not every estimator has all of them.
ATTRIBUTES = {
    name: name
    for name in (
        *("n_features_in_", "feature_names_in_", "classes_", "groups_"),
        *("n_contexts_", "contexts_", "probabilities_", "usage_", "context_order_"),
        *("history_", "restarts_", "best_restart_", "n_iter_", "init_", "selection_"),
        *("converged_", "stability_", "empirical_error_", "outliers_"),
        *("priors_", "noise_", "effect_variances_", "group_effects_", "input_range_"),
    )
} | {"_input_shape": "input_shape_", "_y_shape": "y_shape_", "_fingerprint": "fingerprint_"}
# The rest of the fitted state, likewise.
STATE = {
    "_constant_loss": "constant_loss",
    "_temperature": "temperature",
    "_sizes": "sizes",
    "_is_aside": "is_unexplained",
    "_scores": "scores",
    "_held_out": "held_out",
    "_effects": "effects",
}
# Classes of leaflearn that parameters and the fitted state may contain.
CLASSES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *(Hard, Soft, Sampled, Annealed),
        *LOSSES.values(),
        *(Scaling, HeldOut, SquaredRowLoss, ClassRowLoss),
        *(FeatureMap, GroupEffects, LogisticEffects),
    )
}


def describe_estimator(estimator: BaseLeaf) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The section and the parts of a fitted `LeafRegressor` or `LeafClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from leaflearn import LeafRegressor
    >>> X, groups = np.arange(8.0)[:, None], np.repeat(np.arange(4), 2)
    >>> leaf = LeafRegressor(1, local_model=LinearRegression()).fit(X, X[:, 0], groups)
    >>> section, parts = describe_estimator(leaf)
    >>> section["class"], sorted(parts)
    ('LeafRegressor', ['fitted.safetensors', 'local-models.skops'])
    """
    check_is_fitted(estimator, "local_models_")
    name = type(estimator).__name__
    if name not in ESTIMATORS or not type(estimator).__module__.startswith("leaflearn."):
        raise ValueError(
            f"{name} is a class of your own, but only {' and '.join(ESTIMATORS)} can be saved; fit "
            "one of these."
        )
    arrays: Arrays = {}
    local_models, parts = describe_local_models(estimator, arrays)
    attributes = vars(estimator)
    fitted = {key: attributes[name] for key, name in ATTRIBUTES.items() if name in attributes}
    fitted |= {key: getattr(estimator.fitted_state_, name) for key, name in STATE.items()}
    n_rows, n_groups = len(estimator.outliers_), len(estimator.groups_)
    section = {
        "class": name,
        "parameters": _describe_parameters(estimator),
        "data": {"rows": n_rows, "groups": n_groups, "sha256": estimator.fingerprint_},
        "fitted": {key: to_json(value, arrays, CLASSES, key) for key, value in fitted.items()},
        "memory": _describe_replay_buffer(estimator.replay_buffer_, arrays),
        "local_models": local_models,
    }
    return section, {**parts, FITTED: pack_arrays(arrays)}


def _describe_parameters(estimator: BaseLeaf) -> dict[str, Any]:
    """The parameters without callbacks, which belong to a run and not to a model."""
    parameters = {**estimator.get_params(deep=False), "callbacks": None}
    return {key: describe_object(value) for key, value in parameters.items()}


def _describe_replay_buffer(rows: GroupedData | None, arrays: Arrays) -> dict[str, Any] | None:
    if rows is None:
        return None
    try:
        content = {
            key: to_json(value, arrays, name=f"memory_.{key}")
            for key, value in vars(rows).items()
            if key != "X"
        }
        return {**content, "X": table_to_json(rows.X, arrays, "memory_.X")}
    except ValueError as error:
        raise ValueError(
            f"{str(error).replace('memory_', 'replay_buffer_')} Or set replay_buffer_ to None: then"
            " no training rows are saved, and the model cannot be updated."
        ) from None


# ---- local models --------------------------------------------------------------------------------


def describe_local_models(
    estimator: BaseLeaf, arrays: Arrays
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The description of an estimator's local models, and the part that holds them."""
    local_models = estimator.fitted_state_.local_models
    kind = _kind_of(local_models)
    if not suits_engine(estimator.local_model, kind):
        raise ValueError(
            "local_model was changed after the fit, and no longer belongs to the local models; fit "
            "again before saving."
        )
    if isinstance(local_models, RefittedModels):
        content = {"local_model": estimator.local_model, "fitted": local_models.models}
        n_rows = [each.n_rows for each in local_models.fitted]
        section = {"n_rows": n_rows, **_fields(local_models, "row_losses", "n_classes")}
        described = {"kind": kind, **to_json(section, arrays, CLASSES, "local_models")}
        return described, {SKOPS: pack_objects(content, "local_model")}
    if isinstance(local_models, ClosedFormModels):
        section = _fields(local_models, "features", "coefficients", "scale", "n_classes")
        described = {"kind": kind, **to_json(section, arrays, CLASSES, "local_models")}
        if local_models.boosted is None:
            return described, {}
        trees = {"boosted": list(local_models.boosted.models)}
        return described, {SKOPS: pack_objects(trees, "local_model")}
    assert isinstance(local_models, NetworkModels)
    first = local_models.models[0]
    if local_models.is_classifier:
        n_outputs = len(vars(estimator)["classes_"])
    else:
        n_outputs = math.prod(vars(estimator)["y_shape_"])
    widths = [layer.out_features for layer in first.children() if isinstance(layer, nn.Linear)]
    section = {
        "n_models": len(local_models.models),
        "n_outputs": n_outputs,
        "hidden": widths[:-1] if kind == "mlp" else None,
        "channels_last": any(p.ndim == 4 and not p.is_contiguous() for p in first.parameters()),
        **_fields(local_models, "x_scaling", "y_scaling", "is_classifier"),
    }
    described = {
        "kind": kind,
        "loss": describe_object(local_models.loss),
        **to_json(section, arrays, CLASSES, "local_models"),
    }
    return described, {WEIGHTS: pack_tensors(_all_weights(local_models.models))}


def rebuild_local_models(
    parameters: Parameters,
    n_features: int,
    input_shape: tuple[int, ...],
    model: Model,
    content: Any,
    arrays: Arrays,
) -> tuple[LocalModels, Any]:
    """The local models, and the `local_model` of scikit-learn that was stored with them."""
    with expecting("local models of leaflearn"):
        entries = {key: value for key, value in content.items() if key not in ("kind", "loss")}
        section = from_json(entries, arrays, CLASSES)
        kind = content["kind"]
    if kind == "refit":
        found = unpack_objects(model.part(SKOPS), SKOPS)
        with expecting("local models of leaflearn"):
            pairs = zip(found["fitted"], section["n_rows"], strict=True)
            fitted = [Fitted(*pair) for pair in pairs]
            models = RefittedModels(fitted, section["row_losses"], section["n_classes"])
            return models, found["local_model"]
    if kind == "closed_form":
        boosted = None
        if SKOPS in model.parts:
            found = unpack_objects(model.part(SKOPS), SKOPS)
            with expecting("local models of leaflearn"):
                boosted = BoostedColumns(found["boosted"])
        with expecting("local models of leaflearn"):
            closed_form = ClosedFormModels(**section, boosted=boosted)
            n_features = closed_form.features.n_features
            n_features += 0 if boosted is None else len(boosted.models)
            if closed_form.coefficients.shape[1] != n_features:
                raise ValueError(f"there are not coefficients of {n_features} features")
            return closed_form, None
    tensors, device = (
        unpack_tensors(model.part(WEIGHTS), WEIGHTS),
        resolve_device(parameters.device),
    )
    with expecting("local models of leaflearn"):
        is_yours = YOURS in content["loss"]
        loss: Any = parameters.loss if is_yours else from_json(content["loss"], None, CLASSES)
        states = [_weights_of(k, tensors) for k in range(section["n_models"])]
        modules = []
        if kind == "mlp":
            modules = [_rebuild_mlp(n_features, section, state) for state in states]
    if kind != "mlp":
        factory = parameters.local_model
        modules = [_rebuild_module(factory, input_shape, section, state) for state in states]
    modules = [module.eval().to(device) for module in modules]
    scalings = section["x_scaling"], section["y_scaling"]
    return NetworkModels(modules, loss, *scalings, section["is_classifier"], device), None


def describe_object(value: Any) -> Any:
    """A parameter or loss as JSON; an object that is code is stored by its name only.

    Examples
    --------
    >>> describe_object("cosine"), describe_object(torch.optim.RMSprop)
    ('cosine', {'$yours': 'RMSprop'})
    >>> describe_object(SquaredRowLoss())
    {'$object': ['SquaredRowLoss', {'scale': 1.0}]}
    """
    try:
        return to_json(value, None, CLASSES)
    except ValueError:
        return {YOURS: getattr(value, "__name__", type(value).__name__)}


def _kind_of(local_models: LocalModels) -> str:
    if isinstance(local_models, NetworkModels):
        return "module" if local_models.x_scaling is None else "mlp"
    return "closed_form" if isinstance(local_models, ClosedFormModels) else "refit"


def _fields(local_models: LocalModels, *names: str) -> dict[str, Any]:
    return {name: getattr(local_models, name) for name in names}


def _all_weights(modules: list[nn.Module]) -> dict[str, Tensor]:
    weights = {
        f"{k}.{name}": value
        for k, module in enumerate(modules)
        for name, value in module.state_dict().items()
    }
    other = [name for name, value in weights.items() if not isinstance(value, Tensor)]
    if other:
        raise ValueError(
            f"the modules of local_model keep '{other[0]}', which is no tensor, but a model folder "
            "holds only tensors."
        )
    return weights


def _weights_of(k: int, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.partition(".")[2]: tensor
        for name, tensor in tensors.items()
        if name.startswith(f"{k}.")
    }


def _rebuild_mlp(n_inputs: int, section: dict[str, Any], state: dict[str, Tensor]) -> nn.Module:
    """The default network around the tensors that were read.

    It is made without memory of its own, so that wrong widths in a file allocate nothing.
    """
    with torch.device("meta"):
        module = mlp(n_inputs, section["n_outputs"], tuple(section["hidden"])).double()
    if any(tensor.dtype != torch.float64 for tensor in state.values()):
        raise ValueError("the default network predicts in double precision")
    module.load_state_dict(state, assign=True)
    return module


def _rebuild_module(
    factory: Any, input_shape: tuple[int, ...], section: dict[str, Any], state: dict[str, Tensor]
) -> nn.Module:
    """A module of the user's factory, with the weights that were read."""
    with seeded(0):  # its initial weights are replaced, and the global generator is not changed
        module = factory(input_shape, section["n_outputs"])
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"local_model(input_shape, n_outputs) gave {module!r}, but a torch.nn.Module was "
            "expected."
        )
    own = module.state_dict().items()
    types = {name: tensor.dtype for name, tensor in own if isinstance(tensor, Tensor)}
    try:
        if any(types.get(name, tensor.dtype) != tensor.dtype for name, tensor in state.items()):
            raise RuntimeError("the numbers are of another type")
        module.load_state_dict(state)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"The weights do not fit the modules of local_model ({reason}); pass the factory of the"
            " fit."
        ) from None
    if section["channels_last"]:  # as in training: the last digits of a convolution depend on it
        for parameter in (p for p in module.parameters() if p.ndim == 4):
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return module
