"""The local models as ONNX files, which other runtimes and other languages can ask.

All contexts are traced once, scalings included, as one graph with an output for each context and one for all; each file is a piece of it.
"""

from __future__ import annotations

import copy
import json
import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from leaflearn.engines.local_models import NetworkModels, Scaling
from leaflearn.persistence import to_json
from leaflearn.persistence.atomic_files import write_folder

INPUT = "X"
FILE = re.compile(r"(context_\d+|all)\.onnx")


class _ScalingLayer(nn.Module):
    """The numbers of a scaling, as part of a module."""

    center: Tensor
    scale: Tensor

    def __init__(self, scaling: Scaling) -> None:
        super().__init__()
        self.register_buffer("center", torch.as_tensor(scaling.center))
        self.register_buffer("scale", torch.as_tensor(scaling.scale))


class Answers(nn.Module):
    """What `predict_each` or `predict_proba_each` does, as a module: (n, ...) to (n, K, ...), and to each context's (n, ...).

    Examples
    --------
    >>> from leaflearn.core.losses import SquaredError
    >>> networks = NetworkModels([nn.Linear(2, 1), nn.Linear(2, 1)], SquaredError(), None, None, False, "cpu")
    >>> everything, first, second = Answers(networks, ())(torch.zeros(3, 2))
    >>> everything.shape, first.shape
    (torch.Size([3, 2]), torch.Size([3]))
    """

    def __init__(self, networks: NetworkModels, y_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(
            copy.deepcopy(networks.models)
        )  # the exporter moves them to the processor
        self.is_classifier, self.y_shape = networks.is_classifier, y_shape
        self.x_scaling = None if networks.x_scaling is None else _ScalingLayer(networks.x_scaling)
        self.y_scaling = None if networks.y_scaling is None else _ScalingLayer(networks.y_scaling)

    def forward(self, X: Tensor) -> tuple[Tensor, ...]:
        """All answers, then those of each context."""
        if self.x_scaling is not None:
            X = (X - self.x_scaling.center) / self.x_scaling.scale
        answers = [self._finish(network(X)) for network in self.networks]
        return torch.stack(answers, 1), *answers

    def _finish(self, answer: Tensor) -> Tensor:  # (n, D)
        if self.is_classifier:
            return torch.softmax(answer.double(), -1)
        if self.y_scaling is not None:
            answer = answer * self.y_scaling.scale + self.y_scaling.center
        return answer if self.y_shape else answer[:, 0]


def export_onnx(estimator: Any, folder: str | Path) -> None:
    """Write `context_0.onnx`, ... and `all.onnx`; see `LeafRegressor.export_onnx`."""
    check_is_fitted(estimator, "local_models_")
    networks = estimator._local_models
    if not isinstance(networks, NetworkModels):
        kind = type(estimator.local_model).__name__
        raise ValueError(
            f"export_onnx needs networks, but the local models are scikit-learn's {kind}; use save, which keeps them."
        )
    onnx = _import_onnx()
    graph = onnx.utils.Extractor(onnx.load_from_string(_trace(estimator, networks)))
    files = {}
    for name in _names(estimator.n_contexts_):
        piece = graph.extract_model([INPUT], [name])
        onnx.helper.set_model_props(piece, _describe(estimator))
        files[f"{name}.onnx"] = piece.SerializeToString()
    write_folder(Path(folder), files, _refuse_other_files)


def _names(n_contexts: int) -> list[str]:
    """Of the outputs, and so of the files."""
    return ["all", *(f"context_{k}" for k in range(n_contexts))]


def _import_onnx() -> Any:
    try:
        import onnx
        import onnx.utils
        import onnxscript  # noqa: F401  torch needs it
    except ImportError as error:
        raise ImportError(
            f"export_onnx needs the package {error.name}; install it with: pip install 'leaflearn[onnx]'."
        ) from None
    return onnx


def _trace(estimator: Any, networks: NetworkModels) -> bytes:
    """The graph of all answers, for any number of rows."""
    answers = Answers(networks, () if networks.is_classifier else estimator._y_shape).cpu().eval()
    is_own = (
        networks.x_scaling is not None
    )  # the default networks take double precision, modules of the user's single
    example = torch.zeros(
        2, *estimator._input_shape, dtype=torch.float64 if is_own else torch.float32
    )
    with _quietly():
        program = torch.onnx.export(
            answers,
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
    """The exporter speaks of packages that it would like to have, and of its own past."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def _describe(estimator: Any) -> dict[str, str]:
    facts = {"estimator": type(estimator).__name__, "n_contexts": estimator.n_contexts_}
    if hasattr(estimator, "classes_"):
        facts["classes"] = to_json(estimator.classes_.tolist(), name="classes_")
    return {"leaflearn": json.dumps(facts)}


def _refuse_other_files(folder: Path) -> None:
    if not folder.is_dir():
        raise NotADirectoryError(
            f"Cannot export to '{folder}': it is a file, and a folder is needed."
        )
    for name in sorted(os.listdir(folder)):
        if not FILE.fullmatch(name):
            raise ValueError(
                f"Cannot export to '{folder}': '{name}' is there, which is no export of leaflearn; choose another folder."
            )
