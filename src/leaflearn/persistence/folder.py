"""A model as a folder: `model.json`, which says what is there, and the files that it names with their sizes and checksums.

`model.json` has sections, plain JSON, one for each thing that is kept (an estimator, a preparation of tables); the other files are parts,
bytes that only the owner of a section understands. Nothing in the folder is ever run, and nothing is believed before it was checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NoReturn

from leaflearn.persistence.whole_folders import find_folder, write_folder

FORMAT, VERSION = "leaflearn-model", 1
DOCUMENT = "model.json"
LARGEST_DOCUMENT = 64 * 2**20  # bytes of model.json
LIBRARIES = ("leaflearn", "numpy", "scikit-learn", "torch", "safetensors", "skops")
OURS = (
    "format",
    "version",
    "library",
    "files",
    "sha256",
)  # entries of model.json that are no sections
NAME = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
)  # of a part: no path leads out of the folder, none is hidden
LINES = 3  # levels of model.json that are laid out in lines
ATTEMPTS = 3  # to read a folder that is replaced meanwhile


@dataclass(frozen=True)
class Model:
    """What a model folder holds, read and checked.

    Examples
    --------
    >>> Model({"note": {"text": "hello"}}, {"a.bin": b"123"}, {}).part("a.bin")
    b'123'
    """

    sections: dict[str, Any]
    parts: dict[str, bytes]
    library: dict[str, str]  # versions of those that wrote it

    def part(self, name: str) -> bytes:
        """The bytes of a part, or an error that says that it is not there."""
        if name not in self.parts:
            raise ValueError(
                f"The model has no part '{name}', which {DOCUMENT} should name; save it again."
            )
        return self.parts[name]

    def has_part(self, name: str) -> bool:
        """Is there a part of that name?"""
        return name in self.parts


def write_model(
    folder: str | Path, sections: Mapping[str, Any], parts: Mapping[str, bytes]
) -> None:
    """Write a model folder, whole or not at all; an older model folder there is replaced, anything else is refused.

    Parameters
    ----------
    folder
        Where to.
    sections
        By name, what goes into `model.json`: dictionaries of plain JSON.
    parts
        By file name, what goes beside it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     write_model(f"{parent}/model", {"note": {"text": "hello"}}, {"a.bin": b"123"})
    ...     sorted(os.listdir(f"{parent}/model"))
    ['a.bin', 'model.json']
    """
    for name in [*parts, *sections]:
        if not NAME.fullmatch(name) or name == DOCUMENT or name in OURS:
            raise ValueError(
                f"'{name}' cannot be the name of a part or section of a model; use letters, digits, '.', '_' and '-'."
            )
    files = {
        name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in parts.items()
    }
    document = {
        "format": FORMAT,
        "version": VERSION,
        "library": _library_versions(),
        **sections,
        "files": files,
    }
    document["sha256"] = _checksum(document)
    content = _lay_out(document).encode() + b"\n"
    if len(content) > LARGEST_DOCUMENT:
        raise ValueError(
            f"{DOCUMENT} would have {len(content)} bytes, but {LARGEST_DOCUMENT} at most are allowed; use numbers as group labels."
        )
    write_folder(Path(folder), {**parts, DOCUMENT: content}, _refuse_what_is_not_ours)


def read_model(folder: str | Path) -> Model:
    """Read a model folder, and check all of it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     write_model(f"{parent}/model", {"note": {"text": "hello"}}, {"a.bin": b"123"})
    ...     model = read_model(f"{parent}/model")
    >>> model.sections["note"], model.part("a.bin")
    ({'text': 'hello'}, b'123')
    """
    folder = Path(folder)
    for attempt in range(ATTEMPTS):
        before = _identity(folder)
        try:
            return _read(folder, find_folder(folder))
        except (ValueError, OSError):
            if (
                attempt == ATTEMPTS - 1 or _identity(folder) == before
            ):  # else another one has just taken its place
                raise
    raise AssertionError("unreachable")


def _identity(folder: Path) -> int | None:
    try:
        return os.stat(find_folder(folder)).st_ino
    except OSError:
        return None


def _read(folder: Path, place: Path) -> Model:
    if not place.exists():
        raise FileNotFoundError(
            f"'{folder}' does not exist; give the folder of a model that was saved."
        )
    document = _read_document(folder, place)
    if not _is_unchanged(document):
        raise ValueError(
            f"'{folder / DOCUMENT}' was damaged or changed after it was saved (its checksum differs); get a fresh copy of the folder."
        )
    parts = {
        name: _read_part(folder / name, place / name, entry)
        for name, entry in document["files"].items()
    }
    return Model(
        {name: value for name, value in document.items() if name not in OURS},
        parts,
        document["library"],
    )


def _read_document(folder: Path, place: Path) -> dict[str, Any]:
    """`model.json`, of the right format and version and with all entries of ours; whether it was changed is not yet known."""
    if not place.is_dir():
        raise NotADirectoryError(f"'{folder}' is a file, but the folder of a model was expected.")
    if not os.path.lexists(place / DOCUMENT):
        raise ValueError(f"'{folder}' is not a leaflearn model folder: it has no {DOCUMENT}.")
    content = _read_file(folder / DOCUMENT, place / DOCUMENT, LARGEST_DOCUMENT)
    try:
        document = json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ValueError(
            f"'{folder / DOCUMENT}' is damaged: it is no readable JSON; get a fresh copy of the folder."
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(
            f"'{folder}' is not a leaflearn model folder: its {DOCUMENT} does not say so."
        )
    number = document.get("version")
    if type(number) is int and number > VERSION:
        raise ValueError(
            f"'{folder}' was written by a newer leaflearn (format version {number}, known is {VERSION}); update leaflearn."
        )
    files = document.get("files")
    if (
        type(number) is not int
        or number != VERSION
        or not isinstance(files, dict)
        or not all(map(_is_entry, files.items()))
        or not set(OURS) <= set(document)
    ):
        raise ValueError(
            f"'{folder / DOCUMENT}' is damaged: it does not say which files belong to it; get a fresh copy of the folder."
        )
    return document


def _is_entry(item: tuple[str, Any]) -> bool:
    name, entry = item
    is_name = NAME.fullmatch(name) is not None and name != DOCUMENT
    return (
        is_name and isinstance(entry, dict) and type(entry.get("size")) is int and "sha256" in entry
    )


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _read_part(shown: Path, path: Path, entry: dict[str, Any]) -> bytes:
    if not os.path.lexists(path):
        raise ValueError(
            f"'{shown}' is missing, though {DOCUMENT} names it; get a fresh copy of the folder."
        )
    content = _read_file(shown, path, entry["size"])
    if len(content) != entry["size"] or hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise ValueError(
            f"'{shown}' was damaged or changed after it was saved (its checksum differs); get a fresh copy of the folder."
        )
    return content


def _read_file(shown: Path, path: Path, most: int) -> bytes:
    """The bytes of a regular file, no link and no pipe, that is not larger than it may be."""
    refusal = f"'{shown}' is a link or no file at all, but the files of a model lie in its folder; get a fresh copy of it."
    if path.is_symlink():
        raise ValueError(refusal)
    flags = (
        getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")
    )  # a pipe would keep us waiting
    handle = os.open(path, sum(flags, os.O_RDONLY))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(refusal)
        if status.st_size > most:
            raise ValueError(
                f"'{shown}' has {status.st_size} bytes, but {most} at most were expected; get a fresh copy of the folder."
            )
        return file.read(most)


def _refuse_what_is_not_ours(folder: Path) -> None:
    """Only a model folder, or an empty one, may be replaced, and only where nothing else would be lost with it."""
    if not folder.is_dir():
        raise NotADirectoryError(
            f"Cannot save to '{folder}': it is a file, and a folder is needed."
        )
    names = sorted(os.listdir(folder))
    if not names:
        return
    try:
        known = {DOCUMENT, *_read_document(folder, folder)["files"]}
    except ValueError as error:
        raise ValueError(
            f"Cannot save to '{folder}', where something else would be lost; choose another folder. {error}"
        ) from None
    strange = [name for name in names if name not in known]
    if strange:
        raise ValueError(
            f"Cannot save to '{folder}': it also holds '{strange[0]}', which is no part of the model; move it away first."
        )


def _lay_out(value: Any, depth: int = 0) -> str:
    """As JSON for people: the entries of the outer dictionaries stand in lines of their own."""
    if not isinstance(value, dict) or not value or depth == LINES:
        return json.dumps(value, allow_nan=False)
    start = "\n" + " " * (depth + 1)
    return (
        "{"
        + ",".join(
            f"{start}{json.dumps(key)}: {_lay_out(inner, depth + 1)}"
            for key, inner in value.items()
        )
        + start[:-1]
        + "}"
    )


def _checksum(document: Mapping[str, Any]) -> str:
    """Of all but the checksum itself, however it is laid out."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    return hashlib.sha256(
        json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def _is_unchanged(document: Mapping[str, Any]) -> bool:
    try:
        return bool(document["sha256"] == _checksum(document))
    except RecursionError:  # nested deeper than anything that was ever saved
        return False


def _library_versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
