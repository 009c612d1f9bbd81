"""Files and folders appear complete or not at all, even if the writing process is killed."""

import ctypes
import os
import shutil
import stat
from itertools import count
from pathlib import Path

import pytest

from leaflearn.persistence import atomic_files
from leaflearn.persistence.atomic_files import find_folder, make_folder, write_file, write_folder

OLD, NEW = {"a": b"old" * 100, "b": b"older"}, {"a": b"new" * 200, "c": b"newer"}
CALLS = ("open", "write", "fsync", "mkdir", "rename", "unlink", "rmdir")


class Killed(BaseException):
    """The process was killed: cleanup code does not run either."""


def kill_at(number, monkeypatch):
    """Make the n-th call that changes the disk fail, and all later ones; a write is cut in half."""
    calls = count(1)

    def wrap(name, original):
        def call(*arguments, **options):
            place = next(calls)
            if place == number and name == "write":
                original(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            if place >= number:
                raise Killed
            return original(*arguments, **options)

        return call

    for name in CALLS:
        monkeypatch.setattr(os, name, wrap(name, getattr(os, name)))
    monkeypatch.setattr(atomic_files, "_exchange", wrap("exchange", atomic_files._exchange))
    monkeypatch.setattr(shutil, "rmtree", wrap("rmtree", shutil.rmtree))


def read(folder):
    folder = find_folder(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else None


def allow(folder):
    """Any folder may be replaced."""


def can_exchange(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    possible = atomic_files._exchange(tmp_path / "one", tmp_path / "other")
    (tmp_path / "one").rmdir()
    (tmp_path / "other").rmdir()
    return possible


def test_write_file_writes_and_replaces(tmp_path):
    path = tmp_path / "a.txt"
    write_file(path, b"one")
    write_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["a.txt"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_after_an_error_the_old_file_remains_and_no_temporary_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_file(path, b"old")

    def fail(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_make_folder_creates_parents(tmp_path):
    assert make_folder(tmp_path / "a" / "b").is_dir()
    assert make_folder(tmp_path / "a" / "b").is_dir()  # no error if it exists


def test_make_folder_names_a_file_at_the_path_or_above(tmp_path):
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


@pytest.mark.parametrize("in_one_step", [True, False])
@pytest.mark.parametrize("before", [None, OLD])
def test_a_write_that_is_killed_at_any_call_leaves_the_old_or_the_new_folder(
    tmp_path, before, in_one_step
):
    if in_one_step and not can_exchange(tmp_path):
        pytest.skip("This system cannot exchange two folders in one step.")
    seen = []
    for number in count(1):
        folder = tmp_path / str(number) / "model"
        folder.parent.mkdir()
        if before:
            write_folder(folder, before, allow)
        with pytest.MonkeyPatch.context() as monkeypatch:
            if not in_one_step:
                monkeypatch.setattr(atomic_files, "_exchange", lambda new, folder: False)
            kill_at(number, monkeypatch)
            try:
                write_folder(folder, NEW, allow)
                survived = True
            except Killed:
                survived = False
        assert read(folder) in (before, NEW)
        seen.append(read(folder) == NEW)
        write_folder(folder, {"d": b"third"}, allow)  # the next write works
        assert read(folder) == {"d": b"third"}
        if survived:
            break
    assert seen == sorted(seen)  # old up to some call, new after it
    assert len(seen) > 10
    assert not seen[0]
    assert seen[-1]


@pytest.mark.parametrize("in_one_step", [True, False])
def test_after_an_error_the_old_folder_remains_and_no_temporary_one(
    tmp_path, monkeypatch, in_one_step
):
    folder = tmp_path / "model"
    write_folder(folder, OLD, allow)
    if not in_one_step:
        monkeypatch.setattr(atomic_files, "_exchange", lambda new, folder: False)
    for name in ("write", "rename", "fsync"):
        with monkeypatch.context() as inside:
            original, calls = getattr(os, name), count()

            def fail(*arguments, original=original, calls=calls, name=name):
                # The first rename fails because the old folder exists.
                if name == "rename" and next(calls) != 2:
                    return original(*arguments)
                raise OSError("disk full")

            inside.setattr(os, name, fail)
            if name == "rename" and in_one_step:
                continue
            with pytest.raises(OSError, match=r"^disk full$"):
                write_folder(folder, NEW, allow)
        assert read(folder) == OLD
        assert os.listdir(tmp_path) == ["model"]


def test_between_the_two_steps_of_a_swap_the_new_folder_is_found(tmp_path):
    for name, content in ((".model.0123abcd.old", OLD), (".model.0123abcd.new", NEW)):
        write_folder(tmp_path / name, content, allow)
    assert read(tmp_path / "model") == NEW
    write_folder(tmp_path / "other", OLD, allow)  # a write beside it changes nothing
    assert read(tmp_path / "model") == NEW
    write_folder(tmp_path / "model", OLD, allow)
    assert sorted(os.listdir(tmp_path)) == ["model", "other"]


def test_an_old_hidden_folder_is_not_found_after_the_folder_was_deleted(tmp_path):
    write_folder(tmp_path / ".model.0123abcd.old", OLD, allow)
    assert read(tmp_path / "model") is None


def test_hidden_folders_of_killed_processes_are_removed_after_a_day(tmp_path):
    fresh, stale, other = (
        tmp_path / name
        for name in (".model.00000000.new", ".model.11111111.new", ".model.notes.new")
    )
    for path in (fresh, stale, other):
        path.mkdir()
    for path in (stale, other):
        os.utime(path, (0, 0))
    write_folder(tmp_path / "model", NEW, allow)
    assert sorted(os.listdir(tmp_path)) == [".model.00000000.new", ".model.notes.new", "model"]


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    write_folder(tmp_path / "model-1", OLD, allow)
    (tmp_path / "latest").symlink_to("model-1")
    write_folder(tmp_path / "latest", NEW, allow)
    assert (tmp_path / "latest").is_symlink()
    assert read(tmp_path / "model-1") == NEW


def test_an_empty_folder_is_replaced_and_check_old_can_refuse(tmp_path):
    (tmp_path / "model").mkdir()
    write_folder(tmp_path / "model", OLD, allow)

    def refuse(folder):
        raise ValueError(f"{folder.name} stays")

    with pytest.raises(ValueError, match=r"^model stays$"):
        write_folder(tmp_path / "model", NEW, refuse)
    assert read(tmp_path / "model") == OLD


def test_exchange_returns_false_on_older_systems(tmp_path, monkeypatch):
    class Library:
        """The C library of an older system."""

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    assert not atomic_files._exchange(Path("a"), Path("b"))
