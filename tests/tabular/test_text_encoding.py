"""Bytes are decompressed and decoded, or a clear error is raised."""

import bz2
import gzip
import io
import lzma
import warnings
import zipfile

import pytest

from leaflearn.messages import NotUtf8, TableWarning
from leaflearn.tabular import text_encoding
from leaflearn.tabular.text_encoding import decode, unpack

TEXT = "naïve,café\n1,2\n"


def pack_zip(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "pack",
    [gzip.compress, bz2.compress, lzma.compress, lambda content: pack_zip(table=content), bytes],
)
def test_compressed_bytes_are_unpacked(pack):
    assert unpack(pack(TEXT.encode()), "table") == TEXT.encode()


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, lzma.compress, lambda content: pack_zip(table=content)]
)
def test_a_damaged_archive_is_an_error(pack):
    whole = pack(TEXT.encode() * 100)
    with pytest.raises(
        ValueError, match=r"^'table.gz' is damaged and cannot be unpacked; get a fresh copy\.$"
    ):
        unpack(whole[: len(whole) // 2], "table.gz")


def test_an_archive_must_hold_one_table():
    with pytest.raises(
        ValueError,
        match=r"^'all.zip' holds 2 files, but one table was expected; unpack it and give one of "
        r"them\.$",
    ):
        unpack(pack_zip(a=b"1", b=b"2"), "all.zip")
    with pytest.raises(
        ValueError,
        match=r"^'all.zip' holds 0 files, but one table was expected; unpack it and give one of "
        r"them\.$",
    ):
        unpack(pack_zip(), "all.zip")


def test_what_a_mac_adds_to_an_archive_is_ignored():
    assert (
        unpack(pack_zip(**{"a.csv": b"a", "__MACOSX/._a.csv": b"b", "folder/": b""}), "a.zip")
        == b"a"
    )


@pytest.mark.parametrize(
    "content", [pack_zip(**{"[Content_Types].xml": b"", "sheet": b""}), b"\xd0\xcf\x11\xe0rest"]
)
def test_spreadsheets_are_errors(content):
    with pytest.raises(ValueError, match=r"^'book.csv' is a spreadsheet; save it as CSV\.$"):
        unpack(content, "book.csv")


def test_an_archive_that_would_fill_the_memory_is_an_error(monkeypatch):
    monkeypatch.setattr(text_encoding, "MAX_BYTES", 1000)
    with pytest.raises(
        ValueError,
        match=r"^'a.gz' holds more than 1,000 bytes when it is unpacked; split it into smaller "
        r"tables\.$",
    ):
        unpack(gzip.compress(bytes(1001)), "a.gz")
    assert len(unpack(gzip.compress(bytes(1000)), "a.gz")) == 1000


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_unicode_is_read_without_a_warning(encoding):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decode((TEXT * 20).encode(encoding), "table.csv").removeprefix("\ufeff") == TEXT * 20


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_other_western_text_is_read_with_a_warning(encoding):
    with pytest.warns(TableWarning) as caught:
        assert decode(TEXT.encode(encoding), "table.csv") == TEXT
    assert caught[0].message.messages == (NotUtf8("table.csv", 0xEF, 1),)
    assert str(caught[0].message) == (
        "'table.csv' is not UTF-8 (byte 0xef in line 1); it was read as Windows-1252. Check its "
        "accents, or save it as UTF-8."
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            b"a,b\r\n1,\x81\x8d\n",
            "'t' is neither UTF-8 nor Windows-1252 text (byte 0x81 in line 2); save it as UTF-8.",
        ),
        (
            b"\xef\xbb\xbfa\n\xff\n",
            "'t' is marked as UTF-8, but byte 6 is not valid; save it as UTF-8.",
        ),
        (
            b"\xff\xfea\x00\x00\xd8\x00\xd8",
            "'t' is marked as UTF-16, but byte 5 is not valid; save it as UTF-8.",
        ),
        (
            b"\x7fELF\x00\x01\x02\x03",
            "'t' is not text (zero byte in line 1); give a table as CSV or Parquet.",
        ),
        (
            "a\nb\0c\n".encode("utf-16"),
            "'t' is not text (zero byte in line 2); give a table as CSV or Parquet.",
        ),
    ],
)
def test_bytes_that_are_not_text_are_errors_that_name_the_first_wrong_byte(content, sentence):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        decode(content, "t")
    assert str(error.value) == sentence
