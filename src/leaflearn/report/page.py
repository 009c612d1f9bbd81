"""A web page in one file: headings, sentences, tables and pictures, readable on a phone and in the dark."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO

from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light dark; --ink: #1d1d1f; --soft: #5c5c66; --paper: #fdfdfc; --line: #d9d9de; --accent: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececf0; --soft: #a5a5b0; --paper: #17171a; --line: #3a3a42; --accent: #6cb8ea; } }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 54rem; font: 1.05rem/1.6 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); }
h1 { font-size: 1.9rem; line-height: 1.2; } h2 { margin-top: 3rem; font-size: 1.4rem; }
.finding { border-left: 4px solid var(--accent); padding-left: 1rem; font-size: 1.15rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .45rem 1.1rem .45rem 0; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
figure { margin: 1.8rem 0; } figcaption { color: var(--soft); font-size: .95rem; }
img { display: block; width: 100%; height: auto; background: #fff; border-radius: 8px; padding: .5rem; box-sizing: border-box; }
footer { margin-top: 4rem; color: var(--soft); font-size: .9rem; }
"""


@dataclass(frozen=True)
class Picture:
    """A picture with its file name, and in words what is to be seen.

    Examples
    --------
    >>> Picture("empty.png", to_png(Figure(figsize=(1, 1))), "Nothing at all.").caption
    'Nothing at all.'
    """

    name: str
    png: bytes
    caption: str


@dataclass(frozen=True)
class Section:
    """One part of the page: what was done, what came of it, the numbers, the pictures.

    Examples
    --------
    >>> Section("Coins", "Two throws.", "One head.", [("coin", "heads"), ("mine", "1")], "Counts.", []).heading
    'Coins'
    """

    heading: str
    explanation: str
    finding: str
    table: Sequence[Sequence[str]]  # the first row is the head
    table_note: str
    pictures: Sequence[Picture]


def to_png(figure: Figure) -> bytes:
    """The figure as the bytes of a PNG file.

    Examples
    --------
    >>> to_png(Figure(figsize=(1, 1)))[1:4]
    b'PNG'
    """
    buffer = BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def render_page(title: str, introduction: str, sections: Sequence[Section], footer: str) -> str:
    """The page as HTML; pictures are inside it, so the file can be mailed or moved alone.

    Examples
    --------
    >>> "<h1>Mine &amp; yours</h1>" in render_page("Mine & yours", "", [], "")
    True
    """
    body = "\n".join(_section(section) for section in sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p>{escape(introduction)}</p>
{body}
<footer>{escape(footer)}</footer>
</body>
</html>
"""


def _section(section: Section) -> str:
    return f"""<section>
<h2>{escape(section.heading)}</h2>
<p>{escape(section.explanation)}</p>
<p class="finding">{escape(section.finding)}</p>
<div class="wide">{_table(section.table)}</div>
<p>{escape(section.table_note)}</p>
{"".join(_figure(picture) for picture in section.pictures)}
</section>"""


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    cells = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in body]
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table>"


def _figure(picture: Picture) -> str:
    data = base64.b64encode(picture.png).decode()
    caption = escape(picture.caption, quote=True)
    return f'<figure><img src="data:image/png;base64,{data}" alt="{caption}"><figcaption>{caption}</figcaption></figure>\n'
