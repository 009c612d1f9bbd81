"""Colored MNIST: one color per image; damaged files end in a sentence."""

import gzip
import subprocess
import sys

import numpy as np
import pytest

import stand_ins
from leaflearn.benchmark.datasets.colored_digits import COLORS
from leaflearn.benchmark.datasets.colored_mnist import MNIST, colored_mnist, load_digits
from leaflearn.benchmark.datasets.store import DataError, MissingDataError, verify


@pytest.fixture
def mnist(folder):
    stand_ins.write_mnist(folder / "mnist")
    return folder / "mnist"


def test_an_image_is_its_digit_in_its_color(mnist):
    data = colored_mnist()
    images, digits = load_digits("t10k")
    digit, color = (domain.test for domain in data)
    assert np.array_equal(digit.y, digits)
    names = [data.classes[label] for label in color.y]
    assert set(names) == set(COLORS)
    for row, name in enumerate(names):
        expected = images[row][None] * np.array(COLORS[name])[:, None, None] / 255
        assert np.abs(digit.x[row] - expected).max() < 1 / 255


def test_both_domains_label_the_same_images(mnist):
    data = colored_mnist()
    assert data.shares_inputs
    assert all(domain.test.x is data.domains[0].test.x for domain in data)


def test_missing_files_end_in_a_sentence_that_says_what_to_put_where(folder):
    with pytest.raises(MissingDataError) as error:
        colored_mnist()
    assert str(error.value) == (
        f"MNIST (LeCun, Bottou, Bengio and Haffner 1998): 'train-images-idx3-ubyte.gz' and 3 more "
        f"are not in '{folder / 'mnist'}'. "
        "Put the four files train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, "
        "t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz "
        "there."
    )


def cut(content):
    return content[: len(content) // 2]


def garble(content):
    return content[:40] + b"\0" * 40 + content[80:]


def shorten(content):
    return gzip.compress(gzip.decompress(content)[:-7])


def exchange_magic(content):
    return gzip.compress(b"\0\0\x0d\x03" + gzip.decompress(content)[4:])


@pytest.mark.parametrize(
    "damage",
    [
        cut,
        garble,
        shorten,
        exchange_magic,
        lambda content: b"",
        lambda content: b"<html>",
        lambda content: gzip.compress(b"ab"),
    ],
)
def test_damaged_files_end_in_one_sentence(mnist, damage):
    path = mnist / "train-images-idx3-ubyte.gz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=rf"'{path}'.*; delete it and fetch it again\.$"):
        colored_mnist()


def test_there_must_be_as_many_images_as_labels(mnist):
    stand_ins.write_idx(mnist / "train-labels-idx1-ubyte.gz", np.zeros(7, dtype=np.uint8))
    with pytest.raises(
        DataError,
        match=r"^MNIST's part 'train' has 300 images and 7 labels in '.*'; delete the files and "
        r"fetch them again\.$",
    ):
        colored_mnist()


def test_the_published_files_have_the_published_counts(need):
    need(MNIST)
    data = colored_mnist()
    digit, color = data
    assert [len(digit.train), len(digit.test)] == [60_000, 10_000]
    assert np.bincount(digit.train.y).tolist() == [
        5923,
        6742,
        5958,
        6131,
        5842,
        5421,
        5918,
        6265,
        5851,
        5949,
    ]
    share = np.bincount(color.train.y)[10:] / 60_000
    assert np.abs(share - 1 / 8).max() < 4 * np.sqrt(1 / 8 * 7 / 8 / 60_000)
    assert set(verify(MNIST).values()) == {"right"}


def test_loading_takes_little_more_memory_than_the_images(need):
    need(MNIST)
    code = """
import resource, leaflearn.benchmark.datasets as datasets
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
datasets.colored_mnist()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    grown = (
        int(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )
        * 1024
    )
    assert grown < 2 * 70_000 * 3 * 28 * 28
