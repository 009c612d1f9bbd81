"""What is slow to work out from a publisher's files, decoded pictures or features, is worked out once and kept.

A prepared folder holds numpy files, which are mapped into memory rather than read. Its name carries a fingerprint of the files it was made
from: when those change, it is made anew. It is made under a temporary name and renamed when whole.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from leaflearn.datasets.store import cache_folder, data_folder

FOLDER = "prepared"


def prepare(name: str, sources: Iterable[Path], make: Callable[[Path], None]) -> Path:
    """The folder that `make` fills, made now or found from an earlier time.

    Parameters
    ----------
    name
        What the folder is called, options that change its contents included.
    sources
        The files, or folders of files, that it is made from.
    make
        Called with an empty folder to put files into, where there is none yet.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.environ["LEAFLEARN_DATA"], before = folder, os.environ.get("LEAFLEARN_DATA", "")
    ...     made = prepare("squares", [], lambda folder: (folder / "four.txt").write_text("4") and None)
    ...     print((prepare("squares", [], shutil.rmtree) / "four.txt").read_text())  # the second time, nothing is called
    ...     os.environ["LEAFLEARN_DATA"] = before
    4
    """
    key = f"{name}-{fingerprint(sources)}"
    for root in (data_folder(), cache_folder()):
        if (root / FOLDER / key).is_dir():
            return root / FOLDER / key
    home = _writable_home()
    temporary = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=home))
    try:
        make(temporary)
        return _settle(temporary, home / key)
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


def _settle(temporary: Path, final: Path) -> Path:
    """Give the finished folder its name, and remove those of the same name that were made from other files."""
    temporary.chmod(0o755)  # mkdtemp makes folders that only their owner can read
    try:
        temporary.rename(final)
    except OSError:
        if not final.is_dir():  # else another process was faster, with the same content
            raise
    for stale in final.parent.glob(f"{final.name[:-8]}????????"):
        if stale != final:
            _remove(stale)
    return final


def _remove(folder: Path) -> None:
    """Take away the name of the folder before it is emptied: nobody shall find half of it."""
    with tempfile.TemporaryDirectory(prefix=".", dir=folder.parent, ignore_cleanup_errors=True) as away, suppress(OSError):
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
    raise PermissionError(f"Cannot write into '{data_folder()}' nor into '{cache_folder()}'; set LEAFLEARN_DATA to a folder of yours.")
