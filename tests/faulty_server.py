"""A web server on this machine that serves bytes, well or with a fault of one's choice, and remembers what it was asked for.

It lives in a thread. Without a fault it does what a publisher's server does: it announces sizes and dates, and gives the rest of a file to
whoever asks for that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Fault = Callable[["Handler", bytes], None]
DATE = 1_000_000_000.0  # when the files were last changed


class FaultyServer:
    """Serves `content` from memory; `faults` says for which addresses something else is to happen."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.faults: dict[str, Fault] = {}
        self.asked: list[tuple[str, str | None]] = []  # address, and the range that was asked for
        self.answered: list[int] = []
        self.date: float | None = DATE
        self.released = threading.Event()  # ends what stalls
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.owner = self  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> FaultyServer:
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    owner: FaultyServer

    def do_GET(self) -> None:
        self.owner = self.server.owner  # type: ignore[attr-defined]
        self.owner.asked.append((self.path, self.headers["Range"]))
        content = self.owner.content.get(self.path, b"")
        with suppress(BrokenPipeError, ConnectionResetError):  # the other side had enough
            self.owner.faults.get(self.path, well)(self, content)

    def say(self, status: int, body: bytes = b"", **headers: str | int) -> None:
        """Send an answer; underscores in the names of headers are hyphens."""
        self.owner.answered.append(status)
        self.send_response(status)
        if self.owner.date is not None:
            self.send_header("Last-Modified", formatdate(self.owner.date, usegmt=True))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Keep quiet."""


def well(handler: Handler, content: bytes) -> None:
    span = handler.headers["Range"]
    unchanged = handler.headers["If-Range"] in (None, formatdate(handler.owner.date, usegmt=True))
    if span is None or not unchanged:
        handler.say(200, content, Content_Length=len(content))
        return
    start = int(span.removeprefix("bytes=").removesuffix("-"))
    if start >= len(content):
        handler.say(416, Content_Range=f"bytes */{len(content)}", Content_Length=0)
    else:
        give_from(start)(handler, content)


def give_from(start: int, claim: int | None = None) -> Fault:
    """The rest of the file from this byte on, or a claim that it is from another one."""

    def give(handler: Handler, content: bytes) -> None:
        rest = content[start:]
        claimed = start if claim is None else claim
        handler.say(
            206,
            rest,
            Content_Length=len(rest),
            Content_Range=f"bytes {claimed}-{len(content) - 1}/{len(content)}",
        )

    return give


def truncate(after: int) -> Fault:
    """Break off after so many bytes of the whole file."""
    return lambda handler, content: handler.say(200, content[:after], Content_Length=len(content))


def truncate_unannounced(after: int) -> Fault:
    """Break off within a chunk, whose length is all that was announced."""

    def break_off(handler: Handler, content: bytes) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.say(200, b"%x\r\n" % len(content) + content[:after], Transfer_Encoding="chunked")
        handler.close_connection = True

    return break_off


def stall(after: int) -> Fault:
    """Say no word more after so many bytes."""

    def wait(handler: Handler, content: bytes) -> None:
        handler.say(200, content[:after], Content_Length=len(content))
        handler.owner.released.wait()

    return wait


def stall_at_once(handler: Handler, content: bytes) -> None:
    handler.owner.released.wait()


def corrupt(handler: Handler, content: bytes) -> None:
    """One byte in the middle is another one."""
    middle = len(content) // 2
    wrong = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    handler.say(200, wrong, Content_Length=len(wrong))


def never_stop(handler: Handler, content: bytes) -> None:
    """Announce no length, and send for ever."""
    handler.say(200)
    while True:
        handler.wfile.write(content)


def add(more: bytes) -> Fault:
    """Announce and send more than the file has."""
    return lambda handler, content: handler.say(
        200, content + more, Content_Length=len(content + more)
    )


def announce_nothing(handler: Handler, content: bytes) -> None:
    """All is well, but the end of the connection is the only sign that the file has ended."""
    handler.say(200, content)


def ignore_range(handler: Handler, content: bytes) -> None:
    handler.say(200, content, Content_Length=len(content))


def shorten(by: int) -> Fault:
    """Announce and send less than the file has."""
    return lambda handler, content: handler.say(
        200, content[:-by], Content_Length=len(content) - by
    )


def give_little(handler: Handler, content: bytes) -> None:
    """Answer a range with its first bytes alone, and tell so."""
    handler.say(
        206, content[1000:1010], Content_Length=10, Content_Range=f"bytes 1000-1009/{len(content)}"
    )


def ignore_if_range(handler: Handler, content: bytes) -> None:
    """Give the rest of the file though it has changed."""
    if handler.headers["Range"] is None:
        well(handler, content)
    else:
        give_from(int(handler.headers["Range"].removeprefix("bytes=").removesuffix("-")))(
            handler, content
        )


def misplace(handler: Handler, content: bytes) -> None:
    """Answer a range with another one."""
    (give_from(7) if handler.headers["Range"] else well)(handler, content)


def misspell(handler: Handler, content: bytes) -> None:
    """Answer a range without saying which one."""
    if handler.headers["Range"] is None:
        well(handler, content)
    else:
        handler.say(206, content[7:], Content_Length=len(content) - 7, Content_Range="some of it")


def date(text: str) -> Fault:
    """All is well, but for what is said about when the file was changed."""

    def give(handler: Handler, content: bytes) -> None:
        handler.owner.date = None
        handler.say(200, content, Content_Length=len(content), Last_Modified=text)

    return give


def redirect(to: str, status: int = 302, header: str = "Location") -> Fault:
    return lambda handler, content: handler.say(status, **{header: to, "Content_Length": "0"})


def answer(status: int) -> Fault:
    return lambda handler, content: handler.say(status, b"no", Content_Length=2)


def hang_up(handler: Handler, content: bytes) -> None:
    handler.close_connection = True


def talk_nonsense(handler: Handler, content: bytes) -> None:
    handler.wfile.write(b"Good day!\r\n\r\n")
