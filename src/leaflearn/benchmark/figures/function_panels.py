"""The curves of methods beside the hidden functions, side by side or during training.

These are the paper's figures of the regression task. Training is also shown as an animation.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from leaflearn.benchmark.experiments import settings
from leaflearn.plot.style import FAINT, INK, color_of, styled

Array = NDArray[np.floating]
PANEL, LETTERS, SIZE = (3.5, 3.0), 28, 14  # inches; letters above a panel, and their size
NO_FUNCTION = "#666666"  # a curve that is near no function
BOUNDARY_ROWS = 200  # of the image of the allocation boundaries
FRAME_MS, LAST_MS = 450, 2500  # duration of a frame of the animation, and of the last one
MIN_MOVEMENT = 0.05  # of the height of the curves: less counts as no movement
OVERLAP = 0.03  # of the height of the panel: a curve closer than this to another hides it


@dataclass(frozen=True)
class FunctionPanel:
    """The curves of one method, and its title.

    Parameters
    ----------
    title
        The text above the panel.
    x
        The inputs of the curves, shape (G,).
    curves
        One for each context, shape (K, G).
    note
        A text in the corner, such as the errors.
    is_idle
        Which curves are used by hardly any group; they are dashed.
    domains
        The function of each curve if it is known, as for a method that adapts to a domain.

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
    """Draw the functions (D, G) at x (G,), and the curves of each method.

    A curve has the colour of its function, or of the function that it is near to: its RMSE is less
    than half that of the best constant. Otherwise it is grey.

    Examples
    --------
    >>> x = np.linspace(0, 1, 5)
    >>> functions, names = np.stack([x, 1 - x]), ["up", "down"]
    >>> leaf = FunctionPanel("LEAF", x, np.stack([1 - x, x]))
    >>> figure = plot_functions(x, functions, names, [leaf])
    >>> [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")]
    ['Ground truth', 'LEAF']
    >>> curves = np.stack([1 - x, 0 * x, x])
    >>> one_too_many = FunctionPanel("K=3", x, curves, is_idle=(False, False, True))
    >>> figure = plot_functions(x, functions, names, [one_too_many])
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
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
    if any(NO_FUNCTION in of_curves for of_curves in colors):
        lines.append(Line2D([], [], color=NO_FUNCTION, label="near no function"))
    if any(any(panel.is_idle) for panel in panels):
        lines.append(Line2D([], [], color=INK, linestyle="--", label="hardly used"))
    add_legend(figure, lines, every[len(panels) + 1 :])
    return figure


def find_domains(x: Array, functions: Array, panel: FunctionPanel) -> list[int]:
    """The function of each curve of a panel, or the nearest one; -1 for a curve near no function.

    Examples
    --------
    >>> x = np.linspace(0, 1, 5)
    >>> flat_and_falling = np.stack([0.5 + 0 * x, 0.9 - 0.9 * x])
    >>> find_domains(x, np.stack([x, 1 - x]), FunctionPanel("LEAF", x, flat_and_falling))
    [-1, 1]
    >>> adapted = FunctionPanel("MAML", x, flat_and_falling, domains=(0, 1))
    >>> find_domains(x, np.stack([x, 1 - x]), adapted)
    [0, 1]
    """
    if panel.domains:
        return list(panel.domains)
    curves = np.stack([np.interp(x, panel.x, curve) for curve in panel.curves])
    distances = np.sqrt(np.mean((curves[:, None] - functions) ** 2, axis=-1))  #     (K, D)
    gaps = distances / np.maximum(functions.std(axis=-1), 1e-12)
    near = settings.MEASURES.near_function
    return [int(np.argmin(of_curve)) if of_curve.min() < near else -1 for of_curve in gaps]


# Training


@dataclass(frozen=True)
class Moment:
    """One moment of training.

    Its title, the curves (K, G) at x (G,), and points (N, 3) of x, y and their context.

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
class TrainingMoments:
    """The training of a method, moment by moment.

    Parameters
    ----------
    method
        Its name.
    moments
        In their order; all have the same number of contexts.
    names
        Of the functions.
    domains
        The function that each context matches at the end, -1 for none, shape (K,). A context has
        the colour of this function from the first moment on.

    Examples
    --------
    >>> TrainingMoments("LEAF", [], ["sine"], [0]).method
    'LEAF'
    """

    method: str
    moments: Sequence[Moment]
    names: Sequence[str]
    domains: Sequence[int]

    @property
    def limits(self) -> tuple[float, float]:
        """The limits of y in all panels."""
        y = np.concatenate([moment.points[:, 1] for moment in self.moments])
        margin = 0.1 * float(np.ptp(y) or 1.0)
        return float(y.min()) - margin, float(y.max()) + margin


@styled
def plot_training(training: TrainingMoments, shown: Sequence[int]) -> Figure:
    """Draw a panel for each chosen moment, and one with the boundaries of the final allocation.

    Examples
    --------
    >>> moment = Moment("epoch 0", np.array([0.0, 1.0]), np.zeros((1, 2)), np.zeros((5, 3)))
    >>> figure = plot_training(TrainingMoments("LEAF", [moment, moment], ["sine"], [0]), [0, 1])
    >>> figure.get_suptitle(), [axes.get_title("left") for axes in figure.axes]
    ('LEAF', ['epoch 0', 'epoch 0', 'where a point would go'])
    """
    figure, every = make_grid(len(shown) + 1)
    figure.suptitle(training.method, x=0.012, ha="left", fontweight="bold")
    for axes, place in zip(every, shown, strict=False):
        _draw_moment(axes, training.moments[place], training)
    _draw_boundaries(every[len(shown)], training)
    every[0].set_ylim(*training.limits)
    add_legend(figure, _make_legend(training), every[len(shown) + 1 :])
    return figure


@styled
def animate(training: TrainingMoments) -> bytes:
    """All moments as an animated GIF.

    Examples
    --------
    >>> moment = Moment("epoch 0", np.zeros(2), np.zeros((1, 2)), np.zeros((5, 3)))
    >>> animate(TrainingMoments("LEAF", [moment, moment], ["sine"], [0]))[:6]
    b'GIF89a'
    """
    from PIL import Image

    frames = []
    for moment in training.moments:
        figure = Figure(figsize=(6.0, 4.8), layout="constrained", dpi=80)
        axes = figure.subplots()
        _draw_moment(axes, moment, training)
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


def match_curves(curves: Array, functions: Array) -> list[int]:
    """The one-to-one match of curves (K, G) to functions (D, G) with the smallest distances.

    -1 for curves without a function.

    Examples
    --------
    >>> curves = np.array([[1.0, 1.1], [5.0, 5.0], [0.1, 0.0]])
    >>> match_curves(curves, np.array([[0.0, 0.0], [1.0, 1.0]]))
    [1, -1, 0]
    """
    matched = np.full(len(curves), -1)
    rows, columns = linear_sum_assignment(np.mean((curves[:, None] - functions) ** 2, axis=-1))
    matched[rows] = columns
    return [int(domain) for domain in matched]


def choose_moments(trainings: Sequence[Sequence[Moment]], n_shown: int) -> list[int]:
    """Which moments to show of trainings with the same moments.

    The last one, and others while the curves were still moving.

    Examples
    --------
    >>> curves = [0.0, 0.2, 0.5, 0.7, 1.0, 2.0, 2.01, 2.0, 2.0]
    >>> points = np.ones((5, 3))
    >>> moments = [Moment("", np.arange(2.0), np.array([[0.0, y]]), points) for y in curves]
    >>> choose_moments([moments], 4)
    [0, 2, 4, 8]
    """
    moving = max(_find_last_moving(moments) for moments in trainings)
    before = np.linspace(0, moving, n_shown - 1).round().astype(int)
    return sorted({*before.tolist(), len(trainings[0]) - 1})


# The grid of panels


def make_grid(n_panels: int) -> tuple[Figure, list[Axes]]:
    """Make panels of y over x with shared axes, in rows of three or four.

    The number that leaves fewer places empty is used; empty places come last.

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
    """Add the legend, in an empty place of the grid if there is one, or below it.

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


# Helpers of functions side by side


def _draw_truth(axes: Axes, x: Array, functions: Array) -> None:
    axes.set_title("Ground truth", fontsize=SIZE)
    for d, function in enumerate(functions):
        axes.plot(x, function, color=color_of(d))


def _choose_colors(x: Array, functions: Array, panel: FunctionPanel) -> list[str]:
    idle = panel.is_idle or (False,) * len(panel.curves)
    return [
        INK if is_idle else color_of(d) if d >= 0 else NO_FUNCTION
        for d, is_idle in zip(find_domains(x, functions, panel), idle, strict=True)
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


# Helpers of training


def _find_last_moving(moments: Sequence[Moment]) -> int:
    """The last moment at which the curves differ from their end."""
    end = moments[-1].curves
    gaps = [float(np.sqrt(np.mean((moment.curves - end) ** 2))) for moment in moments]
    return max(
        (place for place, gap in enumerate(gaps) if gap > MIN_MOVEMENT * np.ptp(end)), default=0
    )


def _make_legend(training: TrainingMoments) -> list[Line2D]:
    return [
        Line2D([], [], color=color_of(d), marker="o", markersize=4, linewidth=1.4, label=name)
        for d, name in enumerate(training.names)
    ]


def _draw_moment(axes: Axes, moment: Moment, training: TrainingMoments) -> None:
    axes.set_title(moment.title, fontsize=SIZE)
    for k, (curve, above) in enumerate(
        zip(moment.curves, _count_covered(moment.curves, training.limits), strict=True)
    ):
        axes.plot(
            moment.x,
            curve,
            color=color_of(training.domains[k]),
            linewidth=1.4,
            linestyle=(0, (4, 4 * (1 + above))) if above else "-",
            zorder=2,
        )
    _draw_points(axes, moment, training)


def _count_covered(curves: Array, limits: tuple[float, float]) -> list[int]:
    """How many earlier curves each curve covers; it is dashed so that they stay visible."""
    near = OVERLAP * (limits[1] - limits[0])
    return [
        sum(bool(np.abs(curve - other).max() < near) for other in curves[:k])
        for k, curve in enumerate(curves)
    ]


def _draw_points(axes: Axes, moment: Moment, training: TrainingMoments) -> None:
    """Draw all points in a random order, so that no colour covers the others."""
    points = moment.points[np.random.default_rng(0).permutation(len(moment.points))]
    colors = [color_of(training.domains[int(context)]) for context in points[:, 2]]
    axes.scatter(
        points[:, 0], points[:, 1], s=10, c=colors, edgecolors="white", linewidths=0.3, zorder=3
    )


def _draw_boundaries(axes: Axes, training: TrainingMoments) -> None:
    """Colour every place by the local model with the nearest prediction, and draw the points."""
    moment, limits = training.moments[-1], training.limits
    y = np.linspace(*limits, BOUNDARY_ROWS)
    nearest = np.abs(moment.curves[:, None] - y[:, None]).argmin(0)  #      (BOUNDARY_ROWS, G)
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
