"""Text on the terminal: lines, tables and JSON, with names from files made harmless."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import click

# Control, format, surrogate, private and unassigned characters, and line separators: a terminal
# interprets them instead of showing them.
UNSAFE_CATEGORIES = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
JOINERS = ("\u200c", "\u200d")  # some scripts and emoji need them inside a word


def say(text: str = "") -> None:
    """Print text line by line, with unsafe characters escaped.

    Examples
    --------
    >>> say("group \\x1b[2J")
    group \\x1b[2J
    """
    for line in text.split("\n"):
        click.echo(printable(line))


def say_json(content: dict[str, Any]) -> None:
    """Print JSON that any program can read: ASCII only, with null instead of NaN and infinity.

    Examples
    --------
    >>> say_json({"margin": float("inf")})
    {
      "margin": null
    }
    """
    click.echo(json.dumps(_plain(content), indent=2))


def table_of(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    right: Callable[[int], bool] = lambda column: column > 0,
) -> str:
    """Rows as lines of text with aligned columns; `right` says which columns are right-aligned.

    Examples
    --------
    >>> print(table_of(("group", "context"), [("A", "0")]))
    group  context
    A            0
    """
    from rich.cells import cell_len

    cells = [head, *[tuple(printable(cell) for cell in row) for row in rows]]
    widths = [max(cell_len(row[i]) for row in cells) for i in range(len(head))]
    lines = []
    for row in cells:
        padded = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        pairs = enumerate(zip(row, padded, strict=True))
        line = "  ".join(space + cell if right(i) else cell + space for i, (cell, space) in pairs)
        lines.append(line.rstrip())
    return "\n".join(lines)


def printable(text: object) -> str:
    """The text with every character escaped that a terminal would interpret.

    These are escape sequences, line breaks, changes of the writing direction and the like.

    Examples
    --------
    >>> print(printable("a\\x1b[31mred\\nline"))
    a\\x1b[31mred\\nline
    """
    return "".join(
        c if c in JOINERS or unicodedata.category(c) not in UNSAFE_CATEGORIES else _escape(c)
        for c in str(text)
    )


def shorten(text: object, max_length: int = 40) -> str:
    """The printable text, cut to at most `max_length` characters.

    Examples
    --------
    >>> shorten("abcdefgh", max_length=5)
    'ab...'
    """
    shown = printable(text)
    return shown if len(shown) <= max_length else f"{shown[: max_length - 3]}..."


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
