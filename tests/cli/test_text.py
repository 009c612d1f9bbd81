"""Text on the terminal: names from files are shown, never interpreted."""

import json
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaflearn.cli._text import printable, say, say_json, shorten, table_of


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
def test_harmless_text_is_unchanged(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\u202eabc", r"\u202eabc"),
        ("\x9b31m", r"\x9b31m"),
        ("\u2028", r"\u2028"),
        ("\udc80", r"\udc80"),
        ("\x07", r"\x07"),
        ("\u2066a\u2069", r"\u2066a\u2069"),
        ("\ufeff", r"\ufeff"),
    ],
)
def test_characters_that_a_terminal_interprets_are_escaped(text, shown):
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_no_unsafe_character_remains(text):
    shown = printable(text)
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in shown)
    shown.encode()


def test_long_names_are_cut():
    assert shorten("a" * 100, 10) == "aaaaaaa..."


def test_json_is_ascii_without_nan(capsys):
    say_json(
        {"a": np.array([1.5, np.nan, np.inf]), "b": {"c": np.int64(3)}, "d": (True, None, "\x1b")}
    )
    out = capsys.readouterr().out
    assert json.loads(out) == {"a": [1.5, None, None], "b": {"c": 3}, "d": [True, None, "\x1b"]}
    assert "\x1b" not in out


def test_lines_are_printed_with_unsafe_characters_escaped(capsys):
    say("first\nsecond \x1b[2J")
    assert capsys.readouterr().out == "first\nsecond \\x1b[2J\n"


def test_columns_are_aligned_also_with_wide_characters():
    lines = table_of(("group", "n"), [("日本", "1"), ("a\nb", "20"), ("🙂", "3")]).splitlines()
    assert lines == ["group   n", "日本    1", "a\\nb   20", "🙂      3"]
