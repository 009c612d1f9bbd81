"""The picture of rates holds every rate, at its place and in its colour. How it looks is for eyes: `leaflearn bench recovery` draws it."""

import pytest

from leaflearn.benchmark.figures.recovery_plots import Rate, plot_rates, plot_rates_compactly
from leaflearn.plot.style import INK, PALETTE

RATES = [
    Rate("functions", "default", 1.0, 0.8, 1.0, 0.98, "20 of 20"),
    Rate("functions", "hard", 0.7, 0.5, 0.9, 0.98, "14 of 20"),
    Rate("rare", "oracle", 0.5, 0.1, 0.9, None, "1 of 2"),
    Rate("rare", "hard", 0.0, 0.0, 0.2, None, "0 of 20"),
]


def test_every_rate_has_a_dot_an_interval_and_a_count():
    (axes,) = plot_rates(RATES).axes
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert sorted(float(line.get_xdata()[0]) for line in dots) == [0.0, 0.5, 0.7, 1.0]
    spans = {
        tuple(map(float, line.get_xdata())) for line in axes.lines if line.get_linewidth() == 3
    }
    assert spans == {(rate.low, rate.high) for rate in RATES}
    assert {text.get_text() for text in axes.texts} == {rate.count for rate in RATES}


def test_tasks_are_rows_from_top_to_bottom_and_rules_are_colours():
    figure = plot_rates(RATES)
    (axes,) = figure.axes
    heights = {label.get_text(): label.get_position()[1] for label in axes.get_yticklabels()}
    assert heights["functions"] < heights["rare"]  # the axis points down
    assert axes.yaxis_inverted()
    colors = {text.get_text(): text.get_color() for text in axes.texts}
    assert colors == {
        "20 of 20": PALETTE[0],
        "14 of 20": PALETTE[1],
        "0 of 20": PALETTE[1],
        "1 of 2": INK,
    }


def test_a_bar_is_marked_where_there_is_one_and_explained():
    def bars(rates):
        figure = plot_rates(rates)
        words = [text.get_text() for text in figure.legends[0].texts]
        return [
            float(line.get_xdata()[0]) for line in figure.axes[0].lines if line.is_dashed()
        ], words

    assert bars(RATES) == ([0.98], ["default", "hard", "oracle", "what the default should reach"])
    assert bars(RATES[2:]) == ([], ["oracle", "hard"])


def test_on_half_a_page_every_rate_has_a_dot_and_an_interval_in_the_lane_of_its_rule():
    figure = plot_rates_compactly(RATES)
    (axes,) = figure.axes
    dots = {
        float(line.get_xdata()[0]): (float(line.get_ydata()[0]), line.get_color())
        for line in axes.lines
        if line.get_marker() == "o"
    }
    assert {x: color for x, (_, color) in dots.items()} == {
        1.0: PALETTE[0],
        0.7: PALETTE[1],
        0.5: INK,
        0.0: PALETTE[1],
    }
    height = axes.get_yticks()[1] - axes.get_yticks()[0]
    assert dots[0.0][0] - dots[0.7][0] == pytest.approx(
        height
    )  # the same rule, one task farther down
    assert {
        tuple(map(float, line.get_xdata())) for line in axes.lines if line.get_marker() != "o"
    } >= {(r.low, r.high) for r in RATES}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "default",
        "hard",
        "oracle",
    ]


def test_eleven_tasks_and_five_rules_fit_on_half_a_page():
    rates = [
        Rate(f"task {t}", f"rule {r}", 0.5, 0.4, 0.6, 0.9, "10 of 20", "hard to solve")
        for t in range(11)
        for r in range(5)
    ]
    width, height = plot_rates_compactly(rates).get_size_inches()
    assert height < 0.75 * width
