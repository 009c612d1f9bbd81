"""Figures of matplotlib as pictures inside a page: text stays text, colours follow the page, and no style stands beside an element.

A page that allows no style but its own ignores `style="..."`, so what matplotlib writes there becomes attributes. Colours that stand for a
role, such as the ink or a context, become variables of the page, which are other colours in the dark.
"""

from __future__ import annotations

import io
import re
import warnings
import xml.etree.ElementTree as ElementTree
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from leaflearn.report.safe_text import Html

INK, SOFT, LINE = "#000001", "#000002", "#000003"  # never seen: the page puts its own colours here
_FIRST_CONTEXT = 0x10
_ROLES = {INK: "currentColor", SOFT: "var(--soft)", LINE: "var(--line)"}
_CONTEXT = re.compile(r"#0000([1-9a-f][0-9a-f])\b")
_FONT_SIZE = re.compile(r"([\d.]+)px")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"#([\w.-]+)")
_TO_ROUND = ("d", "transform", "x", "y", "points", "width", "height", "viewBox")


def color_of_context(context: int) -> str:
    """A colour to draw a context with; in the page it is that context's.

    Examples
    --------
    >>> color_of_context(2)
    '#000012'
    """
    return f"#{_FIRST_CONTEXT + context:06x}"


def to_inline_svg(figure: Figure, name: str, title: str, description: str) -> Html:
    """The figure as an element of a page.

    Parameters
    ----------
    figure
        Drawn in the colours of this file.
    name
        A word for the identifiers in it, different for every figure of a page.
    title, description
        What a screen reader says of it.

    Examples
    --------
    >>> svg = to_inline_svg(Figure(figsize=(1, 1)), "empty", "Nothing", "An empty square.")
    >>> svg.startswith('<svg viewBox="0 0 72 72"'), "http" in svg, "style=" in svg
    (True, False, False)
    """
    buffer = io.BytesIO()
    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "text.parse_math": False,
    }  # a dollar in a name is a dollar
    with rc_context(settings), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # of letters that matplotlib's font does not have: the reader's browser has them
        figure.savefig(buffer, format="svg", transparent=True)
    root = ElementTree.fromstring(buffer.getvalue())
    _clean(root)
    _rename(root, name)
    root.attrib = {
        "viewBox": _round(root.get("viewBox", "")),
        "class": "chart",
        "role": "img",
        "aria-labelledby": f"{name}-title {name}-description",
    }
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(
            tag, {"id": f"{name}-{'title' if tag == 'title' else 'description'}"}
        )
        element.text = text
        root.insert(place, element)
    return Html(ElementTree.tostring(root, encoding="unicode"))


def _clean(element: ElementTree.Element) -> None:
    """Without name spaces, metadata and styles, in the element and all inside."""
    element.tag = element.tag.split("}")[-1]
    given = {key.split("}")[-1]: value for key, value in element.attrib.items()}
    given |= _to_attributes(given.pop("style", ""))
    element.attrib = {
        key: _round(value) if key in _TO_ROUND else _to_role(value) for key, value in given.items()
    }
    if element.tag not in ("text", "tspan"):
        element.text = None
    for child in list(element):
        _clean(child)
        child.tail = None
        if child.tag in ("metadata", "style"):
            element.remove(child)


def _to_attributes(style: str) -> dict[str, str]:
    """From "fill: none; font: 12px Sans" to attributes; the family of a font is the page's."""
    pairs = [piece.split(":", 1) for piece in style.split(";") if ":" in piece]
    given = {key.strip(): value.strip() for key, value in pairs}
    size = _FONT_SIZE.search(given.pop("font", "") or given.pop("font-size", ""))
    given.pop("font-family", None)
    return given | ({"font-size": size.group(1)} if size else {})


def _to_role(value: str) -> str:
    if value in _ROLES:
        return _ROLES[value]
    return _CONTEXT.sub(
        lambda found: f"var(--context-{int(found.group(1), 16) - _FIRST_CONTEXT})", value
    )


def _round(value: str) -> str:
    """Hundredths of a pixel are enough."""
    return _LONG_NUMBER.sub(
        lambda found: f"{float(found.group()):.2f}".rstrip("0").rstrip("."), value
    )


def _rename(root: ElementTree.Element, name: str) -> None:
    """Keep the identifiers that something points to, and make them differ from those of other figures."""
    used = set()
    for element in root.iter():
        for key in ("href", "clip-path"):
            found = _REFERENCE.search(element.get(key, ""))
            if found:
                used.add(found.group(1))
                element.set(
                    key,
                    element.get(key, "").replace(f"#{found.group(1)}", f"#{name}-{found.group(1)}"),
                )
    for element in root.iter():
        identifier = element.attrib.pop("id", None)
        if identifier in used:
            element.set("id", f"{name}-{identifier}")
