"""A model folder is checked before it is used, and every problem has its own error message."""

import json
import os
import re
import stat

import pytest

from leaflearn.persistence import Model, folder, read_model, write_model
from leaflearn.persistence.folder import DOCUMENT, _checksum

SECTIONS = {"estimator": {"class": "Nothing", "numbers": [1, 2.5, None, True, "\udc80 é"]}}
PARTS = {"weights.safetensors": b"\x00\x01" * 50, "notes.txt": b"any text"}


@pytest.fixture
def saved(tmp_path):
    write_model(tmp_path / "model", SECTIONS, PARTS)
    return tmp_path / "model"


def change(path, **entries):
    """Change entries of model.json and its checksum, as an attacker would."""
    document = {**json.loads((path / DOCUMENT).read_bytes()), **entries}
    (path / DOCUMENT).write_text(json.dumps({**document, "sha256": _checksum(document)}))


def fails(path, sentence, kind=ValueError):
    with pytest.raises(kind, match=f"^{re.escape(sentence)}$"):
        read_model(path)


def test_read_model_restores_what_was_written(saved):
    model = read_model(saved)
    assert model.sections == SECTIONS
    assert model.parts == PARTS
    assert set(model.library) == {
        "python",
        "leaflearn",
        "numpy",
        "scikit-learn",
        "torch",
        "safetensors",
        "skops",
    }
    assert sorted(os.listdir(saved)) == ["model.json", *sorted(PARTS)]
    assert stat.S_IMODE(saved.stat().st_mode) & 0o555 == 0o555  # readable for other users


def test_a_missing_part_is_named():
    with pytest.raises(
        ValueError,
        match=r"^The model has no part 'a', which model.json should name; save it again.$",
    ):
        Model({}, {}, {}).part("a")


@pytest.mark.parametrize("name", [DOCUMENT, *PARTS])
def test_every_changed_byte_is_detected(saved, name):
    whole = (saved / name).read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        (saved / name).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            model = read_model(saved)
        except ValueError:
            continue
        assert name == DOCUMENT  # only white space changed
        assert (model.sections, model.parts) == (SECTIONS, PARTS)


@pytest.mark.parametrize("name", [DOCUMENT, *PARTS])
@pytest.mark.parametrize("length", [0, 1, -2])
def test_a_truncated_file_is_refused(saved, name, length):
    (saved / name).write_bytes((saved / name).read_bytes()[:length])
    with pytest.raises(ValueError, match=r"was damaged|is damaged"):
        read_model(saved)


def test_a_file_that_is_too_large_is_not_read(saved):
    with open(saved / "notes.txt", "ab") as file:
        file.truncate(2**40)
    fails(
        saved,
        f"'{saved}/notes.txt' has {2**40} bytes, but at most 8 were expected; "
        "get a fresh copy of the folder.",
    )
    with open(saved / DOCUMENT, "ab") as file:
        file.truncate(2**40)
    fails(
        saved,
        f"'{saved}/model.json' has {2**40} bytes, but at most {2**26} were expected; "
        "get a fresh copy of the folder.",
    )


def test_damaged_and_missing_files_have_error_messages_of_their_own(saved, tmp_path):
    whole = (saved / "notes.txt").read_bytes()
    (saved / "notes.txt").write_bytes(whole[:-1] + b"!")
    fails(
        saved,
        f"'{saved}/notes.txt' was damaged or changed after it was saved (its checksum differs); "
        "get a fresh copy of the folder.",
    )
    (saved / "notes.txt").unlink()
    fails(
        saved,
        f"'{saved}/notes.txt' is missing, though model.json names it; "
        "get a fresh copy of the folder.",
    )
    text = (saved / DOCUMENT).read_text().replace("Nothing", "Anything")
    (saved / DOCUMENT).write_text(text)
    fails(
        saved,
        f"'{saved}/model.json' was damaged or changed after it was saved (its checksum differs); "
        "get a fresh copy of the folder.",
    )
    (saved / DOCUMENT).unlink()
    fails(saved, f"'{saved}' is not a leaflearn model folder: it has no model.json.")
    fails(
        tmp_path / "none",
        f"'{tmp_path}/none' does not exist; give the folder of a model that was saved.",
        FileNotFoundError,
    )
    (tmp_path / "file").touch()
    fails(
        tmp_path / "file",
        f"'{tmp_path}/file' is a file, but the folder of a model was expected.",
        NotADirectoryError,
    )


@pytest.mark.parametrize("text", ["", "{", "nonsense", '{"a": NaN}', "[" * 100_000, "1" * 5000])
def test_invalid_json_is_refused(saved, text):
    (saved / DOCUMENT).write_text(text)
    fails(
        saved,
        f"'{saved}/model.json' is damaged: it is not valid JSON; get a fresh copy of the folder.",
    )


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": "something else"}'])
def test_json_of_another_format_is_refused(saved, text):
    (saved / DOCUMENT).write_text(text)
    fails(saved, f"'{saved}' is not a leaflearn model folder: its model.json has another format.")


def test_a_newer_format_is_named_as_such(saved):
    change(saved, version=2, files=None)
    fails(
        saved,
        f"'{saved}' was written by a newer leaflearn (format version 2, but this one reads 1); "
        "update leaflearn.",
    )


ENTRY = {"size": 8, "sha256": "0"}
BAD_FILES = {
    "not a dictionary": None,
    "parent folder": {"../secret": ENTRY},
    "subfolder": {"a/b": ENTRY},
    "absolute path": {"/etc/passwd": ENTRY},
    "parent folder on Windows": {"..\\secret": ENTRY},
    "hidden file": {".bashrc": ENTRY},
    "model.json itself": {"model.json": ENTRY},
    "no size": {"a": {"sha256": "0"}},
    "size as text": {"a": {"size": "8", "sha256": "0"}},
    "no checksum": {"a": {"size": 8}},
    "no entry": {"a": 8},
}


@pytest.mark.parametrize("files", BAD_FILES.values(), ids=BAD_FILES)
def test_names_and_entries_of_parts_are_checked(saved, tmp_path, files):
    (tmp_path / "secret").write_bytes(b"secret!!")
    change(saved, files=files)
    fails(
        saved,
        f"'{saved}/model.json' is damaged: its version or list of files is not valid; "
        "get a fresh copy of the folder.",
    )


@pytest.mark.parametrize("version", [None, "1", True, 0, 1.5])
def test_an_invalid_version_is_refused(saved, version):
    change(saved, version=version)
    fails(
        saved,
        f"'{saved}/model.json' is damaged: its version or list of files is not valid; "
        "get a fresh copy of the folder.",
    )


@pytest.mark.parametrize("name", [DOCUMENT, "notes.txt"])
def test_links_and_pipes_are_not_followed(saved, tmp_path, name):
    sentence = (
        f"'{saved}/{name}' is not a regular file, but a link or something else; "
        "get a fresh copy of the folder."
    )
    (saved / name).rename(tmp_path / "elsewhere")
    (saved / name).symlink_to(tmp_path / "elsewhere")
    fails(saved, sentence)
    (saved / name).unlink()
    os.mkfifo(saved / name)
    fails(saved, sentence)


@pytest.mark.parametrize(
    "name", ["../out", "a/b", "", ".hidden", "model.json", "files", "sha256", "ä"]
)
def test_an_invalid_name_is_not_written(tmp_path, name):
    sentence = (
        f"'{name}' cannot be the name of a part or section of a model; "
        "use letters, digits, '.', '_' and '-'."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        write_model(tmp_path / "model", {}, {name: b""})
    assert os.listdir(tmp_path) == []


def test_a_model_replaces_a_model_even_if_damaged(saved):
    (saved / "notes.txt").unlink()
    write_model(saved, {"estimator": {}}, {"only.txt": b"one"})
    assert read_model(saved).parts == {"only.txt": b"one"}
    assert sorted(os.listdir(saved)) == ["model.json", "only.txt"]


def test_other_files_and_folders_are_not_replaced(saved, tmp_path):
    def refused(path, sentence, kind=ValueError):
        before = sorted(os.listdir(path)) if path.is_dir() else path.read_bytes()
        with pytest.raises(kind, match=f"^{re.escape(sentence)}$"):
            write_model(path, {}, {})
        assert before == (sorted(os.listdir(path)) if path.is_dir() else path.read_bytes())

    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "cat.jpg").touch()
    sentence = (
        f"Cannot save to '{photos}', where other files would be lost; choose another folder. "
        f"'{photos}' "
    )
    refused(photos, sentence + "is not a leaflearn model folder: it has no model.json.")
    (photos / DOCUMENT).write_text("{}")
    refused(
        photos, sentence + "is not a leaflearn model folder: its model.json has another format."
    )
    (tmp_path / "file").write_bytes(b"text")
    refused(
        tmp_path / "file",
        f"Cannot save to '{tmp_path}/file': it is a file, and a folder is needed.",
        NotADirectoryError,
    )
    (saved / "report.html").touch()
    refused(
        saved,
        f"Cannot save to '{saved}': it also holds 'report.html', which is not part of the model; "
        "move it away first.",
    )


def test_a_document_that_is_too_large_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "MAX_DOCUMENT_BYTES", 1000)
    with pytest.raises(
        ValueError,
        match=r"^model.json would have \d+ bytes, but at most 1000 are allowed; "
        r"use numbers as group labels.$",
    ):
        write_model(tmp_path / "model", {"long": {"text": "a" * 1000}}, {})
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_replaced_while_it_is_read_is_read_again(saved, monkeypatch):
    original, state = folder._read_document, {"replaced": False}

    def replace_after_reading(*arguments):
        document = original(*arguments)
        if not state["replaced"]:
            state["replaced"] = True
            write_model(saved, {"estimator": {}}, {"other.txt": b"new"})
        return document

    monkeypatch.setattr(folder, "_read_document", replace_after_reading)
    assert read_model(saved).parts == {"other.txt": b"new"}
