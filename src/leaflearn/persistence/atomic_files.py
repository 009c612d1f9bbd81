"""Writing files so that none is ever seen half-written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def make_folder(folder: Path) -> Path:
    """Make the folder, and those above it, where it is missing.

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
            raise NotADirectoryError(
                f"Cannot write into '{folder}': {'it' if path == folder else path} is a file, and a folder is needed."
            )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_file(path: Path, content: bytes) -> None:
    """Write under a temporary name in the same folder, then rename: whoever looks sees the old file or the new one, whole.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(Path(folder) / "a.txt", b"whole")
    ...     os.listdir(folder)
    ['a.txt']
    """
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)  # mkstemp makes files that only their owner can read
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
