"""The figure of the comparison on real tables: errors as ratios to the best peer of each cell.

A row for each table, a panel for each kind of rows that are predicted. A dot on the left of the
line at 1 is better than every peer. Methods of leaflearn are large coloured dots; below them, peers
are small grey signs, each with its own shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from leaflearn.benchmark.real.peers import PEERS
from leaflearn.benchmark.real.run import KNOWN, METHODS
from leaflearn.benchmark.real.summary import CELLS, Cell, in_order
from leaflearn.benchmark.real.tables import all_tables
from leaflearn.plot.style import FAINT, INK, color_of, styled

LEAST, MOST = 0.7, 2.0  # ratios at the ends of the axis; others are drawn there as arrows
TICKS = (0.8, 1.0, 1.25, 1.6, 2.0)
SIGNS = ("s", "D", "^", "v", "P", "X", "*", "h")
GREY = "#7A7A7A"
ROW, WIDTH = 0.5, 2.8  # inches of a table and of a panel
LANE = 0.17  # how far own methods are above the middle of a row, and peers below it, in rows
SMALL = 12


@styled
def draw_ratios(cells: Sequence[Cell]) -> Figure:
    """Draw the ratio of every method to the best peer, in all cells that count.

    The best peer itself is at 1.

    Examples
    --------
    >>> errors = {"leaflearn": 0.9, "lme4": 1.0, "merf": 1.2}
    >>> cell = Cell("wages", "known", "rmse", 90, 1, errors, {m: [e] for m, e in errors.items()})
    >>> figure = draw_ratios([cell])
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['known groups']
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['leaflearn', 'lme4', 'merf']
    """
    tables = in_order({cell.table for cell in cells}, all_tables())
    names = [name for name in CELLS if any(cell.name == name for cell in cells)]
    methods = in_order({method for cell in cells for method in cell.errors}, METHODS)
    width, height = WIDTH * len(names) + 2.0, ROW * len(tables) + 2.4
    figure = Figure(figsize=(max(width, 9.0), height), layout="constrained")
    grid = figure.subplots(1, max(len(names), 1), sharey=True, squeeze=False)[0]
    for axes, name in zip(grid, names, strict=False):
        axes.set_title(_title(name))
        for cell in cells:
            if cell.name == name:
                _draw_cell(axes, cell, tables.index(cell.table), methods)
        _finish(axes, tables)
    figure.supxlabel(
        "error, divided by that of the best peer; arrows: beyond the axis", fontsize=SMALL + 1
    )
    handles = [
        Line2D([], [], linestyle="", **_look(method, methods), label=method) for method in methods
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize=SMALL)
    return figure


def _title(name: str) -> str:
    if name == KNOWN:
        return "known groups"
    n_labels = int(name.removeprefix("new "))
    return f"new, {n_labels} label{'s' if n_labels > 1 else ''}"


def _draw_cell(axes: Axes, cell: Cell, row: int, methods: Sequence[str]) -> None:
    peers = [error for method, error in cell.errors.items() if method in PEERS]
    if not peers:
        return
    for method, error in cell.errors.items():
        ratio, look = error / min(peers), _look(method, methods)
        if not LEAST <= ratio <= MOST:  # an arrow at the end of the axis
            look["marker"] = ">" if ratio > MOST else "<"
        axes.plot(
            np.clip(ratio, LEAST, MOST),
            row + (LANE if method in PEERS else -LANE),
            linestyle="",
            clip_on=False,
            zorder=3 if method in PEERS else 4,
            **look,
        )


def _look(method: str, methods: Sequence[str]) -> dict[str, Any]:
    if method in PEERS:
        place = [name for name in methods if name in PEERS].index(method)
        sign = SIGNS[place % len(SIGNS)]
        return {"marker": sign, "color": GREY, "markersize": 5.5, "alpha": 0.75}
    place = [name for name in methods if name not in PEERS].index(method)
    return {"marker": "o", "color": color_of(place), "markersize": 8.5, "alpha": 0.9}


def _finish(axes: Axes, tables: Sequence[str]) -> None:
    axes.axvline(1.0, color=INK, linewidth=1.2, zorder=2)
    axes.set_xscale("log")
    axes.set(xlim=(LEAST, MOST), ylim=(len(tables) - 0.5, -0.5))
    axes.xaxis.set_major_locator(FixedLocator(TICKS))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS], fontsize=SMALL - 1)
    axes.set_yticks(range(len(tables)), list(tables), fontsize=SMALL)
    axes.grid(color=FAINT, linewidth=0.8, alpha=0.5)
    axes.tick_params(axis="y", length=0, pad=10)
    axes.spines["left"].set_visible(False)
