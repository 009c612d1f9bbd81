"""From the bytes of a file to the text of a table: decompress, decode, or raise one clear error."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import warnings
import zipfile
import zlib

from leaflearn.messages import NotUtf8, TableWarning

MAX_BYTES = 8 * 2**30  # after decompression; a small archive can hold a disk full of zeros
BYTE_ORDER_MARKS = {  # the longer ones first, since one begins like another
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",  # an empty archive
    b"\xd0\xcf\x11\xe0": "spreadsheet",  # Excel before 2007
}
DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    NotImplementedError,
)


def unpack(content: bytes, name: str) -> bytes:
    """The content of a gzip, bzip2, xz or zip file; other content unchanged.

    The format is recognized by the first bytes, not by the name.

    Examples
    --------
    >>> unpack(gzip.compress(b"a,b"), "table.csv.gz")
    b'a,b'
    """
    kind = next((kind for start, kind in COMPRESSED.items() if content.startswith(start)), None)
    if kind is None:
        return content
    try:
        unpacked = _decompress(kind, io.BytesIO(content), name)
    except DAMAGE as error:
        if isinstance(error, _NotATableError):
            raise
        raise ValueError(
            f"'{name}' is damaged and cannot be unpacked; get a fresh copy."
        ) from error
    if len(unpacked) > MAX_BYTES:
        raise ValueError(
            f"'{name}' holds more than {MAX_BYTES:,} bytes when it is unpacked; "
            "split it into smaller tables."
        )
    return unpacked


def decode(content: bytes, name: str) -> str:
    """Decode UTF-8 or UTF-16; or, with a warning, Windows-1252, which includes Latin-1.

    Examples
    --------
    >>> decode("caf\u00e9".encode("utf-16"), "table.csv")
    'caf\u00e9'
    >>> decode(b"a\\x00b", "table.csv")
    Traceback (most recent call last):
    ...
    ValueError: 'table.csv' is not text (zero byte in line 1); give a table as CSV or Parquet.
    """
    mark = next((mark for mark in BYTE_ORDER_MARKS if content.startswith(mark)), None)
    encoding = BYTE_ORDER_MARKS[mark] if mark else _guess_utf16(content)
    if encoding is not None:
        text = _decode_strictly(content, encoding, name)
    else:
        if b"\0" not in content:
            return _decode_without_mark(content, name)
        text = content.decode("latin-1")  # to find the line
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ValueError(
            f"'{name}' is not text (zero byte in line {line}); give a table as CSV or Parquet."
        )
    return text


def _decode_without_mark(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        message = NotUtf8(name, content[error.start], _line_of_byte(content, error.start))
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError as error:
        place = f"byte 0x{content[error.start]:02x} in line {_line_of_byte(content, error.start)}"
        raise ValueError(
            f"'{name}' is neither UTF-8 nor Windows-1252 text ({place}); save it as UTF-8."
        ) from None
    warnings.warn(TableWarning(message), stacklevel=2)
    return text


def _decode_strictly(content: bytes, encoding: str, name: str) -> str:
    """Decode text that is marked as UTF-8, UTF-16 or UTF-32."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        # Some decoders see the bytes without the mark.
        place = error.start + 1 + len(content) - len(error.object)
        shown = encoding.removesuffix("-sig").upper()
        raise ValueError(
            f"'{name}' is marked as {shown}, but byte {place} is not valid; save it as UTF-8."
        ) from None


def _guess_utf16(content: bytes) -> str | None:
    """Western text in UTF-16 without a mark has a zero in every second byte."""
    sample = content[:2000]
    half = max(len(sample) // 2, 1)
    first, second = sample[::2].count(0) / half, sample[1::2].count(0) / half
    if len(content) % 2 or min(first, second) > 0.05 or max(first, second) < 0.5:
        return None
    return "utf-16-be" if first > second else "utf-16-le"


def _line_of_byte(content: bytes, place: int) -> int:
    return len(content[: place + 1].splitlines())


class _NotATableError(ValueError):
    """The archive is sound, but it does not hold one table."""


def _decompress(kind: str, file: io.BytesIO, name: str) -> bytes:
    """Read at most one byte more than is allowed."""
    if kind == "spreadsheet":
        raise _NotATableError(f"'{name}' is a spreadsheet; save it as CSV.")
    if kind == "zip":
        with zipfile.ZipFile(file) as archive, archive.open(_only_member(archive, name)) as member:
            return member.read(MAX_BYTES + 1)
    with {"gzip": gzip, "bzip2": bz2, "xz": lzma}[kind].open(file) as unpacked:
        content: bytes = unpacked.read(MAX_BYTES + 1)
    return content


def _only_member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir() and not member.filename.startswith("__MACOSX/")
    ]
    if any(member.filename == "[Content_Types].xml" for member in members):
        raise _NotATableError(f"'{name}' is a spreadsheet; save it as CSV.")
    if len(members) != 1:
        raise _NotATableError(
            f"'{name}' holds {len(members)} files, but one table was expected; "
            "unpack it and give one of them."
        )
    return members[0]
