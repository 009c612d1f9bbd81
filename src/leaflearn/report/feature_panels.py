"""What each local model looks at: its features of the same pictures, coloured by the labels of each domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from numpy.typing import NDArray

from leaflearn.report.style import PALETTE, styled

Array = NDArray[np.floating]


@styled
def plot_features(points: Sequence[Array], labels: Mapping[str, Sequence[int]], classes: Sequence[str], titles: Sequence[str]) -> Figure:
    """A row for each local model's points (N, 2), a column for each domain, by whose labels the points are coloured.

    Examples
    --------
    >>> figure = plot_features([np.zeros((2, 2))], {"gender": [0, 1]}, ["male", "female"], ["context 0"])
    >>> figure.axes[0].get_title(loc="left"), figure.axes[0].get_ylabel()
    ('by gender', 'context 0')
    """
    figure = Figure(figsize=(3.9 * len(labels), 3.5 * len(points) + 0.9), layout="constrained")
    grid = figure.subplots(len(points), len(labels), squeeze=False)
    for row, (of_model, title) in enumerate(zip(points, titles, strict=True)):
        for column, (domain, given) in enumerate(labels.items()):
            axes = grid[row, column]
            axes.set(xticks=[], yticks=[])
            for number, label in enumerate(sorted(set(given))):
                here = np.asarray(given) == label
                axes.scatter(*np.asarray(of_model)[here].T, s=9, color=_color(number, len(set(given))), linewidths=0, label=classes[label])
            if row == 0:
                axes.set_title(f"by {domain}")
            if row == len(points) - 1:
                axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=3, fontsize=10, markerscale=2, handletextpad=0.1)
            if column == 0:
                axes.set_ylabel(title)
    return figure


def _color(number: int, n_colors: int) -> object:
    return PALETTE[number] if n_colors <= len(PALETTE) else colormaps["tab20"](number % 20)
