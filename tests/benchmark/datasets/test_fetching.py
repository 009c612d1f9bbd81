"""After any fault of a server: one sentence, nothing half-written, and the next try succeeds."""

import contextlib
import hashlib
import io
import os
import random
import resource
import socket
import tarfile
import threading
import zipfile
from dataclasses import replace
from urllib.request import Request

import pytest

import faulty_server as faults
from leaflearn.benchmark.datasets import fetching, unpacking
from leaflearn.benchmark.datasets.fetching import download, get
from leaflearn.benchmark.datasets.store import DataError, Files, MissingDataError, RemoteFile

CATS = random.Random(0).randbytes(300_001)
DOGS = random.Random(1).randbytes(300_001)
SIZE = len(CATS)
MD5 = "md5:" + hashlib.md5(CATS).hexdigest()


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAFLEARN_DATA", str(tmp_path))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with faults.FaultyServer() as server:
        server.content["/cats"] = CATS
        yield server


def cats(server, size=SIZE, checksum=MD5):
    """A publisher of one file."""
    remote = RemoteFile(f"{server.url}/cats", "cats", size, checksum)
    return Files(
        "pets",
        "Pets",
        "CC0",
        contents={"cats": checksum},
        remote=(remote,),
        by_hand="Draw some there.",
    )


def archived(server, content, name="pets.zip", contents=("cats",)):
    """A publisher of one archive."""
    server.content[f"/{name}"] = content
    remote = RemoteFile(f"{server.url}/{name}", name, archive=True)
    return Files(
        "pets",
        "Pets",
        "CC0",
        contents=dict.fromkeys(contents),
        remote=(remote,),
        by_hand="Draw some there.",
    )


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def complaint(files, server, tmp_path):
    """What is said when these files cannot be fetched, without what is always said."""
    with pytest.raises(DataError) as caught:
        get(files)
    text = str(caught.value)
    end = f"; the files in '{tmp_path}/pets' are incomplete. Draw some there."
    assert text.startswith("Pets: ")
    assert text.endswith(end)
    assert "\n" not in text
    return text.removeprefix("Pets: ").removesuffix(end).replace(server.url, "URL")


def test_a_file_is_fetched_only_once(server, tmp_path):
    folder = get(cats(server))
    assert folder == tmp_path / "pets"
    assert (folder / "cats").read_bytes() == CATS
    assert tree(tmp_path) == ["pets", "pets/cats"]
    get(cats(server))
    assert server.asked == [("/cats", None)]


def test_only_what_is_missing_or_wrong_is_fetched(server, tmp_path):
    server.content["/dogs"] = DOGS
    dogs = RemoteFile(
        f"{server.url}/dogs", "more/dogs", checksum="md5:" + hashlib.md5(DOGS).hexdigest()
    )
    files = Files(
        "pets",
        "Pets",
        "CC0",
        contents={"cats": MD5, "more/dogs": dogs.checksum},
        remote=(*cats(server).remote, dogs),
    )
    (tmp_path / "pets" / "more").mkdir(parents=True)
    (tmp_path / "pets" / "cats").write_bytes(CATS)
    (tmp_path / "pets" / "more" / "dogs").write_bytes(CATS)
    get(files)
    assert (tmp_path / "pets" / "more" / "dogs").read_bytes() == DOGS
    assert server.asked == [("/dogs", None)]


def test_a_correct_alternative_layout_is_not_fetched_again(server, tmp_path):
    drawn = Files("drawn", "Pets", "CC0", contents={"dogs": "md5:" + hashlib.md5(DOGS).hexdigest()})
    files = replace(cats(server), alternatives=(drawn,))
    (tmp_path / "drawn").mkdir()
    (tmp_path / "drawn" / "dogs").write_bytes(DOGS)
    assert get(files) == tmp_path / "drawn"
    assert server.asked == []
    (tmp_path / "drawn" / "dogs").write_bytes(CATS)  # a wrong one is
    assert get(files) == get(files) == tmp_path / "pets"
    assert server.asked == [("/cats", None)]


def test_a_file_of_another_size_is_fetched_again(server, tmp_path):
    (tmp_path / "pets").mkdir()
    (tmp_path / "pets" / "cats").write_bytes(CATS[:-1])
    assert (get(cats(server, checksum=None)) / "cats").read_bytes() == CATS


def test_the_checksum_is_checked_before_the_file_is_renamed(server, tmp_path):
    remote = RemoteFile(f"{server.url}/cats", "cats")
    files = Files(
        "pets",
        "Pets",
        "CC0",
        contents={"cats": "md5:0"},
        remote=(remote,),
        by_hand="Draw some there.",
    )
    assert (
        complaint(files, server, tmp_path)
        == "'URL/cats' sent a file whose checksum is not md5:0 (try again)"
    )
    assert tree(tmp_path) == ["pets"]


@pytest.mark.parametrize(
    ("fault", "text", "rest"),
    [
        (
            faults.truncate(1000),
            "'URL/cats' stopped after 1000 of 300001 bytes (try again to resume)",
            1000,
        ),
        (
            faults.truncate_unannounced(1000),
            "'URL/cats' stopped after 1000 bytes: the connection was closed",
            1000,
        ),
        (
            faults.stall(1000),
            "'URL/cats' stopped after 1000 bytes: no response for 0.5 seconds",
            1000,
        ),
        (faults.stall_at_once, "'URL/cats' cannot be reached: no response for 0.5 seconds", None),
        (faults.corrupt, f"'URL/cats' sent a file whose checksum is not {MD5} (try again)", None),
        (faults.never_stop, "'URL/cats' sends more than the expected 300001 bytes", None),
        (faults.add(b"!"), "'URL/cats' has 300002 bytes, but 300001 were expected", None),
        (faults.shorten(1), "'URL/cats' has 300000 bytes, but 300001 were expected", None),
        (
            faults.redirect("/cats"),
            "'URL/cats' has an invalid redirect (302)",
            None,
        ),
        (
            faults.redirect(""),
            "'URL/cats' has an invalid redirect (302)",
            None,
        ),
        (
            faults.redirect("file:///etc/passwd"),
            "'URL/cats' has an invalid redirect (302)",
            None,
        ),
        (
            faults.redirect("file:///etc/passwd", header="URI"),
            "'URL/cats' has an invalid redirect (302)",
            None,
        ),
        (
            faults.redirect("ftp://127.0.0.1/cats"),
            "'ftp://127.0.0.1/cats' is not an address that begins with https:// or http://",
            None,
        ),
        (faults.redirect("http://[1"), "'URL/cats' cannot be reached: Invalid IPv6 URL", None),
        (faults.answer(404), "'URL/cats' responds with 404 (Not Found)", None),
        (faults.answer(403), "'URL/cats' responds with 403 (Forbidden)", None),
        (faults.answer(500), "'URL/cats' responds with 500 (Internal Server Error)", None),
        (faults.answer(799), "'URL/cats' responds with 799 (unknown)", None),
        (faults.answer(204), "'URL/cats' responds with 204 (No Content)", None),
        (faults.give_from(7), "'URL/cats' responds with 206 (Partial Content)", None),
        (
            faults.hang_up,
            "'URL/cats' cannot be reached: Remote end closed connection without response",
            None,
        ),
        (
            faults.talk_nonsense,
            "'URL/cats' cannot be reached: its response is not valid HTTP",
            None,
        ),
    ],
)
def test_a_fault_of_the_server(server, tmp_path, monkeypatch, fault, text, rest):
    monkeypatch.setattr(fetching, "TIMEOUT", 0.5)
    server.faults["/cats"] = fault
    assert complaint(cats(server), server, tmp_path) == text
    assert tree(tmp_path) == (["pets"] if rest is None else ["pets", "pets/cats.part"])
    assert rest is None or (tmp_path / "pets" / "cats.part").read_bytes() == CATS[:rest]

    server.faults.clear()
    server.asked.clear()
    server.answered.clear()
    assert (get(cats(server)) / "cats").read_bytes() == CATS
    assert tree(tmp_path) == ["pets", "pets/cats"]
    assert server.asked == [("/cats", None if rest is None else f"bytes={rest}-")]
    assert server.answered == [200 if rest is None else 206]


@pytest.mark.parametrize(
    "fault",
    [
        faults.ignore_range,
        faults.misplace,
        faults.misspell,
        faults.give_little,
        faults.give_from(7, claim=1000),
        faults.answer(404),
    ],
)
def test_a_server_that_cannot_resume_sends_the_whole_file(server, tmp_path, fault):
    (tmp_path / "pets").mkdir()
    (tmp_path / "pets" / "cats.part").write_bytes(CATS[:1000])
    server.faults["/cats"] = lambda handler, content: (
        fault if handler.headers["Range"] else faults.well
    )(handler, content)
    assert (get(cats(server)) / "cats").read_bytes() == CATS
    assert server.asked[0] == ("/cats", "bytes=1000-")
    assert tree(tmp_path) == ["pets", "pets/cats"]


@pytest.mark.parametrize("size", [SIZE, None])
@pytest.mark.parametrize("there", [CATS, CATS + b"!", DOGS[:1000]])
def test_the_second_try_succeeds_with_any_unfinished_file(server, tmp_path, there, size):
    (tmp_path / "pets").mkdir()
    (tmp_path / "pets" / "cats.part").write_bytes(there)
    with contextlib.suppress(DataError):
        get(cats(server, size))
    assert (get(cats(server, size)) / "cats").read_bytes() == CATS
    assert tree(tmp_path) == ["pets", "pets/cats"]


def test_a_complete_part_file_is_renamed_and_not_fetched_again(server, tmp_path):
    (tmp_path / "pets").mkdir()
    (tmp_path / "pets" / "cats.part").write_bytes(CATS)
    assert (get(cats(server)) / "cats").read_bytes() == CATS
    assert server.asked == []


class TestWithoutAChecksum:
    """Pieces of two different files must not be put together."""

    def break_off(self, server, tmp_path):
        server.faults["/cats"] = faults.truncate(1000)
        complaint(cats(server, None, None), server, tmp_path)
        server.faults.clear()
        server.asked.clear()
        server.answered.clear()

    def test_the_rest_of_the_same_file_is_fetched(self, server, tmp_path):
        self.break_off(server, tmp_path)
        assert (get(cats(server, None, None)) / "cats").read_bytes() == CATS
        assert server.asked == [("/cats", "bytes=1000-")]
        assert server.answered == [206]

    def test_a_file_that_has_changed_is_fetched_again(self, server, tmp_path):
        self.break_off(server, tmp_path)
        server.content["/cats"], server.date = DOGS, faults.DATE + 1
        assert (get(cats(server, None, None)) / "cats").read_bytes() == DOGS
        assert server.answered == [200]

    def test_a_server_that_ignores_if_range_is_detected(self, server, tmp_path):
        self.break_off(server, tmp_path)
        server.content["/cats"], server.date = DOGS, faults.DATE + 1
        server.faults["/cats"] = faults.ignore_if_range
        assert (get(cats(server, None, None)) / "cats").read_bytes() == DOGS
        assert server.asked == [("/cats", "bytes=1000-"), ("/cats", None)]

    def test_a_server_without_dates_sends_the_whole_file(self, server, tmp_path):
        server.date = None
        self.break_off(server, tmp_path)
        server.content["/cats"] = DOGS
        server.faults["/cats"] = faults.ignore_if_range
        assert (get(cats(server, None, None)) / "cats").read_bytes() == DOGS

    @pytest.mark.parametrize(
        "text",
        [
            "yesterday",
            "",
            "Mon, 01 Jan 2001 00:00:00 +99999999999999999",
            "Mon, 01 Jan 0001 00:00:00 GMT",
            "Fri, 31 Dec 9999 23:59:59 GMT",
        ],
    )
    def test_an_invalid_date_is_ignored(self, server, text):
        server.faults["/cats"] = faults.date(text)
        assert (get(cats(server, None, None)) / "cats").read_bytes() == CATS

    def test_a_missing_content_length_is_accepted(self, server):
        server.faults["/cats"] = faults.announce_nothing
        assert (get(cats(server, None, None)) / "cats").read_bytes() == CATS

    @pytest.mark.parametrize(
        ("fault", "text"),
        [
            (faults.never_stop, "'URL/cats' sends more than the expected 1000 bytes"),
            (faults.well, "'URL/cats' has 300001 bytes, but at most 1000 were expected"),
        ],
    )
    def test_the_size_is_limited(self, server, tmp_path, monkeypatch, fault, text):
        server.faults["/cats"] = fault
        with monkeypatch.context() as patch:
            patch.setattr(fetching, "MAX_BYTES", 1000)
            assert complaint(cats(server, None, None), server, tmp_path) == text
        assert tree(tmp_path) == ["pets"]
        server.faults.clear()
        assert (get(cats(server, None, None)) / "cats").read_bytes() == CATS


class TestRedirects:
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_they_are_followed(self, server, status):
        server.faults["/cats"] = faults.redirect("/elsewhere", status)
        server.content["/elsewhere"] = CATS
        assert (get(cats(server)) / "cats").read_bytes() == CATS

    def test_a_redirected_download_is_resumed(self, server, tmp_path):
        (tmp_path / "pets").mkdir()
        (tmp_path / "pets" / "cats.part").write_bytes(CATS[:1000])
        server.faults["/cats"] = faults.redirect(f"{server.url}/elsewhere")
        server.content["/elsewhere"] = CATS
        assert (get(cats(server)) / "cats").read_bytes() == CATS
        assert server.asked == [("/cats", "bytes=1000-"), ("/elsewhere", "bytes=1000-")]

    def test_a_long_chain_is_refused(self, server, tmp_path):
        for number in range(20):
            server.faults[f"/{number}"] = faults.redirect(f"/{number + 1}")
        server.faults["/cats"] = faults.redirect("/0")
        assert (
            complaint(cats(server), server, tmp_path) == "'URL/cats' has an invalid redirect (302)"
        )
        assert len(server.asked) == 1 + fetching.MAX_REDIRECTS

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    @pytest.mark.parametrize("header", ["location", "uri"])
    def test_redirects_from_https_to_http_are_refused(self, status, header):
        follow = getattr(fetching._Redirects(), f"http_error_{status}")
        with pytest.raises(DataError) as caught:
            follow(Request("https://a.org/cats"), None, status, "", {header: "http://b.org/cats"})
        assert (
            str(caught.value)
            == "'https://a.org/cats' redirects to 'http://b.org/cats', which is not encrypted"
        )


class TestWithoutANetwork:
    def test_an_unknown_host(self, server, tmp_path, monkeypatch):
        def fail(*arguments, **options):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        with monkeypatch.context() as patch:
            patch.setattr(socket, "getaddrinfo", fail)
            assert (
                complaint(cats(server), server, tmp_path)
                == "'URL/cats' cannot be reached: Name or service not known"
            )
        assert tree(tmp_path) == ["pets"]
        assert (get(cats(server)) / "cats").read_bytes() == CATS

    def test_no_server_is_listening(self, server, tmp_path):
        with socket.socket() as taken:  # bound, but not listening
            taken.bind(("127.0.0.1", 0))
            remote = RemoteFile(f"http://127.0.0.1:{taken.getsockname()[1]}/cats", "cats")
            files = Files(
                "pets",
                "Pets",
                "CC0",
                contents={"cats": None},
                remote=(remote,),
                by_hand="Draw some there.",
            )
            assert (
                complaint(files, server, tmp_path)
                == f"'{remote.url}' cannot be reached: Connection refused"
            )

    def test_no_address_is_known(self, server, tmp_path):
        with pytest.raises(MissingDataError) as caught:
            get(Files("pets", "Pets", "CC0", contents={"cats": None}, by_hand="Draw some there."))
        assert str(caught.value) == f"Pets: 'cats' is not in '{tmp_path}/pets'. Draw some there."

    def test_a_wrong_file_put_there_by_hand(self, server, tmp_path):
        (tmp_path / "pets").mkdir()
        (tmp_path / "pets" / "cats").write_bytes(DOGS)
        with pytest.raises(DataError) as caught:
            get(Files("pets", "Pets", "CC0", contents={"cats": MD5}, by_hand="Draw some there."))
        assert (
            str(caught.value)
            == f"Pets: 'cats' in '{tmp_path}/pets' is not the published file. Draw some there."
        )


@contextlib.contextmanager
def no_file_larger_than(n_bytes):
    """The nearest thing to a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class TestThisMachine:
    def test_a_disk_that_is_full(self, server, tmp_path):
        with no_file_larger_than(100_000), pytest.raises(OSError, match="File too large"):
            get(cats(server))
        assert tree(tmp_path) == ["pets", "pets/cats.part"]
        assert (get(cats(server)) / "cats").read_bytes() == CATS
        assert server.asked[1] == ("/cats", "bytes=100000-")

    def test_a_disk_that_is_full_when_unpacking_leaves_the_archive_for_the_next_try(
        self, server, tmp_path
    ):
        files = archived(server, zipped(cats=b"meow" * 50_000))
        with no_file_larger_than(100_000), pytest.raises(OSError, match="File too large"):
            get(files)
        assert tree(tmp_path) == ["pets", "pets/.fetched", "pets/.fetched/pets.zip"]
        assert (get(files) / "cats").read_bytes() == b"meow" * 50_000
        assert tree(tmp_path) == ["pets", "pets/cats"]
        assert len(server.asked) == 1

    def test_a_folder_that_cannot_be_made(self, server, tmp_path):
        (tmp_path / "pets").write_text("a file")
        with pytest.raises(NotADirectoryError) as caught:
            get(cats(server))
        assert (
            str(caught.value)
            == f"Cannot write into '{tmp_path}/pets': it is a file, and a folder is needed."
        )

    def test_a_keyboard_interrupt_keeps_the_part_file(self, server, tmp_path, monkeypatch):
        @contextlib.contextmanager
        def interrupting(*arguments, **options):
            def press(done):
                raise KeyboardInterrupt

            yield press

        with monkeypatch.context() as patch:
            patch.setattr(fetching, "progress_bar", interrupting)
            patch.setattr(fetching, "READ_AT_ONCE", 1000)
            with pytest.raises(KeyboardInterrupt):
                get(cats(server))
        assert tree(tmp_path) == ["pets", "pets/cats.part"]
        assert (get(cats(server)) / "cats").read_bytes() == CATS
        assert server.asked[1] == ("/cats", "bytes=1000-")

    def test_concurrent_processes_wait_for_each_other(self, server, tmp_path):
        files = archived(server, zipped(cats=CATS))
        start, folders = threading.Barrier(4), []

        def run():
            start.wait()
            folders.append(get(files))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert folders == [tmp_path / "pets"] * 4
        assert (tmp_path / "pets" / "cats").read_bytes() == CATS
        assert server.asked == [("/pets.zip", None)]

    def test_what_a_killed_process_left_is_removed(self, server, tmp_path):
        (tmp_path / "pets" / ".unpacking-abc").mkdir(parents=True)
        (tmp_path / "pets" / ".unpacking-abc" / "cats").write_bytes(CATS[:7])
        get(cats(server))
        assert tree(tmp_path) == ["pets", "pets/cats"]


class TestArchives:
    def test_it_is_unpacked_and_deleted(self, server, tmp_path):
        files = archived(
            server,
            zipped(**{"cats": CATS, "images/tom.png": b"Tom", "other": b"?"}),
            contents=("cats", "images/"),
        )
        folder = get(files)
        assert (folder / "cats").read_bytes() == CATS
        assert tree(tmp_path) == ["pets", "pets/cats", "pets/images", "pets/images/tom.png"]
        get(files)
        assert len(server.asked) == 1

    def test_files_missing_from_the_archive_are_fetched_individually(self, server, tmp_path):
        files = archived(server, zipped(dogs=DOGS))
        both = Files(
            "pets",
            "Pets",
            "CC0",
            contents={"cats": MD5, "dogs": None},
            remote=(*files.remote, *cats(server).remote),
        )
        get(both)
        assert tree(tmp_path) == ["pets", "pets/cats", "pets/dogs"]
        (tmp_path / "pets" / "cats").unlink()
        server.asked.clear()
        get(both)
        assert server.asked == [("/cats", None)]  # the archive would not give it

    def test_one_that_was_put_there_by_hand_is_unpacked_and_kept(self, server, tmp_path):
        files = archived(server, b"")
        (tmp_path / "pets").mkdir()
        (tmp_path / "pets" / "pets.zip").write_bytes(zipped(cats=CATS))
        get(files)
        assert tree(tmp_path) == ["pets", "pets/cats", "pets/pets.zip"]
        assert server.asked == []

    def test_a_damaged_one_that_was_put_there_by_hand_is_kept_and_named(self, server, tmp_path):
        (tmp_path / "pets").mkdir()
        (tmp_path / "pets" / "pets.zip").write_bytes(zipped(cats=CATS)[:-100])
        assert complaint(archived(server, b""), server, tmp_path) == (
            "'pets.zip' is damaged or is not an archive (File is not a zip file) (delete it to "
            "have it fetched)"
        )
        assert tree(tmp_path) == ["pets", "pets/pets.zip"]

    @pytest.mark.parametrize("name", ["pets.zip", "pets/pets.zip", "pets/archive.zip"])
    def test_one_that_the_loader_reads_is_kept_and_nothing_is_fetched(self, server, tmp_path, name):
        files = replace(archived(server, b""), archives=(name,))
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(zipped(cats=CATS))
        before = tree(tmp_path)
        assert get(files) == tmp_path / name
        assert tree(tmp_path) == before
        assert server.asked == []

    def test_one_of_another_size_is_not(self, server, tmp_path):
        content = zipped(cats=CATS)
        server.content["/pets.zip"] = content
        remote = RemoteFile(f"{server.url}/pets.zip", "pets.zip", size=len(content), archive=True)
        (tmp_path / "pets").mkdir()
        (tmp_path / "pets" / "pets.zip").write_bytes(content[:-100])
        get(Files("pets", "Pets", "CC0", contents={"cats": None}, remote=(remote,)))
        assert (tmp_path / "pets" / "cats").read_bytes() == CATS
        assert tree(tmp_path) == ["pets", "pets/cats", "pets/pets.zip"]

    def test_an_archive_without_the_needed_files(self, server, tmp_path):
        with pytest.raises(MissingDataError) as caught:
            get(archived(server, zipped(dogs=DOGS)))
        assert str(caught.value) == f"Pets: 'cats' is not in '{tmp_path}/pets'. Draw some there."
        assert tree(tmp_path) == ["pets"]
        get(archived(server, zipped(cats=CATS)))
        assert tree(tmp_path) == ["pets", "pets/cats"]

    @pytest.mark.parametrize(
        ("content", "text"),
        [
            (
                zipped(**{"../cats": CATS}),
                "'pets.zip' contains '../cats', which leads out of the folder",
            ),
            (
                zipped(cats=bytes(10_000_000)),
                "'pets.zip' unpacks to more than the 1000000 bytes allowed for its size",
            ),
            (
                zipped(cats=CATS)[:-100],
                "'pets.zip' is damaged or is not an archive (File is not a zip file)",
            ),
            (
                b"<html>Please log in.</html>",
                "'pets.zip' is damaged or is not an archive (truncated header)",
            ),
        ],
    )
    def test_a_bad_one(self, server, tmp_path, monkeypatch, content, text):
        monkeypatch.setattr(unpacking, "MAX_BYTES", 1_000_000)
        assert complaint(archived(server, content), server, tmp_path) == text
        assert tree(tmp_path) == ["pets"]
        assert (get(archived(server, zipped(cats=CATS))) / "cats").read_bytes() == CATS
        assert tree(tmp_path) == ["pets", "pets/cats"]

    def test_a_link_that_points_outside(self, server, tmp_path):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as file:
            link = tarfile.TarInfo("pets")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc"
            file.addfile(link)
        files = archived(server, buffer.getvalue(), "pets.tar.gz")
        assert (
            complaint(files, server, tmp_path)
            == "'pets.tar.gz' contains 'pets', which is a link, a device or a sparse file"
        )
        assert tree(tmp_path) == ["pets"]
        assert os.listdir(tmp_path) == ["pets"]


def test_a_single_file_can_be_downloaded(server, tmp_path):
    download(cats(server).remote[0], tmp_path / "here")
    assert tree(tmp_path) == ["here"]
    assert (tmp_path / "here").read_bytes() == CATS
