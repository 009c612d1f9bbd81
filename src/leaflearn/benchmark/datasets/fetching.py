"""Fetch the publishers' files from the web.

A download is written to `NAME.part`. If it is interrupted, that file is kept and the next attempt
resumes; when it is complete and correct, it is renamed. Only one process at a time fetches into a
folder; other processes wait.
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

TIMEOUT = 30.0  # seconds without a response from the server
MAX_BYTES = 16 << 30  # of a file of unknown size
MAX_REDIRECTS = 8
FETCHED = ".fetched"  # folder of fetched archives until they are unpacked; the user's own are kept
OK, PARTIAL_CONTENT = 200, 206


def get(files: Files) -> Path:
    """Fetch the files that are missing or wrong and return their folder, or raise a `DataError`.

    Nothing is fetched if there is an archive, or another layout, that the loader can read.

    Examples
    --------
    >>> get(Files("pets", "Pets, by A. Nimal", "CC0", contents={})).name  # nothing to fetch
    'pets'
    """
    for layout in (replace(files, alternatives=()), *files.alternatives):
        if not _incomplete(layout):
            return locate(layout)
    files = replace(files, alternatives=())
    folder = data_folder() / files.folder
    make_folder(folder)
    try:
        with _locked(folder):
            _fetch(files, folder)
    except DataError as error:
        raise DataError(
            f"{files.title}: {error}; the files in '{folder}' are incomplete. "
            f"{files.by_hand}".rstrip()
        ) from error
    locate(files)  # raises an error if some are still missing
    for name in _incomplete(files):
        raise DataError(
            f"{files.title}: '{name}' in '{folder}' is not the published file. "
            f"{files.by_hand}".rstrip()
        )
    return folder


def download(remote: RemoteFile, target: Path) -> None:
    """Fetch one file, resuming an interrupted download, check it, and move it to `target`.

    Examples
    --------
    >>> download(RemoteFile("file:///etc/passwd", "passwd"), Path("passwd"))
    Traceback (most recent call last):
    ...
    leaflearn.benchmark.datasets.store.DataError: 'file:///etc/passwd' is not an address that begins
    with https:// or http://
    """
    _refuse_other_schemes(remote.url)
    part = target.with_name(f"{target.name}.part")
    if remote.size is None or _size(part) != remote.size:
        _receive(remote, part)
    if remote.checksum and not matches(part, remote.checksum):
        part.unlink()
        raise DataError(
            f"'{remote.url}' sent a file whose checksum is not {remote.checksum} (try again)"
        )
    os.replace(part, target)


def _incomplete(files: Files) -> dict[str, str | None]:
    """The files that are missing, or whose checksum or size is wrong, with their checksums."""
    sizes = {remote.path: remote.size for remote in files.remote if remote.size is not None}
    lacks = {name for name, verdict in verify(files).items() if verdict in ("missing", "wrong")}
    lacks |= {
        name
        for name in sizes.keys() & files.contents.keys()
        if _size(data_folder() / files.folder / name) != sizes[name]
    }
    return {name: checksum for name, checksum in files.contents.items() if name in lacks}


def _fetch(files: Files, folder: Path) -> None:
    # left by a process that was killed
    for left_over in folder.glob(f"{unpacking.PREFIX}*"):
        shutil.rmtree(left_over, ignore_errors=True)
    single = {remote.path for remote in files.remote if not remote.archive}
    for remote in files.remote:
        if not remote.archive:
            _fetch_once(
                replace(remote, checksum=remote.checksum or files.contents.get(remote.path)), folder
            )
        elif wanted := {
            name: checksum for name, checksum in _incomplete(files).items() if name not in single
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
    """Unpack an archive that the user put into the folder, or else fetch and unpack it."""
    if not _is_right(remote, folder / remote.path):
        _fetch_once(remote, folder / FETCHED)
        _unpack_fetched(folder / FETCHED / remote.path, folder, wanted)
        return
    try:
        unpacking.unpack_archive(folder / remote.path, folder, wanted)
    except DataError as error:
        raise DataError(f"{error} (delete it to have it fetched)") from error


def _unpack_fetched(archive: Path, folder: Path, wanted: Mapping[str, str | None]) -> None:
    """Unpack the archive and delete it.

    It is kept if the machine is at fault, for example if the disk is full.
    """
    try:
        unpacking.unpack_archive(archive, folder, wanted)
    except DataError:  # the archive is at fault
        _delete(archive)
        raise
    _delete(archive)


def _delete(archive: Path) -> None:
    archive.unlink()
    with suppress(OSError):  # the folder is not empty
        archive.parent.rmdir()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder, waiting for other processes.

    The system releases the lock of a process that is killed.
    """
    if sys.platform == "win32":  # folders cannot be locked on Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        # some network drives do not support locks
        with (
            progress_bar("waiting for another process that fetches the same files", None),
            suppress(OSError),
        ):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _receive(remote: RemoteFile, part: Path) -> None:
    """Fetch the rest of the file into `part`, or all of it if the server cannot resume."""
    response, start = _request_rest(remote, part)
    with response:
        announced = None if response.length is None else start + response.length
        expected = announced if remote.size is None else remote.size
        limit = MAX_BYTES if remote.size is None else remote.size
        if announced is not None and (announced != expected or announced > limit):
            raise DataError(
                f"'{remote.url}' has {announced} bytes, but "
                f"{'at most ' if remote.size is None else ''}{limit} were expected"
            )
        done = _copy(remote, response, part, start, expected)
    if done > limit:
        part.unlink()
        raise DataError(f"'{remote.url}' sends more than the expected {limit} bytes")
    if expected is not None and done < expected:
        raise DataError(
            f"'{remote.url}' stopped after {done} of {expected} bytes (try again to resume)"
        )


def _copy(
    remote: RemoteFile, response: HTTPResponse, part: Path, start: int, expected: int | None
) -> int:
    """Write the bytes as they arrive and count them, at most one more than expected."""
    # an announced length cannot be exceeded
    most = (MAX_BYTES if expected is None else expected) + (response.length is None)
    date, done = _date(response), start
    with (
        part.open("ab" if start else "wb") as file,
        progress_bar(f"fetching {remote.path}", expected, in_bytes=True) as advance,
    ):
        while done < most and (
            piece := _read(remote, response, min(READ_AT_ONCE, most - done), done)
        ):
            file.write(piece)
            file.flush()
            if date is not None:
                # identifies the version of an unfinished file
                os.utime(part, (date, date))
            done += len(piece)
            advance(done)
        os.fsync(file.fileno())
    return done


def _read(remote: RemoteFile, response: HTTPResponse, n_bytes: int, done: int) -> bytes:
    try:
        return response.read1(n_bytes)
    except (OSError, HTTPException) as error:
        raise DataError(f"'{remote.url}' stopped after {done} bytes: {_reason(error)}") from error


def _request_rest(remote: RemoteFile, part: Path) -> tuple[HTTPResponse, int]:
    """The server's response and the byte that it starts with: 0 if it cannot resume."""
    n_bytes = _size(part)
    if n_bytes:
        condition = (
            {} if remote.checksum else {"If-Range": formatdate(part.stat().st_mtime, usegmt=True)}
        )
        response = _open_url(remote.url, {"Range": f"bytes={n_bytes}-", **condition})
        if isinstance(response, HTTPResponse) and response.status == OK:
            return response, 0
        if isinstance(response, HTTPResponse) and _continues(response, part, remote):
            return response, n_bytes
        response.close()
    response = _open_url(remote.url, {})
    if isinstance(response, HTTPError) or response.status != OK:
        response.close()
        raise DataError(_describe_status(remote.url, response.status or 0))
    return response, 0


def _open_url(url: str, headers: Mapping[str, str]) -> HTTPResponse | HTTPError:
    try:
        response: HTTPResponse = _opener().open(
            request.Request(url, headers={"User-Agent": "leaflearn", **headers}), timeout=TIMEOUT
        )
        return response
    except HTTPError as refusal:
        return refusal
    except DataError:
        raise
    except (OSError, HTTPException, ValueError) as error:
        raise DataError(f"'{url}' cannot be reached: {_reason(error)}") from error


def _opener() -> request.OpenerDirector:
    """An opener for http and https only; the default one also opens files and ftp."""
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(),
        request.UnknownHandler(),
        request.HTTPHandler(),
        request.HTTPSHandler(),
        request.HTTPDefaultErrorHandler(),
        request.HTTPErrorProcessor(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    return opener


class _Redirects(request.HTTPRedirectHandler):
    """Follows redirects on the web, but not from https to http."""

    max_redirections = MAX_REDIRECTS

    def redirect_request(
        self, req: request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> request.Request | None:
        _refuse_other_schemes(newurl)
        if req.type == "https" and not newurl.lower().startswith("https:"):
            raise DataError(f"'{req.full_url}' redirects to {newurl!r}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _refuse_other_schemes(url: str) -> None:
    if not url.lower().startswith(("https://", "http://")):
        raise DataError(f"{url!r} is not an address that begins with https:// or http://")


def _describe_status(url: str, status: int) -> str:
    if 300 <= status < 400:
        return f"'{url}' has an invalid redirect ({status})"
    return f"'{url}' responds with {status} ({responses.get(status, 'unknown')})"


def _continues(response: HTTPResponse, part: Path, remote: RemoteFile) -> bool:
    """Whether the response holds all bytes after those of `part`, and of the same file.

    If the file has a checksum, that is checked at the end.
    """
    span = re.fullmatch(
        r"bytes (\d{1,18})-\d+/(\d{1,18})", response.headers.get("Content-Range", "")
    )
    if response.status != PARTIAL_CONTENT or span is None:
        return False
    first, total = map(int, span.groups())
    is_same = remote.checksum is not None or _date(response) == part.stat().st_mtime
    return is_same and first == _size(part) and response.length == total - first


def _date(response: HTTPResponse) -> float | None:
    """When the file was last changed, if the server says so."""
    try:
        return parsedate_to_datetime(response.headers.get("Last-Modified", "")).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, TimeoutError):
        return f"no response for {TIMEOUT:g} seconds"
    # its text may contain anything that the server sent
    if isinstance(cause, HTTPException) and not isinstance(cause, OSError):
        return (
            "the connection was closed"
            if isinstance(cause, IncompleteRead)
            else "its response is not valid HTTP"
        )
    text = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
    return " ".join(text.split()).rstrip(".")[:200] or type(cause).__name__
