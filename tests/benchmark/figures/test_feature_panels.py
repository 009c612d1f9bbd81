"""Features of local models: labels that are colours have these colours; rows have names."""

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from leaflearn.benchmark.figures.feature_panels import plot_features
from leaflearn.plot.style import PALETTE

CLASSES = ("male", "female", "black", "white", "blue", "0", "1")
POINTS = np.random.default_rng(0).normal(size=(6, 2))


def colors_by(labels):
    """The colour of the dots of each label, in the panel of a domain with these labels."""
    axes = plot_features("LEAF", [POINTS], {"mine": labels}, CLASSES, ["a model"]).axes[0]
    return {dots.get_label(): to_hex(dots.get_facecolor()[0]) for dots in axes.collections}, axes


def test_names_of_colours_have_these_colours_and_white_is_visible():
    colors, axes = colors_by([2, 3, 4, 2, 3, 4])
    assert (colors["black"], colors["blue"]) == ("#000000", "#0000ff")
    assert 0.8 < min(to_rgb(colors["white"])) < 1
    assert all(
        dots.get_linewidth()[0] > 0 and max(dots.get_edgecolor()[0][:3]) < 0.6
        for dots in axes.collections
    )


@pytest.mark.parametrize("labels", [[0, 1] * 3, [5, 6] * 3, [0, 4] * 3])
def test_other_names_have_distinct_colours(labels):
    assert [color.upper() for color in colors_by(labels)[0].values()] == list(PALETTE[:2])


def test_the_method_the_models_and_the_domains_are_named():
    labels = {"gender": [0, 1] * 3, "color": [2, 3, 4] * 2}
    figure = plot_features(
        "leaflearn", [POINTS, POINTS], labels, CLASSES, ["model for color", "model for gender"]
    )
    assert figure.get_suptitle() == "leaflearn"
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "model for color",
        "",
        "model for gender",
        "",
    ]
    assert [axes.get_title("left") for axes in figure.axes] == ["by gender", "by color", "", ""]
    assert [bool(axes.get_legend()) for axes in figure.axes] == [False, False, True, True]
