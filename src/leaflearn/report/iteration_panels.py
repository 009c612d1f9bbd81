"""The functions and the allocation as training goes on: panels, and the same as a film."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from leaflearn.report.style import color_of, styled

Array = NDArray[np.floating]
FINENESS = 200  # rows of the picture of the boundaries
FRAME_MS, LAST_MS = 450, 2500  # how long a picture of the film stands, and the last one


@dataclass(frozen=True)
class Moment:
    """One moment of training: its title, the curves (K, G) at x (G,), and points (N, 3) of x, y and the context they would go to.

    Examples
    --------
    >>> Moment("epoch 0", np.zeros(2), np.zeros((1, 2)), np.zeros((5, 3))).title
    'epoch 0'
    """

    title: str
    x: Array
    curves: Array
    points: Array


@styled
def plot_moments(moments: Sequence[Moment], n_columns: int = 4) -> Figure:
    """A panel for each moment, and at last the boundaries of the allocation: where a single point would go.

    Examples
    --------
    >>> moment = Moment("epoch 0", np.array([0.0, 1.0]), np.zeros((1, 2)), np.ones((5, 3)))
    >>> [axes.get_title("left") for axes in plot_moments([moment, moment]).axes]
    ['epoch 0', 'epoch 0', 'where a point would go']
    """
    n_panels = len(moments) + 1
    n_columns = min(n_columns, n_panels)
    n_rows = -(-n_panels // n_columns)
    figure = Figure(figsize=(3.5 * n_columns, 3.0 * n_rows), layout="constrained")
    every = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, moment in zip(every, moments, strict=False):
        _draw(axes, moment)
    _draw_boundaries(every[len(moments)], moments[-1], _limits(moments))
    for axes in every[n_panels:]:
        axes.set_axis_off()
    return figure


@styled
def film(moments: Sequence[Moment]) -> bytes:
    """The moments one after the other, as an animated GIF.

    Examples
    --------
    >>> moment = Moment("epoch 0", np.zeros(2), np.zeros((1, 2)), np.zeros((5, 3)))
    >>> film([moment, moment])[:6]
    b'GIF89a'
    """
    from PIL import Image

    frames = []
    for moment in moments:
        figure = Figure(figsize=(6.0, 4.4), layout="constrained", dpi=80)
        axes = figure.subplots()
        _draw(axes, moment)
        axes.set_ylim(*_limits(moments))
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png")
        frames.append(Image.open(buffer).convert("P", palette=Image.Palette.ADAPTIVE))
    target = io.BytesIO()
    times = [FRAME_MS] * (len(frames) - 1) + [LAST_MS]
    frames[0].save(target, format="GIF", save_all=True, append_images=frames[1:], duration=times, loop=0)
    return target.getvalue()


def _draw(axes: Axes, moment: Moment) -> None:
    axes.set_title(moment.title)
    for k, curve in enumerate(moment.curves):
        here = moment.points[:, 2] == k
        axes.scatter(moment.points[here, 0], moment.points[here, 1], s=7, color=color_of(k), alpha=0.45, linewidths=0)
        axes.plot(moment.x, curve, color=color_of(k))


def _draw_boundaries(axes: Axes, moment: Moment, limits: tuple[float, float]) -> None:
    """Every place in the colour of the local model whose answer is nearest, and the points of the training set."""
    y = np.linspace(*limits, FINENESS)
    nearest = np.abs(moment.curves[:, None] - y[:, None]).argmin(0)  #                          (FINENESS, G)
    colors = ListedColormap([color_of(k) for k in range(len(moment.curves))])
    around = (float(moment.x.min()), float(moment.x.max()), *limits)
    axes.imshow(nearest, colors, origin="lower", extent=around, aspect="auto", alpha=0.25, vmin=-0.5, vmax=colors.N - 0.5)
    for k in range(len(moment.curves)):
        here = moment.points[:, 2] == k
        axes.scatter(moment.points[here, 0], moment.points[here, 1], s=7, color=color_of(k), linewidths=0)
    axes.set_title("where a point would go")


def _limits(moments: Sequence[Moment]) -> tuple[float, float]:
    y = np.concatenate([moment.points[:, 1] for moment in moments])
    margin = 0.1 * float(np.ptp(y) or 1.0)
    return float(y.min()) - margin, float(y.max()) + margin
