"""Fashion Product Images (Small): a shop's catalogue with several attributes for each image, read once and kept as arrays."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from leaflearn.benchmark.datasets.prepared import prepare
from leaflearn.benchmark.datasets.sources import Array
from leaflearn.benchmark.datasets.store import DataError, Files, RemoteFile, locate
from leaflearn.benchmark.datasets.unpacking import DAMAGE
from leaflearn.progress import progress_bar

NAME = "fashion-product-images-small"
FASHION = Files(
    folder=NAME,
    title="Fashion Product Images (Small), P. Aggarwal, Kaggle",
    terms="MIT, says its page; the photographs are a retailer's",
    contents={"styles.csv": None, "images/": None},
    remote=(
        RemoteFile(
            f"https://www.kaggle.com/api/v1/datasets/download/paramaggarwal/{NAME}",
            f"{NAME}.zip",
            archive=True,
        ),
    ),
    by_hand=f"Get the zip file of '{NAME}' by paramaggarwal from Kaggle, and put it, or what is in it, there.",
    archives=(f"{NAME}.zip", f"{NAME}/{NAME}.zip", f"{NAME}/archive.zip"),
)
# The paper's three tasks: the attribute in styles.csv, and what its values are called here.
ATTRIBUTES: dict[str, tuple[str, dict[str, str]]] = {
    "gender": ("gender", {"Men": "male", "Women": "female"}),
    "category": (
        "masterCategory",
        {"Apparel": "apparel", "Footwear": "footwear", "Accessories": "accessories"},
    ),
    "color": ("baseColour", {"Black": "black", "White": "white", "Blue": "blue"}),
}
N_TRAIN = 15_000
PARTS = ("train", "test")
SEED = 0  # of the split, which is part of the data
VERSION = 1  # of the prepared arrays: raise it when what is made changes
MOST_ABSENT = 10  # images; the published table has two rows without one
WIDTH, HEIGHT = 60, 80  # as published, but for seven images
Tree = Path | zipfile.Path  # a folder, or a zip file that reads like one


class Catalogue(NamedTuple):
    """Images with the values of their attributes."""

    images: (
        Array  # bytes                                                    (N, 3, height, width)
    )
    values: Array  # number of the value, for gender, category, color           (N, 3)


def load_catalogue(height: int = HEIGHT) -> tuple[Catalogue, Catalogue]:
    """The training part, 15,000 images, and the test part, the rest, with the same mixture of attributes in both.

    Of 17,633 images with the paper's attributes 169 are copies of another one, pixel by pixel. They are left out before the split, so
    that no test image was trained on; of copies the one with the lowest number stays.

    Parameters
    ----------
    height
        Images are scaled down to this many rows, 80 as published; they are three quarters as wide.

    Examples
    --------
    >>> train, test = load_catalogue()
    >>> train.images.shape, test.images.shape
    ((15000, 3, 80, 60), (2464, 3, 80, 60))
    """
    if not 8 <= height <= HEIGHT or height % 4:
        raise ValueError(
            f"`height` must be a multiple of 4 from 8 to {HEIGHT}, the height as published; it is {height}."
        )
    origin = locate(FASHION)
    sources = [origin / "styles.csv", origin / "images"] if origin.is_dir() else [origin]
    made = prepare(
        f"{NAME}-{height}", sources, lambda into: _make(origin, height, into), version=VERSION
    )
    train, test = (
        Catalogue(
            np.load(made / f"{part}-pictures.npy", mmap_mode="r"),
            np.load(made / f"{part}-values.npy"),
        )
        for part in PARTS
    )
    return train, test


def read_catalogue(tree: Tree) -> Catalogue:
    """Every image that has one of the paper's values for each attribute, by rising number, duplicates included.

    Examples
    --------
    >>> read_catalogue(locate(FASHION)).values.shape
    (17633, 3)
    """
    tree = _open(tree)
    chosen = _select(tree)
    images = np.empty((len(chosen), 3, HEIGHT, WIDTH), dtype=np.uint8)
    with progress_bar("reading images", total=len(chosen)) as advance:
        for row, name in enumerate(chosen):
            images[row] = _decode(tree / "images" / name)
            advance(row + 1)
    return Catalogue(images, np.array(list(chosen.values()), dtype=np.int64))


def _make(origin: Path, height: int, into: Path) -> None:
    """Read all, drop what is there twice, split, and write both parts."""
    from sklearn.model_selection import train_test_split  # not above: it takes a second to import

    everything = read_catalogue(origin)
    distinct = _first_of_each(everything.images)
    mixture = everything.values[distinct] @ (9, 3, 1)  # a number for each combination of attributes
    try:
        split = train_test_split(
            distinct,
            train_size=min(N_TRAIN, len(distinct) * 7 // 8),
            stratify=mixture,
            random_state=SEED,
        )
    except ValueError:
        raise DataError(
            f"'{origin}' has too few images ({len(distinct)}) to train on some and test on others; delete the data and fetch them again."
        ) from None
    for part, rows in zip(PARTS, split, strict=True):
        np.save(into / f"{part}-pictures.npy", _scale(everything.images[rows], height))
        np.save(into / f"{part}-values.npy", everything.values[rows])


def _first_of_each(images: Array) -> Array:
    """Rows of the images that are no copy, pixel by pixel, of an earlier one."""
    first: dict[bytes, int] = {}
    for row, image in enumerate(images):
        first.setdefault(hashlib.sha256(image.tobytes()).digest(), row)
    return np.fromiter(first.values(), dtype=np.intp)


def _select(tree: Tree) -> dict[str, tuple[int, ...]]:
    """File names of the images that the task uses, by rising number, and the number of each attribute's value."""
    table, images = tree / "styles.csv", tree / "images"
    try:
        named = _read_table(table)
    except (OSError, csv.Error, *DAMAGE) as error:
        raise DataError(
            f"Cannot read the table '{table}' ({error}); delete the data and fetch them again."
        ) from None
    there = {path.name for path in images.iterdir()} if images.is_dir() else set()
    chosen = {name: values for name, values in named.items() if name in there}
    if len(named) - len(chosen) > MOST_ABSENT:
        raise DataError(
            f"'{images}' lacks {len(named) - len(chosen):,} of the {len(named):,} images that styles.csv names for this task; "
            "delete the data and fetch them again."
        )
    if not chosen:
        raise DataError(
            f"'{table}' names no image of the paper's task that is in images/; delete the data and fetch them again."
        )
    return dict(sorted(chosen.items(), key=lambda item: int(item[0].removesuffix(".jpg"))))


def _read_table(table: Tree) -> dict[str, tuple[int, ...]]:
    """File names of the images that the table gives for the task, and the number of each attribute's value."""
    codes = [
        (column, {value: code for code, value in enumerate(values)})
        for column, values in ATTRIBUTES.values()
    ]
    named = {}
    with table.open(
        encoding="utf-8", errors="replace", newline=""
    ) as file:  # only in names, which are not used
        for row in csv.DictReader(
            file, quoting=csv.QUOTE_NONE
        ):  # a name with commas spills over at the end, behind all that is read here
            values = tuple(code.get(row.get(column) or "", -1) for column, code in codes)
            number = row.get("id") or ""
            if min(values) >= 0 and re.fullmatch("[0-9]{1,9}", number):
                named[f"{number}.jpg"] = values
    return named


def _scale(images: Array, height: int) -> Array:
    """The images (N, 3, 80, 60) at that height, each pixel the average of those that it stands for."""
    if height == HEIGHT:
        return images
    size = (height * WIDTH // HEIGHT, height)
    scaled = (
        Image.fromarray(image.transpose(1, 2, 0)).resize(size, Image.Resampling.BOX)
        for image in images
    )
    return np.stack([np.asarray(image).transpose(2, 0, 1) for image in scaled])


def _decode(path: Tree) -> Array:
    """One image (3, 80, 60) as bytes; the few of another size are centred on white, as the catalogue's own ground is."""
    try:
        image = Image.open(io.BytesIO(path.read_bytes())).convert("RGB")
    except (OSError, SyntaxError, Image.DecompressionBombError, *DAMAGE) as error:
        raise DataError(
            f"Cannot read the image '{path}' ({error}); delete the data and fetch them again."
        ) from None
    if image.size != (WIDTH, HEIGHT):
        canvas = Image.new("RGB", (WIDTH, HEIGHT), "white")
        canvas.paste(image, ((WIDTH - image.width) // 2, (HEIGHT - image.height) // 2))
        image = canvas
    return np.asarray(image).transpose(2, 0, 1)


def _open(origin: Tree) -> Tree:
    """The folder in which styles.csv stands; in a zip file, the one that is least deep."""
    if not isinstance(origin, Path) or origin.is_dir():
        return origin
    try:
        archive = zipfile.ZipFile(origin)
    except zipfile.BadZipFile:
        raise DataError(
            f"'{origin}' is not a whole zip file; delete it and fetch it again."
        ) from None
    tables = sorted(
        (name for name in archive.namelist() if Path(name).name == "styles.csv"),
        key=lambda name: name.count("/"),
    )
    if not tables:
        raise DataError(f"'{origin}' has no styles.csv in it; put the zip file of '{NAME}' there.")
    return zipfile.Path(archive, tables[0].removesuffix("styles.csv"))
