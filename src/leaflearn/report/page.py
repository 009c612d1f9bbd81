"""A simple HTML page in one file: headings, sentences, tables and images."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO

from matplotlib.figure import Figure

from leaflearn.report.rendering import render


@dataclass(frozen=True)
class Image:
    """An image with its file name, and a caption that describes it.

    Examples
    --------
    >>> Image("empty.png", to_png(Figure(figsize=(1, 1))), "Nothing at all.").caption
    'Nothing at all.'
    """

    name: str
    png: bytes
    caption: str

    @property
    def base64(self) -> str:
        """The PNG file as text, for a data URL."""
        return base64.b64encode(self.png).decode()


@dataclass(frozen=True)
class Section:
    """One section of the page: an explanation, the finding, a table and images.

    Examples
    --------
    >>> table = [("coin", "heads"), ("mine", "1")]
    >>> Section("Coins", "Two throws.", "One head.", table, "Counts.", []).heading
    'Coins'
    """

    heading: str
    explanation: str
    finding: str
    table: Sequence[Sequence[str]]  # the first row is the head
    table_note: str
    images: Sequence[Image]


def to_png(figure: Figure) -> bytes:
    """A figure as the bytes of a PNG file.

    Examples
    --------
    >>> to_png(Figure(figsize=(1, 1)))[1:4]
    b'PNG'
    """
    buffer = BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def render_page(title: str, introduction: str, sections: Sequence[Section], footer: str) -> str:
    """The page as HTML, with the images inside, so that it is a single file.

    Examples
    --------
    >>> "<h1>Mine &amp; yours</h1>" in render_page("Mine & yours", "", [], "")
    True
    """
    values = {"title": title, "introduction": introduction, "sections": sections, "footer": footer}
    return render("page.html", **values)
