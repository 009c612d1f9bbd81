"""The figure of the comparison on real tables shows every ratio to the best peer."""

import pytest

from leaflearn.benchmark.figures.real_figures import GREY, LEAST, MOST, draw_ratios
from leaflearn.benchmark.real.summary import Cell
from leaflearn.plot.style import PALETTE


def cell(table, name="known", **errors):
    errors = {method.replace("_", " "): error for method, error in errors.items()}
    return Cell(table, name, "rmse", 30, 1, errors, {m: [e] for m, e in errors.items()})


CELLS = [
    cell("wages", leaflearn=1.5, lme4=2.0, merf=2.5),
    cell("males", leaflearn=1.2, leaflearn_linear=1.1, lme4=1.0),
    cell("hsb82", "new 5", leaflearn=1.0, lme4=1.0),
]


def signs(axes, marker):
    return [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == marker]


def test_tables_are_rows_and_kinds_of_cells_are_panels():
    known, new = draw_ratios(CELLS).axes
    assert known.get_title(loc="left") == "known groups"
    assert new.get_title(loc="left") == "new, 5 labels"
    labels = [label.get_text() for label in known.get_yticklabels()]
    assert labels == ["hsb82", "wages", "males"]
    assert known.yaxis_inverted()


def test_dots_are_ratios_to_the_best_peer():
    known, new = draw_ratios(CELLS).axes
    assert signs(known, "o") == pytest.approx([0.75, 1.2, 1.1])
    assert signs(known, "s") == [1.0, 1.0]  # lme4
    assert signs(known, "D") == [1.25]  # merf
    assert signs(new, "o") == [1.0]


def test_own_methods_are_coloured_and_peers_are_grey():
    figure = draw_ratios(CELLS)
    colors = {
        text.get_text(): handle.get_color()
        for text, handle in zip(
            figure.legends[0].get_texts(), figure.legends[0].legend_handles, strict=True
        )
    }
    assert colors == {
        "leaflearn": PALETTE[0],
        "leaflearn linear": PALETTE[1],
        "lme4": GREY,
        "merf": GREY,
    }


def test_ratios_beyond_the_axis_are_arrows():
    (axes,) = draw_ratios([cell("wages", leaflearn=0.1, lme4=1.0, merf=100.0)]).axes
    assert (signs(axes, "<"), signs(axes, ">")) == ([LEAST], [MOST])


def test_a_cell_without_peers_is_empty():
    (axes,) = draw_ratios([cell("wages", leaflearn=1.0)]).axes
    assert signs(axes, "o") == []
