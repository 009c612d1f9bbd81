"""Text from files is shown as text: escaped, on one line, in a direction of its own."""

import pytest

from leaflearn.report.rendering import inline, isolate, plain


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("tab\tbell\x07", "tab␉bell␇"),
        ("delete\x7f\x85\u2028", "delete␡↵↵"),
        ("\u202eright to left\u2066\u2069", "�right to left��"),
        ("half \ud800 of a pair", "half � of a pair"),
        ("x" * 300, "x" * 199 + "…"),
        (7, "7"),
    ],
)
def test_control_characters_are_visible_and_long_names_are_cut(name, shown):
    assert plain(name) == shown


def test_a_name_cannot_end_its_isolation():
    assert inline(isolate("\u2069<b>\u2068")) == "<bdi>�&lt;b&gt;�</bdi>"


def test_backticks_are_code_only_outside_of_names():
    assert inline(f"`a` {isolate('`b`')} `c {isolate('d')}`") == (
        "<code>a</code> <bdi>`b`</bdi> `c <bdi>d</bdi>`"
    )


def test_markup_is_left_alone():
    assert inline(inline("a < b")) == "a &lt; b"
