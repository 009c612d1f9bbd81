"""The pictures of tasks show the data in the colours of what was found. How they look is for eyes."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from leaflearn.benchmark.figures.task_images import TaskPicture, plot_tasks
from leaflearn.benchmark.recovery.tasks import TASKS
from leaflearn.plot.style import FAINT, INK, PALETTE


def picture(name, found=True):
    task = TASKS[name]
    sample, truth = task.sample(0)
    return TaskPicture(name, "in words", task.make(0), sample, truth.domain if found else None)


def test_every_task_of_the_suite_can_be_drawn_fitted_or_not():
    for found in (True, False):
        figure = plot_tasks([picture(name, found) for name in TASKS])
        assert [axes.get_title(loc="left") for axes in figure.axes] == list(TASKS)


def test_rows_have_the_colour_of_their_groups_context():
    shown = picture("functions")
    found = np.where(shown.found == 2, -1, shown.found)
    colors = TaskPicture("a", "b", shown.data, shown.sample, found).colors
    expected = np.array([PALETTE[0], PALETTE[1], INK])[shown.found[shown.sample.groups]]
    assert colors.tolist() == expected.tolist()
    assert set(picture("functions", found=False).colors) == {FAINT}


def test_ten_contexts_have_ten_colours():
    assert len(set(picture("ten-waves").colors)) == 10


def test_pictures_have_their_labels_beneath_a_row_for_each_context():
    shown = picture("digits-n4")
    (axes,) = plot_tasks([shown]).axes
    labels = [text for text in axes.texts if text.get_text() != "in words"]
    digits, colors = [[text.get_text() for text in row] for row in (labels[:4], labels[4:])]
    assert all(label.isdigit() for label in digits)
    assert not any(label.isdigit() for label in colors)
    assert [text.get_color() for text in labels] == [PALETTE[0]] * 4 + [PALETTE[1]] * 4
    assert len(axes.images) == 8


def test_labels_are_filled_or_hollow():
    shown = picture("opposites")
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

    right = picture("five-planes")
    wrong = TaskPicture("a", "b", right.data, right.sample, (right.found + 1) % 5)
    assert spread(right) == pytest.approx(0.1, rel=0.1)  # the noise
    assert spread(wrong) > 1.0


def test_only_what_is_there_is_explained():
    assert "Curves" in plot_tasks([picture("functions")])._supxlabel.get_text()
    assert "Curves" not in plot_tasks([picture("opposites")])._supxlabel.get_text()
