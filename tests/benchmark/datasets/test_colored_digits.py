"""Colored digits: one color per image, two labellings in one space, a fixed split."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.colored_digits import CLASSES, COLORS, colored_digits, paint


@pytest.fixture(scope="module")
def domains():
    return colored_digits()


def test_it_is_registered():
    assert DATASETS["colored-digits"].factory is colored_digits


def test_shapes_and_range(domains):
    assert domains.input_shape == (3, 8, 8)
    for domain in domains:
        assert domain.train.x.shape == (1300, 3, 8, 8)
        assert domain.test.x.shape == (497, 3, 8, 8)
        assert domain.train.x.dtype == np.float32
        assert (domain.train.x.min(), domain.train.x.max()) == (0.0, 1.0)


def test_labels_share_one_space_with_readable_names(domains):
    digit, color = domains
    assert set(digit.train.y) == set(range(10))
    assert set(color.train.y) == set(range(10, 18))
    assert domains.classes == CLASSES
    assert CLASSES[10:] == ("red", "blue", "yellow", "green", "pink", "cyan", "white", "purple")


def test_both_domains_share_the_images(domains):
    digit, color = domains
    assert digit.train.x is color.train.x
    assert digit.test.x is color.test.x


def test_every_image_has_the_color_of_its_label(domains):
    digit, color = domains
    brightest = digit.test.x.max(axis=(2, 3))  #                                (N, 3)
    painted = np.array([COLORS[CLASSES[label]] for label in color.test.y])
    gray = brightest.max(axis=1) / painted.max(axis=1)
    assert brightest == pytest.approx(painted * gray[:, None], abs=1e-6)


def test_the_digit_is_the_image_without_the_color(domains):
    originals = {
        image.tobytes(): target
        for image, target in zip(load_digits().images, load_digits().target, strict=True)
    }
    digit, color = domains
    white = color.test.y == CLASSES.index("white")
    recovered = [
        originals[(image[0].astype(float) * 16).tobytes()] for image in digit.test.x[white]
    ]
    assert recovered == digit.test.y[white].tolist()


def test_digits_are_stratified_and_the_split_is_fixed(domains):
    train, test = (
        np.bincount(part.y) / len(part)
        for part in (domains.domains[0].train, domains.domains[0].test)
    )
    assert train == pytest.approx(test, abs=0.005)
    assert np.array_equal(colored_digits().domains[0].test.x, domains.domains[0].test.x)


def test_paint_multiplies_gray_by_the_color():
    # yellow
    assert paint(np.full((1, 2, 2), 0.5), np.array([2]))[0, :, 0, 0].tolist() == [0.5, 0.5, 0.0]
