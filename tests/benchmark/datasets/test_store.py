"""The data folder is found, and missing or wrong files are named."""

import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from leaflearn.benchmark.datasets.store import (
    DataError,
    Files,
    MissingDataError,
    cache_folder,
    data_folder,
    locate,
    matches,
    missing,
    verify,
)

RIGHT = "md5:" + hashlib.md5(b"meow").hexdigest()
FILES = Files(
    "pets", "Pets, by A. Nimal", "CC0", by_hand="Draw some there.",
    contents={"cats.csv": RIGHT, "dogs.csv": "sha256:0", "birds.csv": None, "images/": None},
)  # fmt: skip


@pytest.fixture
def pets(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAFLEARN_DATA", str(tmp_path))
    (tmp_path / "pets").mkdir()
    return tmp_path / "pets"


def fill(pets):
    for name in ("cats.csv", "dogs.csv", "birds.csv"):
        (pets / name).write_bytes(b"meow")
    (pets / "images").mkdir()
    (pets / "images" / "tom.png").write_bytes(b"")


class TestFolder:
    def test_the_variable_sets_it(self, monkeypatch):
        monkeypatch.setenv("LEAFLEARN_DATA", "/some/where")
        assert data_folder() == Path("/some/where")

    def test_the_variable_may_be_relative_to_home_or_to_the_current_folder(
        self, monkeypatch, tmp_path
    ):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("LEAFLEARN_DATA", "~/data")
        assert data_folder() == tmp_path / "data"
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("LEAFLEARN_DATA", "data")
        assert data_folder() == tmp_path / "data"

    @pytest.mark.parametrize("value", [None, ""])
    def test_the_default_is_the_cache(self, monkeypatch, value):
        monkeypatch.delenv("LEAFLEARN_DATA", raising=False)
        if value is not None:
            monkeypatch.setenv("LEAFLEARN_DATA", value)
        assert data_folder() == cache_folder()

    @pytest.mark.parametrize(
        ("platform", "variables", "expected"),
        [
            ("linux", {}, "/home/ada/.cache/leaflearn"),
            ("linux", {"XDG_CACHE_HOME": "/fast"}, "/fast/leaflearn"),
            ("darwin", {"XDG_CACHE_HOME": "/fast"}, "/home/ada/Library/Caches/leaflearn"),
            ("win32", {}, "/home/ada/AppData/Local/leaflearn"),
            ("win32", {"LOCALAPPDATA": "/local"}, "/local/leaflearn"),
        ],
    )
    def test_the_cache_follows_the_conventions_of_the_system(
        self, monkeypatch, platform, variables, expected
    ):
        for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
            monkeypatch.delenv(name, raising=False)
        for name, value in {"HOME": "/home/ada", **variables}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "platform", platform)
        assert cache_folder() == Path(expected)


class TestFiles:
    def test_nothing_is_there(self, pets):
        assert missing(FILES) == ["cats.csv", "dogs.csv", "birds.csv", "images/"]
        assert set(verify(FILES).values()) == {"missing"}

    def test_all_are_there(self, pets):
        fill(pets)
        assert missing(FILES) == []
        assert locate(FILES) == pets
        assert verify(FILES) == {
            "cats.csv": "right",
            "dogs.csv": "wrong",
            "birds.csv": "there",
            "images/": "there",
        }

    def test_a_changed_byte_is_detected(self, pets):
        fill(pets)
        (pets / "cats.csv").write_bytes(b"meoW")
        assert verify(FILES)["cats.csv"] == "wrong"

    def test_an_empty_folder_and_one_in_the_place_of_a_file_are_missing(self, pets):
        fill(pets)
        (pets / "images" / "tom.png").unlink()
        (pets / "birds.csv").unlink()
        (pets / "birds.csv").mkdir()
        assert missing(FILES) == ["birds.csv", "images/"]

    def test_the_error_names_what_is_missing_and_what_to_do(self, pets):
        fill(pets)
        (pets / "birds.csv").unlink()
        with pytest.raises(MissingDataError) as caught:
            locate(FILES)
        assert (
            str(caught.value)
            == f"Pets, by A. Nimal: 'birds.csv' is not in '{pets}'. Draw some there."
        )
        (pets / "cats.csv").unlink()
        with pytest.raises(MissingDataError) as caught:
            locate(FILES)
        assert (
            str(caught.value)
            == f"Pets, by A. Nimal: 'cats.csv' and 1 more are not in '{pets}'. Draw some there."
        )

    def test_without_advice_the_sentence_ends(self, pets):
        with pytest.raises(DataError) as caught:
            locate(Files("pets", "Pets", "CC0", contents={"cats.csv": None}))
        assert str(caught.value) == f"Pets: 'cats.csv' is not in '{pets}'."


class TestArchives:
    files = Files(
        "pets",
        "Pets",
        "CC0",
        contents={"cats.csv": None},
        by_hand="Draw some.",
        archives=("pets.zip", "pets/archive.zip"),
    )

    def test_one_replaces_the_contents(self, pets):
        zipfile.ZipFile(pets / "archive.zip", "w").close()
        assert missing(self.files) == []
        assert verify(self.files) == {"pets/archive.zip": "there"}
        assert locate(self.files) == pets / "archive.zip"

    def test_the_folder_of_the_set_need_not_exist(self, pets):
        pets.rmdir()
        zipfile.ZipFile(pets.parent / "pets.zip", "w").close()
        assert locate(self.files) == pets.parent / "pets.zip"

    def test_the_contents_come_first(self, pets):
        zipfile.ZipFile(pets / "archive.zip", "w").close()
        (pets / "cats.csv").touch()
        assert verify(self.files) == {"cats.csv": "there"}
        assert locate(self.files) == pets

    def test_a_file_that_is_not_an_archive_replaces_nothing(self, pets):
        (pets / "archive.zip").write_text("<html>")
        assert missing(self.files) == ["cats.csv"]
        assert verify(self.files) == {"cats.csv": "missing"}
        with pytest.raises(DataError) as caught:
            locate(self.files)
        assert (
            str(caught.value)
            == f"'{pets / 'archive.zip'}' is not a complete zip file; delete it and fetch it again."
        )
        (pets / "cats.csv").touch()
        assert locate(self.files) == pets


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_checksums_of_files_larger_than_what_is_read_at_once(tmp_path, algorithm):
    content = b"meow" * 1_000_000
    (tmp_path / "cats").write_bytes(content)
    assert matches(tmp_path / "cats", f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}")
    assert not matches(
        tmp_path / "cats", f"{algorithm}:{hashlib.new(algorithm, content[:-1]).hexdigest()}"
    )


def test_a_registered_data_set_has_the_arguments_of_its_factory():
    from leaflearn.benchmark.datasets.registry import DataSet

    silent = DataSet("silent", lambda *arguments, **options: (arguments, options))
    assert silent(40, height=3) == ((40,), {"height": 3})
    assert silent.summary == ""
