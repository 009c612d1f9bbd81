"""Training from moment to moment: the same colour for the same function, moments at which something happens, nothing hidden."""

import numpy as np
import pytest

from leaflearn.benchmark.figures.iteration_panels import (
    Moment,
    Training,
    choose_moments,
    match_curves,
    plot_training,
)
from leaflearn.plot.style import INK, PALETTE

X = np.linspace(0, 1, 11)
POINTS = np.array([[0.2, 0.0, 0], [0.5, 1.0, 1], [0.8, 2.0, 2]])


def moment(*heights):
    return Moment("epoch 0", X, np.stack([height + 0 * X for height in heights]), POINTS)


def lines_of(axes):
    return [line for line in axes.lines if len(line.get_xdata()) == len(X)]


def test_curves_and_points_have_the_colour_of_the_function_that_their_context_stands_for():
    functions = np.stack([2.0 + 0 * X, 0.0 * X])
    found = match_curves(moment(0.1, 5.0, 1.9).curves, functions)
    assert found == [1, -1, 0]
    first = plot_training(
        Training("LEAF", [moment(0.1, 5.0, 1.9)], ("high", "low"), found), [0]
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


def test_the_picture_says_whose_training_it_is_and_which_colour_is_which():
    figure = plot_training(
        Training("leaflearn", [moment(0.0, 1.0, 2.0)], ("low", "middle", "high"), [0, 1, 2]), [0]
    )
    assert figure.get_suptitle() == "leaflearn"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["low", "middle", "high"]


def test_a_curve_above_another_lets_it_be_seen():
    axes = plot_training(
        Training("LEAF", [moment(0.0, 0.01, 1.0)], ("a", "b", "c"), [0, 1, 2]), [0]
    ).axes[0]
    assert [line.is_dashed() for line in lines_of(axes)] == [False, True, False]


def test_points_lie_on_top_of_curves():
    axes = plot_training(
        Training("LEAF", [moment(0.0, 1.0, 2.0)], ("a", "b", "c"), [0, 1, 2]), [0]
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
    assert choose_moments([slow[:2]], 7) == [0, 1], "there may be fewer than could be shown"
