"""Jinja2 templates, and the text from data files that they show.

Names of groups, columns and labels come from files, so they may contain markup, control characters
or changes of the writing direction. `plain` makes such characters visible, and `isolate` wraps a
name in Unicode isolation marks. Sentences that contain isolated names are ordinary text: a title,
an attribute or a chart shows them as they are, and the template filter `inline` turns the marks
into `<bdi>` elements. Everything is escaped by Jinja2's autoescape.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

LONGEST_NAME = 200  # characters of a name that are shown
_ISOLATE, _END = "\u2068", "\u2069"
_INLINE = re.compile(f"{_ISOLATE}([^{_END}]*){_END}|`([^`{_ISOLATE}]*)`")
_LINE_END, _UNKNOWN = 0x21B5, 0xFFFD
_DIRECTION_MARKS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_VISIBLE = {
    **{code: 0x2400 + code for code in range(32)},  # visible signs for control characters
    **dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF), _UNKNOWN),
    **dict.fromkeys(_DIRECTION_MARKS, _UNKNOWN),
    **dict.fromkeys((0x0A, 0x85, 0x2028, 0x2029), _LINE_END),
    127: 0x2421,
}


def render(template: str, **values: Any) -> str:
    """A template of this package, filled in.

    Examples
    --------
    >>> values = {"title": "A & B", "introduction": "", "sections": [], "footer": ""}
    >>> "<h1>A &amp; B</h1>" in render("page.html", **values)
    True
    """
    return _environment().get_template(template).render(**values)


def plain(text: object, longest: int = LONGEST_NAME) -> str:
    """The text on one line, with visible signs in place of control characters; not escaped.

    Examples
    --------
    >>> plain("two\\nlines"), plain("a long name", longest=6)
    ('two↵lines', 'a lon…')
    """
    shown = str(text)[: longest + 1].translate(_VISIBLE)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def isolate(text: object, longest: int = LONGEST_NAME) -> str:
    """A name from a file, ready for a sentence: plain, and with a writing direction of its own.

    Examples
    --------
    >>> isolate("site")
    '\\u2068site\\u2069'
    """
    return f"{_ISOLATE}{plain(text, longest)}{_END}"


def inline(text: object) -> Markup:
    """Text as HTML: isolated names become `<bdi>`, and words in backticks `<code>`.

    Examples
    --------
    >>> inline(f"The group {isolate('<b>')} & `group=`")
    Markup('The group <bdi>&lt;b&gt;</bdi> &amp; <code>group=</code>')
    """
    if isinstance(text, Markup):
        return text
    return Markup(_INLINE.sub(_to_element, str(escape(text))))


def _to_element(found: re.Match[str]) -> str:
    name, code = found.groups()
    return f"<code>{code}</code>" if name is None else f"<bdi>{name}</bdi>"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("leaflearn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(inline=inline, plain=plain)
    return environment
