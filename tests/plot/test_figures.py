"""What the figures contain; `leaflearn demo` draws all of them for a visual check."""

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex

from leaflearn.plot.figures import Panel, plot_allocation, plot_answers, plot_curves
from leaflearn.plot.style import FAINT, INK, PALETTE, STYLE

X = np.linspace(-1.0, 1.0, 9)
POINTS = (np.array([-0.5, 0.5]), np.array([0.1, 0.2]))
NAMES = ["up", "down"]
TRUTH = Panel("Truth", np.stack([X, -X], axis=1), [0, 1])
AVERAGE = Panel("Pooled", 0 * X[:, None], [-1])
FOUND = Panel("Found", np.stack([-X, X], axis=1), [1, 0], point_domains=np.array([1, 0]))


def test_curves_have_a_panel_per_learner_and_a_line_per_model():
    figure = plot_curves(X, POINTS, [TRUTH, AVERAGE, FOUND], NAMES)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Truth", "Pooled", "Found"]
    assert [len(axes.lines) for axes in figure.axes] == [2, 1, 2]
    assert figure.axes[2].lines[0].get_ydata() == pytest.approx(-X)


def test_colours_follow_the_domains_not_the_order_of_the_models():
    figure = plot_curves(X, POINTS, [TRUTH, FOUND, AVERAGE], NAMES)
    truth, found, average = ([line.get_color() for line in axes.lines] for axes in figure.axes)
    assert truth == [PALETTE[0], PALETTE[1]]
    assert found == [PALETTE[1], PALETTE[0]]
    assert average == [INK]


def test_points_are_grey_until_they_are_allocated():
    figure = plot_curves(X, POINTS, [TRUTH, FOUND], NAMES)
    grey, tinted = (
        [to_hex(color) for color in axes.collections[0].get_facecolor()] for axes in figure.axes
    )
    assert grey == [FAINT.lower()]
    assert tinted == [PALETTE[1].lower(), PALETTE[0].lower()]
    assert figure.axes[0].collections[0].get_offsets().tolist() == [[-0.5, 0.1], [0.5, 0.2]]


def test_the_legend_names_the_domains_the_pooled_model_and_the_data():
    with_average = plot_curves(X, POINTS, [TRUTH, AVERAGE], NAMES).legends[0]
    without = plot_curves(X, POINTS, [TRUTH, FOUND], NAMES).legends[0]
    assert [text.get_text() for text in with_average.texts] == [
        "up",
        "down",
        "pooled model",
        "data",
    ]
    assert [text.get_text() for text in without.texts] == ["up", "down", "data"]


def test_allocation_sorts_groups_by_domain_and_counts_the_right_ones():
    truth = np.array([1, 0, 1, 0])
    found = np.array([[0, 0, 0, -1], [1, 0, 0, 0], [1, 0, 1, 0]])
    figure = plot_allocation(found, truth, NAMES)
    stripes, line = figure.axes
    mesh = stripes.collections[0].get_array()
    assert mesh.tolist() == [[0, 0, 0], [-1, 0, 0], [0, 1, 1], [0, 0, 1]]
    assert line.lines[0].get_ydata().tolist() == [0.25, 0.75, 1.0]
    assert line.lines[0].get_xdata().tolist() == [1, 2, 3]
    assert line.get_xticks().tolist() == [1, 2]


def test_allocation_names_the_domains_in_the_middle_of_their_groups():
    figure = plot_allocation(np.zeros((2, 5), dtype=int), np.array([0, 0, 0, 0, 1]), NAMES)
    stripes, line = figure.axes
    assert [label.get_text() for label in stripes.get_yticklabels()] == NAMES
    assert stripes.get_yticks().tolist() == [2.0, 4.5]
    assert line.get_title(loc="left") == "Groups in the right context: 80.0% at the end"


def test_wrong_answers_are_marked():
    answers = np.array([["7", "red"], ["1", "blue"], ["3", "red"]])
    truths = np.array([["7", "red"], ["7", "blue"], ["3", "pink"]])
    figure = plot_answers(np.zeros((3, 3, 8, 8)), answers, truths, ["digit", "color"], n_columns=2)
    texts = [[(text.get_text(), text.get_weight()) for text in axes.texts] for axes in figure.axes]
    assert texts[0] == [("7", "normal"), ("red", "normal")]
    assert texts[1] == [("1, not 7", "bold"), ("blue", "normal")]
    assert texts[2] == [("3", "normal"), ("red, not pink", "bold")]
    assert figure.get_suptitle() == "Predictions of each context: digit, color (2 of 6 wrong)"


def test_images_are_not_flipped():
    image = np.zeros((3, 2, 2))
    image[0, 0, 1] = 1.0  # red, top right
    figure = plot_answers(image[None], np.array([["a"]]), np.array([["a"]]), ["letter"])
    shown = figure.axes[0].images[0].get_array()
    assert shown[0, 1].tolist() == [1.0, 0.0, 0.0]
    assert shown[1, 0].tolist() == [0.0, 0.0, 0.0]


def test_fonts_are_large_and_settings_of_the_user_are_kept(monkeypatch):
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 7.0)
    figure = plot_curves(X, POINTS, [TRUTH], NAMES, n_columns=1)
    assert figure.axes[0].xaxis.label.get_size() >= 14
    assert figure.axes[0].title.get_size() >= STYLE["axes.titlesize"]
    assert matplotlib.rcParams["font.size"] == 7.0
