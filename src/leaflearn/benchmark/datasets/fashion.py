"""Fashion Product Images (Small): a shop's catalogue with several attributes of each image.

Two data sets of the paper use it. In `fashion-parallel` each image has three labels: gender,
category and color. In `fashion-opposite` one person likes what the other dislikes. The images are
decoded once and cached as arrays.
"""

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

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.prepared import prepare
from leaflearn.benchmark.datasets.registry import register
from leaflearn.benchmark.datasets.sources import Array, Examples, Images
from leaflearn.benchmark.datasets.store import DataError, Files, RemoteFile, locate
from leaflearn.benchmark.datasets.unpacking import DAMAGE
from leaflearn.progress import progress_bar

NAME = "fashion-product-images-small"
FASHION = Files(
    folder=NAME,
    title="Fashion Product Images (Small), P. Aggarwal, Kaggle",
    terms="MIT according to its page; the photographs are a retailer's",
    contents={"styles.csv": None, "images/": None},
    remote=(
        RemoteFile(
            f"https://www.kaggle.com/api/v1/datasets/download/paramaggarwal/{NAME}",
            f"{NAME}.zip",
            archive=True,
        ),
    ),
    by_hand=f"Download the zip file of '{NAME}' by paramaggarwal from Kaggle, "
    "and put it, or its contents, there.",
    archives=(f"{NAME}.zip", f"{NAME}/{NAME}.zip", f"{NAME}/archive.zip"),
)
# The paper's three tasks: the attribute in styles.csv, and the class name of each value.
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
OPINIONS = ("negative", "positive")
SEED = 0  # of the split and of who labels which image, which are part of the data
VERSION = 1  # of the prepared arrays; increase it when `_make` changes
MAX_ABSENT = 10  # images; the published table has two rows without an image
WIDTH, HEIGHT = 60, 80  # pixels of all published images except seven
Tree = Path | zipfile.Path  # a folder, or a zip file with the same interface


@register("fashion-parallel", files=FASHION)
def fashion_parallel(height: int = HEIGHT) -> DomainSet:
    """Product images (3, 80, 60) labelled by gender, category or color.

    There are 15,000 training and 2,464 test images, and eight labels. The default sample has 15,000
    groups of one, which is one of the paper's 50 epochs.

    Parameters
    ----------
    height
        Scale the images down to this many rows; see `load_catalogue`.

    Examples
    --------
    >>> domains = fashion_parallel()
    >>> domains.names, domains.input_shape
    (('gender', 'category', 'color'), (3, 80, 60))
    >>> [domains.classes[domain.test.y[0]] for domain in domains]
    ['female', 'footwear', 'black']
    """
    (train_x, train_values), (test_x, test_values) = load_catalogue(height)
    train, test = Images(train_x), Images(test_x)  # shared by all domains
    domains: list[Domain] = []
    classes: list[str] = []
    for d, (name, (_, values)) in enumerate(ATTRIBUTES.items()):
        first = len(classes)  # the labels of each domain follow those of the previous one
        domains.append(
            Domain(
                name,
                train=Examples(train, first + train_values[:, d]),
                test=Examples(test, first + test_values[:, d]),
            )
        )
        classes += values.values()
    return DomainSet(
        "fashion-parallel", tuple(domains), n_groups=15_000, group_size=1, classes=tuple(classes)
    )


@register("fashion-opposite", files=FASHION)
def fashion_opposite(height: int = HEIGHT) -> DomainSet:
    """Product images (3, 80, 60), liked or disliked by a man or by a woman.

    The man likes products for men, the woman likes products for women. A random half of the images
    for men and of those for women is labelled by the man, the rest by the woman, so each of the
    15,000 training images belongs to one domain. Both domains are tested on all 2,464 test images:
    the paper's errors of a single model, 49.50 and 50.50 %, add up to 100, as they do on the same
    images. The default sample has 750 groups of 20, which is one of the paper's 50 epochs.

    Parameters
    ----------
    height
        Scale the images down to this many rows; see `load_catalogue`.

    Examples
    --------
    >>> domains = fashion_opposite()
    >>> domains.names, domains.classes, [len(domain.train) for domain in domains]
    (('male', 'female'), ('negative', 'positive'), [7501, 7499])
    >>> [len(domain.test) for domain in domains]
    [2464, 2464]
    """
    train, test = load_catalogue(height)
    person_of = _assign_images(train, np.random.default_rng(SEED))
    domains = tuple(
        Domain(
            name,
            train=_opinions(train, np.flatnonzero(person_of == person), person),
            test=_opinions(test, np.arange(len(test.values)), person),
        )
        for person, name in enumerate(("male", "female"))
    )
    return DomainSet("fashion-opposite", domains, n_groups=750, group_size=20, classes=OPINIONS)


class Catalogue(NamedTuple):
    """Images with the values of their attributes."""

    images: Array  # bytes                                                    (N, 3, height, width)
    values: Array  # number of the value, for gender, category, color           (N, 3)


def load_catalogue(height: int = HEIGHT) -> tuple[Catalogue, Catalogue]:
    """Load the training part, 15,000 images, and the test part, the rest.

    Both parts have the same distribution of attributes. Of the 17,633 images with the paper's
    attributes, 169 are exact copies of another one. They are excluded before the split, so that no
    test image is a training image; of copies, the one with the lowest number is kept.

    Parameters
    ----------
    height
        Scale the images down to this many rows, 80 as published; the width is three quarters of it.

    Examples
    --------
    >>> train, test = load_catalogue()
    >>> train.images.shape, test.images.shape
    ((15000, 3, 80, 60), (2464, 3, 80, 60))
    """
    if not 8 <= height <= HEIGHT or height % 4:
        raise ValueError(
            f"`height` must be a multiple of 4 from 8 to {HEIGHT}, the published height; "
            f"it is {height}."
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
    """Read all images that have one of the paper's values for each attribute, sorted by number.

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


def _assign_images(catalogue: Catalogue, generator: np.random.Generator) -> Array:
    """Assign half of each gender's images, at random, to the man (0) and half to the woman (1)."""
    for_women = catalogue.values[:, 0]  # 1 for a woman's product                             (N,)
    person_of = np.empty(len(for_women), dtype=np.int64)
    for gender in (0, 1):
        rows = generator.permutation(np.flatnonzero(for_women == gender))
        person_of[rows] = np.arange(len(rows)) % 2
    return person_of


def _opinions(catalogue: Catalogue, rows: Array, person: int) -> Examples:
    """These images, with the labels of this person."""
    likes = catalogue.values[rows, 0] == person
    return Examples(Images(catalogue.images[rows]), likes.astype(np.int64))


def _make(origin: Path, height: int, into: Path) -> None:
    """Read all images, drop duplicates, split, and write both parts."""
    from sklearn.model_selection import train_test_split  # slow to import

    everything = read_catalogue(origin)
    distinct = _first_of_each(everything.images)
    mixture = everything.values[distinct] @ (9, 3, 1)  # one number per combination
    try:
        split = train_test_split(
            distinct,
            train_size=min(N_TRAIN, len(distinct) * 7 // 8),
            stratify=mixture,
            random_state=SEED,
        )
    except ValueError:
        raise DataError(
            f"'{origin}' has too few images ({len(distinct)}) for a training part and a test part; "
            "delete the data and fetch them again."
        ) from None
    for part, rows in zip(PARTS, split, strict=True):
        np.save(into / f"{part}-pictures.npy", _scale(everything.images[rows], height))
        np.save(into / f"{part}-values.npy", everything.values[rows])


def _first_of_each(images: Array) -> Array:
    """Rows of the images that are not an exact copy of an earlier one."""
    first: dict[bytes, int] = {}
    for row, image in enumerate(images):
        first.setdefault(hashlib.sha256(image.tobytes()).digest(), row)
    return np.fromiter(first.values(), dtype=np.intp)


def _select(tree: Tree) -> dict[str, tuple[int, ...]]:
    """File names of the task's images, sorted by number, with the codes of their attributes."""
    table, images = tree / "styles.csv", tree / "images"
    try:
        named = _read_table(table)
    except (OSError, csv.Error, *DAMAGE) as error:
        raise DataError(
            f"Cannot read the table '{table}' ({error}); delete the data and fetch them again."
        ) from None
    there = {path.name for path in images.iterdir()} if images.is_dir() else set()
    chosen = {name: values for name, values in named.items() if name in there}
    if len(named) - len(chosen) > MAX_ABSENT:
        raise DataError(
            f"'{images}' lacks {len(named) - len(chosen):,} of the {len(named):,} images that "
            "styles.csv lists for this task; delete the data and fetch them again."
        )
    if not chosen:
        raise DataError(
            f"'{table}' lists no image of the paper's task that is in images/; "
            "delete the data and fetch them again."
        )
    return dict(sorted(chosen.items(), key=lambda item: int(item[0].removesuffix(".jpg"))))


def _read_table(table: Tree) -> dict[str, tuple[int, ...]]:
    """File names of the task's images in the table, with the codes of their attributes."""
    codes = [
        (column, {value: code for code, value in enumerate(values)})
        for column, values in ATTRIBUTES.values()
    ]
    named = {}
    # bytes that are not UTF-8 occur in product names only, which are not used
    with table.open(encoding="utf-8", errors="replace", newline="") as file:
        # a product name with commas adds columns at the end, which are not used
        for row in csv.DictReader(file, quoting=csv.QUOTE_NONE):
            values = tuple(code.get(row.get(column) or "", -1) for column, code in codes)
            number = row.get("id") or ""
            if min(values) >= 0 and re.fullmatch("[0-9]{1,9}", number):
                named[f"{number}.jpg"] = values
    return named


def _scale(images: Array, height: int) -> Array:
    """Scale images (N, 3, 80, 60) to this height; each pixel is an average."""
    if height == HEIGHT:
        return images
    size = (height * WIDTH // HEIGHT, height)
    scaled = (
        Image.fromarray(image.transpose(1, 2, 0)).resize(size, Image.Resampling.BOX)
        for image in images
    )
    return np.stack([np.asarray(image).transpose(2, 0, 1) for image in scaled])


def _decode(path: Tree) -> Array:
    """Decode one image (3, 80, 60) as bytes; an image of another size is centered on white."""
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
    """The folder that contains styles.csv; in a zip file, the one closest to the root."""
    if not isinstance(origin, Path) or origin.is_dir():
        return origin
    try:
        archive = zipfile.ZipFile(origin)
    except zipfile.BadZipFile:
        raise DataError(
            f"'{origin}' is not a complete zip file; delete it and fetch it again."
        ) from None
    tables = sorted(
        (name for name in archive.namelist() if Path(name).name == "styles.csv"),
        key=lambda name: name.count("/"),
    )
    if not tables:
        raise DataError(f"'{origin}' contains no styles.csv; put the zip file of '{NAME}' there.")
    return zipfile.Path(archive, tables[0].removesuffix("styles.csv"))
