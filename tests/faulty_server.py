"""A local web server that serves bytes, correctly or with a chosen fault, and logs the requests.

It runs in a thread. Without a fault it behaves like the server of a publisher: it sends sizes and
dates, and supports range requests.
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
    """Serves `content` from memory; `faults` maps addresses to other behaviour."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.faults: dict[str, Fault] = {}
        self.asked: list[tuple[str, str | None]] = []  # address and requested range
        self.answered: list[int] = []
        self.date: float | None = DATE
        self.released = threading.Event()  # ends stalled responses
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
    """Handles one request."""

    owner: FaultyServer

    def do_GET(self) -> None:
        self.owner = self.server.owner  # type: ignore[attr-defined]
        self.owner.asked.append((self.path, self.headers["Range"]))
        content = self.owner.content.get(self.path, b"")
        # Raised where the client has closed the connection.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.owner.faults.get(self.path, well)(self, content)

    def say(self, status: int, body: bytes = b"", **headers: str | int) -> None:
        """Send a response; underscores in the names of headers become hyphens."""
        self.owner.answered.append(status)
        self.send_response(status)
        if self.owner.date is not None:
            self.send_header("Last-Modified", formatdate(self.owner.date, usegmt=True))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""


def well(handler: Handler, content: bytes) -> None:
    """Respond correctly."""
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
    """Send the file from byte `start` on; the header may claim another start."""

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
    """Close the connection after this many bytes."""
    return lambda handler, content: handler.say(200, content[:after], Content_Length=len(content))


def truncate_unannounced(after: int) -> Fault:
    """Close the connection within a chunk, without a total length in the header."""

    def break_off(handler: Handler, content: bytes) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.say(200, b"%x\r\n" % len(content) + content[:after], Transfer_Encoding="chunked")
        handler.close_connection = True

    return break_off


def stall(after: int) -> Fault:
    """Send nothing more after this many bytes, but keep the connection open."""

    def wait(handler: Handler, content: bytes) -> None:
        handler.say(200, content[:after], Content_Length=len(content))
        handler.owner.released.wait()

    return wait


def stall_at_once(handler: Handler, content: bytes) -> None:
    handler.owner.released.wait()


def corrupt(handler: Handler, content: bytes) -> None:
    """Change one byte in the middle."""
    middle = len(content) // 2
    wrong = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    handler.say(200, wrong, Content_Length=len(wrong))


def never_stop(handler: Handler, content: bytes) -> None:
    """Send no length, and never stop."""
    handler.say(200)
    while True:
        handler.wfile.write(content)


def add(more: bytes) -> Fault:
    """Declare and send more bytes than the file has."""
    return lambda handler, content: handler.say(
        200, content + more, Content_Length=len(content + more)
    )


def announce_nothing(handler: Handler, content: bytes) -> None:
    """Send the file without its length, so only the end of the connection marks its end."""
    handler.say(200, content)


def ignore_range(handler: Handler, content: bytes) -> None:
    handler.say(200, content, Content_Length=len(content))


def shorten(by: int) -> Fault:
    """Declare and send fewer bytes than the file has."""
    return lambda handler, content: handler.say(
        200, content[:-by], Content_Length=len(content) - by
    )


def give_little(handler: Handler, content: bytes) -> None:
    """Respond to a range request with the first bytes of the range only, and declare that."""
    handler.say(
        206, content[1000:1010], Content_Length=10, Content_Range=f"bytes 1000-1009/{len(content)}"
    )


def ignore_if_range(handler: Handler, content: bytes) -> None:
    """Send the rest of the file although it has changed."""
    if handler.headers["Range"] is None:
        well(handler, content)
    else:
        give_from(int(handler.headers["Range"].removeprefix("bytes=").removesuffix("-")))(
            handler, content
        )


def misplace(handler: Handler, content: bytes) -> None:
    """Respond to a range request with another range."""
    (give_from(7) if handler.headers["Range"] else well)(handler, content)


def misspell(handler: Handler, content: bytes) -> None:
    """Respond to a range request with an invalid Content-Range."""
    if handler.headers["Range"] is None:
        well(handler, content)
    else:
        handler.say(206, content[7:], Content_Length=len(content) - 7, Content_Range="some of it")


def date(text: str) -> Fault:
    """Respond correctly, but with this text as the date of the last change."""

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
