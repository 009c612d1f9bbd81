"""The data folder: where the publishers' files are stored, and whether they are complete.

The environment variable LEAFLEARN_DATA sets the data folder; the default is a folder in the user's
cache. Each publisher has a subfolder with the publisher's own layout, so files that are already on
the machine can be used as they are. Arrays derived from them (decoded images, features) are cached
next to them; see `prepared.py`.
"""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

VARIABLE = "LEAFLEARN_DATA"
READ_AT_ONCE = 1 << 20  # bytes


class DataError(OSError):
    """The files of a data set are missing, wrong or cannot be fetched; the text says what to do."""


class MissingDataError(DataError):
    """The files of a data set are not in the data folder."""


@dataclass(frozen=True)
class RemoteFile:
    """A file at its publisher's address.

    Parameters
    ----------
    url
        The address to fetch it from.
    path
        Where to put it, relative to the folder of the data set.
    size
        Its size in bytes, if the publisher's file is known not to change.
    checksum
        `"md5:..."` or `"sha256:..."`, if one is published.
    archive
        The file is a zip or tar archive that is unpacked into the folder and then deleted.

    Examples
    --------
    >>> RemoteFile("https://example.org/a.gz", "a.gz").path
    'a.gz'
    """

    url: str
    path: str
    size: int | None = None
    checksum: str | None = None
    archive: bool = False


@dataclass(frozen=True)
class Files:
    """The files of one publisher that a data set needs.

    Parameters
    ----------
    folder
        Name of their folder inside the data folder.
    title
        What they are, and who made them.
    terms
        The terms of use.
    contents
        The files that the loader reads, relative to the folder, with the checksum of each
        (`"md5:..."`, `"sha256:..."`), or None if none is published. A name that ends in a slash is
        a folder with any contents.
    remote
        What to fetch to get them.
    by_hand
        How to get them without a network connection, or if the publisher asks for consent; ends
        with a full stop.
    archives
        Zip files, relative to the data folder, that the loader can read in place of `contents`.
    alternatives
        The same data in other layouts that the loader reads as well, each in its own folder.

    Examples
    --------
    >>> Files("pets", "Pets, by A. Nimal", "CC0", contents={"cats.csv": None}).folder
    'pets'
    """

    folder: str
    title: str
    terms: str
    contents: dict[str, str | None]
    remote: tuple[RemoteFile, ...] = ()
    by_hand: str = field(default="")
    archives: tuple[str, ...] = ()
    alternatives: tuple[Files, ...] = ()


def data_folder() -> Path:
    """Return the folder of all data sets: LEAFLEARN_DATA, or `leaflearn` in the user's cache.

    The folder need not exist.

    Examples
    --------
    >>> data_folder().is_absolute()
    True
    """
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser().absolute() if named else cache_folder()


def cache_folder() -> Path:
    """Return this user's cache folder for leaflearn, following the conventions of the system.

    Examples
    --------
    >>> cache_folder().name
    'leaflearn'
    """
    if sys.platform == "win32":
        above = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        above = Path.home() / "Library" / "Caches"
    else:
        above = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return above.absolute() / "leaflearn"


def find_layout(files: Files) -> Files:
    """Return the layout that is complete in the data folder, or `files` itself if none is.

    Examples
    --------
    >>> find_layout(Files("pets", "Pets", "CC0", contents={"cats.csv": None})).folder
    'pets'
    """
    if files.alternatives and _absent(files):
        return next((other for other in files.alternatives if not _absent(other)), files)
    return files


def missing(files: Files) -> list[str]:
    """List the files that are needed and absent.

    The list is empty if the loader can read an archive or another layout that is there.

    Examples
    --------
    >>> missing(Files("pets", "Pets", "CC0", contents={"cats.csv": None}))
    ['cats.csv']
    """
    return [] if _archive(files) else _absent(find_layout(files))


def locate(files: Files) -> Path:
    """Return the folder of these files, or the archive in its place, or raise a `DataError`.

    Examples
    --------
    >>> pets = Files("pets", "Pets", "CC0", contents={"cats.csv": None}, by_hand="Draw some cats.")
    >>> locate(pets)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    leaflearn.benchmark.datasets.store.MissingDataError: Pets: 'cats.csv' is not in '...pets'.
    Draw some cats.
    """
    files = find_layout(files)
    folder, absent = data_folder() / files.folder, _absent(files)
    if not absent:
        return folder
    if archive := _archive(files):
        return data_folder() / archive
    for path in (data_folder() / name for name in files.archives):
        if path.is_file():
            raise DataError(f"'{path}' is not a complete zip file; delete it and fetch it again.")
    more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
    verb = "are" if more else "is"
    raise MissingDataError(
        f"{files.title}: '{absent[0]}'{more} {verb} not in '{folder}'. {files.by_hand}".rstrip()
    )


def verify(files: Files) -> dict[str, str]:
    """Check each file: `"right"`, `"there"` (no checksum is published), `"wrong"` or `"missing"`.

    An archive that the loader reads in place of the files is reported as `"there"`.

    Examples
    --------
    >>> verify(Files("pets", "Pets", "CC0", contents={"cats.csv": None}))
    {'cats.csv': 'missing'}
    """
    if archive := _archive(files):
        return {archive: "there"}
    files = find_layout(files)
    folder, absent = data_folder() / files.folder, set(_absent(files))
    return {
        name: "missing" if name in absent else _check(folder / name, checksum)
        for name, checksum in files.contents.items()
    }


def matches(path: Path, checksum: str) -> bool:
    """Return whether the file has this checksum, `"md5:..."` or `"sha256:..."`.

    Examples
    --------
    >>> matches(Path(os.devnull), "md5:d41d8cd98f00b204e9800998ecf8427e")
    True
    """
    algorithm, _, expected = checksum.partition(":")
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(READ_AT_ONCE):
            digest.update(chunk)
    return digest.hexdigest() == expected


def _absent(files: Files) -> list[str]:
    folder = data_folder() / files.folder
    return [name for name in files.contents if not _is_there(folder / name, name.endswith("/"))]


def _archive(files: Files) -> str | None:
    """The zip file that replaces the contents, if these are not complete."""
    if not files.archives or not _absent(files):
        return None
    return next((name for name in files.archives if zipfile.is_zipfile(data_folder() / name)), None)


def _check(path: Path, checksum: str | None) -> str:
    if checksum is None:
        return "there"
    return "right" if matches(path, checksum) else "wrong"


def _is_there(path: Path, is_folder: bool) -> bool:
    return path.is_dir() and any(path.iterdir()) if is_folder else path.is_file()
