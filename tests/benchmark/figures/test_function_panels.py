"""Panels of functions: colours, the grid, and training moment by moment."""

import numpy as np
import pytest

from leaflearn.benchmark.figures.function_panels import (
    NO_FUNCTION,
    FunctionPanel,
    Moment,
    TrainingMoments,
    choose_moments,
    match_curves,
    plot_functions,
    plot_training,
)
from leaflearn.plot.style import FAINT, INK, PALETTE

X = np.linspace(-2, 2, 101)
FUNCTIONS = np.stack([np.sin(3 * X), 0.5 * X])
NAMES = ("sine", "ramp")
X_TRAINING = np.linspace(0, 1, 11)
POINTS = np.array([[0.2, 0.0, 0], [0.5, 1.0, 1], [0.8, 2.0, 2]])


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
        NO_FUNCTION,
        NO_FUNCTION,
    ]
    assert colors_of(FunctionPanel("", X, np.stack([rough, rough]))) == [PALETTE[1]] * 2, (
        "a function can be found twice"
    )


def test_a_curve_is_compared_on_a_grid_of_its_own():
    x = np.linspace(-2, 2, 37)
    assert colors_of(FunctionPanel("", x, np.sin(3 * x)[None])) == [PALETTE[0]]


def test_the_domain_of_an_adapted_curve_is_not_guessed():
    assert colors_of(FunctionPanel("", X, np.zeros((2, 101)), domains=(1, 0))) == [
        PALETTE[1],
        PALETTE[0],
    ]


def test_an_idle_model_is_dashed():
    idle = FunctionPanel("", X, np.stack([FUNCTIONS[0], 0 * X]), is_idle=(False, True))
    assert colors_of(idle) == [PALETTE[0], INK]
    assert [
        line.is_dashed() for line in plot_functions(X, FUNCTIONS, NAMES, [idle]).axes[1].lines
    ] == [False, False, False, True]
    assert legend_of(idle) == ["sine", "ramp", "hardly used"]
    assert legend_of(FunctionPanel("", X, 0 * X[None])) == ["sine", "ramp", "near no function"]


@pytest.mark.parametrize(
    ("n_panels", "shape"), [(3, (1, 4)), (4, (2, 3)), (5, (2, 3)), (8, (3, 3)), (10, (3, 4))]
)
def test_few_places_are_empty_and_the_lowest_panels_show_x(n_panels, shape):
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


# Training


def moment(*heights):
    return Moment(
        "epoch 0", X_TRAINING, np.stack([height + 0 * X_TRAINING for height in heights]), POINTS
    )


def lines_of(axes):
    return [line for line in axes.lines if len(line.get_xdata()) == len(X_TRAINING)]


def test_curves_and_points_have_the_colour_of_their_contexts_function():
    functions = np.stack([2.0 + 0 * X_TRAINING, 0.0 * X_TRAINING])
    found = match_curves(moment(0.1, 5.0, 1.9).curves, functions)
    assert found == [1, -1, 0]
    first = plot_training(
        TrainingMoments("LEAF", [moment(0.1, 5.0, 1.9)], ("high", "low"), found), [0]
    ).axes[0]
    assert [line.get_color() for line in lines_of(first)] == [PALETTE[1], INK, PALETTE[0]]
    (dots,) = first.collections
    drawn = {
        float(x): tuple(color)
        for (x, _), color in zip(dots.get_offsets(), dots.get_facecolors(), strict=True)
    }
    assert [drawn[x][:3] for x in POINTS[:, 0]] == [
        pytest.approx(rgb(color)) for color in (PALETTE[1], INK, PALETTE[0])
    ]


def rgb(color):
    return tuple(int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))


def test_the_figure_names_the_method_and_the_functions():
    figure = plot_training(
        TrainingMoments("leaflearn", [moment(0.0, 1.0, 2.0)], ("low", "middle", "high"), [0, 1, 2]),
        [0],
    )
    assert figure.get_suptitle() == "leaflearn"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["low", "middle", "high"]


def test_a_curve_that_covers_another_is_dashed():
    axes = plot_training(
        TrainingMoments("LEAF", [moment(0.0, 0.01, 1.0)], ("a", "b", "c"), [0, 1, 2]), [0]
    ).axes[0]
    assert [line.is_dashed() for line in lines_of(axes)] == [False, True, False]


def test_points_lie_on_top_of_curves():
    axes = plot_training(
        TrainingMoments("LEAF", [moment(0.0, 1.0, 2.0)], ("a", "b", "c"), [0, 1, 2]), [0]
    ).axes[0]
    assert all(
        dots.get_zorder() > line.get_zorder()
        for dots in axes.collections
        for line in lines_of(axes)
    )


def test_moments_are_shown_while_any_training_moves_and_then_the_last():
    quick = [moment(0.0, height, 4.0) for height in (0.0, 3.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0)]
    slow = [moment(0.0, height, 4.0) for height in (0.0, 1.0, 2.0, 2.5, 3.0, 4.0, 4.0, 4.0)]
    assert choose_moments([quick], 4) == [0, 1, 7]
    assert choose_moments([quick, slow], 4) == [0, 2, 4, 7]
    assert choose_moments([slow[:2]], 7) == [0, 1], "there are fewer moments than requested"
