"""Where the publishers' files lie, and whether they are the right ones.

The data folder is the one that LEAFLEARN_DATA names, else one in the user's cache. In it every publisher has a folder of its own, laid out
as the publisher does it, so that files which are already on a machine only need to be pointed at. What is worked out from them (decoded
pictures, features) is kept beside them, see `prepared.py`.
"""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

VARIABLE = "LEAFLEARN_DATA"
READ_AT_ONCE = 1 << 20


class DataError(OSError):
    """A data set's files are missing, wrong, or cannot be fetched; the text says what to do."""


class MissingDataError(DataError):
    """A data set's files are not in the data folder."""


@dataclass(frozen=True)
class RemoteFile:
    """A file at its publisher's address.

    Parameters
    ----------
    url
        Where it is fetched from.
    path
        Where it goes, seen from the folder of the data set.
    size
        Its size in bytes, where the publisher's file is known not to change.
    checksum
        `"md5:..."` or `"sha256:..."`, where one is published.
    archive
        It is a zip or tar file, whose contents belong into the folder; the archive itself is deleted afterwards.

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
    """The files of one publisher, as data sets name them.

    Parameters
    ----------
    folder
        Name of their folder inside the data folder.
    title
        What they are, and who made them.
    terms
        Under which terms they may be used.
    contents
        The files that the loader reads, seen from the folder, and the checksum of each (`"md5:..."`, `"sha256:..."`), or None where none
        is published. A name that ends in a slash is a folder with anything in it.
    remote
        What to fetch to get them.
    by_hand
        What a person without a network, or without the publisher's consent yet, has to do; ends with a full stop.
    archives
        Zip files, seen from the data folder, that the loader reads as they are; one of them can stand in the place of the contents.

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


def data_folder() -> Path:
    """The folder of all data sets: LEAFLEARN_DATA where it is set, else `leaflearn` in the user's cache folder. It need not exist.

    Examples
    --------
    >>> data_folder().is_absolute()
    True
    """
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser().absolute() if named else cache_folder()


def cache_folder() -> Path:
    """Where the system wants an application of this user to keep files that can be made again.

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


def missing(files: Files) -> list[str]:
    """Names of the files that should be there and are not. Where an archive is there that the loader reads as it is, none are.

    Examples
    --------
    >>> missing(Files("pets", "Pets", "CC0", contents={"cats.csv": None}))
    ['cats.csv']
    """
    return [] if _archive(files) else _absent(files)


def locate(files: Files) -> Path:
    """The folder of these files, all of which are there, or the archive in its place; else a `DataError` that says what to put where.

    Examples
    --------
    >>> locate(Files("pets", "Pets", "CC0", contents={"cats.csv": None}, by_hand="Draw some cats."))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    leaflearn.benchmark.datasets.store.MissingDataError: Pets: 'cats.csv' is not in '...pets'. Draw some cats.
    """
    folder, absent = data_folder() / files.folder, _absent(files)
    if not absent:
        return folder
    if archive := _archive(files):
        return data_folder() / archive
    for path in (data_folder() / name for name in files.archives):
        if path.is_file():
            raise DataError(f"'{path}' is not a whole zip file; delete it and fetch it again.")
    more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
    raise MissingDataError(
        f"{files.title}: '{absent[0]}'{more} {'are' if more else 'is'} not in '{folder}'. {files.by_hand}".rstrip()
    )


def verify(files: Files) -> dict[str, str]:
    """What is to be said of each file: `"right"`, `"there"` (no checksum is published), `"wrong"` or `"missing"`.

    An archive that the loader reads as it is stands for all of them, and is `"there"`.

    Examples
    --------
    >>> verify(Files("pets", "Pets", "CC0", contents={"cats.csv": None}))
    {'cats.csv': 'missing'}
    """
    if archive := _archive(files):
        return {archive: "there"}
    folder, absent = data_folder() / files.folder, set(missing(files))
    return {
        name: "missing" if name in absent else _judge(folder / name, checksum)
        for name, checksum in files.contents.items()
    }


def matches(path: Path, checksum: str) -> bool:
    """Does the file have this checksum, `"md5:..."` or `"sha256:..."`?

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
    """The zip file in the place of the contents, where these are not all there."""
    if not files.archives or not _absent(files):
        return None
    return next((name for name in files.archives if zipfile.is_zipfile(data_folder() / name)), None)


def _judge(path: Path, checksum: str | None) -> str:
    if checksum is None:
        return "there"
    return "right" if matches(path, checksum) else "wrong"


def _is_there(path: Path, is_folder: bool) -> bool:
    return path.is_dir() and any(path.iterdir()) if is_folder else path.is_file()
