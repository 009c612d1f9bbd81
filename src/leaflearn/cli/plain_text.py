"""Texts of strangers on the terminal, which obeys some characters instead of showing them. Names of groups and columns come from files."""

from __future__ import annotations

import unicodedata

OBEYED = (
    "Cc",
    "Cf",
    "Cs",
    "Co",
    "Cn",
    "Zl",
    "Zp",
)  # control, format, half and unassigned characters, and separators of lines
JOINERS = ("\u200c", "\u200d")  # that scripts and emoji need inside a word


def printable(text: object) -> str:
    """The text with every character spelled out that a terminal would obey: escape sequences, new lines, changes of direction.

    Examples
    --------
    >>> print(printable("a\\x1b[31mred\\nline"))
    a\\x1b[31mred\\nline
    """
    return "".join(
        c if c in JOINERS or unicodedata.category(c) not in OBEYED else _spell_out(c)
        for c in str(text)
    )


def shorten(text: object, most: int = 40) -> str:
    """The same, not longer than so many characters.

    Examples
    --------
    >>> shorten("abcdefgh", most=5)
    'ab...'
    """
    shown = printable(text)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def _spell_out(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
