"""The page is complete HTML, contains its images, and shows text as text."""

import base64
from html.parser import HTMLParser

import pytest
from matplotlib.figure import Figure

from leaflearn.report.page import Image, Section, render_page, to_png

IMAGE = Image("a.png", b"\x89PNG not really", 'A "caption" with <marks>')
SECTION = Section(
    "Head & shoulders",
    "Why.",
    "The finding.",
    [("learner", "up"), ("LEAF", "0.1 < 0.2")],
    "The unit.",
    [IMAGE],
)


class Outline(HTMLParser):
    """Check that tags close in order, and collect the contents of cells."""

    VOID = {"meta", "img"}

    def __init__(self, page):
        super().__init__()
        self.open, self.images, self.cells = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "img":
            self.images.append(dict(attrs))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)


@pytest.fixture(scope="module")
def page():
    return render_page("A <title>", "Introduction.", [SECTION, SECTION], "Made by a test.")


def test_tags_are_balanced_and_the_table_is_there(page):
    outline = Outline(page)
    assert outline.open == []
    assert outline.cells == ["learner", "up", "LEAF", "0.1 < 0.2"] * 2


def test_images_are_inside_with_a_description(page):
    images = Outline(page).images
    assert len(images) == 2
    kind, data = images[0]["src"].split(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(data) == IMAGE.png
    assert images[0]["alt"] == IMAGE.caption


def test_text_is_escaped(page):
    assert "<h1>A &lt;title&gt;</h1>" in page
    assert "<h2>Head &amp; shoulders</h2>" in page
    assert "<marks>" not in page


def test_it_loads_nothing_and_adapts_to_phones_and_the_dark_theme(page):
    assert "http" not in page
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page


def test_a_figure_becomes_a_png():
    assert to_png(Figure(figsize=(1, 1))).startswith(b"\x89PNG\r\n")
