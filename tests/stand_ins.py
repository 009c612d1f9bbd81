"""Small files in the formats of the publishers, to test every loader without the real data."""

import csv
import gzip
import itertools
import pickle
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from leaflearn.benchmark.datasets.gas_simulator import simulate_gas_mixtures

INKS = {"Black": (20, 20, 20), "White": (235, 235, 235), "Blue": (30, 60, 200)}


def write_all(folder: Path) -> None:
    """Write the files of all data sets."""
    write_mnist(folder / "mnist")
    write_fashion(folder / "fashion-product-images-small")
    write_cifar100(folder / "cifar-100-binary")
    simulate_gas_mixtures(
        folder / "gas-sensor-array-under-dynamic-gas-mixtures", n_rows=4000, random_state=0
    )


def write_mnist(folder: Path, n_train: int = 300, n_test: int = 100) -> None:
    """The digits of scikit-learn, enlarged and padded to 28 by 28 pixels."""
    folder.mkdir(parents=True)
    digits = load_digits()
    images = np.zeros((len(digits.images), 28, 28), dtype=np.uint8)
    images[:, 2:26, 2:26] = (
        (digits.images * 15.9).astype(np.uint8).repeat(3, axis=1).repeat(3, axis=2)
    )
    for part, rows in (("train", slice(0, n_train)), ("t10k", slice(n_train, n_train + n_test))):
        write_idx(folder / f"{part}-images-idx3-ubyte.gz", images[rows])
        write_idx(folder / f"{part}-labels-idx1-ubyte.gz", digits.target[rows].astype(np.uint8))


def write_idx(path: Path, array) -> None:
    header = np.array([0x0800 + array.ndim, *array.shape], dtype=">i4").tobytes()
    path.write_bytes(gzip.compress(header + array.tobytes()))


def write_fashion(folder: Path, n_of_each: int = 8) -> None:
    """Products whose colour, position and background encode their attributes.

    One image is a copy of another, one has another size, and some rows have no image.
    """
    (folder / "images").mkdir(parents=True)
    generator = np.random.default_rng(0)
    rows = [
        [
            "id",
            "gender",
            "masterCategory",
            "subCategory",
            "articleType",
            "baseColour",
            "season",
            "year",
            "usage",
            "productDisplayName",
        ]
    ]
    combinations = (
        list(itertools.product(("Men", "Women"), ("Apparel", "Footwear", "Accessories"), INKS))
        * n_of_each
    )
    for number, (gender, category, color) in enumerate(combinations, start=1000):
        rows.append(
            [number, gender, category, "-", "-", color, "Summer", 2012, "Casual", f"Thing {number}"]
        )
        image = np.full((80, 60, 3), 255 if gender == "Men" else 200, dtype=np.uint8)
        top = {"Apparel": 10, "Footwear": 45, "Accessories": 30}[category]
        image[top : top + 25, 10:50] = INKS[color]
        image = (
            (image.astype(int) + generator.integers(-20, 20, image.shape))
            .clip(0, 255)
            .astype(np.uint8)
        )
        Image.fromarray(image).save(folder / "images" / f"{number}.jpg", quality=95)
    # A copy under another number.
    (folder / "images" / "1004.jpg").write_bytes((folder / "images" / "1003.jpg").read_bytes())
    Image.open(folder / "images" / "1005.jpg").crop((0, 0, 53, 80)).save(
        folder / "images" / "1005.jpg"
    )
    rows.append(
        [900, "Men", "Apparel", "-", "-", "Black", "Summer", 2012, "Casual", "No image of this"]
    )
    rows.append(
        [
            1000,
            "Men",
            "Apparel",
            "-",
            "-",
            "Black",
            "Summer",
            2012,
            "Casual",
            "A name, with a comma",
            " and another",
        ]
    )
    rows.append(
        [901, "Boys", "Apparel", "-", "-", "Black", "Summer", 2012, "Casual", "Not of this task"]
    )
    with (folder / "styles.csv").open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_NONE, escapechar="\\").writerows(rows)


def write_cifar100(folder: Path, n_of_each: int = 4) -> None:
    """A hundred hues of noise in the publisher's binary layout."""
    folder.mkdir(parents=True)
    for part, (pixels, fine) in _cifar100_parts(n_of_each).items():
        (folder / f"{part}.bin").write_bytes(
            np.column_stack([fine // 5, fine, pixels]).astype(np.uint8).tobytes()
        )
    for level, n_labels in (("coarse", 20), ("fine", 100)):
        names = "".join(f"{level}_{number}\n" for number in range(n_labels))
        (folder / f"{level}_label_names.txt").write_text(names)


def write_pickled_cifar100(folder: Path, n_of_each: int = 4) -> None:
    """The same images in the publisher's pickled layout."""
    folder.mkdir(parents=True)
    for part, (pixels, fine) in _cifar100_parts(n_of_each).items():
        content = {
            b"data": pixels,
            b"fine_labels": fine.tolist(),
            b"coarse_labels": (fine // 5).tolist(),
            b"filenames": [b"x.png"] * len(fine),
        }
        (folder / part).write_bytes(pickle.dumps(content, protocol=2))
    names = {
        f"{level}_label_names".encode(): [
            f"{level}_{number}".encode() for number in range(n_labels)
        ]
        for level, n_labels in (("coarse", 20), ("fine", 100))
    }
    (folder / "meta").write_bytes(pickle.dumps(names, protocol=2))


def _cifar100_parts(n_of_each: int) -> dict:
    """Pixels (N, 3072) and classes (N,) of each part."""
    generator = np.random.default_rng(0)
    fine = np.repeat(np.arange(100), n_of_each)
    hue = np.random.default_rng(1).integers(0, 200, (100, 3, 1))[fine]
    return {
        part: (
            (hue + generator.integers(0, 50, (len(fine), 3, 1024)))
            .astype(np.uint8)
            .reshape(len(fine), 3072),
            fine,
        )
        for part in ("train", "test")
    }
