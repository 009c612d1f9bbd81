"""Folders that appear whole or not at all, also where they take the place of an older one.

All files are written into a hidden folder beside the target. Then the two change places in one step, which Linux and macOS can do. Where
that cannot be done, the old folder first steps aside under a hidden name. Who is killed between these two steps leaves both folders whole
and neither in place; `find_folder` then says which one counts, the new one, and the next `write_folder` puts it in place.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from leaflearn.persistence.atomic_files import make_folder

LEFT_BEHIND = (
    24 * 3600
)  # seconds after which a hidden folder belongs to a run that was killed, and not to one that still writes
EXCHANGE = 2  # the flag of renameat2 on Linux and of renamex_np on macOS
HERE = -100  # paths are relative to the working directory, for renameat2


def write_folder(
    folder: Path, files: Mapping[str, bytes], check_old: Callable[[Path], None]
) -> None:
    """Write these files, by name, as the whole content of a folder; `check_old` raises where what is there must not be replaced.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     write_folder(Path(parent) / "new", {"a.txt": b"whole"}, check_old=print)
    ...     os.listdir(parent), os.listdir(Path(parent) / "new")
    (['new'], ['a.txt'])
    """
    folder = folder.resolve()  # where it is a link, the folder behind it is replaced
    make_folder(folder.parent)
    _finish_swap(folder)
    if folder.exists():
        check_old(folder)
    new = folder.parent / f".{folder.name}.{secrets.token_hex(4)}.new"
    os.mkdir(new)
    try:
        for name, content in files.items():
            _write(new / name, content)
        _sync(new)
        _put_in_place(new, folder)
    finally:  # it holds the old files now, or, after an error, the new ones
        shutil.rmtree(new, ignore_errors=True)
    _sync(folder.parent)
    for _, path in _hidden_siblings(folder):
        if time.time() - path.stat().st_mtime > LEFT_BEHIND:
            shutil.rmtree(path, ignore_errors=True)


def find_folder(folder: Path) -> Path:
    """Where the content of a folder is: in the folder, or, where a swap was cut short, in the hidden one that was to take its place.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     os.mkdir(Path(parent) / ".model.0123abcd.old")
    ...     os.mkdir(Path(parent) / ".model.0123abcd.new")
    ...     find_folder(Path(parent) / "model").name
    '.model.0123abcd.new'
    """
    if os.path.lexists(folder) or not folder.parent.is_dir():
        return folder
    paths = dict(_hidden_siblings(folder.parent.resolve() / folder.name))
    # The old folder steps aside only once the new one is whole.
    return next(
        (
            path
            for name, path in paths.items()
            if name.endswith(".new") and f"{name[:-4]}.old" in paths
        ),
        folder,
    )


def _finish_swap(folder: Path) -> None:
    found = find_folder(folder)
    if found != folder:
        os.rename(found, folder)
        shutil.rmtree(found.with_suffix(".old"), ignore_errors=True)


def _hidden_siblings(folder: Path) -> Iterator[tuple[str, Path]]:
    """Hidden folders beside this one that a write made, by name."""
    start = f".{folder.name}."
    for name in sorted(os.listdir(folder.parent)):
        if (
            name.startswith(start)
            and len(name) == len(start) + 12
            and name.endswith((".new", ".old"))
        ):
            yield name, folder.parent / name


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        left = memoryview(content)
        while len(left):
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync(folder: Path) -> None:
    """Let the names in a folder reach the disk; Windows cannot open folders, and does so by itself."""
    if sys.platform != "win32":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _put_in_place(new: Path, folder: Path) -> None:
    try:
        os.rename(new, folder)  # nothing is there, or an empty folder
    except OSError:
        if not folder.is_dir():
            raise
        if not _exchange(new, folder):
            _step_aside(new, folder)


def _exchange(new: Path, folder: Path) -> bool:
    """Let two folders change places in one step; False where the system cannot do that."""
    if sys.platform == "win32":
        return False
    library, names = ctypes.CDLL(None), (os.fsencode(new), os.fsencode(folder))
    if hasattr(library, "renameat2"):
        return bool(library.renameat2(HERE, names[0], HERE, names[1], EXCHANGE) == 0)
    return hasattr(library, "renamex_np") and bool(library.renamex_np(*names, EXCHANGE) == 0)


def _step_aside(new: Path, folder: Path) -> None:
    """The same in two steps."""
    old = new.with_suffix(".old")
    try:
        os.rename(folder, old)
        os.rename(new, folder)
    except BaseException:
        if old.exists() and not folder.exists():
            os.rename(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
