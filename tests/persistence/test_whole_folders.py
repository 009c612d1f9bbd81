"""A folder is seen whole or not at all, whenever the process that writes it dies."""

import ctypes
import os
import shutil
from itertools import count
from pathlib import Path

import pytest

from leaflearn.persistence import whole_folders
from leaflearn.persistence.whole_folders import find_folder, write_folder

OLD, NEW = {"a": b"old" * 100, "b": b"older"}, {"a": b"new" * 200, "c": b"newer"}
CALLS = ("open", "write", "fsync", "mkdir", "rename", "unlink", "rmdir")


class Killed(BaseException):
    """The process is gone: whatever it would still do on its way out does not happen either."""


def kill_at(number, monkeypatch):
    """Let the n-th call that changes the disk fail, a write in the middle, and every later one."""
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
    monkeypatch.setattr(whole_folders, "_exchange", wrap("exchange", whole_folders._exchange))
    monkeypatch.setattr(shutil, "rmtree", wrap("rmtree", shutil.rmtree))


def read(folder):
    folder = find_folder(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else None


def allow(folder):
    """Whatever is there may be replaced."""


def can_exchange(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    possible = whole_folders._exchange(tmp_path / "one", tmp_path / "other")
    (tmp_path / "one").rmdir()
    (tmp_path / "other").rmdir()
    return possible


@pytest.mark.parametrize("in_one_step", [True, False])
@pytest.mark.parametrize("before", [None, OLD])
def test_a_write_that_is_killed_anywhere_leaves_the_old_folder_or_the_new_one(
    tmp_path, before, in_one_step
):
    if in_one_step and not can_exchange(tmp_path):
        pytest.skip("this system cannot exchange two folders in one step")
    seen = []
    for number in count(1):
        folder = tmp_path / str(number) / "model"
        folder.parent.mkdir()
        if before:
            write_folder(folder, before, allow)
        with pytest.MonkeyPatch.context() as monkeypatch:
            if not in_one_step:
                monkeypatch.setattr(whole_folders, "_exchange", lambda new, folder: False)
            kill_at(number, monkeypatch)
            try:
                write_folder(folder, NEW, allow)
                survived = True
            except Killed:
                survived = False
        assert read(folder) in (before, NEW)
        seen.append(read(folder) == NEW)
        write_folder(folder, {"d": b"third"}, allow)  # and the next one works
        assert read(folder) == {"d": b"third"}
        if survived:
            break
    assert seen == sorted(seen)  # old up to some call, new from then on
    assert len(seen) > 10
    assert not seen[0]
    assert seen[-1]


@pytest.mark.parametrize("in_one_step", [True, False])
def test_an_error_leaves_the_old_folder_and_no_rubbish(tmp_path, monkeypatch, in_one_step):
    folder = tmp_path / "model"
    write_folder(folder, OLD, allow)
    if not in_one_step:
        monkeypatch.setattr(whole_folders, "_exchange", lambda new, folder: False)
    for name in ("write", "rename", "fsync"):
        with monkeypatch.context() as inside:
            original, calls = getattr(os, name), count()

            def fail(*arguments, original=original, calls=calls, name=name):
                if (
                    name == "rename" and next(calls) != 2
                ):  # the first finds the old folder in its way
                    return original(*arguments)
                raise OSError("disk full")

            inside.setattr(os, name, fail)
            if name == "rename" and in_one_step:
                continue
            with pytest.raises(OSError, match=r"^disk full$"):
                write_folder(folder, NEW, allow)
        assert read(folder) == OLD
        assert os.listdir(tmp_path) == ["model"]


def test_between_the_two_steps_the_new_folder_counts(tmp_path):
    for name, content in ((".model.0123abcd.old", OLD), (".model.0123abcd.new", NEW)):
        write_folder(tmp_path / name, content, allow)
    assert read(tmp_path / "model") == NEW
    write_folder(tmp_path / "other", OLD, allow)  # a sibling is not concerned
    assert read(tmp_path / "model") == NEW
    write_folder(tmp_path / "model", OLD, allow)
    assert sorted(os.listdir(tmp_path)) == ["model", "other"]


def test_what_stepped_aside_does_not_come_back_once_the_folder_is_deleted(tmp_path):
    write_folder(tmp_path / ".model.0123abcd.old", OLD, allow)
    assert read(tmp_path / "model") is None


def test_what_a_killed_run_left_behind_goes_after_a_day(tmp_path):
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


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    write_folder(tmp_path / "model-1", OLD, allow)
    (tmp_path / "latest").symlink_to("model-1")
    write_folder(tmp_path / "latest", NEW, allow)
    assert (tmp_path / "latest").is_symlink()
    assert read(tmp_path / "model-1") == NEW


def test_an_empty_folder_is_filled_and_one_that_may_not_be_replaced_stays(tmp_path):
    (tmp_path / "model").mkdir()
    write_folder(tmp_path / "model", OLD, allow)

    def refuse(folder):
        raise ValueError(f"{folder.name} stays")

    with pytest.raises(ValueError, match=r"^model stays$"):
        write_folder(tmp_path / "model", NEW, refuse)
    assert read(tmp_path / "model") == OLD


def test_a_system_without_exchange_says_so(tmp_path, monkeypatch):
    class Library:
        """The C library of an older system."""

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    assert not whole_folders._exchange(Path("a"), Path("b"))
