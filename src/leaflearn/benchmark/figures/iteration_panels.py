"""The functions and the allocation as training goes on: panels, and the same as a film."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from leaflearn.benchmark.figures.function_panels import SIZE, add_legend, make_grid
from leaflearn.plot.style import color_of, styled

Array = NDArray[np.floating]
FINENESS = 200  # rows of the picture of the boundaries
FRAME_MS, LAST_MS = 450, 2500  # how long a picture of the film stands, and the last one
SETTLED = 0.05  # of the height of the curves: what no longer moves farther has settled
HIDDEN = (
    0.03  # of the height of the panel: a curve that is nowhere farther from another would hide it
)


@dataclass(frozen=True)
class Moment:
    """One moment of training: its title, the curves (K, G) at x (G,), and points (N, 3) of x, y and the context that they learn in.

    Examples
    --------
    >>> Moment("epoch 0", np.zeros(2), np.zeros((1, 2)), np.zeros((5, 3))).title
    'epoch 0'
    """

    title: str
    x: Array
    curves: Array
    points: Array


@dataclass(frozen=True)
class Training:
    """What a method did from moment to moment.

    Parameters
    ----------
    method
        What it is called.
    moments
        In their order; all have as many contexts.
    names
        Of the functions.
    domains
        The function that each context came to stand for, -1 for none, shape (K,): a context has its colour from the first moment.

    Examples
    --------
    >>> Training("LEAF", [], ["sine"], [0]).method
    'LEAF'
    """

    method: str
    moments: Sequence[Moment]
    names: Sequence[str]
    domains: Sequence[int]

    @property
    def limits(self) -> tuple[float, float]:
        """Where y begins and ends in all pictures."""
        y = np.concatenate([moment.points[:, 1] for moment in self.moments])
        margin = 0.1 * float(np.ptp(y) or 1.0)
        return float(y.min()) - margin, float(y.max()) + margin


def match_curves(curves: Array, functions: Array) -> list[int]:
    """The function (D, G) that each curve (K, G) stands for, one to one, so that they are as near as can be; -1 for curves left over.

    Examples
    --------
    >>> match_curves(np.array([[1.0, 1.1], [5.0, 5.0], [0.1, 0.0]]), np.array([[0.0, 0.0], [1.0, 1.0]]))
    [1, -1, 0]
    """
    matched = np.full(len(curves), -1)
    rows, columns = linear_sum_assignment(np.mean((curves[:, None] - functions) ** 2, axis=-1))
    matched[rows] = columns
    return [int(domain) for domain in matched]


def choose_moments(trainings: Sequence[Sequence[Moment]], n_shown: int) -> list[int]:
    """Which moments to show of trainings that were looked at at the same moments: the last, and others from before the curves settled.

    Examples
    --------
    >>> curves = [0.0, 0.2, 0.5, 0.7, 1.0, 2.0, 2.01, 2.0, 2.0]
    >>> moments = [Moment("", np.arange(2.0), np.array([[0.0, height]]), np.ones((5, 3))) for height in curves]
    >>> choose_moments([moments], 4)
    [0, 2, 4, 8]
    """
    moving = max(_find_last_moving(moments) for moments in trainings)
    before = np.linspace(0, moving, n_shown - 1).round().astype(int)
    return sorted({*before.tolist(), len(trainings[0]) - 1})


def _find_last_moving(moments: Sequence[Moment]) -> int:
    """The last moment at which some curve is not yet where it ends."""
    end = moments[-1].curves
    gaps = [float(np.sqrt(np.mean((moment.curves - end) ** 2))) for moment in moments]
    return max((place for place, gap in enumerate(gaps) if gap > SETTLED * np.ptp(end)), default=0)


@styled
def plot_training(training: Training, shown: Sequence[int]) -> Figure:
    """A panel for each moment that is shown, and at last the boundaries of the allocation: where a single point would go.

    Examples
    --------
    >>> moment = Moment("epoch 0", np.array([0.0, 1.0]), np.zeros((1, 2)), np.zeros((5, 3)))
    >>> figure = plot_training(Training("LEAF", [moment, moment], ["sine"], [0]), [0, 1])
    >>> figure.get_suptitle(), [axes.get_title("left") for axes in figure.axes]
    ('LEAF', ['epoch 0', 'epoch 0', 'where a point would go'])
    """
    figure, every = make_grid(len(shown) + 1)
    figure.suptitle(training.method, x=0.012, ha="left", fontweight="bold")
    for axes, place in zip(every, shown, strict=False):
        _draw(axes, training.moments[place], training)
    _draw_boundaries(every[len(shown)], training)
    every[0].set_ylim(*training.limits)
    add_legend(figure, _make_legend(training), every[len(shown) + 1 :])
    return figure


@styled
def film(training: Training) -> bytes:
    """All moments one after the other, as an animated GIF.

    Examples
    --------
    >>> moment = Moment("epoch 0", np.zeros(2), np.zeros((1, 2)), np.zeros((5, 3)))
    >>> film(Training("LEAF", [moment, moment], ["sine"], [0]))[:6]
    b'GIF89a'
    """
    from PIL import Image

    frames = []
    for moment in training.moments:
        figure = Figure(figsize=(6.0, 4.8), layout="constrained", dpi=80)
        axes = figure.subplots()
        _draw(axes, moment, training)
        axes.set(
            title=f"{training.method}, {moment.title}", xlabel="x", ylabel="y", ylim=training.limits
        )
        add_legend(figure, _make_legend(training), [])
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png")
        frames.append(Image.open(buffer).convert("P", palette=Image.Palette.ADAPTIVE))
    target = io.BytesIO()
    times = [FRAME_MS] * (len(frames) - 1) + [LAST_MS]
    frames[0].save(
        target, format="GIF", save_all=True, append_images=frames[1:], duration=times, loop=0
    )
    return target.getvalue()


def _make_legend(training: Training) -> list[Line2D]:
    return [
        Line2D([], [], color=color_of(d), marker="o", markersize=4, linewidth=1.4, label=name)
        for d, name in enumerate(training.names)
    ]


def _draw(axes: Axes, moment: Moment, training: Training) -> None:
    axes.set_title(moment.title, fontsize=SIZE)
    for k, (curve, above) in enumerate(
        zip(moment.curves, _count_beneath(moment.curves, training.limits), strict=True)
    ):
        dashes = (0, (4, 4 * (1 + above))) if above else "-"
        axes.plot(
            moment.x,
            curve,
            color=color_of(training.domains[k]),
            linewidth=1.4,
            linestyle=dashes,
            zorder=2,
        )
    _draw_points(axes, moment, training)


def _count_beneath(curves: Array, limits: tuple[float, float]) -> list[int]:
    """How many earlier curves lie beneath each: it is dashed there, so that they are seen."""
    bar = HIDDEN * (limits[1] - limits[0])
    return [
        sum(bool(np.abs(curve - other).max() < bar) for other in curves[:k])
        for k, curve in enumerate(curves)
    ]


def _draw_points(axes: Axes, moment: Moment, training: Training) -> None:
    """All points in their colours, the colours in no order: none covers the others."""
    points = moment.points[np.random.default_rng(0).permutation(len(moment.points))]
    colors = [color_of(training.domains[int(context)]) for context in points[:, 2]]
    axes.scatter(
        points[:, 0], points[:, 1], s=10, c=colors, edgecolors="white", linewidths=0.3, zorder=3
    )


def _draw_boundaries(axes: Axes, training: Training) -> None:
    """Every place in the colour of the local model whose answer is nearest, and the points of the training set."""
    moment, limits = training.moments[-1], training.limits
    y = np.linspace(*limits, FINENESS)
    nearest = np.abs(moment.curves[:, None] - y[:, None]).argmin(
        0
    )  #                          (FINENESS, G)
    colors = ListedColormap([color_of(domain) for domain in training.domains])
    around = (float(moment.x.min()), float(moment.x.max()), *limits)
    axes.imshow(
        nearest,
        colors,
        origin="lower",
        extent=around,
        aspect="auto",
        alpha=0.25,
        vmin=-0.5,
        vmax=colors.N - 0.5,
    )
    _draw_points(axes, moment, training)
    axes.set_title("where a point would go", fontsize=SIZE)
