"""Images read like numbers and stay bytes."""

import numpy as np
import pytest

from leaflearn.benchmark.datasets.sources import Images

BYTES = np.random.default_rng(0).integers(0, 256, (5, 3, 4, 6), dtype=np.uint8)


def test_rows_are_numbers_between_zero_and_one():
    images = Images(BYTES)
    assert np.array_equal(images[[3, 1]], BYTES[[3, 1]] / np.float32(255))
    assert images[:2].dtype == np.float32
    assert np.array_equal(np.asarray(images), BYTES / np.float32(255))
    assert np.asarray(images, dtype=np.float64).dtype == np.float64
    assert (images.shape, images.ndim, len(images), images.dtype) == (
        (5, 3, 4, 6),
        4,
        5,
        np.float32,
    )


@pytest.mark.parametrize("wrong", [BYTES.astype(float), BYTES[0]])
def test_arrays_that_are_not_images_are_refused(wrong):
    with pytest.raises(
        ValueError,
        match=r"^`Images` needs bytes of shape \(N, channels, height, width\); this array is "
        r"(float64|uint8) of shape \(.*\)\.$",
    ):
        Images(wrong)
