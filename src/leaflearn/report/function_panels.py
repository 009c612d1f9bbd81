"""What methods draw of hidden functions, side by side: the paper's figures of the regression task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from leaflearn.report.style import FAINT, INK, color_of, styled

Array = NDArray[np.floating]
PANEL = (3.5, 3.0)  # inches


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


@styled
def plot_functions(x: Array, functions: Array, names: Sequence[str], panels: Sequence[FunctionPanel], n_columns: int = 4) -> Figure:
    """The functions (D, G) at x (G,), and what each method drew of them. A curve has the colour of the function that it is nearest to.

    Examples
    --------
    >>> x = np.linspace(0, 1, 5)
    >>> figure = plot_functions(x, np.stack([x, 1 - x]), ["up", "down"], [FunctionPanel("LEAF", x, np.stack([1 - x, x]))])
    >>> [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")]
    ['Ground truth', 'LEAF']
    >>> one_too_many = FunctionPanel("K=3", x, np.stack([1 - x, x, 0 * x]), is_idle=(False, False, True))
    >>> [text.get_text() for text in plot_functions(x, np.stack([x, 1 - x]), ["up", "down"], [one_too_many]).legends[0].get_texts()]
    ['up', 'down', 'a model that is hardly used']
    """
    n_columns = min(n_columns, len(panels) + 1)
    n_rows = -(-(len(panels) + 1) // n_columns)
    figure = Figure(figsize=(PANEL[0] * n_columns, PANEL[1] * n_rows + 0.5), layout="constrained")
    every = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
    _draw_truth(every[0], x, functions)
    for axes, panel in zip(every[1:], panels, strict=False):
        _draw_panel(axes, x, functions, panel)
    for place in range(len(panels) + 1, len(every)):
        every[place].set_axis_off()
        every[place - n_columns].tick_params(labelbottom=True)  # it is the lowest of its column now
    low, high = functions.min(), functions.max()
    every[0].set_ylim(low - 0.25 * (high - low), high + 0.2 * (high - low))
    lines = [Line2D([], [], color=color_of(d), label=name) for d, name in enumerate(names)]
    if any(any(panel.is_idle) for panel in panels):
        lines.append(Line2D([], [], color=INK, linestyle="--", label="a model that is hardly used"))
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines))
    return figure


def _draw_truth(axes: Axes, x: Array, functions: Array) -> None:
    axes.set_title("Ground truth")
    for d, function in enumerate(functions):
        axes.plot(x, function, color=color_of(d))


def _draw_panel(axes: Axes, x: Array, functions: Array, panel: FunctionPanel) -> None:
    axes.set_title(panel.title)
    axes.plot(x, functions.T, color=FAINT, linewidth=1.2)
    idle = panel.is_idle or (False,) * len(panel.curves)
    for curve, is_idle in zip(panel.curves, idle, strict=True):
        gaps = [np.mean((np.interp(x, panel.x, curve) - function) ** 2) for function in functions]
        color = INK if is_idle else color_of(int(np.argmin(gaps)))
        axes.plot(panel.x, curve, color=color, linestyle="--" if is_idle else "-", linewidth=2.0)
    axes.text(0.03, 0.02, panel.note, transform=axes.transAxes, fontsize=11, va="bottom", color=INK)
