"""Files and folders that appear complete or not at all, even if the process is killed.

A file is written under a temporary name in the same folder and then renamed.

For a folder, all files are written into a hidden folder beside it. Then both are exchanged in one
system call, which Linux and macOS have. On other systems, the old folder is renamed to a hidden
name first, and the new one takes its place. If the process is killed between these two steps, both
folders are complete but hidden. `find_folder` then returns the new one, and the next `write_folder`
moves it into place.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

MAX_WRITE_SECONDS = 24 * 3600  # older hidden folders are from a process that was killed
EXCHANGE = 2  # flag of renameat2 on Linux and of renamex_np on macOS
WORKING_DIRECTORY = -100  # AT_FDCWD, for renameat2


def make_folder(folder: Path) -> Path:
    """Create a folder and its parents, unless they exist.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     make_folder(Path(file.name))
    Traceback (most recent call last):
    ...
    NotADirectoryError: Cannot write into '...': it is a file, and a folder is needed.
    """
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            which = "it" if path == folder else path
            raise NotADirectoryError(
                f"Cannot write into '{folder}': {which} is a file, and a folder is needed."
            )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_file(path: Path, content: bytes) -> None:
    """Write a file, so that at any time either the old or the new file is there, complete.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(Path(folder) / "a.txt", b"complete")
    ...     os.listdir(folder)
    ['a.txt']
    """
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)  # files of mkstemp are readable for their owner only
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_folder(
    folder: Path, files: Mapping[str, bytes], check_old: Callable[[Path], None]
) -> None:
    """Write a folder with exactly these files, so that it appears complete or not at all.

    Parameters
    ----------
    folder
        Where to write; a folder that is there is replaced.
    files
        Content of the files, by name.
    check_old
        Called with a folder that is there; raises an error if it must not be replaced.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     write_folder(Path(parent) / "new", {"a.txt": b"complete"}, check_old=print)
    ...     os.listdir(parent), os.listdir(Path(parent) / "new")
    (['new'], ['a.txt'])
    """
    folder = folder.resolve()  # replace the target of a link, not the link
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
    finally:  # it holds the old files now, or the new ones after an error
        shutil.rmtree(new, ignore_errors=True)
    _sync(folder.parent)
    for _, path in _hidden_siblings(folder):
        if time.time() - path.stat().st_mtime > MAX_WRITE_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def find_folder(folder: Path) -> Path:
    """The place of a folder: its own, or a hidden one if the process was killed during a swap.

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
    for name, path in paths.items():  # the old folder is hidden only once the new one is complete
        if name.endswith(".new") and f"{name[:-4]}.old" in paths:
            return path
    return folder


def _finish_swap(folder: Path) -> None:
    found = find_folder(folder)
    if found != folder:
        os.rename(found, folder)
        shutil.rmtree(found.with_suffix(".old"), ignore_errors=True)


def _hidden_siblings(folder: Path) -> Iterator[tuple[str, Path]]:
    """Names and paths of the hidden folders that `write_folder` made beside this one."""
    start = f".{folder.name}."
    for name in sorted(os.listdir(folder.parent)):
        has_token = name.startswith(start) and len(name) == len(start) + 12
        if has_token and name.endswith((".new", ".old")):
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
    """Flush the names in a folder to the disk; not needed, and not possible, on Windows."""
    if sys.platform != "win32":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _put_in_place(new: Path, folder: Path) -> None:
    try:
        os.rename(new, folder)  # works if the target does not exist or is empty
    except OSError:
        if not folder.is_dir():
            raise
        if not _exchange(new, folder):
            _swap_in_two_steps(new, folder)


def _exchange(new: Path, folder: Path) -> bool:
    """Exchange two folders in one step; False if the system cannot do that."""
    if sys.platform == "win32":
        return False
    library, names = ctypes.CDLL(None), (os.fsencode(new), os.fsencode(folder))
    if hasattr(library, "renameat2"):
        here = WORKING_DIRECTORY
        return bool(library.renameat2(here, names[0], here, names[1], EXCHANGE) == 0)
    return hasattr(library, "renamex_np") and bool(library.renamex_np(*names, EXCHANGE) == 0)


def _swap_in_two_steps(new: Path, folder: Path) -> None:
    old = new.with_suffix(".old")
    try:
        os.rename(folder, old)
        os.rename(new, folder)
    except BaseException:
        if old.exists() and not folder.exists():
            os.rename(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
