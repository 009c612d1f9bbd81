"""From the bytes of a file to the text of a table: unpacked, decoded, and refused in one sentence where that cannot be done."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import warnings
import zipfile
import zlib

MOST_BYTES = 8 * 2**30  # of a table after unpacking; a small archive can hold a disk full of zeros
BYTE_ORDER_MARKS = {  # the longer ones first, since one begins like another
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
PACKED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",  # an empty one
    b"\xd0\xcf\x11\xe0": "spreadsheet",  # of Excel before 2007
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


class TableWarning(UserWarning):
    """Something in a table was mended or left out, and the user should know."""


def warn(sentence: str) -> None:
    """Give a `TableWarning`.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("Column 'a' is empty.")
    >>> str(caught[0].message)
    "Column 'a' is empty."
    """
    warnings.warn(sentence, TableWarning, stacklevel=3)


def unpack(content: bytes, name: str) -> bytes:
    """What is in a gzip, bzip2, xz or zip file, known by its first bytes and not by its name; anything else as it is.

    Examples
    --------
    >>> unpack(gzip.compress(b"a,b"), "table.csv.gz")
    b'a,b'
    """
    kind = next((kind for beginning, kind in PACKED.items() if content.startswith(beginning)), None)
    if kind is None:
        return content
    try:
        found = _read_packed(kind, io.BytesIO(content), name)
    except DAMAGE as error:
        if isinstance(error, _Refused):
            raise
        raise ValueError(
            f"'{name}' is damaged and cannot be unpacked; get a fresh copy."
        ) from error
    if len(found) > MOST_BYTES:
        raise ValueError(
            f"'{name}' holds more than {MOST_BYTES:,} bytes when it is unpacked; split it into smaller tables."
        )
    return found


def decode(content: bytes, name: str) -> str:
    """The text, from UTF-8 or UTF-16; from Windows-1252, which includes Latin-1, with a warning.

    Examples
    --------
    >>> decode("caf\u00e9".encode("utf-16"), "table.csv")
    'caf\u00e9'
    >>> decode(b"a\\x00b", "table.csv")
    Traceback (most recent call last):
    ...
    ValueError: 'table.csv' is not text (it holds a zero byte in line 1); give a table as CSV or Parquet.
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
            f"'{name}' is not text (it holds a zero byte in line {line}); give a table as CSV or Parquet."
        )
    return text


def _decode_without_mark(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        first = _describe_byte(content, error.start)
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"'{name}' is neither UTF-8 nor Windows-1252 text ({_describe_byte(content, error.start)}); save it as UTF-8."
        ) from None
    warn(
        f"'{name}' is not UTF-8 ({first}); it was read as Windows-1252. Check its accents, or save it as UTF-8."
    )
    return text


def _decode_strictly(content: bytes, encoding: str, name: str) -> str:
    """What says that it is UTF-8 or UTF-16 has to be."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        place = (
            error.start + 1 + len(content) - len(error.object)
        )  # some decoders see the bytes without the mark
        shown = encoding.removesuffix("-sig").upper()
        raise ValueError(
            f"'{name}' says that it is {shown}, but byte {place} is not; save it as UTF-8."
        ) from None


def _guess_utf16(content: bytes) -> str | None:
    """Western text in UTF-16 without a mark has a zero in every second byte."""
    sample = content[:2000]
    half = max(len(sample) // 2, 1)
    first, second = sample[::2].count(0) / half, sample[1::2].count(0) / half
    if len(content) % 2 or min(first, second) > 0.05 or max(first, second) < 0.5:
        return None
    return "utf-16-be" if first > second else "utf-16-le"


def _describe_byte(content: bytes, place: int) -> str:
    line = len(content[: place + 1].splitlines())
    return f"byte 0x{content[place]:02x} in line {line}"


class _Refused(ValueError):
    """A refusal that already has its sentence."""


def _read_packed(kind: str, file: io.BytesIO, name: str) -> bytes:
    """At most one byte more than is allowed."""
    if kind == "spreadsheet":
        raise _Refused(f"'{name}' is a spreadsheet; save it as CSV.")
    if kind == "zip":
        with zipfile.ZipFile(file) as archive, archive.open(_only_member(archive, name)) as member:
            return member.read(MOST_BYTES + 1)
    with {"gzip": gzip, "bzip2": bz2, "xz": lzma}[kind].open(file) as unpacked:
        content: bytes = unpacked.read(MOST_BYTES + 1)
    return content


def _only_member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir() and not member.filename.startswith("__MACOSX/")
    ]
    if any(member.filename == "[Content_Types].xml" for member in members):
        raise _Refused(f"'{name}' is a spreadsheet; save it as CSV.")
    if len(members) != 1:
        raise _Refused(
            f"'{name}' holds {len(members)} files, but one table was expected; unpack it and give one of them."
        )
    return members[0]
