"""A model as a folder: `model.json`, and the files that it lists with their sizes and checksums.

`model.json` has sections of plain JSON, one for each object (an estimator, the preparation of a
table). The other files are parts: bytes in a format that the owner of a section defines. Nothing in
the folder is executed, and sizes and checksums are checked before anything is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NoReturn

from leaflearn.persistence.atomic_files import find_folder, write_folder

FORMAT, VERSION = "leaflearn-model", 1
DOCUMENT = "model.json"
MAX_DOCUMENT_BYTES = 64 * 2**20
LIBRARIES = ("leaflearn", "numpy", "scikit-learn", "torch", "safetensors", "skops")
RESERVED = ("format", "version", "library", "files", "sha256")  # entries that are not sections
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # of a part: neither hidden nor a path
INDENTED_LEVELS = 3  # of model.json
ATTEMPTS = 3  # to read a folder that is being replaced
READING_ERRORS = (  # errors that reading a wrong description may raise
    *(ValueError, KeyError, TypeError, IndexError, AttributeError),
    *(OverflowError, RecursionError, RuntimeError, AssertionError),
)


@dataclass(frozen=True)
class Model:
    """The content of a model folder, read and checked.

    Examples
    --------
    >>> Model({"note": {"text": "hello"}}, {"a.bin": b"123"}, {}).part("a.bin")
    b'123'
    """

    sections: dict[str, Any]
    parts: dict[str, bytes]
    library: dict[str, str]  # versions of the libraries that wrote it

    def part(self, name: str) -> bytes:
        """The bytes of a part; a ValueError if there is no such part."""
        if name not in self.parts:
            raise ValueError(
                f"The model has no part '{name}', which {DOCUMENT} should name; save it again."
            )
        return self.parts[name]


def write_model(
    folder: str | Path, sections: Mapping[str, Any], parts: Mapping[str, bytes]
) -> None:
    """Write a model folder, completely or not at all.

    Parameters
    ----------
    folder
        Where to write. An older model folder is replaced; any other content raises an error.
    sections
        Dictionaries of plain JSON for `model.json`, by name.
    parts
        Content of the other files, by name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     write_model(f"{parent}/model", {"note": {"text": "hello"}}, {"a.bin": b"123"})
    ...     sorted(os.listdir(f"{parent}/model"))
    ['a.bin', 'model.json']
    """
    for name in [*parts, *sections]:
        if not NAME.fullmatch(name) or name == DOCUMENT or name in RESERVED:
            raise ValueError(
                f"'{name}' cannot be the name of a part or section of a model; use letters, "
                "digits, '.', '_' and '-'."
            )
    document = {
        "format": FORMAT,
        "version": VERSION,
        "library": _library_versions(),
        **sections,
        "files": {
            name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in parts.items()
        },
    }
    document["sha256"] = _checksum(document)
    content = _lay_out(document).encode() + b"\n"
    if len(content) > MAX_DOCUMENT_BYTES:
        raise ValueError(
            f"{DOCUMENT} would have {len(content)} bytes, but at most {MAX_DOCUMENT_BYTES} are "
            "allowed; use numbers as group labels."
        )
    write_folder(Path(folder), {**parts, DOCUMENT: content}, _check_replaceable)


def read_model(folder: str | Path) -> Model:
    """Read a model folder and check its sizes and checksums.

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
            # Try again if another process has replaced the folder in the meantime.
            if attempt == ATTEMPTS - 1 or _identity(folder) == before:
                raise
    raise AssertionError("unreachable")


@contextmanager
def expecting(what: str) -> Iterator[None]:
    """Turn errors from reading a wrong description into one that names what was expected.

    Examples
    --------
    >>> with expecting("an estimator"):
    ...     {}["class"]
    Traceback (most recent call last):
    ...
    ValueError: The model folder does not describe an estimator (KeyError: 'class'); get a fresh ...
    """
    try:
        yield
    except READING_ERRORS as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".rstrip(".")
        raise ValueError(
            f"The model folder does not describe {what} ({reason}); get a fresh copy of it."
        ) from error


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
            f"'{folder / DOCUMENT}' was damaged or changed after it was saved (its checksum "
            "differs); get a fresh copy of the folder."
        )
    return Model(
        {name: value for name, value in document.items() if name not in RESERVED},
        {
            name: _read_part(folder / name, place / name, entry)
            for name, entry in document["files"].items()
        },
        document["library"],
    )


def _read_document(folder: Path, place: Path) -> dict[str, Any]:
    """`model.json`, with its format, version and reserved entries checked, not its checksum."""
    if not place.is_dir():
        raise NotADirectoryError(f"'{folder}' is a file, but the folder of a model was expected.")
    if not os.path.lexists(place / DOCUMENT):
        raise ValueError(f"'{folder}' is not a leaflearn model folder: it has no {DOCUMENT}.")
    content = _read_file(folder / DOCUMENT, place / DOCUMENT, MAX_DOCUMENT_BYTES)
    try:
        document = json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ValueError(
            f"'{folder / DOCUMENT}' is damaged: it is not valid JSON; get a fresh copy of the "
            "folder."
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(
            f"'{folder}' is not a leaflearn model folder: its {DOCUMENT} has another format."
        )
    number = document.get("version")
    if type(number) is int and number > VERSION:
        raise ValueError(
            f"'{folder}' was written by a newer leaflearn (format version {number}, but this one "
            f"reads {VERSION}); update leaflearn."
        )
    files = document.get("files")
    if (
        type(number) is not int
        or number != VERSION
        or not isinstance(files, dict)
        or not all(map(_is_entry, files.items()))
        or not set(RESERVED) <= set(document)
    ):
        raise ValueError(
            f"'{folder / DOCUMENT}' is damaged: its version or list of files is not valid; get a "
            "fresh copy of the folder."
        )
    return document


def _is_entry(item: tuple[str, Any]) -> bool:
    name, entry = item
    is_name = NAME.fullmatch(name) is not None and name != DOCUMENT
    return (
        is_name and isinstance(entry, dict) and type(entry.get("size")) is int and "sha256" in entry
    )


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not valid JSON")


def _read_part(shown: Path, path: Path, entry: dict[str, Any]) -> bytes:
    if not os.path.lexists(path):
        raise ValueError(
            f"'{shown}' is missing, though {DOCUMENT} names it; get a fresh copy of the folder."
        )
    content = _read_file(shown, path, entry["size"])
    if len(content) != entry["size"] or hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise ValueError(
            f"'{shown}' was damaged or changed after it was saved (its checksum differs); get a "
            "fresh copy of the folder."
        )
    return content


def _read_file(shown: Path, path: Path, most: int) -> bytes:
    """The bytes of a regular file, not a link or pipe, of limited size."""
    refusal = (
        f"'{shown}' is not a regular file, but a link or something else; get a fresh copy of the "
        "folder."
    )
    if path.is_symlink():
        raise ValueError(refusal)
    # O_NONBLOCK: to open a pipe would otherwise wait for a writer.
    flags = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    handle = os.open(path, sum(flags, os.O_RDONLY))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(refusal)
        if status.st_size > most:
            raise ValueError(
                f"'{shown}' has {status.st_size} bytes, but at most {most} were expected; get a "
                "fresh copy of the folder."
            )
        return file.read(most)


def _check_replaceable(folder: Path) -> None:
    """Raise an error unless the folder is empty or holds a model and nothing else."""
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
            f"Cannot save to '{folder}', where other files would be lost; choose another folder. "
            f"{error}"
        ) from None
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"Cannot save to '{folder}': it also holds '{unknown[0]}', which is not part of the "
            "model; move it away first."
        )


def _lay_out(value: Any, depth: int = 0) -> str:
    """Readable JSON: each entry of the outer dictionaries has a line of its own."""
    if not isinstance(value, dict) or not value or depth == INDENTED_LEVELS:
        return json.dumps(value, allow_nan=False)
    start = "\n" + " " * (depth + 1)
    entries = (
        f"{start}{json.dumps(key)}: {_lay_out(inner, depth + 1)}" for key, inner in value.items()
    )
    return "{" + ",".join(entries) + start[:-1] + "}"


def _checksum(document: Mapping[str, Any]) -> str:
    """Checksum of all other entries, independent of the layout."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _is_unchanged(document: Mapping[str, Any]) -> bool:
    try:
        return bool(document["sha256"] == _checksum(document))
    except RecursionError:  # no saved model is nested that deep
        return False


def _library_versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
