"""A cache for what is slow to compute from a publisher's files: decoded images and features.

A prepared folder holds numpy files, which are memory-mapped. Its name contains a fingerprint of the
files it was made from and the version of the code that made it; it is made again when either
changes. It is made under a temporary name and renamed when complete. The sizes of its files are
stored in it, so that a damaged folder is detected and made again.
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
SIZES = ".sizes.json"  # in each prepared folder: the size of each of its files in bytes


def prepare(
    name: str, sources: Iterable[Path], make: Callable[[Path], None], *, version: int
) -> Path:
    """Return the folder that `make` fills, from the cache if it was made before.

    Parameters
    ----------
    name
        Name of the folder, including options that change its contents.
    sources
        The files, or folders of files, that it is made from.
    make
        Called with an empty folder to write into, if there is no prepared folder yet.
    version
        Version of `make`: increase it to make the folder again.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.environ["LEAFLEARN_DATA"], before = folder, os.environ.get("LEAFLEARN_DATA", "")
    ...     make = lambda folder: (folder / "four.txt").write_text("4") and None
    ...     made = prepare("squares", [], make, version=1)
    ...     again = prepare("squares", [], shutil.rmtree, version=1)  # cached: nothing is called
    ...     print((again / "four.txt").read_text())
    ...     os.environ["LEAFLEARN_DATA"] = before
    4
    """
    key = f"{name}-v{version}-{fingerprint_files(sources)}"
    for root in (data_folder(), cache_folder()):
        if _is_complete(root / FOLDER / key):
            return root / FOLDER / key
    home = _writable_home()
    temporary = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=home))
    try:
        make(temporary)
        (temporary / SIZES).write_text(json.dumps(_sizes(temporary)))
        return _publish(temporary, home / key, name)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def fingerprint_files(sources: Iterable[Path]) -> str:
    """Return eight hexadecimal digits that change with the name, size or time of any file.

    Examples
    --------
    >>> fingerprint_files([])
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


def _is_complete(folder: Path) -> bool:
    """Whether the folder holds the files that it held when it was made."""
    try:
        return bool(json.loads((folder / SIZES).read_text()) == _sizes(folder))
    except (OSError, ValueError):  # no folder, or no list of its files
        return False


def _publish(temporary: Path, final: Path, name: str) -> Path:
    """Rename the finished folder, and remove those of other sources or versions."""
    temporary.chmod(0o755)  # mkdtemp creates folders that only their owner can read
    if final.exists() and not _is_complete(final):
        _remove(final)
    try:
        temporary.rename(final)
    except OSError:
        if not final.exists():
            raise
        if not _is_complete(final):  # otherwise another process has made the same folder
            raise DataError(f"'{final}' is damaged and cannot be replaced; delete it.") from None
    for other in final.parent.iterdir():
        if other != final and re.fullmatch(rf"{re.escape(name)}-v\d+-[0-9a-f]{{8}}", other.name):
            _remove(other)
    return final


def _remove(folder: Path) -> None:
    """Rename the folder before deleting it, so that no process finds a part of it."""
    with (
        tempfile.TemporaryDirectory(
            prefix=".", dir=folder.parent, ignore_cleanup_errors=True
        ) as away,
        suppress(OSError),
    ):
        folder.rename(Path(away) / folder.name)


def _writable_home() -> Path:
    """The data folder if it is writable, otherwise the user's cache."""
    for root in (data_folder(), cache_folder()):
        home = root / FOLDER
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(home, os.W_OK):
            return home
    raise PermissionError(
        f"Cannot write into '{data_folder()}' or into the cache '{cache_folder()}'; make one of "
        "them writable (on Linux, XDG_CACHE_HOME sets the cache)."
    )
