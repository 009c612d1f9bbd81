"""Images named by a table, and errors about images that cannot be read."""

import numpy as np
import pandas
import pytest
from PIL import Image

from leaflearn.messages import NoImageColumn
from leaflearn.tabular.images import ImageFiles, find_image_column


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "images"
    (place / "deep").mkdir(parents=True)
    Image.new("RGB", (50, 20), (255, 0, 0)).save(place / "red.png")
    Image.new("L", (10, 10), 255).save(place / "deep" / "white.png")
    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(place / "clear.png")
    (place / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nand no more")
    return place


def test_images_become_three_small_channels(folder):
    frame = pandas.DataFrame({"file": ["red.png", "deep/white.png", "clear.png"]})
    images = ImageFiles("file", size=4).read(frame, folder)
    assert images.shape == (3, 3, 4, 4)
    assert images[0, :, 2, 2].tolist() == [1.0, 0.0, 0.0]
    np.testing.assert_array_equal(images[1], 1.0)


def test_the_column_is_found_by_its_files(folder):
    assert (
        find_image_column(pandas.DataFrame({"n": [1], "note": ["x"], "file": ["red.png"]}), folder)
        == "file"
    )
    with pytest.raises(ValueError) as error:  # noqa: PT011
        find_image_column(pandas.DataFrame({"note": ["x"]}), folder)
    assert str(error.value) == (
        f"No column of the table names files in '{folder}'; pass the column that does as "
        "image_column=."
    )
    assert error.value.message == NoImageColumn(str(folder))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gone.png", "Column 'file' names 'gone.png' in row 2, but there is no such file in '{}'."),
        (
            "broken.png",
            "Column 'file' names 'broken.png' in row 2, but that file in '{}' cannot be read as "
            "an image.",
        ),
        (
            "deep",
            "Column 'file' names 'deep' in row 2, but that file in '{}' cannot be read as an "
            "image.",
        ),
        (
            "../secret.png",
            "Column 'file' names '../secret.png' in row 2, which is outside of '{}'; name files "
            "inside it.",
        ),
        (
            "/etc/passwd",
            "Column 'file' names '/etc/passwd' in row 2, which is outside of '{}'; name files "
            "inside it.",
        ),
        (None, "Column 'file' names 'nan' in row 2, but there is no such file in '{}'."),
    ],
)
def test_an_image_that_cannot_be_read_is_an_error_that_names_its_row(folder, name, sentence):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        ImageFiles("file").read(pandas.DataFrame({"file": ["red.png", name]}), folder)
    assert str(error.value) == sentence.format(folder)


def test_an_image_that_would_fill_the_memory_is_an_error(folder, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(ValueError, match="cannot be read as an image"):
        ImageFiles("file").read(pandas.DataFrame({"file": ["red.png"]}), folder)
