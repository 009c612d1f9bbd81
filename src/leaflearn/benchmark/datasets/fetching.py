"""Fetching the publishers' files from where they are published.

A download grows under the name `NAME.part`. When it breaks off, that file stays, and the next try goes on from where it ended; when it is
whole and right, it gets its name. A folder is filled by one process at a time: others wait until it has ended.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from email.utils import formatdate, parsedate_to_datetime
from http.client import HTTPException, HTTPResponse, IncompleteRead, responses
from pathlib import Path
from typing import Any
from urllib import request
from urllib.error import HTTPError, URLError

from leaflearn.benchmark.datasets import unpacking
from leaflearn.benchmark.datasets.store import (
    READ_AT_ONCE,
    DataError,
    Files,
    RemoteFile,
    data_folder,
    locate,
    matches,
    verify,
)
from leaflearn.persistence.atomic_files import make_folder
from leaflearn.progress import progress_bar

if sys.platform != "win32":
    import fcntl

TIMEOUT = 30.0  # seconds without a word from the server
MOST_BYTES = 16 << 30  # of a file whose size is not known beforehand
MOST_REDIRECTS = 8
OURS = ".fetched"  # where archives are kept until they are unpacked; those beside it were put there by hand, and stay
OK, PARTIAL_CONTENT = 200, 206


def get(files: Files) -> Path:
    """Fetch what is missing of these files, or is wrong, and give their folder; else a `DataError` that says why, and what to do.

    Where an archive is there that the loader reads as it is, nothing is fetched, and the archive is given.

    Examples
    --------
    >>> get(Files("pets", "Pets, by A. Nimal", "CC0", contents={})).name  # nothing to fetch
    'pets'
    """
    for layout in files.alternatives:
        if not {"missing", "wrong"} & set(verify(layout).values()):
            return locate(layout)
    files = replace(files, alternatives=())
    folder = data_folder() / files.folder
    if not _lacking(files):
        return locate(files)
    make_folder(folder)
    try:
        with _alone(folder):
            _fetch(files, folder)
    except DataError as error:
        raise DataError(
            f"{files.title}: {error}, so the files in '{folder}' are not complete. {files.by_hand}".rstrip()
        ) from error
    locate(files)  # raises where some are missing still
    for name in _lacking(files):
        raise DataError(
            f"{files.title}: '{name}' in '{folder}' is not the published file. {files.by_hand}".rstrip()
        )
    return folder


def download(remote: RemoteFile, target: Path) -> None:
    """Fetch one file and put it there, whole and checked; one that broke off the last time is gone on with.

    Examples
    --------
    >>> download(RemoteFile("file:///etc/passwd", "passwd"), Path("passwd"))
    Traceback (most recent call last):
    ...
    leaflearn.benchmark.datasets.store.DataError: 'file:///etc/passwd' is not an address that begins with https:// or http://
    """
    _refuse_other_schemes(remote.url)
    part = target.with_name(f"{target.name}.part")
    if remote.size is None or _size(part) != remote.size:
        _receive(remote, part)
    if remote.checksum and not matches(part, remote.checksum):
        part.unlink()
        raise DataError(
            f"'{remote.url}' gave a file whose checksum is not {remote.checksum} (try again)"
        )
    os.replace(part, target)


def _lacking(files: Files) -> dict[str, str | None]:
    """What is missing, or has another checksum or size than it should, with its checksum."""
    sizes = {remote.path: remote.size for remote in files.remote if remote.size is not None}
    lacks = {name for name, verdict in verify(files).items() if verdict in ("missing", "wrong")}
    lacks |= {
        name
        for name in sizes.keys() & files.contents.keys()
        if _size(data_folder() / files.folder / name) != sizes[name]
    }
    return {name: checksum for name, checksum in files.contents.items() if name in lacks}


def _fetch(files: Files, folder: Path) -> None:
    for left_over in folder.glob(
        f"{unpacking.PREFIX}*"
    ):  # by a process that was killed: we are alone here
        shutil.rmtree(left_over, ignore_errors=True)
    single = {remote.path for remote in files.remote if not remote.archive}
    for remote in files.remote:
        if not remote.archive:
            _fetch_once(
                replace(remote, checksum=remote.checksum or files.contents.get(remote.path)), folder
            )
        elif wanted := {
            name: checksum for name, checksum in _lacking(files).items() if name not in single
        }:
            _fetch_archive(remote, folder, wanted)


def _fetch_once(remote: RemoteFile, folder: Path) -> None:
    target = folder / remote.path
    if not _is_right(remote, target):
        make_folder(target.parent)
        download(remote, target)


def _is_right(remote: RemoteFile, path: Path) -> bool:
    return (
        path.is_file()
        and remote.size in (None, _size(path))
        and (not remote.checksum or matches(path, remote.checksum))
    )


def _fetch_archive(remote: RemoteFile, folder: Path, wanted: Mapping[str, str | None]) -> None:
    """Unpack the archive that was put into the folder by hand, else fetch one and unpack that."""
    if not _is_right(remote, folder / remote.path):
        _fetch_once(remote, folder / OURS)
        _unpack_ours(folder / OURS / remote.path, folder, wanted)
        return
    try:
        unpacking.unpack(folder / remote.path, folder, wanted)
    except DataError as error:
        raise DataError(f"{error} and was there before (delete it to have it fetched)") from error


def _unpack_ours(archive: Path, folder: Path, wanted: Mapping[str, str | None]) -> None:
    """Unpack the archive and delete it. Where the machine is at fault, a full disk say, it stays for the next try."""
    try:
        unpacking.unpack(archive, folder, wanted)
    except DataError:  # its own fault
        _delete(archive)
        raise
    _delete(archive)


def _delete(archive: Path) -> None:
    archive.unlink()
    with suppress(OSError):  # something else is in there still
        archive.parent.rmdir()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process fills the folder, and keep others waiting. The system ends the lock of a process that is killed."""
    if sys.platform == "win32":  # folders cannot be locked there
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with (
            progress_bar("waiting for another process that fetches the same files", None),
            suppress(OSError),
        ):  # some network drives cannot
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _receive(remote: RemoteFile, part: Path) -> None:
    """Fetch into `part` what it lacks: the rest of the file where the server can give that, else all of it."""
    answer, start = _answer(remote, part)
    with answer:
        announced = None if answer.length is None else start + answer.length
        expected = announced if remote.size is None else remote.size
        limit = MOST_BYTES if remote.size is None else remote.size
        if announced is not None and (announced != expected or announced > limit):
            raise DataError(
                f"'{remote.url}' has {announced} bytes, and {'at most ' if remote.size is None else ''}{limit} are expected"
            )
        done = _copy(remote, answer, part, start, expected)
    if done > limit:
        part.unlink()
        raise DataError(f"'{remote.url}' gives more than the {limit} bytes that are expected")
    if expected is not None and done < expected:
        raise DataError(
            f"'{remote.url}' broke off after {done} of {expected} bytes (the next try goes on from there)"
        )


def _copy(
    remote: RemoteFile, answer: HTTPResponse, part: Path, start: int, expected: int | None
) -> int:
    """Write what arrives, as it arrives, and count it: to one byte more than expected, which tells that there are too many."""
    most = (MOST_BYTES if expected is None else expected) + (
        answer.length is None
    )  # a length that was announced cannot be exceeded
    date, done = _date(answer), start
    with (
        part.open("ab" if start else "wb") as file,
        progress_bar(f"fetching {remote.path}", expected, in_bytes=True) as advance,
    ):
        while done < most and (
            piece := _read(remote, answer, min(READ_AT_ONCE, most - done), done)
        ):
            file.write(piece)
            file.flush()
            if date is not None:
                os.utime(
                    part, (date, date)
                )  # so that an unfinished file shows what it is a part of
            done += len(piece)
            advance(done)
        os.fsync(file.fileno())
    return done


def _read(remote: RemoteFile, answer: HTTPResponse, n_bytes: int, done: int) -> bytes:
    try:
        return answer.read1(n_bytes)
    except (OSError, HTTPException) as error:
        raise DataError(f"'{remote.url}' broke off after {done} bytes: {_reason(error)}") from error


def _answer(remote: RemoteFile, part: Path) -> tuple[HTTPResponse, int]:
    """The server's answer, and the byte that it begins with: the first that we lack where it can go on from there, else byte 0."""
    there = _size(part)
    if there:
        condition = (
            {} if remote.checksum else {"If-Range": formatdate(part.stat().st_mtime, usegmt=True)}
        )
        answer = _ask(remote.url, {"Range": f"bytes={there}-", **condition})
        if isinstance(answer, HTTPResponse) and answer.status == OK:
            return answer, 0
        if isinstance(answer, HTTPResponse) and _goes_on(answer, part, remote):
            return answer, there
        answer.close()
    answer = _ask(remote.url, {})
    if isinstance(answer, HTTPError) or answer.status != OK:
        answer.close()
        raise DataError(_refusal(remote.url, answer.status or 0))
    return answer, 0


def _ask(url: str, headers: Mapping[str, str]) -> HTTPResponse | HTTPError:
    try:
        answer: HTTPResponse = _opener().open(
            request.Request(url, headers={"User-Agent": "leaflearn", **headers}), timeout=TIMEOUT
        )
        return answer
    except HTTPError as refusal:
        return refusal
    except DataError:
        raise
    except (OSError, HTTPException, ValueError) as error:
        raise DataError(f"'{url}' cannot be reached: {_reason(error)}") from error


def _opener() -> request.OpenerDirector:
    """What opens addresses. The usual one knows files and ftp too."""
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(), request.UnknownHandler(), request.HTTPHandler(), request.HTTPSHandler(),
        request.HTTPDefaultErrorHandler(), request.HTTPErrorProcessor(), _Redirects(),
    ):  # fmt: skip
        opener.add_handler(handler)
    return opener


class _Redirects(request.HTTPRedirectHandler):
    """Goes where the server points to, not from https to http, and to nothing that is not on the web."""

    max_redirections = MOST_REDIRECTS

    def redirect_request(
        self, req: request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> request.Request | None:
        _refuse_other_schemes(newurl)
        if req.type == "https" and not newurl.lower().startswith("https:"):
            raise DataError(
                f"'{req.full_url}' leads to {newurl!r}, which anybody on the way can read and change"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _refuse_other_schemes(url: str) -> None:
    if not url.lower().startswith(("https://", "http://")):
        raise DataError(f"{url!r} is not an address that begins with https:// or http://")


def _refusal(url: str, status: int) -> str:
    if 300 <= status < 400:
        return f"'{url}' leads in a circle, to nowhere or off the web ({status})"
    return f"'{url}' answers {status} ({responses.get(status, 'unknown')})"


def _goes_on(answer: HTTPResponse, part: Path, remote: RemoteFile) -> bool:
    """Does the answer hold all bytes after those of `part`, and are these of the same file? A checksum tells the latter in the end."""
    span = re.fullmatch(r"bytes (\d{1,18})-\d+/(\d{1,18})", answer.headers.get("Content-Range", ""))
    if answer.status != PARTIAL_CONTENT or span is None:
        return False
    first, total = map(int, span.groups())
    is_same = remote.checksum is not None or _date(answer) == part.stat().st_mtime
    return is_same and first == _size(part) and answer.length == total - first


def _date(answer: HTTPResponse) -> float | None:
    """When the file was last changed, as far as the server says."""
    try:
        return parsedate_to_datetime(answer.headers.get("Last-Modified", "")).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, TimeoutError):
        return f"no word for {TIMEOUT:g} seconds"
    if isinstance(cause, HTTPException) and not isinstance(
        cause, OSError
    ):  # whose own words may be whatever the server sent
        return (
            "the connection ended"
            if isinstance(cause, IncompleteRead)
            else "its answer cannot be understood"
        )
    text = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
    return " ".join(text.split()).rstrip(".")[:200] or type(cause).__name__
