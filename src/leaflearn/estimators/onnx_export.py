"""Export local models as ONNX files, for other runtimes and languages.

All contexts, with their scalings, are traced once as one graph, which has an output for each
context and one for all. Each file is a part of that graph.
"""

from __future__ import annotations

import copy
import json
import logging
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leaflearn.engines.closed_form import ClosedFormModels
from leaflearn.engines.local_models import LocalModels, NetworkModels, Scaling
from leaflearn.engines.settings import CLOSED_FORM
from leaflearn.moments.features import FeatureMap
from leaflearn.persistence.atomic_files import write_folder

INPUT = "X"
FILE = re.compile(r"(context_\d+|all)\.onnx")


class _ScalingLayer(nn.Module):
    """The mean and the scale of a scaling, as part of a module."""

    center: Tensor
    scale: Tensor

    def __init__(self, scaling: Scaling) -> None:
        super().__init__()
        self.register_buffer("center", torch.as_tensor(scaling.center))
        self.register_buffer("scale", torch.as_tensor(scaling.scale))


class ExportedModels(nn.Module):
    """`predict_each` or `predict_proba_each` as a module, and the predictions of each context.

    Examples
    --------
    >>> from leaflearn.core.losses import SquaredError
    >>> modules = [nn.Linear(2, 1), nn.Linear(2, 1)]
    >>> networks = NetworkModels(modules, SquaredError(), None, None, False, "cpu")
    >>> each, first, second = ExportedModels(networks, ())(torch.zeros(3, 2))
    >>> each.shape, first.shape
    (torch.Size([3, 2]), torch.Size([3]))
    """

    def __init__(self, networks: NetworkModels, y_shape: tuple[int, ...]) -> None:
        super().__init__()
        # Copies, because the exporter moves them to the CPU.
        self.networks = nn.ModuleList(copy.deepcopy(networks.models))
        self.is_classifier, self.y_shape = networks.is_classifier, y_shape
        self.x_scaling = None if networks.x_scaling is None else _ScalingLayer(networks.x_scaling)
        self.y_scaling = None if networks.y_scaling is None else _ScalingLayer(networks.y_scaling)

    def forward(self, X: Tensor) -> tuple[Tensor, ...]:
        """All predictions (n, K, ...), then those of each context (n, ...)."""
        if self.x_scaling is not None:
            X = (X - self.x_scaling.center) / self.x_scaling.scale
        each = [self._finish(network(X)) for network in self.networks]
        return torch.stack(each, 1), *each

    def _finish(self, outputs: Tensor) -> Tensor:  # (n, D)
        if self.is_classifier:
            return torch.softmax(outputs.double(), -1)
        if self.y_scaling is not None:
            outputs = outputs * self.y_scaling.scale + self.y_scaling.center
        return outputs if self.y_shape else outputs[:, 0]


class ExportedMeans(nn.Module):
    """The same for linear and smooth local models: the contexts without group effects.

    Examples
    --------
    >>> import numpy as np
    >>> features = FeatureMap.of(np.array([[-1.0], [1.0]]))
    >>> lines = ClosedFormModels(features, np.array([[[0.0], [2.0]]]), np.ones(1))
    >>> ExportedMeans(lines, ())(torch.tensor([[3.0]], dtype=torch.float64))[0]
    tensor([[6.]], dtype=torch.float64)
    """

    def __init__(self, models: ClosedFormModels, y_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.n_classes, self.y_shape, features = models.n_classes, y_shape, models.features
        self.hat_inputs, self.has_cosines = features.hat_input.tolist(), False
        constants = {
            "coefficients": models.coefficients,
            "center": features.center,
            "scale": features.scale,
            "low": features.low,
            "high": features.high,
            "hats": _hat_nodes(features),
        }
        if features.directions is not None and features.phases is not None:
            self.has_cosines = True
            height = np.sqrt(2 / len(features.phases))  # a plain number would be traced as a float
            cosines = {"directions": features.directions, "phases": features.phases}
            constants |= {**cosines, "height": np.array(height)}
        for name, value in constants.items():
            self.register_buffer(name, torch.as_tensor(value, dtype=torch.float64))

    def forward(self, X: Tensor) -> tuple[Tensor, ...]:
        """All predictions (n, K, ...), then those of each context (n, ...)."""
        values: dict[str, Tensor] = dict(self.named_buffers())
        z = (X - values["center"]) / values["scale"]
        parts = [torch.ones_like(z[:, :1]), z]
        if self.hat_inputs:
            left, knot, right = values["hats"]
            own = torch.stack([z[:, j] for j in self.hat_inputs], 1)
            sides = torch.minimum((own - left) / (knot - left), (right - own) / (right - knot))
            parts.append(torch.relu(sides))
        if self.has_cosines:
            inside = torch.minimum(torch.maximum(z, values["low"]), values["high"])
            cosines = torch.cos(inside @ values["directions"] + values["phases"])
            parts.append(cosines * values["height"])
        design = torch.cat(parts, 1)
        each = [self._finish(design @ own) for own in values["coefficients"]]
        return torch.stack(each, 1), *each

    def _finish(self, means: Tensor) -> Tensor:  # (n, D)
        if not self.n_classes:
            return means if self.y_shape else means[:, 0]
        if self.n_classes == 2:
            means = torch.cat([-means, means], 1)
        clipped = torch.clamp(torch.sigmoid(means), CLOSED_FORM.min_probability)
        return clipped / clipped.sum(1, keepdim=True)


def _hat_nodes(features: FeatureMap) -> NDArray[np.float64]:
    """Where each hat function begins, peaks and ends, shape (3, h)."""
    nodes = []
    for j in dict.fromkeys(features.hat_input.tolist()):
        knots = np.sort(features.hat_knot[features.hat_input == j])
        each = np.concatenate([[features.low[j]], knots, [features.high[j]]])
        nodes.append(np.stack([each[:-2], each[1:-1], each[2:]]))
    return np.concatenate(nodes, 1) if nodes else np.empty((3, 0))


def export_onnx(
    models: LocalModels,
    input_shape: tuple[int, ...],
    y_shape: tuple[int, ...],
    facts: Mapping[str, Any],
    folder: str | Path,
) -> None:
    """Write `context_0.onnx`, ... and `all.onnx`; see `LeafRegressor.export_onnx`.

    `facts` are stored in the metadata of each file.
    """
    predictions: ExportedModels | ExportedMeans
    # The default networks use double precision, modules from a factory single precision.
    dtype = torch.float64
    if isinstance(models, ClosedFormModels):
        if models.boosted is not None:
            raise ValueError(
                "export_onnx cannot write boosted trees; use save, which keeps them, or fit with "
                "local_model='smooth'."
            )
        predictions = ExportedMeans(models, y_shape)
    elif isinstance(models, NetworkModels):
        predictions = ExportedModels(models, () if models.is_classifier else y_shape)
        dtype = torch.float32 if models.x_scaling is None else torch.float64
    else:
        kind = type(models.models[0]).__name__
        raise ValueError(
            f"export_onnx needs networks, but the local models are scikit-learn's {kind}; use save,"
            " which keeps them."
        )
    onnx = _import_onnx()
    example = torch.zeros(2, *input_shape, dtype=dtype)
    traced = _trace(predictions.cpu().eval(), example, len(models.models))
    graph = onnx.utils.Extractor(onnx.load_from_string(traced))
    files = {}
    for name in _names(len(models.models)):
        piece = graph.extract_model([INPUT], [name])
        onnx.helper.set_model_props(piece, {"leaflearn": json.dumps(facts)})
        files[f"{name}.onnx"] = piece.SerializeToString()
    write_folder(Path(folder), files, _refuse_other_files)


def _names(n_contexts: int) -> list[str]:
    """Names of the outputs, and of the files."""
    return ["all", *(f"context_{k}" for k in range(n_contexts))]


def _import_onnx() -> Any:
    try:
        import onnx
        import onnx.utils
        import onnxscript  # noqa: F401  torch needs it
    except ImportError as error:
        raise ImportError(
            f"export_onnx needs the package {error.name}; install it with: pip install "
            "'leaflearn[onnx]'."
        ) from None
    return onnx


def _trace(predictions: nn.Module, example: Tensor, n_contexts: int) -> bytes:
    """The graph of all predictions, for any number of rows."""
    with _quietly():
        program = torch.onnx.export(
            predictions,
            (example,),
            dynamo=True,
            dynamic_shapes={INPUT: {0: torch.export.Dim("n")}},
            input_names=[INPUT],
            output_names=_names(n_contexts),
            verbose=False,
        )
    assert program is not None
    return bytes(program.model_proto.SerializeToString())


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the exporter's messages about optional packages and deprecations."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def _refuse_other_files(folder: Path) -> None:
    if not folder.is_dir():
        raise NotADirectoryError(
            f"Cannot export to '{folder}': it is a file, and a folder is needed."
        )
    for name in sorted(os.listdir(folder)):
        if not FILE.fullmatch(name):
            raise ValueError(
                f"Cannot export to '{folder}': it holds '{name}', which is not an export of "
                "leaflearn; choose another folder."
            )
