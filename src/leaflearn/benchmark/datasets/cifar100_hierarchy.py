"""CIFAR-100, general or exact: every picture is called now by its superclass, such as fish, and now by its class, such as shark."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leaflearn.benchmark.datasets.backbones import check_backbone, features
from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.prepared import prepare
from leaflearn.benchmark.datasets.registry import register
from leaflearn.benchmark.datasets.safe_pickle import load_pickle
from leaflearn.benchmark.datasets.sources import Array, Examples, Pictures
from leaflearn.benchmark.datasets.store import DataError, Files, RemoteFile, locate

CIFAR100 = Files(
    folder="cifar-100-python",
    title="CIFAR-100 (Krizhevsky 2009)",
    terms="no licence is published; free for research by custom, with citation",
    contents={
        "train": "md5:16019d7e3df5f24257cddd939b257f8d",
        "test": "md5:f0ef6b0ae62326f3e7ffdfab6717acfc",
        "meta": "md5:7973b15100ade9c7d40fb424638fde48",
    },
    remote=(
        RemoteFile(
            "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
            "cifar-100-python.tar.gz",
            size=169_001_437,
            checksum="md5:eb9058c3a382ffc7106e4002c42a8d85",
            archive=True,
        ),
    ),
    by_hand="Put the files train, test and meta of its Python version there.",
)
LEVELS = {
    "superclass": (b"coarse_labels", b"coarse_label_names", 20),
    "class": (b"fine_labels", b"fine_label_names", 100),
}
INPUTS = ("features", "pictures")
SIDE = 32  # pixels
PARTS = ("train", "test")
VERSION = 1  # of the prepared pictures: raise it when what is made changes
BLOCK = 1000  # pictures that are written at once


class Album(NamedTuple):
    """Pictures, and what they show."""

    pictures: NDArray[np.uint8]  #                                              (N, 3, 32, 32)
    labels: NDArray[np.int64]  # number of the superclass and of the class      (N, 2)


@register("cifar100-hierarchy", files=CIFAR100)
def cifar100_hierarchy(inputs: str = "features", backbone: str = "efficientnet-lite0") -> DomainSet:
    """CIFAR-100 called by its 20 superclasses or by its 100 classes.

    There are 10,000 test pictures and 49,990 training pictures: of the 50,000 that are published, 10 are also, pixel by pixel, among the
    test pictures, and are left out. By default 25,000 groups of two are drawn, one epoch of the paper's forty.

    Parameters
    ----------
    inputs
        `"features"` of a frozen backbone, which are worked out once, in minutes, and kept; or `"pictures"` (3, 32, 32).
    backbone
        Which network the features come from; see `backbones.py`.

    Examples
    --------
    >>> domains = cifar100_hierarchy(inputs="pictures")
    >>> domains.names, domains.input_shape, [len(domain.train) for domain in domains]
    (('superclass', 'class'), (3, 32, 32), [49990, 49990])
    >>> [domains.classes[domain.test.y[0]] for domain in domains]
    ['large natural outdoor scenes', 'mountain']
    """
    if inputs not in INPUTS:
        raise ValueError(
            f"`inputs` must be one of {', '.join(map(repr, INPUTS))}; it is {inputs!r}."
        )
    check_backbone(backbone)
    classes = _read_names(locate(CIFAR100) / "meta")
    train_x, train_labels, test_x, test_labels = _load(inputs, backbone)
    domains, first = [], 0
    for d, (name, (_, _, n_labels)) in enumerate(LEVELS.items()):
        train, test = (
            Examples(train_x, first + train_labels[:, d]),
            Examples(test_x, first + test_labels[:, d]),
        )
        domains.append(Domain(name, train, test))
        first += n_labels  # the classes follow the superclasses
    return DomainSet(
        "cifar100-hierarchy", tuple(domains), n_groups=25_000, group_size=2, classes=classes
    )


def load_pictures() -> tuple[Album, Album]:
    """The training part and the test part as published: copies, of which there are some inside each part and between them, included.

    Examples
    --------
    >>> train, test = load_pictures()
    >>> train.pictures.shape, test.pictures.shape
    ((50000, 3, 32, 32), (10000, 3, 32, 32))
    """
    folder = locate(CIFAR100)
    return _read_album(folder / "train"), _read_album(folder / "test")


def _load(inputs: str, backbone: str) -> tuple[Array | Pictures, Array, Array | Pictures, Array]:
    """Inputs and labels to train on, inputs and labels to test on."""
    sources = [locate(CIFAR100) / part for part in PARTS]
    made = prepare("cifar100-pictures", sources, _make, version=VERSION)
    pictures = np.load(made / "pictures.npy", mmap_mode="r")
    train_labels, test_labels = (np.load(made / f"{part}-labels.npy") for part in PARTS)
    n_train = len(train_labels)
    if inputs == "pictures":
        return Pictures(pictures[:n_train]), train_labels, Pictures(pictures[n_train:]), test_labels
    x = features(
        pictures, backbone, f"cifar100-{VERSION}", sources
    )  # other pictures have other features
    return x[:n_train], train_labels, x[n_train:], test_labels


def _make(into: Path) -> None:
    """Write the training pictures that are no test pictures and, behind them in the same file, the test pictures."""
    train, test = load_pictures()
    tested = {hashlib.sha256(picture).digest() for picture in test.pictures}
    rows = np.flatnonzero(
        [hashlib.sha256(picture).digest() not in tested for picture in train.pictures]
    )
    with (into / "pictures.npy").open("wb") as file:
        shape = (len(rows) + len(test.pictures), *test.pictures.shape[1:])
        np.lib.format.write_array_header_1_0(
            file, {"descr": "|u1", "fortran_order": False, "shape": shape}
        )
        for start in range(
            0, len(rows), BLOCK
        ):  # not all at once, which would take memory for a second copy
            file.write(train.pictures[rows[start : start + BLOCK]].data)
        file.write(test.pictures.data)
    np.save(into / "train-labels.npy", train.labels[rows])
    np.save(into / "test-labels.npy", test.labels)


def _read_album(path: Path) -> Album:
    content = load_pickle(path)
    if not isinstance(content, dict):
        raise _wrong(path)
    pixels = content.get(b"data")
    if (
        not isinstance(pixels, np.ndarray)
        or pixels.dtype != np.uint8
        or pixels.ndim != 2
        or pixels.shape[1] != 3 * SIDE * SIDE
    ):
        raise _wrong(path)
    pictures = np.ascontiguousarray(pixels).reshape(-1, 3, SIDE, SIDE)
    labels = [
        _read_labels(path, content.get(key), n_labels, len(pictures))
        for key, _, n_labels in LEVELS.values()
    ]
    return Album(pictures, np.stack(labels, axis=1))


def _read_labels(path: Path, values: object, n_labels: int, n: int) -> NDArray[np.int64]:
    if (
        not isinstance(values, list)
        or len(values) != n
        or not all(type(value) is int and 0 <= value < n_labels for value in values)
    ):
        raise _wrong(path)
    return np.array(values, dtype=np.int64)


def _read_names(path: Path) -> tuple[str, ...]:
    """Of the superclasses, then of the classes."""
    content = load_pickle(path)
    names: list[str] = []
    for _, key, n_labels in LEVELS.values():
        values = content.get(key) if isinstance(content, dict) else None
        if (
            not isinstance(values, list)
            or len(values) != n_labels
            or not all(isinstance(value, bytes) for value in values)
        ):
            raise _wrong(path)
        names += (value.decode("latin1").replace("_", " ") for value in values)
    return tuple(names)


def _wrong(path: Path) -> DataError:
    return DataError(
        f"'{path}' is not laid out as a file of CIFAR-100 is; fetch it again with: leaflearn data get cifar100-hierarchy"
    )
