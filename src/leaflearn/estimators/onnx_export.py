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

import torch
from torch import Tensor, nn

from leaflearn.engines.local_models import LocalModels, NetworkModels, Scaling
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
    if not isinstance(models, NetworkModels):
        kind = type(models.models[0]).__name__
        raise ValueError(
            f"export_onnx needs networks, but the local models are scikit-learn's {kind}; use save,"
            " which keeps them."
        )
    onnx = _import_onnx()
    shape = () if models.is_classifier else y_shape
    graph = onnx.utils.Extractor(onnx.load_from_string(_trace(models, input_shape, shape)))
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


def _trace(
    networks: NetworkModels, input_shape: tuple[int, ...], y_shape: tuple[int, ...]
) -> bytes:
    """The graph of all predictions, for any number of rows."""
    predictions = ExportedModels(networks, y_shape).cpu().eval()
    # The default networks use double precision, modules from a factory single precision.
    dtype = torch.float32 if networks.x_scaling is None else torch.float64
    example = torch.zeros(2, *input_shape, dtype=dtype)
    with _quietly():
        program = torch.onnx.export(
            predictions,
            (example,),
            dynamo=True,
            dynamic_shapes={INPUT: {0: torch.export.Dim("n")}},
            input_names=[INPUT],
            output_names=_names(len(networks.models)),
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
