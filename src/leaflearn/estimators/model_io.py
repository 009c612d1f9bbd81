"""Local models on their way into a model folder and out of it.

mlp      weights in safetensors; the network is built anew from its widths
module   weights in safetensors; the factory is code, so the caller of `load` passes it again
refit    scikit-learn models, and the one that they are copies of, in skops
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from leaflearn.core.allocation import Annealed, Hard, Sampled, Soft
from leaflearn.core.losses import LOSSES
from leaflearn.engines import seeded
from leaflearn.engines.engine import choose_engine
from leaflearn.engines.local_models import LocalModels, NetworkModels, RefittedModels, Scaling
from leaflearn.engines.network_parts import resolve_device
from leaflearn.engines.networks import mlp
from leaflearn.engines.novelty import HeldOut
from leaflearn.engines.row_losses import ClassRowLoss, Fitted, SquaredRowLoss
from leaflearn.persistence import (
    Model,
    expecting,
    from_json,
    pack_objects,
    pack_tensors,
    to_json,
    unpack_objects,
    unpack_tensors,
)
from leaflearn.persistence.values import Arrays

WEIGHTS, SKOPS = "weights.safetensors", "local-models.skops"
YOURS = "$yours"  # stands for an object of the user's that is code, and has to be passed again
CLASSES: dict[str, type[Any]] = {  # of ours, that parameters and fitted state may be made of
    kind.__name__: kind
    for kind in (
        Hard,
        Soft,
        Sampled,
        Annealed,
        *LOSSES.values(),
        Scaling,
        HeldOut,
        SquaredRowLoss,
        ClassRowLoss,
    )
}


def describe_local_models(
    estimator: Any, arrays: Arrays
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The description of an estimator's local models, and the part that holds them."""
    local_models = estimator._local_models
    kind = _kind_of(local_models)
    if choose_engine(estimator.local_model) != kind:
        raise ValueError(
            "local_model was changed after the fit, and no longer belongs to the local models; fit again before saving."
        )
    if isinstance(local_models, RefittedModels):
        content = {"local_model": estimator.local_model, "fitted": local_models.models}
        section = {
            "n_rows": [each.n_rows for each in local_models.fitted],
            **_fields(local_models, "row_losses", "n_classes"),
        }
        return {"kind": kind, **to_json(section, arrays, CLASSES, "local_models")}, {
            SKOPS: pack_objects(content, "local_model")
        }
    first = local_models.models[0]
    section = {
        "n_models": len(local_models.models),
        "n_outputs": len(estimator.classes_)
        if local_models.is_classifier
        else math.prod(estimator._y_shape),
        "hidden": [
            layer.out_features for layer in first.children() if isinstance(layer, nn.Linear)
        ][:-1]
        if kind == "mlp"
        else None,
        "channels_last": any(p.ndim == 4 and not p.is_contiguous() for p in first.parameters()),
        **_fields(local_models, "x_scaling", "y_scaling", "is_classifier"),
    }
    described = {
        "kind": kind,
        "loss": describe_object(local_models.loss),
        **to_json(section, arrays, CLASSES, "local_models"),
    }
    return described, {WEIGHTS: pack_tensors(_all_weights(local_models.models))}


def rebuild_local_models(estimator: Any, model: Model, content: Any, arrays: Arrays) -> LocalModels:
    """The local models again, for an estimator that has its parameters; a `local_model` of scikit-learn is set with them."""
    with expecting("local models of leaflearn"):
        section = from_json(
            {name: value for name, value in content.items() if name not in ("kind", "loss")},
            arrays,
            CLASSES,
        )
        kind = content["kind"]
    if kind == "refit":
        found = unpack_objects(model.part(SKOPS), SKOPS)
        with expecting("local models of leaflearn"):
            estimator.local_model = found["local_model"]
            fitted = [
                Fitted(*pair) for pair in zip(found["fitted"], section["n_rows"], strict=True)
            ]
            return RefittedModels(fitted, section["row_losses"], section["n_classes"])
    tensors, device = unpack_tensors(model.part(WEIGHTS), WEIGHTS), resolve_device(estimator.device)
    with expecting("local models of leaflearn"):
        loss = (
            estimator.loss
            if YOURS in content["loss"]
            else from_json(content["loss"], None, CLASSES)
        )
        states = [_weights_of(k, tensors) for k in range(section["n_models"])]
        modules = (
            [_rebuild_mlp(estimator.n_features_in_, section, state) for state in states]
            if kind == "mlp"
            else []
        )
    modules = modules or [_rebuild_module(estimator, section, state) for state in states]
    modules = [module.eval().to(device) for module in modules]
    return NetworkModels(
        modules, loss, section["x_scaling"], section["y_scaling"], section["is_classifier"], device
    )


def describe_object(value: Any) -> Any:
    """A parameter or loss as JSON; an object that is code leaves its name.

    Examples
    --------
    >>> describe_object("cosine"), describe_object(SquaredRowLoss()), describe_object(torch.optim.RMSprop)
    ('cosine', {'$object': ['SquaredRowLoss', {'scale': 1.0}]}, {'$yours': 'RMSprop'})
    """
    try:
        return to_json(value, None, CLASSES)
    except ValueError:
        return {YOURS: getattr(value, "__name__", type(value).__name__)}


def _kind_of(local_models: LocalModels) -> str:
    if isinstance(local_models, NetworkModels):
        return "module" if local_models.x_scaling is None else "mlp"
    return "refit"


def _fields(local_models: LocalModels, *names: str) -> dict[str, Any]:
    return {name: getattr(local_models, name) for name in names}


def _all_weights(modules: list[nn.Module]) -> dict[str, Tensor]:
    weights = {
        f"{k}.{name}": value
        for k, module in enumerate(modules)
        for name, value in module.state_dict().items()
    }
    strange = [name for name, value in weights.items() if not isinstance(value, Tensor)]
    if strange:
        raise ValueError(
            f"the modules of local_model keep '{strange[0]}', which is no tensor, but a model folder holds only tensors."
        )
    return weights


def _weights_of(k: int, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.partition(".")[2]: tensor
        for name, tensor in tensors.items()
        if name.startswith(f"{k}.")
    }


def _rebuild_mlp(n_inputs: int, section: dict[str, Any], state: dict[str, Tensor]) -> nn.Module:
    """The default network, which takes the tensors that were read for its own: widths that do not fit them allocate nothing."""
    with torch.device("meta"):
        module = mlp(n_inputs, section["n_outputs"], tuple(section["hidden"])).double()
    if any(tensor.dtype != torch.float64 for tensor in state.values()):
        raise ValueError("the default network answers in double precision")
    module.load_state_dict(state, assign=True)
    return module


def _rebuild_module(estimator: Any, section: dict[str, Any], state: dict[str, Tensor]) -> nn.Module:
    """A module of the user's factory, with the weights that were read."""
    with seeded(0):  # its first weights are not kept, and the global generator is not moved
        module = estimator.local_model(estimator._input_shape, section["n_outputs"])
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"local_model(input_shape, n_outputs) gave {module!r}, but a torch.nn.Module was expected."
        )
    types = {
        name: tensor.dtype
        for name, tensor in module.state_dict().items()
        if isinstance(tensor, Tensor)
    }
    try:
        if any(types.get(name, tensor.dtype) != tensor.dtype for name, tensor in state.items()):
            raise RuntimeError("the numbers are of another type")
        module.load_state_dict(state)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"The weights do not fit the modules of local_model ({reason}); pass the factory of the fit."
        ) from None
    if section["channels_last"]:  # as in training: the last digits of a convolution depend on it
        for parameter in (p for p in module.parameters() if p.ndim == 4):
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return module
