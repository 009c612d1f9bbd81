"""Extract files from a downloaded archive, which may be damaged or malicious.

Every name is checked before anything is written, and links and devices are refused. The extracted
bytes are counted, because an archive can claim any size. Files are extracted into a temporary
folder, and only complete ones are moved to their place.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from leaflearn.benchmark.datasets.store import READ_AT_ONCE, DataError, matches
from leaflearn.progress import Advance, progress_bar

PREFIX = ".unpacking-"
MAX_MEMBERS = 500_000
MAX_BYTES = 16 << 30  # extracted from one archive
MAX_RATIO = 50  # of extracted bytes to the archive's size; text compresses by about ten
ALWAYS_ALLOWED = 1 << 20  # extracted bytes; a tiny archive can be mostly padding
DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    RuntimeError,
    OverflowError,
    LookupError,
)
# other numbers are faults of the machine
DAMAGE_NUMBERS = (None, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.EINVAL)

# its name and its content in pieces; None for a folder
Member = tuple[str, Iterator[bytes] | None]
Count = Callable[[int], None]


def unpack_archive(archive: Path, folder: Path, contents: Mapping[str, str | None]) -> None:
    """Extract these files from a zip, tar or tar.gz file into the folder.

    Parameters
    ----------
    archive
        The zip, tar or tar.gz file. A top-level folder with the name of `folder` is skipped.
    folder
        Where the files go.
    contents
        What to extract, with checksums if there are any. A name that ends in a slash is a folder
        with everything in it. Files that the archive does not hold are ignored.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zipfile.ZipFile(Path(folder) / "pets.zip", "w") as file:
    ...         file.writestr("cats.csv", "Tom")
    ...         file.writestr("more/dogs.csv", "Rex")
    ...     unpack_archive(Path(folder) / "pets.zip", Path(folder), {"cats.csv": None})
    ...     sorted(os.listdir(folder))
    ['cats.csv', 'pets.zip']
    """
    temporary = Path(tempfile.mkdtemp(prefix=PREFIX, dir=folder))
    try:
        _extract(archive, temporary, contents, top=folder.name)
        _check(archive, temporary, contents)
        _move(temporary, folder, contents)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _extract(archive: Path, into: Path, contents: Mapping[str, str | None], top: str) -> None:
    try:
        with (
            archive.open("rb") as file,
            progress_bar(
                f"unpacking {archive.name}", archive.stat().st_size, in_bytes=True
            ) as advance,
        ):
            for number, (name, content) in enumerate(
                _members(archive, file, _counter(archive, file, advance))
            ):
                if number == MAX_MEMBERS:
                    raise DataError(f"'{archive.name}' contains more than {MAX_MEMBERS} files")
                inside = "/".join(_parts_below(top, name))
                if content is not None and _is_wanted(inside, contents):
                    _write(content, into / inside)
    except (OSError, *DAMAGE) as error:
        if isinstance(error, DataError) or (
            isinstance(error, OSError) and error.errno not in DAMAGE_NUMBERS
        ):
            raise
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        reason = " ".join(words.split()).rstrip(".")[:200] or type(error).__name__
        raise DataError(f"'{archive.name}' is damaged or is not an archive ({reason})") from error


def _counter(archive: Path, file: IO[bytes], advance: Advance) -> Count:
    """A function to call with the number of extracted bytes; it raises an error for too many."""
    most = min(MAX_BYTES, ALWAYS_ALLOWED + MAX_RATIO * archive.stat().st_size)
    total = 0

    def count(n_bytes: int) -> None:
        nonlocal total
        total += n_bytes
        if total > most:
            raise DataError(
                f"'{archive.name}' unpacks to more than the {most} bytes allowed for its size"
            )
        advance(file.tell())

    return count


def _members(archive: Path, file: IO[bytes], count: Count) -> Iterator[Member]:
    start = file.read(2)
    file.seek(0)
    if start == b"PK":
        return _of_zip(archive, file, count)
    return _of_tar(
        archive, _Counted(gzip.GzipFile(fileobj=file) if start == b"\x1f\x8b" else file, count)
    )


def _of_zip(archive: Path, file: IO[bytes], count: Count) -> Iterator[Member]:
    with zipfile.ZipFile(file) as opened:
        for info in opened.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            _refuse_danger(archive, info.filename, is_plain=kind in (0, stat.S_IFREG, stat.S_IFDIR))
            # others decompress in pieces of any size
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise DataError(
                    f"'{archive.name}' has an unknown compression type ({info.compress_type})"
                )
            yield (
                info.filename,
                None if info.is_dir() else _counted(_pieces(partial(opened.open, info)), count),
            )


def _of_tar(archive: Path, stream: _Counted) -> Iterator[Member]:
    with tarfile.open(fileobj=stream, mode="r|") as opened:
        for member in opened:
            _refuse_danger(
                archive,
                member.name,
                is_plain=(member.isfile() and not member.issparse()) or member.isdir(),
            )
            # Python 3.11.4 and later; the standard library's own checks
            if hasattr(tarfile, "data_filter"):
                tarfile.data_filter(member, str(archive.parent))
            yield (
                member.name,
                None if member.isdir() else _pieces(partial(opened.extractfile, member)),
            )
    while stream.read(READ_AT_ONCE):  # to the end, where gzip stores its checksum
        pass


class _Counted(io.RawIOBase):
    """A stream whose bytes are counted as they are read, including those of skipped members."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, count: Count) -> None:
        self.stream, self.count = stream, count

    def read(self, size: int = -1, /) -> bytes:
        chunk = self.stream.read(size)
        self.count(len(chunk))
        return chunk


def _pieces(open_member: Callable[[], IO[bytes] | None]) -> Iterator[bytes]:
    """The content of a member, which is opened when the first piece is requested."""
    source = open_member()
    assert source is not None  # a file, not a folder
    with source:
        while piece := source.read(READ_AT_ONCE):
            yield piece


def _counted(pieces: Iterator[bytes], count: Count) -> Iterator[bytes]:
    for piece in pieces:
        count(len(piece))
        yield piece


def _refuse_danger(archive: Path, name: str, is_plain: bool) -> None:
    """Refuse names that lead out of the folder on any system, links, devices and sparse files."""
    if name.startswith("/") or ".." in PurePosixPath(name).parts or "\\" in name or ":" in name:
        raise DataError(f"'{archive.name}' contains {name[:80]!r}, which leads out of the folder")
    if not is_plain:
        raise DataError(
            f"'{archive.name}' contains {name[:80]!r}, which is a link, a device or a sparse file"
        )


def _parts_below(top: str, name: str) -> tuple[str, ...]:
    parts = PurePosixPath(name).parts
    return parts[1:] if parts[:1] == (top,) else parts


def _is_wanted(inside: str, contents: Mapping[str, str | None]) -> bool:
    return any(
        inside.startswith(name) if name.endswith("/") else inside == name for name in contents
    )


def _write(content: Iterator[bytes], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for piece in content:
            file.write(piece)


def _check(archive: Path, folder: Path, contents: Mapping[str, str | None]) -> None:
    for name, checksum in contents.items():
        if checksum and (folder / name).is_file() and not matches(folder / name, checksum):
            raise DataError(
                f"'{archive.name}' contains a '{name}' that is not the published file: "
                f"its checksum is not {checksum}"
            )


def _move(temporary: Path, folder: Path, contents: Mapping[str, str | None]) -> None:
    for name in sorted(contents):  # a folder before the files in it
        if (temporary / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if name.endswith("/") and (folder / name).is_dir():
                # fails if it is not empty; Windows cannot rename onto a folder
                (folder / name).rmdir()
            os.replace(temporary / name, folder / name)
