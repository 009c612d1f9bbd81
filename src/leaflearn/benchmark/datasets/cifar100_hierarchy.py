"""CIFAR-100 labelled by superclass, such as fish, or by class, such as shark.

Two of the publisher's layouts are read: the binary one, which `leaflearn data get` fetches, and the
one that was pickled by Python 2. The binary layout is used if both are in the data folder.
"""

from __future__ import annotations

import hashlib
import pickle
import warnings
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from leaflearn.benchmark.datasets.backbones import check_backbone, compute_features
from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.prepared import prepare
from leaflearn.benchmark.datasets.registry import register
from leaflearn.benchmark.datasets.sources import Array, Examples, Images
from leaflearn.benchmark.datasets.store import DataError, Files, RemoteFile, locate

TITLE = "CIFAR-100 (Krizhevsky 2009)"
TERMS = "no licence is published; free for research by custom, with citation"
CIFAR100_PICKLED = Files(
    folder="cifar-100-python",
    title=TITLE,
    terms=TERMS,
    contents={
        "train": "md5:16019d7e3df5f24257cddd939b257f8d",
        "test": "md5:f0ef6b0ae62326f3e7ffdfab6717acfc",
        "meta": "md5:7973b15100ade9c7d40fb424638fde48",
    },
)
CIFAR100 = Files(
    folder="cifar-100-binary",
    title=TITLE,
    terms=TERMS,
    contents={
        "train.bin": None,
        "test.bin": None,
        "coarse_label_names.txt": None,
        "fine_label_names.txt": None,
    },
    remote=(
        RemoteFile(
            "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
            "cifar-100-binary.tar.gz",
            checksum="md5:03b5dce01913d631647c71ecec9e9cb8",
            archive=True,
        ),
    ),
    by_hand="Put the files of its binary version there, "
    f"or those of its Python version into '{CIFAR100_PICKLED.folder}'.",
    alternatives=(CIFAR100_PICKLED,),
)
LEVELS = {"superclass": ("coarse", 20), "class": ("fine", 100)}  # publisher's word, n labels
INPUTS = ("features", "images")
SIDE = 32  # pixels
PARTS = ("train", "test")
VERSION = 1  # of the prepared images; increase it when `_make` changes
BLOCK = 1000  # images written at a time
ADMITTED = {  # what a pickle of lists, dictionaries, text, numbers and numpy arrays refers to
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),  # numpy 2
    ("_codecs", "encode"),  # bytes in protocol 2
}


class LabelledImages(NamedTuple):
    """Images with the numbers of their superclass and class."""

    images: NDArray[np.uint8]  #                                                    (N, 3, 32, 32)
    labels: NDArray[np.int64]  # superclass and class                                       (N, 2)


@register("cifar100-hierarchy", files=CIFAR100)
def cifar100_hierarchy(inputs: str = "features", backbone: str = "efficientnet-lite0") -> DomainSet:
    """CIFAR-100 labelled by its 20 superclasses or by its 100 classes.

    There are 10,000 test images and 49,990 training images. The publisher provides 50,000 training
    images, but 10 of them are exact copies of test images and are excluded. The default sample has
    25,000 groups of two, which is one of the paper's 40 epochs.

    Parameters
    ----------
    inputs
        `"features"` of a frozen backbone, which take minutes to compute and are then cached, or
        `"images"` (3, 32, 32).
    backbone
        The network that computes the features; see `backbones.py`.

    Examples
    --------
    >>> domains = cifar100_hierarchy(inputs="images")
    >>> domains.names, domains.input_shape, [len(domain.train) for domain in domains]
    (('superclass', 'class'), (3, 32, 32), [49990, 49990])
    >>> [domains.classes[domain.test.y[0]] for domain in domains]
    ['large natural outdoor scenes', 'mountain']
    """
    if inputs == "pictures":  # the name of this option until version 0.1.0
        warnings.warn("`inputs='pictures'` is now called 'images'.", FutureWarning, stacklevel=2)
        inputs = "images"
    if inputs not in INPUTS:
        raise ValueError(
            f"`inputs` must be one of {', '.join(map(repr, INPUTS))}; it is {inputs!r}."
        )
    check_backbone(backbone)
    classes = _read_names(locate(CIFAR100))
    train_x, train_labels, test_x, test_labels = _load(inputs, backbone)
    domains, first = [], 0
    for d, (name, (_, n_labels)) in enumerate(LEVELS.items()):
        train = Examples(train_x, first + train_labels[:, d])
        domains.append(Domain(name, train, Examples(test_x, first + test_labels[:, d])))
        first += n_labels  # the classes follow the superclasses
    return DomainSet(
        "cifar100-hierarchy", tuple(domains), n_groups=25_000, group_size=2, classes=classes
    )


def load_images() -> tuple[LabelledImages, LabelledImages]:
    """Load the training part and the test part as published, including duplicate images.

    Examples
    --------
    >>> train, test = load_images()
    >>> train.images.shape, test.images.shape
    ((50000, 3, 32, 32), (10000, 3, 32, 32))
    """
    train, test = (_read_part(path) for path in _part_files(locate(CIFAR100)))
    return train, test


def _load(inputs: str, backbone: str) -> tuple[Array | Images, Array, Array | Images, Array]:
    """Training inputs, training labels, test inputs and test labels."""
    sources = _part_files(locate(CIFAR100))
    made = prepare("cifar100-pictures", sources, _make, version=VERSION)
    images = np.load(made / "pictures.npy", mmap_mode="r")
    train_labels, test_labels = (np.load(made / f"{part}-labels.npy") for part in PARTS)
    n_train = len(train_labels)
    if inputs == "images":
        return Images(images[:n_train]), train_labels, Images(images[n_train:]), test_labels
    x = compute_features(images, backbone, f"cifar100-{VERSION}", sources)
    return x[:n_train], train_labels, x[n_train:], test_labels


def _make(into: Path) -> None:
    """Write the training images that are not test images, followed by the test images."""
    train, test = load_images()
    tested = {hashlib.sha256(image).digest() for image in test.images}
    rows = np.flatnonzero([hashlib.sha256(image).digest() not in tested for image in train.images])
    with (into / "pictures.npy").open("wb") as file:
        shape = (len(rows) + len(test.images), *test.images.shape[1:])
        np.lib.format.write_array_header_1_0(
            file, {"descr": "|u1", "fortran_order": False, "shape": shape}
        )
        for start in range(0, len(rows), BLOCK):  # in blocks, to avoid a second copy in memory
            file.write(train.images[rows[start : start + BLOCK]].data)
        file.write(np.ascontiguousarray(test.images).data)
    np.save(into / "train-labels.npy", train.labels[rows])
    np.save(into / "test-labels.npy", test.labels)


# Both layouts


def _is_pickled(folder: Path) -> bool:
    return folder.name == CIFAR100_PICKLED.folder


def _part_files(folder: Path) -> list[Path]:
    """The files of the training part and of the test part."""
    return [folder / (part if _is_pickled(folder) else f"{part}.bin") for part in PARTS]


def _read_part(path: Path) -> LabelledImages:
    pixels, labels = (_read_pickled if _is_pickled(path.parent) else _read_binary)(path)
    if (
        labels.shape != (len(pixels), len(LEVELS))
        or (labels < 0).any()
        or (labels >= [n for _, n in LEVELS.values()]).any()
    ):
        raise _wrong(path)
    return LabelledImages(pixels.reshape(-1, 3, SIDE, SIDE), labels.astype(np.int64))


def _read_names(folder: Path) -> tuple[str, ...]:
    """Names of the superclasses, then of the classes."""
    names: list[str] = []
    for level, n_labels in LEVELS.values():
        path, found = (_pickled_names if _is_pickled(folder) else _binary_names)(folder, level)
        if len(found) != n_labels:
            raise _wrong(path)
        names += (name.replace("_", " ") for name in found)
    return tuple(names)


def _wrong(path: Path) -> DataError:
    return DataError(
        f"'{path}' is damaged or is not a file of CIFAR-100; delete it and fetch the data again "
        "with: leaflearn data get cifar100-hierarchy"
    )


# The binary layout: superclass, class and 3,072 pixels of each image, one byte each


def _read_binary(path: Path) -> tuple[Array, Array]:
    content = np.fromfile(path, dtype=np.uint8)
    if not len(content) or len(content) % (len(LEVELS) + 3 * SIDE * SIDE):
        raise _wrong(path)
    records = content.reshape(-1, len(LEVELS) + 3 * SIDE * SIDE)
    return records[:, len(LEVELS) :], records[:, : len(LEVELS)]


def _binary_names(folder: Path, level: str) -> tuple[Path, list[str]]:
    path = folder / f"{level}_label_names.txt"
    return path, path.read_text(encoding="latin1").split()


# The pickled layout


def _read_pickled(path: Path) -> tuple[Array, Array]:
    content = _load_pickle(path)
    pixels = content.get(b"data")
    lists = [content.get(f"{level}_labels".encode()) for level, _ in LEVELS.values()]
    if (
        not isinstance(pixels, np.ndarray)
        or pixels.dtype != np.uint8
        or pixels.ndim != 2
        or pixels.shape[1] != 3 * SIDE * SIDE
        or not all(_is_list_of(labels, int) and len(labels) == len(pixels) for labels in lists)
    ):
        raise _wrong(path)
    return np.ascontiguousarray(pixels), np.array(lists, dtype=np.int64).T


def _pickled_names(folder: Path, level: str) -> tuple[Path, list[str]]:
    names = _load_pickle(folder / "meta").get(f"{level}_label_names".encode())
    if not _is_list_of(names, bytes):
        raise _wrong(folder / "meta")
    return folder / "meta", [name.decode("latin1") for name in names]


def _is_list_of(values: object, kind: type) -> TypeGuard[list[Any]]:
    return isinstance(values, list) and all(type(value) is kind for value in values)


class _RefusedError(pickle.UnpicklingError):
    """A pickle refers to something that a file of arrays does not need."""


class _ArrayUnpickler(pickle.Unpickler):
    """Reads lists, dictionaries, text, numbers and numpy arrays, and calls nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ADMITTED:
            raise _RefusedError(f"{module}.{name}"[:160])
        return super().find_class(module, name)


def _load_pickle(path: Path) -> dict[Any, Any]:
    """Load the dictionary in a pickle; text that Python 2 wrote becomes bytes."""
    try:
        with path.open("rb") as file:
            content = _ArrayUnpickler(file, encoding="bytes").load()
    except _RefusedError as error:
        raise DataError(
            f"'{path}' is refused and none of its code ran, because it refers to {str(error)!r}; "
            "delete it and fetch the data again with: leaflearn data get cifar100-hierarchy"
        ) from None
    except OSError as error:
        raise DataError(f"Cannot read '{path}': {error.strerror or error}.") from error
    except Exception:  # damaged pickles raise almost anything
        raise _wrong(path) from None
    if not isinstance(content, dict):
        raise _wrong(path)
    return content
