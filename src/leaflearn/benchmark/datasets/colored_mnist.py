"""Colored MNIST: handwritten digits in eight colors, labelled by digit or by color."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np

from leaflearn.benchmark.datasets.colored_digits import CLASSES, COLORS, DIGITS, paint
from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.registry import register
from leaflearn.benchmark.datasets.sources import Array, Examples, Images
from leaflearn.benchmark.datasets.store import DataError, Files, RemoteFile, locate

# PyTorch's copy; the authors' own page asks for a password
ADDRESS = "https://ossci-datasets.s3.amazonaws.com/mnist/"
KNOWN = {  # size in bytes and checksum, as published
    "train-images-idx3-ubyte.gz": (9912422, "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873"),
    "train-labels-idx1-ubyte.gz": (28881, "md5:d53e105ee54ea40749a09fcbcd1e9432"),
    "t10k-images-idx3-ubyte.gz": (1648877, "md5:9fb629c4189551a2d022fa330f9573f3"),
    "t10k-labels-idx1-ubyte.gz": (4542, "md5:ec29112dd5afa0611ce80d1b7f02629c"),
}
MNIST = Files(
    folder="mnist",
    title="MNIST (LeCun, Bottou, Bengio and Haffner 1998)",
    terms="free for research, with citation",
    contents={name: checksum for name, (_, checksum) in KNOWN.items()},
    remote=tuple(
        RemoteFile(ADDRESS + name, name, size, checksum) for name, (size, checksum) in KNOWN.items()
    ),
    by_hand=f"Put the four files {', '.join(KNOWN)} there.",
)
SEED = 0  # of the colors, which are part of the data
IMAGES, LABELS = 0x0803, 0x0801  # first number of a file of bytes in three dimensions, in one


@register("colored-mnist", files=MNIST)
def colored_mnist() -> DomainSet:
    """Handwritten digits (3, 28, 28) in eight colors, labelled by digit or by color.

    There are 60,000 training and 10,000 test images. The color of an image is fixed. The default
    sample has 60,000 groups of one, which is one of the paper's ten epochs.

    Examples
    --------
    >>> domains = colored_mnist()
    >>> domains.names, domains.input_shape, [len(domain.train) for domain in domains]
    (('digit', 'color'), (3, 28, 28), [60000, 60000])
    >>> [domains.classes[domain.test.y[0]] for domain in domains]
    ['7', 'purple']
    """
    generator = np.random.default_rng(SEED)
    train, test = (_color(*load_digits(part), generator) for part in ("train", "t10k"))
    domains = tuple(
        Domain(name, train=Examples(train[0], train[1][d]), test=Examples(test[0], test[1][d]))
        for d, name in enumerate(("digit", "color"))
    )
    return DomainSet("colored-mnist", domains, n_groups=60_000, group_size=1, classes=CLASSES)


def load_digits(part: str) -> tuple[Array, Array]:
    """Load gray images (N, 28, 28) as bytes and their digits (N,), of `"train"` or `"t10k"`.

    Examples
    --------
    >>> images, digits = load_digits("t10k")
    >>> images.shape, digits[:5]
    ((10000, 28, 28), array([7, 2, 1, 0, 4], dtype=uint8))
    """
    folder = locate(MNIST)
    images, digits = (
        read_idx(folder / f"{part}-images-idx3-ubyte.gz", IMAGES),
        read_idx(folder / f"{part}-labels-idx1-ubyte.gz", LABELS),
    )
    if len(images) != len(digits):
        raise DataError(
            f"MNIST's part '{part}' has {len(images)} images and {len(digits)} labels in "
            f"'{folder}'; delete the files and fetch them again."
        )
    return images, digits


def read_idx(path: Path, magic: int) -> Array:
    """Read the array of bytes in a gzipped IDX file.

    The file holds the number `magic`, one number per dimension, and the bytes.

    Examples
    --------
    >>> read_idx(locate(MNIST) / "t10k-labels-idx1-ubyte.gz", LABELS).shape
    (10000,)
    """
    try:
        with gzip.open(path) as file:
            header = np.frombuffer(file.read(4 + 4 * (magic & 0xFF)), dtype=">i4")
            content = np.frombuffer(file.read(), dtype=np.uint8)
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
        raise DataError(f"Cannot read '{path}' ({error}); delete it and fetch it again.") from None
    if (
        len(header) == 0
        or header[0] != magic
        or content.size != np.prod(header[1:], dtype=np.int64)
    ):
        raise DataError(
            f"'{path}' is not an IDX file of this data set; delete it and fetch it again."
        )
    return content.reshape(header[1:])


def _color(
    images: Array, digits: Array, generator: np.random.Generator
) -> tuple[Images, tuple[Array, Array]]:
    """Colored images, and both labels of each."""
    color = generator.integers(len(COLORS), size=len(images))  #                              (N,)
    return Images(paint(images, color)), (digits.astype(np.int64), len(DIGITS) + color)
