"""The fashion catalogue and its two tasks: the right rows, no picture twice, answers that fit, folder or zip, damage in one sentence."""

import shutil
import zipfile

import numpy as np
import pytest
from PIL import Image

import stand_ins
from leaflearn.datasets import fashion_pictures
from leaflearn.datasets.fashion_opposite import fashion_opposite
from leaflearn.datasets.fashion_parallel import fashion_parallel
from leaflearn.datasets.fashion_pictures import FASHION, load_catalogue, read_catalogue
from leaflearn.datasets.store import DataError, MissingDataError, data_folder


@pytest.fixture
def fashion(folder):
    stand_ins.write_fashion(folder / FASHION.folder)
    return folder / FASHION.folder


def test_only_rows_of_the_task_that_have_a_picture_are_read(fashion):
    everything = read_catalogue(fashion)
    assert everything.pictures.shape == (144, 3, 80, 60)  # eight of each combination
    assert np.bincount(everything.values @ (9, 3, 1)).tolist() == [8] * 18


def test_a_copy_is_left_out_before_the_split(fashion):
    train, test = load_catalogue()
    assert len(train.pictures) + len(test.pictures) == 143


def test_both_parts_have_the_same_mixture_of_attributes(fashion):
    train, test = load_catalogue()
    assert set(np.bincount(train.values @ (9, 3, 1), minlength=18)) <= {6, 7}
    assert set(np.bincount(test.values @ (9, 3, 1), minlength=18)) <= {1, 2}


def test_every_domain_names_its_own_attribute(fashion):
    data = fashion_parallel()
    assert data.classes == ("male", "female", "apparel", "footwear", "accessories", "black", "white", "blue")
    assert data.shares_inputs
    gender, category, color = (domain.test for domain in data)
    for row in range(len(gender)):
        picture = gender.x[row]
        answers = [data.classes[domain.test.y[row]] for domain in data]
        corner = picture[:, :8, :8].mean()
        assert answers[0] == ("male" if corner > 0.9 else "female")
        top = {"apparel": 10, "footwear": 45, "accessories": 30}[answers[1]]
        ink = picture[:, top + 5 : top + 20, 15:45].mean((1, 2))
        expected = np.array(stand_ins.INKS[answers[2].capitalize()]) / 255
        assert np.abs(ink - expected).max() < 0.1
    assert len(category) == len(color) == len(gender)


def test_what_he_likes_she_does_not(fashion):
    data = fashion_opposite()
    for domain, likes in zip(data, ("male", "female"), strict=True):
        for part in (domain.train, domain.test):
            is_for_men = np.array([part.x[row][:, :8, :8].mean() > 0.9 for row in range(len(part))])
            assert np.array_equal(part.y == 1, is_for_men == (likes == "male"))


def test_each_picture_is_shown_to_one_person_and_half_of_each_kind_to_each(fashion):
    him, her = fashion_opposite()
    for part in ("train", "test"):
        tables = [getattr(person, part) for person in (him, her)]
        assert abs(len(tables[0]) - len(tables[1])) <= 2
        assert abs(np.sum(tables[0].y == 1) - np.sum(tables[1].y == 0)) <= 1  # products for men
        shown = [{picture.tobytes() for picture in table.x.stored} for table in tables]
        assert not shown[0] & shown[1]


def test_a_smaller_height_keeps_the_split_and_the_look(fashion):
    (train, _), (small, _) = load_catalogue(), load_catalogue(height=40)
    assert small.pictures.shape[1:] == (3, 40, 30)
    assert np.array_equal(train.values, small.values)
    average = train.pictures.reshape(-1, 3, 40, 2, 30, 2).mean((3, 5))
    assert np.abs(average - small.pictures).max() <= 1


@pytest.mark.parametrize("height", [4, 42, 81, 160])
def test_a_height_that_cannot_be_is_refused(height):
    with pytest.raises(ValueError, match=rf"^`height` must be a multiple of 4 from 8 to 80, the height as published; it is {height}\.$"):
        load_catalogue(height)


def test_pictures_of_another_size_are_centred_on_white(fashion):
    row = read_catalogue(fashion).pictures[1005 - 1000]
    assert (row[:, :, :3] == 255).all()
    assert (row[:, :, -4:] == 255).all()
    assert (row[:, :, 3:-4] < 255).any()


@pytest.mark.parametrize("place", ["beside", "inside"])
@pytest.mark.parametrize("top", ["", "myntradataset/"])
def test_the_zip_file_reads_like_the_folder(fashion, place, top):
    expected = load_catalogue()
    name = f"{FASHION.folder}.zip"
    zipped = fashion.parent / name
    with zipfile.ZipFile(zipped, "w") as archive:
        for path in [fashion / "styles.csv", *(fashion / "images").iterdir()]:
            archive.write(path, top + path.relative_to(fashion).as_posix())
    shutil.rmtree(fashion)
    if place == "inside":
        fashion.mkdir()
        zipped.rename(fashion / name)
    for before, after in zip(expected, load_catalogue(), strict=True):
        assert np.array_equal(before.pictures, after.pictures)
        assert np.array_equal(before.values, after.values)


def test_the_second_time_no_picture_is_decoded(fashion, monkeypatch):
    expected = load_catalogue()
    monkeypatch.setattr(fashion_pictures, "_decode", None)
    assert np.array_equal(load_catalogue()[0].pictures, expected[0].pictures)


def test_changed_files_are_read_again(fashion):
    load_catalogue()
    for number in range(1006, 1010):
        (fashion / "images" / f"{number}.jpg").unlink()
    assert sum(len(part.pictures) for part in load_catalogue()) == 143 - 4


def test_a_damaged_picture_ends_in_one_sentence_and_leaves_nothing_behind(fashion):
    path = fashion / "images" / "1010.jpg"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(DataError, match=rf"^Cannot read the picture '{path}' \(.*\); fetch the data again\.$"):
        load_catalogue()
    assert list((data_folder() / "prepared").iterdir()) == []


def test_a_zip_without_the_table_and_a_file_that_is_no_zip_end_in_one_sentence(folder):
    zipped = folder / f"{FASHION.folder}.zip"
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(DataError, match=rf"^'{zipped}' has no styles.csv in it; put the zip file of '{FASHION.folder}' there\.$"):
        load_catalogue()
    zipped.write_bytes(b"<html>please log in</html>")
    with pytest.raises(DataError, match=rf"^'{zipped}' is not a whole zip file; delete it and fetch it again\.$"):
        load_catalogue()


def test_missing_files_end_in_a_sentence_that_says_what_to_put_where(folder):
    with pytest.raises(
        MissingDataError, match=r"^Fashion Product Images \(Small\).*: 'styles.csv' and 1 more are not in '.*'\. Get .*, there\.$"
    ):
        fashion_parallel()


def test_a_table_that_names_no_picture_ends_in_one_sentence(fashion):
    (fashion / "styles.csv").write_text("id,gender\n1000,Men\n")
    with pytest.raises(
        DataError, match=r"^'.*styles.csv' names no picture of the paper's task that is in images/; fetch the data again\.$"
    ):
        load_catalogue()


def test_the_published_files_have_the_right_counts(need):
    need(FASHION)
    train, test = load_catalogue()
    assert (len(train.pictures), len(test.pictures)) == (15_000, 2_464)
    assert len(read_catalogue(data_folder() / FASHION.folder).pictures) == 17_633
    assert Image.fromarray(train.pictures[0].transpose(1, 2, 0)).size == (60, 80)
