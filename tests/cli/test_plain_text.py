"""Names from files are shown on the terminal, and never obeyed by it."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaflearn.cli.plain_text import printable, shorten


@pytest.mark.parametrize(
    "text",
    [
        "[red]x[/red]",
        "<script>",
        "=cmd()",
        "שלום",
        "🙂",
        "👩\u200d🔬",
        "naïve",
        "日本語",
        "a b",
        "é",
    ],
)
def test_text_stays_as_it_is(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"), ("a\nb\tc\r", r"a\nb\tc\r"), ("\u202eabc", r"\u202eabc"), ("\x9b31m", r"\x9b31m"), ("\u2028", r"\u2028"),
        ("\udc80", r"\udc80"), ("\x07", r"\x07"), ("\u2066a\u2069", r"\u2066a\u2069"), ("\ufeff", r"\ufeff"),
    ],
)  # fmt: skip
def test_what_a_terminal_obeys_is_spelled_out(text, shown):
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_nothing_that_is_obeyed_comes_through(text):
    shown = printable(text)
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in shown)
    shown.encode()


def test_long_names_are_cut():
    assert shorten("a" * 100, 10) == "aaaaaaa..."
