"""Prepared folders are made once, again when their files change, and never visible half done."""

import os
import shutil
import stat
import threading

import pytest

from leaflearn.benchmark.datasets import prepared
from leaflearn.benchmark.datasets.prepared import fingerprint_files
from leaflearn.benchmark.datasets.store import DataError


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAFLEARN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "source").write_text("one")
    return tmp_path / "data"


def prepare(name, sources, make, version=1):
    return prepared.prepare(name, sources, make, version=version)


class Maker:
    """Makes the folder, and counts how often it is asked to."""

    def __init__(self):
        self.n_calls = 0

    def __call__(self, folder):
        self.n_calls += 1
        assert os.listdir(folder) == []
        (folder / "result").write_text(str(self.n_calls))


def refuse(folder):
    raise AssertionError("nothing was to be made")


def change(path):
    path.write_text(path.read_text() + "!")


def test_it_is_made_once(data):
    made = prepare("squares", [data / "source"], Maker())
    assert made.parent == data / "prepared"
    assert (made / "result").read_text() == "1"
    assert prepare("squares", [data / "source"], refuse) == made


def test_it_is_made_again_when_its_source_changes_and_the_old_one_is_removed(data):
    maker = Maker()
    old = prepare("squares", [data / "source"], maker)
    other = prepare("squares-of-primes", [data / "source"], Maker())
    change(data / "source")
    new = prepare("squares", [data / "source"], maker)
    assert (new / "result").read_text() == "2"
    assert not old.exists()
    assert sorted(os.listdir(data / "prepared")) == sorted([new.name, other.name])


def test_it_is_made_again_by_another_version_and_the_old_one_is_removed(data):
    old = prepare("squares", [data / "source"], Maker())
    new = prepare("squares", [data / "source"], Maker(), version=2)
    assert os.listdir(data / "prepared") == [new.name] != [old.name]
    assert prepare("squares", [data / "source"], refuse, version=2) == new


def cut(folder):
    os.truncate(folder / "result", 0)


def lose(folder):
    (folder / "result").unlink()


def forget(folder):
    (folder / prepared.SIZES).write_text('{"resu')


@pytest.mark.parametrize("damage", [cut, lose, forget, shutil.rmtree])
def test_a_damaged_one_is_made_again(data, damage):
    maker = Maker()
    damage(prepare("squares", [data / "source"], maker))
    assert (prepare("squares", [data / "source"], maker) / "result").read_text() == "2"
    assert len(os.listdir(data / "prepared")) == 1


def test_hidden_files_of_the_system_are_ignored(data):
    made = prepare("squares", [data / "source"], Maker())
    (made / ".DS_Store").touch()
    assert prepare("squares", [data / "source"], refuse) == made


def test_a_damaged_one_that_cannot_be_replaced_is_named(data, monkeypatch):
    made = prepare("squares", [data / "source"], Maker())
    cut(made)
    monkeypatch.setattr(prepared, "_remove", lambda folder: None)
    with pytest.raises(DataError) as caught:
        prepare("squares", [data / "source"], Maker())
    assert str(caught.value) == f"'{made}' is damaged and cannot be replaced; delete it."
    assert os.listdir(data / "prepared") == [made.name]


def test_an_old_one_is_never_visible_while_it_is_removed(data, monkeypatch):
    old = prepare("squares", [data / "source"], Maker())
    change(data / "source")
    seen = []
    remove = shutil.rmtree
    monkeypatch.setattr(
        shutil,
        "rmtree",
        lambda *arguments, **options: (seen.append(old.exists()), remove(*arguments, **options)),
    )
    prepare("squares", [data / "source"], Maker())
    assert seen
    assert not any(seen)


def test_a_failure_leaves_nothing(data):
    def fail(folder):
        (folder / "half").write_text("done")
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        prepare("squares", [data / "source"], fail)
    assert os.listdir(data / "prepared") == []
    assert (prepare("squares", [data / "source"], Maker()) / "result").read_text() == "1"


def test_other_users_may_read_it(data):
    assert stat.S_IMODE(prepare("squares", [], Maker()).stat().st_mode) == 0o755


def test_two_at_once_agree(data):
    """Both work it out, because neither finds the other's; the faster one's is kept."""
    both, folders = threading.Barrier(2), []

    def make(folder):
        (folder / "result").write_text("same")
        both.wait(timeout=10)

    threads = [
        threading.Thread(target=lambda: folders.append(prepare("squares", [data / "source"], make)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(folders) == 2
    assert len(set(folders)) == 1
    assert os.listdir(data / "prepared") == [folders[0].name]
    assert (folders[0] / "result").read_text() == "same"


def test_the_cache_is_used_if_the_data_folder_is_read_only(data, tmp_path):
    (data / "prepared").write_text("a file in the way")
    made = prepare("squares", [data / "source"], Maker())
    assert made.parent == tmp_path / "cache" / "leaflearn" / "prepared"
    assert prepare("squares", [data / "source"], refuse) == made


def test_read_only_folders_end_in_one_sentence(data, tmp_path):
    (data / "prepared").write_text("a file in the way")
    (tmp_path / "cache").write_text("a file in the way")
    with pytest.raises(PermissionError) as caught:
        prepare("squares", [data / "source"], refuse)
    assert str(caught.value) == (
        f"Cannot write into '{data}' or into the cache '{tmp_path}/cache/leaflearn'; make one of "
        f"them writable "
        "(on Linux, XDG_CACHE_HOME sets the cache)."
    )


class TestFingerprint:
    def test_it_is_constant(self, data):
        assert fingerprint_files([data / "source"]) == fingerprint_files([data / "source"])

    def test_size_time_and_name_count(self, data):
        seen = {fingerprint_files([data / "source"])}
        os.utime(data / "source", ns=(0, 1))
        seen.add(fingerprint_files([data / "source"]))
        change(data / "source")
        os.utime(data / "source", ns=(0, 1))
        seen.add(fingerprint_files([data / "source"]))
        (data / "source").rename(data / "other")
        seen.add(fingerprint_files([data / "other"]))
        assert len(seen) == 4

    def test_the_files_of_a_folder_count(self, data):
        before = fingerprint_files([data])
        assert before == fingerprint_files([data / "source"])
        (data / "more").write_text("")
        assert fingerprint_files([data]) != before
