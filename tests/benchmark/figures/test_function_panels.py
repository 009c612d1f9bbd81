"""Panels of functions: colours that say what was found and nothing else, and a grid that fits on a page."""

import numpy as np
import pytest

from leaflearn.benchmark.figures.function_panels import LOST, FunctionPanel, plot_functions
from leaflearn.plot.style import FAINT, INK, PALETTE

X = np.linspace(-2, 2, 101)
FUNCTIONS = np.stack([np.sin(3 * X), 0.5 * X])
NAMES = ("wave", "ramp")


def colors_of(panel):
    axes = plot_functions(X, FUNCTIONS, NAMES, [panel]).axes[1]
    return [line.get_color() for line in axes.lines if line.get_color() != FAINT]


def legend_of(*panels):
    return [
        text.get_text()
        for text in plot_functions(X, FUNCTIONS, NAMES, panels).legends[0].get_texts()
    ]


def test_a_curve_has_the_colour_of_a_function_only_where_it_is_near_to_it():
    rough, mean, constant = FUNCTIONS[1] + 0.1, FUNCTIONS.mean(0), 0 * X
    assert colors_of(FunctionPanel("", X, np.stack([rough, mean, constant]))) == [
        PALETTE[1],
        LOST,
        LOST,
    ]
    assert colors_of(FunctionPanel("", X, np.stack([rough, rough]))) == [PALETTE[1]] * 2, (
        "a function can be found twice"
    )


def test_a_curve_is_compared_on_a_grid_of_its_own():
    x = np.linspace(-2, 2, 37)
    assert colors_of(FunctionPanel("", x, np.sin(3 * x)[None])) == [PALETTE[0]]


def test_what_a_method_adapted_to_is_not_guessed():
    assert colors_of(FunctionPanel("", X, np.zeros((2, 101)), domains=(1, 0))) == [
        PALETTE[1],
        PALETTE[0],
    ]


def test_an_idle_model_is_dashed_and_not_called_lost():
    idle = FunctionPanel("", X, np.stack([FUNCTIONS[0], 0 * X]), is_idle=(False, True))
    assert colors_of(idle) == [PALETTE[0], INK]
    assert [
        line.is_dashed() for line in plot_functions(X, FUNCTIONS, NAMES, [idle]).axes[1].lines
    ] == [False, False, False, True]
    assert legend_of(idle) == ["wave", "ramp", "hardly used"]
    assert legend_of(FunctionPanel("", X, 0 * X[None])) == ["wave", "ramp", "near no function"]


@pytest.mark.parametrize(
    ("n_panels", "shape"), [(3, (1, 4)), (4, (2, 3)), (5, (2, 3)), (8, (3, 3)), (10, (3, 4))]
)
def test_few_places_are_empty_and_the_lowest_panels_tell_x(n_panels, shape):
    figure = plot_functions(
        X, FUNCTIONS, NAMES, [FunctionPanel(str(i), X, FUNCTIONS) for i in range(n_panels)]
    )
    places = figure.axes
    assert places[0].get_gridspec().get_geometry() == shape
    with_x = {
        axes.get_subplotspec().colspan.start
        for axes in places
        if axes.get_xlabel() == "x" and axes.axison
    }
    assert with_x == set(range(shape[1]))
    assert [axes.get_ylabel() for axes in places[:: shape[1]]] == ["y"] * shape[0]


def test_titles_fit_their_panels():
    long = "A method of my own with a name that goes on, groups of 2"
    figure = plot_functions(X, FUNCTIONS, NAMES, [FunctionPanel(long, X, FUNCTIONS)] * 5)
    figure.draw_without_rendering()
    for axes in figure.axes[1:]:
        title = axes._left_title.get_window_extent()
        assert title.x1 <= axes.get_window_extent().x1 + 15
