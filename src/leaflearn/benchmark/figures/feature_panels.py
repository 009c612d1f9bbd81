"""What each local model looks at: its features of the same pictures, coloured by the labels of each domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import CSS4_COLORS
from matplotlib.figure import Figure
from numpy.typing import NDArray

from leaflearn.plot.style import PALETTE, styled

Array = NDArray[np.floating]
WHITE, EDGE = (
    "#EFEFEF",
    "#777777",
)  # what is white would not be seen on paper; what is bright has an edge


@styled
def plot_features(
    method: str,
    points: Sequence[Array],
    labels: Mapping[str, Sequence[int]],
    classes: Sequence[str],
    titles: Sequence[str],
) -> Figure:
    """A row for each local model's points (N, 2), a column for each domain, by whose labels the points are coloured.

    Labels that are names of colours have these colours.

    Examples
    --------
    >>> figure = plot_features("LEAF", [np.zeros((2, 2))], {"gender": [0, 1]}, ["male", "female"], ["model for gender"])
    >>> figure.get_suptitle(), figure.axes[0].get_title(loc="left"), figure.axes[0].get_ylabel()
    ('LEAF', 'by gender', 'model for gender')
    """
    figure = Figure(figsize=(3.9 * len(labels), 3.5 * len(points) + 1.4), layout="constrained")
    figure.suptitle(method, x=0.012, ha="left", fontweight="bold")
    grid = figure.subplots(len(points), len(labels), squeeze=False)
    for row, (of_model, title) in enumerate(zip(points, titles, strict=True)):
        grid[row, 0].set_ylabel(title)
        for axes, given in zip(grid[row], labels.values(), strict=True):
            _draw_points(axes, np.asarray(of_model), np.asarray(given), classes)
    for top, bottom, domain in zip(grid[0], grid[-1], labels, strict=True):
        top.set_title(f"by {domain}")
        bottom.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.02),
            ncols=3,
            fontsize=11,
            markerscale=2,
            handletextpad=0.1,
        )
    return figure


def _draw_points(
    axes: Axes, points: Array, given: NDArray[np.integer], classes: Sequence[str]
) -> None:
    shown = sorted({int(label) for label in given})
    named = [classes[label] for label in shown]
    is_painted = all(name in CSS4_COLORS for name in named)
    axes.set(xticks=[], yticks=[])
    for number, (label, name) in enumerate(zip(shown, named, strict=True)):
        color = _paint(name) if is_painted else _tell_apart(number, len(shown))
        x, y = points[given == label].T
        axes.scatter(
            x,
            y,
            s=11,
            color=color,
            edgecolors=EDGE if is_painted else "none",
            linewidths=0.4 * is_painted,
            label=name,
        )


def _paint(name: str) -> str:
    return WHITE if name == "white" else name


def _tell_apart(number: int, n_colors: int) -> object:
    if n_colors <= len(PALETTE):
        return PALETTE[number]
    return colormaps["tab10" if n_colors <= 10 else "tab20"](number % 20)
