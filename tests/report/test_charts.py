"""A figure becomes an SVG element with text, colors of the page, and no style attributes."""

import re
import xml.etree.ElementTree as ElementTree

import pytest
from matplotlib.figure import Figure

from leaflearn.report.charts import INK, SOFT, color_of_context, to_inline_svg

TEXT = 'style="fill: red" <b> & id="x" #000001'


@pytest.fixture(scope="module")
def svg():
    figure = Figure(figsize=(3, 2))
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=INK, marker="o")
    axes.plot([0, 1], [1, 0], color=color_of_context(3), clip_on=True)
    axes.set_xlabel(TEXT, color=SOFT, parse_math=False)
    return to_inline_svg(figure, "mine", "A <title>", "Words & more.")


def test_the_svg_is_well_formed_and_its_texts_are_complete(svg):
    root = ElementTree.fromstring(svg)
    texts = [element.text for element in root.iter("text")]
    assert TEXT in texts
    assert root[0].text == "A <title>"
    assert root[1].text == "Words & more."
    assert root.get("aria-labelledby") == "mine-title mine-description"


def test_colors_are_variables_of_the_page(svg):
    assert 'stroke="var(--context-3)"' in svg
    assert 'stroke="currentColor"' in svg
    assert "var(--soft)" in svg
    given = {
        value for element in ElementTree.fromstring(svg).iter() for value in element.attrib.values()
    }
    assert not given & {INK, SOFT, color_of_context(3)}


def test_there_are_no_styles_namespaces_or_metadata(svg):
    root = ElementTree.fromstring(svg)
    assert {element.tag for element in root.iter()} <= {
        "svg",
        "title",
        "desc",
        "g",
        "path",
        "defs",
        "use",
        "text",
        "clipPath",
        "rect",
    }
    assert not [
        key
        for element in root.iter()
        for key in element.attrib
        if key in ("style", "width", "height") and element.tag != "rect"
    ]


def test_identifiers_begin_with_the_name_and_are_all_referenced(svg):
    root = ElementTree.fromstring(svg)
    identifiers = {element.get("id") for element in root.iter() if element.get("id")}
    referenced = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg)) | {
        "mine-title",
        "mine-description",
    }
    assert identifiers == referenced
    assert all(identifier.startswith("mine-") for identifier in identifiers)
