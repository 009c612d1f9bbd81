"""Archives may be damaged or malicious: only requested files are extracted, into the folder."""

import gzip
import hashlib
import io
import os
import random
import stat
import tarfile
import zipfile

import pytest

from leaflearn.benchmark.datasets import unpacking
from leaflearn.benchmark.datasets.store import DataError
from leaflearn.benchmark.datasets.unpacking import unpack_archive

EVIL_NAMES = [
    "../cats",
    "a/../../cats",
    "/cats",
    "/etc/cats",
    "C:cats",
    "pets/C:cats",
    "..\\cats",
    "\\\\host\\cats",
]


def as_zip(members, compression=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


def as_tar(members, mode="w"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as file:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def as_tar_gz(members):
    return as_tar(members, "w:gz")


def special_tar(**properties):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        member = tarfile.TarInfo("cats")
        for name, value in properties.items():
            setattr(member, name, value)
        file.addfile(member)
    return buffer.getvalue()


def special_zip(kind):
    info = zipfile.ZipInfo("cats")
    info.external_attr = (kind | 0o777) << 16
    return as_zip({info: "/etc/passwd"})


@pytest.fixture
def pets(tmp_path):
    (tmp_path / "pets").mkdir()
    return tmp_path / "pets"


def take(pets, content, **contents):
    (pets / "archive").write_bytes(content)
    unpack_archive(pets / "archive", pets, contents or {"cats": None})


def complaint(pets, content, **contents):
    """What is said of this archive, after which only the archive is there."""
    with pytest.raises(DataError) as caught:
        take(pets, content, **contents)
    assert tree(pets.parent) == ["pets", "pets/archive"]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("pack", [as_zip, as_tar, as_tar_gz])
class TestAnyArchive:
    def test_only_the_requested_files_are_extracted(self, pets, pack):
        members = {
            "cats": b"Tom",
            "cats.old": b"?",
            "images/a/b": b"1",
            "images/c": b"2",
            "copy/cats": b"?",
            "copy/images/c": b"?",
        }
        take(pets, pack(members), **{"cats": None, "images/": None, "dogs": None})
        assert tree(pets) == [
            "archive",
            "cats",
            "images",
            "images/a",
            "images/a/b",
            "images/c",
        ]
        assert (pets / "cats").read_bytes() == b"Tom"
        assert (pets / "images" / "a" / "b").read_bytes() == b"1"

    def test_a_top_folder_of_the_same_name_is_skipped(self, pets, pack):
        take(pets, pack({"pets/cats": b"Tom", "pets/pets/cats": b"?"}))
        assert tree(pets) == ["archive", "cats"]
        assert (pets / "cats").read_bytes() == b"Tom"

    def test_other_users_may_read_the_extracted_files(self, pets, pack):
        take(pets, pack({"images/a": b"1"}), **{"images/": None})
        mask = os.umask(0)
        os.umask(mask)
        assert stat.S_IMODE((pets / "images").stat().st_mode) == 0o777 & ~mask
        assert stat.S_IMODE((pets / "images" / "a").stat().st_mode) == 0o666 & ~mask

    def test_existing_files_are_replaced_or_kept(self, pets, pack):
        (pets / "cats").write_bytes(b"old")
        (pets / "dogs").write_bytes(b"old")
        (pets / "images").mkdir()
        take(
            pets,
            pack({"cats": b"new", "dogs": b"new", "images/a": b"new"}),
            **{"cats": None, "images/": None},
        )
        assert [(pets / name).read_bytes() for name in ("cats", "dogs", "images/a")] == [
            b"new",
            b"old",
            b"new",
        ]

    def test_a_folder_and_a_file_in_it(self, pets, pack):
        take(
            pets,
            pack({"images/a": b"1", "images/b": b"2"}),
            **{"images/b": None, "images/": None},
        )
        assert tree(pets) == ["archive", "images", "images/a", "images/b"]

    @pytest.mark.parametrize("name", EVIL_NAMES)
    def test_a_name_that_leads_out_of_the_folder(self, pets, pack, name):
        content = pack({"cats": b"Tom", name: b"evil"})
        assert (
            complaint(pets, content)
            == f"'archive' contains {name!r}, which leads out of the folder"
        )

    def test_a_name_with_a_line_break_is_still_one_sentence(self, pets, pack):
        assert (
            complaint(pets, pack({"../a\nb": b""}))
            == "'archive' contains '../a\\nb', which leads out of the folder"
        )

    def test_a_name_that_is_a_file_and_a_folder(self, pets, pack):
        content = pack({"cats/a": b"1", "cats": b"2"})
        text = complaint(pets, content, **{"cats": None, "cats/": None})
        assert text == "'archive' is damaged or is not an archive (Is a directory)"

    def test_too_many_members(self, pets, pack, monkeypatch):
        monkeypatch.setattr(unpacking, "MAX_MEMBERS", 2)
        take(pets, pack({"cats": b"1", "b": b"2"}))
        (pets / "cats").unlink()
        assert (
            complaint(pets, pack({"cats": b"1", "b": b"2", "c": b"3"}))
            == "'archive' contains more than 2 files"
        )

    def test_more_bytes_than_allowed(self, pets, pack, monkeypatch):
        monkeypatch.setattr(unpacking, "MAX_BYTES", 40_000)
        text = complaint(pets, pack({"cats": random.Random(0).randbytes(50_000)}))
        assert text == "'archive' unpacks to more than the 40000 bytes allowed for its size"

    def test_a_file_with_another_checksum(self, pets, pack):
        right = "md5:" + hashlib.md5(b"Tom").hexdigest()
        text = complaint(pets, pack({"dogs": b"Rex", "cats": b"Tim"}), dogs=None, cats=right)
        assert (
            text
            == f"'archive' contains a 'cats' that is not the published file: its checksum is not "
            f"{right}"
        )
        take(pets, pack({"cats": b"Tom"}), cats=right)
        assert (pets / "cats").read_bytes() == b"Tom"

    @pytest.mark.parametrize("seed", range(50))
    def test_any_damage_ends_in_one_sentence_or_is_harmless(self, pets, pack, seed):
        generator = random.Random(seed)
        content = bytearray(
            pack({"cats": generator.randbytes(300), "images/" + 120 * "b": b"x" * 3000})
        )
        for _ in range(generator.choice((1, 2, 10))):
            content[generator.randrange(len(content))] = generator.choice(
                (0, 255, generator.randrange(256))
            )
        end = generator.choice((len(content), generator.randrange(len(content))))
        try:
            take(pets, bytes(content[:end]), **{"images/": None})
        except DataError as error:
            text = str(error)
            assert complaint(pets, bytes(content[:end]), **{"images/": None}) == text
        else:
            assert set(os.listdir(pets)) <= {"archive", "images"}


@pytest.mark.parametrize("pack", [as_zip, as_tar_gz])
def test_a_bomb(pets, pack, monkeypatch):
    monkeypatch.setattr(unpacking, "MAX_RATIO", 10)
    content = pack({"cats": bytes(5_000_000)})
    most = (1 << 20) + 10 * len(content)
    assert most < 5_000_000
    assert (
        complaint(pets, content)
        == f"'archive' unpacks to more than the {most} bytes allowed for its size"
    )


def test_a_bomb_among_the_skipped_files(pets):
    # a tar file can only be read from its beginning to its end
    content = as_tar_gz({"bomb": bytes(50_000_000), "cats": b"Tom"})
    assert "unpacks to more than" in complaint(pets, content)
    # of a zip file, that part is not even looked at
    take(pets, as_zip({"bomb": bytes(50_000_000), "cats": b"Tom"}))
    assert tree(pets) == ["archive", "cats"]


def test_a_bomb_that_lies_about_its_size(pets):
    content = as_zip({"cats": bytes(50_000_000)})
    length = (50_000_000).to_bytes(4, "little")
    assert content.count(length) == 2  # before the file, and in the list at the end
    assert "'archive' is damaged or is not an archive" in complaint(
        pets, content.replace(length, (10).to_bytes(4, "little"))
    )


@pytest.mark.parametrize(
    "content",
    [
        special_tar(type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        special_tar(type=tarfile.SYMTYPE, linkname="dogs"),
        special_tar(type=tarfile.LNKTYPE, linkname="../other"),
        special_tar(type=tarfile.CHRTYPE, devmajor=1, devminor=5),
        special_tar(type=tarfile.FIFOTYPE),
        special_tar(
            pax_headers={
                "GNU.sparse.size": "10000000",
                "GNU.sparse.numblocks": "0",
                "GNU.sparse.map": "0,0",
            }
        ),
        special_zip(stat.S_IFLNK),
        special_zip(stat.S_IFCHR),
    ],
)
def test_links_and_devices(pets, content):
    assert (
        complaint(pets, content)
        == "'archive' contains 'cats', which is a link, a device or a sparse file"
    )


def test_nothing_is_written_through_a_link(pets):
    """A link to a folder outside, and a file in it, as if it were a folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        link = tarfile.TarInfo("images")
        link.type, link.linkname = tarfile.SYMTYPE, ".."
        file.addfile(link)
        file.addfile(tarfile.TarInfo("images/evil"), io.BytesIO())
    text = complaint(pets, buffer.getvalue(), **{"images/": None})
    assert text == "'archive' contains 'images', which is a link, a device or a sparse file"


def test_compression_that_cannot_be_bounded(pets):
    text = complaint(pets, as_zip({"cats": b"Tom"}, zipfile.ZIP_BZIP2))
    assert text == "'archive' has an unknown compression type (12)"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"P",
        b"<html>Please log in.</html>" * 100,
        b"PK",
        b"\x1f\x8b",
        gzip.compress(b"no tar", mtime=0),
    ],
    ids=[
        "empty",
        "a letter",
        "a page",
        "a zip's first letters",
        "a gzip's first bytes",
        "a gzip without a tar",
    ],
)
def test_a_file_that_is_not_an_archive(pets, content):
    assert complaint(pets, content).startswith("'archive' is damaged or is not an archive (")


def test_gzip_has_a_checksum_at_its_end(pets):
    content = as_tar_gz({"cats": b"Tom"})
    text = complaint(pets, content[:-8] + bytes(4) + content[-4:])
    assert text.startswith("'archive' is damaged or is not an archive (CRC check failed")


def test_a_folder_that_is_not_empty_is_not_removed(pets):
    (pets / "images").mkdir()
    (pets / "images" / "mine").write_text("dear to me")
    with pytest.raises(OSError, match="not empty"):
        take(pets, as_zip({"images/a": b"1"}), **{"images/": None})
    assert tree(pets) == ["archive", "images", "images/mine"]
