"""The features of each local model for the same images, coloured by the labels of each domain."""

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
WHITE, EDGE = "#EFEFEF", "#777777"  # white and bright dots stay visible on paper


@styled
def plot_features(
    method: str,
    points: Sequence[Array],
    labels: Mapping[str, Sequence[int]],
    classes: Sequence[str],
    titles: Sequence[str],
) -> Figure:
    """Draw the points (N, 2) of each local model in a row, coloured by one domain per column.

    Labels that are names of colours have these colours.

    Examples
    --------
    >>> points, labels, classes = [np.zeros((2, 2))], {"gender": [0, 1]}, ["male", "female"]
    >>> figure = plot_features("LEAF", points, labels, classes, ["model for gender"])
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
    has_color_names = all(name in CSS4_COLORS for name in named)
    axes.set(xticks=[], yticks=[])
    for number, (label, name) in enumerate(zip(shown, named, strict=True)):
        color = _named_color(name) if has_color_names else _distinct_color(number, len(shown))
        x, y = points[given == label].T
        axes.scatter(
            x,
            y,
            s=11,
            color=color,
            edgecolors=EDGE if has_color_names else "none",
            linewidths=0.4 * has_color_names,
            label=name,
        )


def _named_color(name: str) -> str:
    return WHITE if name == "white" else name


def _distinct_color(number: int, n_colors: int) -> object:
    if n_colors <= len(PALETTE):
        return PALETTE[number]
    return colormaps["tab10" if n_colors <= 10 else "tab20"](number % 20)
