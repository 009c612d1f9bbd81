"""What is slow to work out from a publisher's files, decoded images or features, is worked out once and kept.

A prepared folder holds numpy files, which are mapped into memory rather than read. Its name carries a fingerprint of the files it was made
from, and the version of the code that made it: when either changes, it is made anew. It is made under a temporary name and renamed when
whole; the sizes of its files are noted in it, so that one that is damaged later is noticed, and made anew too.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from leaflearn.benchmark.datasets.store import DataError, cache_folder, data_folder

FOLDER = "prepared"
SIZES = ".sizes.json"  # in each prepared folder: its files, and how many bytes each has


def prepare(
    name: str, sources: Iterable[Path], make: Callable[[Path], None], *, version: int
) -> Path:
    """The folder that `make` fills, made now or found from an earlier time.

    Parameters
    ----------
    name
        What the folder is called, options that change its contents included.
    sources
        The files, or folders of files, that it is made from.
    make
        Called with an empty folder to put files into, where there is none yet.
    version
        Of what `make` does: a higher number makes the folder anew.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.environ["LEAFLEARN_DATA"], before = folder, os.environ.get("LEAFLEARN_DATA", "")
    ...     made = prepare("squares", [], lambda folder: (folder / "four.txt").write_text("4") and None, version=1)
    ...     print((prepare("squares", [], shutil.rmtree, version=1) / "four.txt").read_text())  # the second time, nothing is called
    ...     os.environ["LEAFLEARN_DATA"] = before
    4
    """
    key = f"{name}-v{version}-{fingerprint(sources)}"
    for root in (data_folder(), cache_folder()):
        if _is_whole(root / FOLDER / key):
            return root / FOLDER / key
    home = _writable_home()
    temporary = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=home))
    try:
        make(temporary)
        (temporary / SIZES).write_text(json.dumps(_sizes(temporary)))
        return _settle(temporary, home / key, name)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def fingerprint(sources: Iterable[Path]) -> str:
    """Eight hexadecimal digits that change when a file does: its name, its size or the time it was written.

    Examples
    --------
    >>> fingerprint([])
    'e3b0c442'
    """
    digest = hashlib.sha256()
    for source in sources:
        for path in sorted(source.iterdir()) if source.is_dir() else [source]:
            status = path.stat()
            digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:8]


def _sizes(folder: Path) -> dict[str, int]:
    return {
        path.name: path.stat().st_size for path in folder.iterdir() if not path.name.startswith(".")
    }


def _is_whole(folder: Path) -> bool:
    """Does the folder hold what it held when it was made?"""
    try:
        return bool(json.loads((folder / SIZES).read_text()) == _sizes(folder))
    except (OSError, ValueError):  # no folder, or no list of its files
        return False


def _settle(temporary: Path, final: Path, name: str) -> Path:
    """Give the finished folder its name, and remove those that were made from other files, or by another version."""
    temporary.chmod(0o755)  # mkdtemp makes folders that only their owner can read
    if final.exists() and not _is_whole(final):
        _remove(final)
    try:
        temporary.rename(final)
    except OSError:
        if not final.exists():
            raise
        if not _is_whole(final):  # else another process was faster, with the same content
            raise DataError(f"'{final}' is damaged and cannot be replaced; delete it.") from None
    for other in final.parent.iterdir():
        if other != final and re.fullmatch(rf"{re.escape(name)}-v\d+-[0-9a-f]{{8}}", other.name):
            _remove(other)
    return final


def _remove(folder: Path) -> None:
    """Take away the name of the folder before it is emptied: nobody shall find half of it."""
    with (
        tempfile.TemporaryDirectory(
            prefix=".", dir=folder.parent, ignore_cleanup_errors=True
        ) as away,
        suppress(OSError),
    ):
        folder.rename(Path(away) / folder.name)


def _writable_home() -> Path:
    """Beside the data where we may write there, else in the user's cache."""
    for root in (data_folder(), cache_folder()):
        home = root / FOLDER
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(home, os.W_OK):
            return home
    raise PermissionError(
        f"Cannot write into '{data_folder()}' nor into the cache '{cache_folder()}'; make one of them writable "
        "(XDG_CACHE_HOME moves the cache, on Linux)."
    )
