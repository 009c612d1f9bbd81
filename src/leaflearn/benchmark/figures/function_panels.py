"""What methods draw of hidden functions, side by side: the paper's figures of the regression task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from leaflearn.plot.style import FAINT, INK, color_of, styled

Array = NDArray[np.floating]
PANEL, LETTERS, SIZE = (3.5, 3.0), 28, 14  # inches; letters that fit above a panel, and their size
NEAR = 0.5  # of the error of the best constant: a curve that is closer to a function shows it, if roughly
LOST = "#666666"  # a curve that is near no function


@dataclass(frozen=True)
class FunctionPanel:
    """The curves of one method, and what to call it.

    Parameters
    ----------
    title
        Above the panel.
    x
        Where the curves are drawn, shape (G,).
    curves
        One for each context, shape (K, G).
    note
        In the corner, such as the errors.
    is_idle
        Which curves no group uses; they are dashed.
    domains
        The function that each curve is of, where that is known, as it is of a method that adapts to a domain.

    Examples
    --------
    >>> FunctionPanel("LEAF", np.zeros(2), np.zeros((3, 2))).note
    ''
    """

    title: str
    x: Array
    curves: Array
    note: str = ""
    is_idle: tuple[bool, ...] = ()
    domains: tuple[int, ...] = ()


@styled
def plot_functions(
    x: Array, functions: Array, names: Sequence[str], panels: Sequence[FunctionPanel]
) -> Figure:
    """The functions (D, G) at x (G,), and what each method drew of them.

    A curve has the colour of the function that it is of, or that it is near to: its RMSE is less than half that of the best constant. Else
    it is grey.

    Examples
    --------
    >>> x = np.linspace(0, 1, 5)
    >>> figure = plot_functions(x, np.stack([x, 1 - x]), ["up", "down"], [FunctionPanel("LEAF", x, np.stack([1 - x, x]))])
    >>> [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")]
    ['Ground truth', 'LEAF']
    >>> one_too_many = FunctionPanel("K=3", x, np.stack([1 - x, 0 * x, x]), is_idle=(False, False, True))
    >>> [text.get_text() for text in plot_functions(x, np.stack([x, 1 - x]), ["up", "down"], [one_too_many]).legends[0].get_texts()]
    ['up', 'down', 'near no function', 'hardly used']
    """
    figure, every = make_grid(len(panels) + 1)
    _draw_truth(every[0], x, functions)
    colors = [_choose_colors(x, functions, panel) for panel in panels]
    for axes, panel, of_curves in zip(every[1:], panels, colors, strict=False):
        _draw_panel(axes, x, functions, panel, of_curves)
    low, high = functions.min(), functions.max()
    every[0].set_ylim(low - 0.25 * (high - low), high + 0.2 * (high - low))
    lines = [Line2D([], [], color=color_of(d), label=name) for d, name in enumerate(names)]
    if any(LOST in of_curves for of_curves in colors):
        lines.append(Line2D([], [], color=LOST, label="near no function"))
    if any(any(panel.is_idle) for panel in panels):
        lines.append(Line2D([], [], color=INK, linestyle="--", label="hardly used"))
    add_legend(figure, lines, every[len(panels) + 1 :])
    return figure


def make_grid(n_panels: int) -> tuple[Figure, list[Axes]]:
    """Panels of y over x that share their axes, in rows of three or four, whichever leaves fewer places empty; empty ones come last.

    Examples
    --------
    >>> [make_grid(n_panels)[1][0].get_gridspec().ncols for n_panels in (2, 5, 6, 8, 9, 11)]
    [2, 3, 3, 4, 3, 4]
    """
    n_columns = min((4, 3), key=lambda n: -n_panels % n) if n_panels > 4 else n_panels
    n_rows = -(-n_panels // n_columns)
    for_legend = 0.0 if n_panels % n_columns else 0.5
    figure = Figure(
        figsize=(PANEL[0] * n_columns, PANEL[1] * n_rows + for_legend), layout="constrained"
    )
    every = list(
        figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
    )
    for place, axes in enumerate(every[:n_panels]):
        if place + n_columns >= n_panels:  # the lowest of its column
            axes.set_xlabel("x")
            axes.tick_params(labelbottom=True)
        if place % n_columns == 0:
            axes.set_ylabel("y")
    for axes in every[n_panels:]:
        axes.set_axis_off()
    return figure, every


def add_legend(figure: Figure, lines: Sequence[Line2D], empty: Sequence[Axes]) -> None:
    """The legend, in a place of the grid that is empty, else below it.

    Examples
    --------
    >>> figure, every = make_grid(2)
    >>> add_legend(figure, [Line2D([], [], label="mine")], every[2:])
    >>> figure.legends[0].get_texts()[0].get_text()
    'mine'
    """
    if empty:
        figure.legend(
            handles=lines,
            loc="center",
            bbox_to_anchor=(0.5, 0.5),
            bbox_transform=empty[0].transAxes,
        )
    else:
        figure.legend(handles=lines, loc="outside lower center", ncols=len(lines))


def find_domains(x: Array, functions: Array, panel: FunctionPanel) -> list[int]:
    """The function that each curve of a panel is of, or near to; -1 for a curve that is near to none.

    Examples
    --------
    >>> x = np.linspace(0, 1, 5)
    >>> flat_and_falling = np.stack([0.5 + 0 * x, 0.9 - 0.9 * x])
    >>> find_domains(x, np.stack([x, 1 - x]), FunctionPanel("LEAF", x, flat_and_falling))
    [-1, 1]
    >>> find_domains(x, np.stack([x, 1 - x]), FunctionPanel("MAML", x, flat_and_falling, domains=(0, 1)))
    [0, 1]
    """
    if panel.domains:
        return list(panel.domains)
    curves = np.stack([np.interp(x, panel.x, curve) for curve in panel.curves])
    gaps = np.sqrt(np.mean((curves[:, None] - functions) ** 2, axis=-1)) / np.maximum(
        functions.std(axis=-1), 1e-12
    )  #    (K, D)
    return [int(np.argmin(of_curve)) if of_curve.min() < NEAR else -1 for of_curve in gaps]


def _draw_truth(axes: Axes, x: Array, functions: Array) -> None:
    axes.set_title("Ground truth", fontsize=SIZE)
    for d, function in enumerate(functions):
        axes.plot(x, function, color=color_of(d))


def _choose_colors(x: Array, functions: Array, panel: FunctionPanel) -> list[str]:
    idle = panel.is_idle or (False,) * len(panel.curves)
    found = find_domains(x, functions, panel)
    return [
        INK if is_idle else color_of(d) if d >= 0 else LOST
        for d, is_idle in zip(found, idle, strict=True)
    ]


def _draw_panel(
    axes: Axes, x: Array, functions: Array, panel: FunctionPanel, colors: Sequence[str]
) -> None:
    axes.set_title(fill(panel.title, LETTERS), fontsize=SIZE)
    axes.plot(x, functions.T, color=FAINT, linewidth=1.0)
    for k, (curve, color) in enumerate(zip(panel.curves, colors, strict=True)):
        axes.plot(
            panel.x,
            curve,
            color=color,
            linestyle="--" if any(panel.is_idle[k : k + 1]) else "-",
            linewidth=2.0,
        )
    axes.text(0.03, 0.02, panel.note, transform=axes.transAxes, fontsize=11, va="bottom", color=INK)
