"""Files appear whole or not at all."""

import os
import stat

import pytest

from leaflearn.persistence.atomic_files import make_folder, write_file


def test_it_writes_and_replaces(tmp_path):
    path = tmp_path / "a.txt"
    write_file(path, b"one")
    write_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["a.txt"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_failure_leaves_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_file(path, b"old")

    def fail(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_folders_are_made_with_those_above_them(tmp_path):
    assert make_folder(tmp_path / "a" / "b").is_dir()
    assert make_folder(tmp_path / "a" / "b").is_dir()  # a second time too


def test_a_file_in_the_way_is_named(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(
        NotADirectoryError,
        match=f"^Cannot write into '{file}': it is a file, and a folder is needed.$",
    ):
        make_folder(file)
    with pytest.raises(
        NotADirectoryError,
        match=f"^Cannot write into '{file}/below': {file} is a file, and a folder is needed.$",
    ):
        make_folder(file / "below")
