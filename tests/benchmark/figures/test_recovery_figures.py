"""The figures of the recovery suite show every rate, and data in the colours of contexts."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from leaflearn.benchmark.figures.recovery_figures import (
    Rate,
    TaskPanel,
    plot_rates,
    plot_rates_compactly,
    plot_tasks,
)
from leaflearn.benchmark.recovery.tasks import TASKS
from leaflearn.plot.style import FAINT, INK, PALETTE

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


def test_a_required_rate_is_marked_and_explained():
    def bars(rates):
        figure = plot_rates(rates)
        words = [text.get_text() for text in figure.legends[0].texts]
        return [
            float(line.get_xdata()[0]) for line in figure.axes[0].lines if line.is_dashed()
        ], words

    assert bars(RATES) == ([0.98], ["default", "hard", "oracle", "required of the default"])
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
    assert dots[0.0][0] - dots[0.7][0] == pytest.approx(height)  # the same rule, one task below
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


def panel(name, found=True):
    task = TASKS[name]
    sample, truth = task.sample(0)
    return TaskPanel(name, "in words", task.make(0), sample, truth.domain if found else None)


def test_every_task_of_the_suite_can_be_drawn_fitted_or_not():
    for found in (True, False):
        figure = plot_tasks([panel(name, found) for name in TASKS])
        assert [axes.get_title(loc="left") for axes in figure.axes] == list(TASKS)


def test_rows_have_the_colour_of_their_groups_context():
    shown = panel("functions")
    found = np.where(shown.found == 2, -1, shown.found)
    colors = TaskPanel("a", "b", shown.data, shown.sample, found).colors
    expected = np.array([PALETTE[0], PALETTE[1], INK])[shown.found[shown.sample.groups]]
    assert colors.tolist() == expected.tolist()
    assert set(panel("functions", found=False).colors) == {FAINT}


def test_ten_contexts_have_ten_colours():
    assert len(set(panel("ten-waves").colors)) == 10


def test_images_have_their_labels_below_a_row_for_each_context():
    shown = panel("digits-n4")
    (axes,) = plot_tasks([shown]).axes
    labels = [text for text in axes.texts if text.get_text() != "in words"]
    digits, colors = [[text.get_text() for text in row] for row in (labels[:4], labels[4:])]
    assert all(label.isdigit() for label in digits)
    assert not any(label.isdigit() for label in colors)
    assert [text.get_color() for text in labels] == [PALETTE[0]] * 4 + [PALETTE[1]] * 4
    assert len(axes.images) == 8


def test_labels_are_filled_or_hollow():
    shown = panel("opposites")
    (axes,) = plot_tasks([shown]).axes
    filled, hollow = axes.collections
    assert len(filled.get_offsets()) == int((shown.sample.y[:1200] > 0).sum())
    assert len(hollow.get_facecolor()) == 0
    assert {to_hex(color) for color in hollow.get_edgecolor()} == {
        color.lower() for color in PALETTE[:2]
    }


def test_rows_in_the_right_context_lie_on_lines_and_others_do_not():
    def spread(shown):
        (axes,) = plot_tasks([shown]).axes
        place, y = axes.collections[0].get_offsets().T
        own = shown.found[shown.sample.groups]
        return np.mean([np.std((place - y)[own == context]) for context in range(5)])

    right = panel("five-planes")
    wrong = TaskPanel("a", "b", right.data, right.sample, (right.found + 1) % 5)
    assert spread(right) == pytest.approx(0.1, rel=0.1)  # the noise
    assert spread(wrong) > 1.0


def test_captions_explain_only_what_is_shown():
    assert "Curves" in plot_tasks([panel("functions")])._supxlabel.get_text()
    assert "Curves" not in plot_tasks([panel("opposites")])._supxlabel.get_text()
