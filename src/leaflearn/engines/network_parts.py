"""What networks are made of and trained with, as the estimator's parameters and the data have it: device, data, loss, recipe, factory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import nn

from leaflearn.core.batches import GroupedExamples
from leaflearn.core.grouped_data import GroupedData
from leaflearn.core.losses import LOSSES, Loss
from leaflearn.core.training import Callback
from leaflearn.engines import Recipe, seeded
from leaflearn.engines.local_models import Scaling, to_tensor
from leaflearn.engines.networks import mlp

FEW_FEATURES = 20
DEEP, WIDE = (
    (64, 64, 64),
    (256,),
)  # widths of the default local model for few features, and for many


def resolve_device(device: str) -> str:
    """The device that networks run on; "auto" takes a graphics card where there is one.

    Examples
    --------
    >>> resolve_device("cpu")
    'cpu'
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as error:
        raise ValueError(
            f"device={device!r} cannot be used here ({str(error).splitlines()[0]}); use 'auto' or 'cpu'."
        ) from None
    return device


def as_grouped(
    examples: GroupedData, x_scaling: Scaling | None, y_scaling: Scaling | None, device: str
) -> GroupedExamples:
    """The examples as networks see them: tensors in standard units.

    Examples
    --------
    >>> import numpy as np
    >>> rows = GroupedData(np.zeros((2, 1)), np.array([0, 1]), np.array([0, 0]), np.arange(2), None, 2, True)
    >>> as_grouped(rows, None, None, "cpu").y
    tensor([0, 1])
    """
    y_type = torch.long if examples.is_classifier else torch.float32
    return GroupedExamples(
        to_tensor(x_scaling.apply(examples.X) if x_scaling else examples.X, torch.float32, device),
        to_tensor(y_scaling.apply(examples.y) if y_scaling else examples.y, y_type, device),
        torch.as_tensor(examples.group),
        None if examples.weight is None else to_tensor(examples.weight, torch.float32, device),
    )


def resolve_loss(loss: str | Loss, is_classifier: bool) -> Loss:
    """The loss by its name, where it suits the task.

    Examples
    --------
    >>> resolve_loss("auto", is_classifier=True)
    CrossEntropy()
    """
    if not isinstance(loss, str):
        return loss
    suited = ("auto", "cross-entropy", "gce") if is_classifier else ("auto", "squared", "robust")
    if loss not in suited:
        task = "classification" if is_classifier else "regression"
        known = "exists, but not for" if loss in LOSSES else "is not known in"
        raise ValueError(
            f"loss={loss!r} {known} {task}; choose one of {', '.join(map(repr, suited))}, or pass a loss object."
        )
    return LOSSES[suited[1] if loss == "auto" else loss]()


def make_recipe(estimator: Any, callbacks: Sequence[Callback] = ()) -> Recipe:
    """The recipe that the estimator's parameters ask for.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> make_recipe(LeafRegressor(learning_rate=0.01)).learning_rate
    0.01
    """
    settings = {
        field.name: getattr(estimator, field.name)
        for field in fields(Recipe)
        if field.name not in ("callbacks", "stacked")
    }
    return Recipe(**settings, callbacks=callbacks)


def make_factory(local_model: Any, examples: GroupedData) -> Callable[[], nn.Module]:
    """What makes the networks: the default ones, or those of the user's factory, looked at once.

    Examples
    --------
    >>> import numpy as np
    >>> rows = GroupedData(np.zeros((2, 3)), np.zeros((2, 1)), np.array([0, 0]), np.arange(2), None, 1, False)
    >>> make_factory(None, rows)()[0]
    Linear(in_features=3, out_features=64, bias=True)
    """
    input_shape = examples.X.shape[1:]
    if local_model is None:
        return lambda: mlp(
            input_shape[0], examples.n_outputs, DEEP if input_shape[0] <= FEW_FEATURES else WIDE
        ).float()
    with seeded(0):  # a look at one module must not move the global generator
        module = local_model(input_shape, examples.n_outputs)
    _check_module(module, examples)
    return lambda: local_model(input_shape, examples.n_outputs)


def _check_module(module: Any, examples: GroupedData) -> None:
    """Refuse what is no module, or does not answer a row with as many numbers as there are outputs."""
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"local_model(input_shape, n_outputs) gave {module!r}, but a torch.nn.Module was expected."
        )
    called = f"the module of local_model({tuple(examples.X.shape[1:])}, {examples.n_outputs})"
    try:
        with torch.no_grad():
            shape = tuple(module.eval()(torch.as_tensor(examples.X[:1], dtype=torch.float32)).shape)
    except RuntimeError as error:
        raise ValueError(
            f"{called} cannot take one row of X: {str(error).splitlines()[0]}."
        ) from error
    if shape != (1, examples.n_outputs):
        raise ValueError(
            f"{called} answers one row with shape {shape}, but (1, {examples.n_outputs}) was expected; "
            "let its last layer have n_outputs units."
        )
