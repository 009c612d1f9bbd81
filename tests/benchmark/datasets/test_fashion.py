"""The fashion catalogue and its two tasks: rows, duplicates, labels, folder or zip, and damage."""

import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from PIL import Image

import stand_ins
from leaflearn.benchmark.datasets import fashion as module
from leaflearn.benchmark.datasets import store
from leaflearn.benchmark.datasets.fashion import (
    FASHION,
    fashion_opposite,
    fashion_parallel,
    load_catalogue,
    read_catalogue,
)
from leaflearn.benchmark.datasets.store import DataError, MissingDataError, data_folder


@pytest.fixture
def fashion(folder):
    stand_ins.write_fashion(folder / FASHION.folder)
    return folder / FASHION.folder


def test_only_rows_of_the_task_that_have_an_image_are_read(fashion):
    everything = read_catalogue(fashion)
    assert everything.images.shape == (144, 3, 80, 60)  # eight of each combination
    assert np.bincount(everything.values @ (9, 3, 1)).tolist() == [8] * 18


def test_a_copy_is_excluded_before_the_split(fashion):
    train, test = load_catalogue()
    assert len(train.images) + len(test.images) == 143


def test_both_parts_have_the_same_mixture_of_attributes(fashion):
    train, test = load_catalogue()
    assert set(np.bincount(train.values @ (9, 3, 1), minlength=18)) <= {6, 7}
    assert set(np.bincount(test.values @ (9, 3, 1), minlength=18)) <= {1, 2}


def test_every_domain_names_its_own_attribute(fashion):
    data = fashion_parallel()
    assert data.classes == (
        "male",
        "female",
        "apparel",
        "footwear",
        "accessories",
        "black",
        "white",
        "blue",
    )
    assert data.shares_inputs
    gender, category, color = (domain.test for domain in data)
    for row in range(len(gender)):
        image = gender.x[row]
        answers = [data.classes[domain.test.y[row]] for domain in data]
        corner = image[:, :8, :8].mean()
        assert answers[0] == ("male" if corner > 0.9 else "female")
        top = {"apparel": 10, "footwear": 45, "accessories": 30}[answers[1]]
        ink = image[:, top + 5 : top + 20, 15:45].mean((1, 2))
        expected = np.array(stand_ins.INKS[answers[2].capitalize()]) / 255
        assert np.abs(ink - expected).max() < 0.1
    assert len(category) == len(color) == len(gender)


def test_the_two_domains_have_opposite_labels(fashion):
    data = fashion_opposite()
    for domain, likes in zip(data, ("male", "female"), strict=True):
        for part in (domain.train, domain.test):
            is_for_men = np.array([part.x[row][:, :8, :8].mean() > 0.9 for row in range(len(part))])
            assert np.array_equal(part.y == 1, is_for_men == (likes == "male"))


def test_each_image_is_in_one_domain_and_each_kind_is_split_in_half(fashion):
    him, her = (person.train for person in fashion_opposite())
    assert abs(len(him) - len(her)) <= 2
    assert abs(np.sum(him.y == 1) - np.sum(her.y == 0)) <= 1  # products for men
    shown = [{image.tobytes() for image in table.x.stored} for table in (him, her)]
    assert not shown[0] & shown[1]


def test_both_domains_are_tested_on_the_same_images_with_opposite_labels(fashion):
    him, her = (person.test for person in fashion_opposite())
    assert np.array_equal(him.x.stored, her.x.stored)
    assert np.array_equal(him.y, 1 - her.y)


def test_a_smaller_height_keeps_the_split_and_the_content(fashion):
    (train, _), (small, _) = load_catalogue(), load_catalogue(height=40)
    assert small.images.shape[1:] == (3, 40, 30)
    assert np.array_equal(train.values, small.values)
    average = train.images.reshape(-1, 3, 40, 2, 30, 2).mean((3, 5))
    assert np.abs(average - small.images).max() <= 1


@pytest.mark.parametrize("height", [4, 42, 81, 160])
def test_an_invalid_height_is_refused(height):
    with pytest.raises(
        ValueError,
        match=rf"^`height` must be a multiple of 4 from 8 to 80, the published height; it is "
        rf"{height}\.$",
    ):
        load_catalogue(height)


def test_images_of_another_size_are_centered_on_white(fashion):
    row = read_catalogue(fashion).images[1005 - 1000]
    assert (row[:, :, :3] == 255).all()
    assert (row[:, :, -4:] == 255).all()
    assert (row[:, :, 3:-4] < 255).any()


def zip_up(fashion, top=""):
    """Put what is in the folder into a zip file beside it, and remove the folder."""
    zipped = fashion.with_name(f"{fashion.name}.zip")
    with zipfile.ZipFile(zipped, "w") as archive:
        for path in [fashion / "styles.csv", *(fashion / "images").iterdir()]:
            archive.write(path, top + path.relative_to(fashion).as_posix())
    shutil.rmtree(fashion)
    return zipped


@pytest.mark.parametrize("place", ["beside", "inside"])
@pytest.mark.parametrize("top", ["", "myntradataset/"])
def test_the_zip_file_reads_like_the_folder(fashion, place, top):
    expected = load_catalogue()
    zipped = zip_up(fashion, top)
    if place == "inside":
        fashion.mkdir()
        zipped.rename(fashion / zipped.name)
    assert store.missing(FASHION) == []
    for before, after in zip(expected, load_catalogue(), strict=True):
        assert np.array_equal(before.images, after.images)
        assert np.array_equal(before.values, after.values)


def test_cached_images_are_not_decoded_again(fashion, monkeypatch):
    expected = load_catalogue()
    monkeypatch.setattr(module, "_decode", None)
    assert np.array_equal(load_catalogue()[0].images, expected[0].images)


def test_another_version_is_made_again(fashion, monkeypatch):
    expected = load_catalogue()[0].values
    monkeypatch.setattr(module, "VERSION", 2)
    monkeypatch.setattr(module, "SEED", 1)
    assert not np.array_equal(load_catalogue()[0].values, expected)


def test_changed_files_are_read_again(fashion):
    load_catalogue()
    for number in range(1006, 1010):
        (fashion / "images" / f"{number}.jpg").unlink()
    assert sum(len(part.images) for part in load_catalogue()) == 143 - 4


def test_a_damaged_image_ends_in_one_sentence_and_leaves_nothing_behind(fashion):
    path = fashion / "images" / "1010.jpg"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(
        DataError,
        match=rf"^Cannot read the image '{path}' \(.*\); delete the data and fetch them again\.$",
    ):
        load_catalogue()
    assert list((data_folder() / "prepared").iterdir()) == []


@pytest.mark.parametrize("member", ["images/1010.jpg", "styles.csv"])
def test_a_damaged_member_of_the_zip_ends_in_one_sentence(fashion, member):
    damaged = (fashion / member).read_bytes()
    zipped = zip_up(fashion)
    content = bytearray(zipped.read_bytes())
    content[content.find(damaged) + len(damaged) // 2] ^= 1
    zipped.write_bytes(content)
    kind = "table" if member == "styles.csv" else "image"
    with pytest.raises(
        DataError,
        match=rf"^Cannot read the {kind} '{zipped}/{member}' \(Bad CRC-32 .*\); delete the data "
        rf"and fetch them again\.$",
    ):
        load_catalogue()


@pytest.mark.parametrize(
    ("n_lost", "as_zip"),
    [(11, False), (60, False), (143, False), (144, False), (60, True), (144, True)],
)
def test_a_folder_with_half_of_the_images_is_refused(fashion, n_lost, as_zip):
    images = sorted((fashion / "images").iterdir())
    for path in images[:n_lost]:
        path.unlink()
    (fashion / "images" / "0.jpg").touch()  # an empty folder would be missing
    tree = zip_up(fashion) if as_zip else fashion
    with pytest.raises(DataError) as error:
        load_catalogue()
    assert str(error.value).replace("images/'", "images'") == (
        f"'{tree}/images' lacks {n_lost + 1} of the 145 images that styles.csv lists for this "
        f"task; delete the data and fetch them again."
    )


def test_a_zip_without_images_ends_in_one_sentence(fashion):
    zipped = fashion.with_name(f"{fashion.name}.zip")
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.write(fashion / "styles.csv", "styles.csv")
    shutil.rmtree(fashion)
    with pytest.raises(DataError, match=rf"^'{zipped}/images' lacks 145 of the 145 images "):
        load_catalogue()


@pytest.mark.parametrize("n_rows", [1, 2, 18, 19, 40])
def test_a_tiny_catalogue_ends_in_one_sentence(fashion, n_rows):
    lines = (fashion / "styles.csv").read_text().splitlines(keepends=True)
    (fashion / "styles.csv").write_text("".join(lines[: 1 + n_rows]))
    n_distinct = n_rows - (n_rows > 4)  # one of them is a copy
    with pytest.raises(DataError) as error:
        load_catalogue()
    assert (
        str(error.value)
        == f"'{fashion}' has too few images ({n_distinct}) for a training part and a test part; "
        f"delete the data and fetch them again."
    )


ROW = "{},Men,Apparel,-,-,Black,Summer,2012,Casual,{}\n"


@pytest.mark.parametrize(
    "row",
    [
        ROW.format("abc", "Shirt").encode(),
        ROW.format("9" * 5000, "Shirt").encode(),
        ROW.format("²", "Shirt").encode(),
        ROW.format("1000", "Café").encode("latin1"),
        ROW.format("1000", "A \0 in it").encode(),
        b"\n\n,,\n",
        b"1000",
    ],
    ids=["no number", "too long a number", "small two", "latin1", "zero byte", "blank", "cut"],
)
def test_odd_rows_change_nothing(fashion, row):
    expected = read_catalogue(fashion)
    for name in ("abc", "²"):
        shutil.copy(fashion / "images" / "1001.jpg", fashion / "images" / f"{name}.jpg")
    with (fashion / "styles.csv").open("ab") as file:
        file.write(row)
    assert np.array_equal(read_catalogue(fashion).values, expected.values)


def test_an_unclosed_quote_does_not_hide_rows(fashion):
    expected = read_catalogue(fashion)
    text = (fashion / "styles.csv").read_text()
    (fashion / "styles.csv").write_text(text.replace(",Thing 1004", ',"Thing 1004'))
    assert np.array_equal(read_catalogue(fashion).values, expected.values)


def test_a_file_that_is_not_a_table_ends_in_one_sentence(fashion):
    path = fashion / "styles.csv"
    with path.open("ab") as file:
        file.write(b"1001,Men," + b"a" * 200_000 + b"\n")
    with pytest.raises(DataError) as error:
        load_catalogue()
    assert (
        str(error.value)
        == f"Cannot read the table '{path}' (field larger than field limit (131072)); delete the "
        f"data and fetch them again."
    )


def test_a_zip_without_the_table_and_a_file_that_is_not_a_zip_end_in_one_sentence(folder):
    zipped = folder / f"{FASHION.folder}.zip"
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(
        DataError,
        match=rf"^'{zipped}' contains no styles.csv; put the zip file of '{FASHION.folder}' "
        rf"there\.$",
    ):
        load_catalogue()
    zipped.write_bytes(b"<html>please log in</html>")
    with pytest.raises(
        DataError, match=rf"^'{zipped}' is not a complete zip file; delete it and fetch it again\.$"
    ):
        load_catalogue()


def test_missing_files_end_in_a_sentence_that_says_what_to_put_where(folder):
    with pytest.raises(
        MissingDataError,
        match=r"^Fashion Product Images \(Small\).*: 'styles.csv' and 1 more are not in '.*'\. "
        r"Download .*, there\.$",
    ):
        fashion_parallel()


def test_a_table_without_images_of_the_task_ends_in_one_sentence(fashion):
    (fashion / "styles.csv").write_text("id,gender\n1000,Men\n")
    with pytest.raises(
        DataError,
        match=r"^'.*styles.csv' lists no image of the paper's task that is in images/; delete the "
        r"data and fetch them again\.$",
    ):
        load_catalogue()


def test_the_published_files_have_the_right_counts(need):
    need(FASHION)
    train, test = load_catalogue()
    assert (len(train.images), len(test.images)) == (15_000, 2_464)
    assert len(read_catalogue(data_folder() / FASHION.folder).images) == 17_633
    assert Image.fromarray(train.images[0].transpose(1, 2, 0)).size == (60, 80)


IMPORT = """
import sys
import leaflearn.benchmark.datasets
print({"torch", "sklearn", "scipy"} & set(sys.modules))
"""


def test_importing_the_data_sets_imports_no_slow_package():
    printed = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True
    ).stdout
    assert printed == "set()\n"
