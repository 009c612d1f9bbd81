"""Text of strangers on a page. Names of groups, columns and labels come from files, and whatever they hold, they appear as text.

A page is put together from pieces of the type `Html`. Only the functions of this file make such pieces out of text that is not ours.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any, NewType

Html = NewType("Html", str)

LONGEST = 200  # characters of a name that are shown
_ISOLATE, _END = (
    "\u2068",
    "\u2069",
)  # around text whose direction must not turn what stands beside it
_LINE_END, _UNKNOWN = 0x21B5, 0xFFFD
_SHOWN_INSTEAD = {
    **{
        code: 0x2400 + code for code in range(32)
    },  # control characters as the pictures that Unicode has of them
    **dict.fromkeys(
        (*range(0x80, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF), _UNKNOWN
    ),  # the second are halves of characters
    **dict.fromkeys(
        (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), _UNKNOWN
    ),  # changes of direction
    **dict.fromkeys((0x0A, 0x85, 0x2028, 0x2029), _LINE_END),
    127: 0x2421,
}
_IN_JSON = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def plain(text: object, most: int = LONGEST) -> str:
    """The text in one line, with a visible sign for every character that a page would obey instead of showing it; it is not escaped.

    Examples
    --------
    >>> plain("two\\nlines"), plain("a long name", most=6)
    ('two↵lines', 'a lon…')
    """
    shown = str(text)[: most + 1].translate(_SHOWN_INSTEAD)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def isolated(text: object, most: int = LONGEST) -> str:
    """The same for places that hold text only, such as titles and pictures; its direction stays its own.

    Examples
    --------
    >>> isolated("site").strip("\\u2068\\u2069")
    'site'
    """
    return f"{_ISOLATE}{plain(text, most)}{_END}"


def from_text(text: object) -> Html:
    """A text of ours, or one that `isolated` gave, as a piece of a page or the value of an attribute.

    Examples
    --------
    >>> from_text("less < more")
    'less &lt; more'
    """
    return Html(escape(str(text), quote=True))


def name(text: object, most: int = LONGEST) -> Html:
    """A name that came from a file, as a piece of a page.

    Examples
    --------
    >>> name("<script>")
    '<bdi>&lt;script&gt;</bdi>'
    """
    return Html(f"<bdi>{escape(plain(text, most), quote=True)}</bdi>")


def join(pieces: Any, between: str = "") -> Html:
    """Pieces of a page one after the other.

    Examples
    --------
    >>> join([name("a"), name("b")], ", ")
    '<bdi>a</bdi>, <bdi>b</bdi>'
    """
    return Html(between.join(pieces))


def embed_json(content: Any) -> Html:
    """JSON that can stand inside a page: nothing in it ends the element around it.

    Examples
    --------
    >>> embed_json({"name": "</script>"})
    '{"name":"\\\\u003c/script\\\\u003e"}'
    """
    return Html(
        json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(
            _IN_JSON
        )
    )
