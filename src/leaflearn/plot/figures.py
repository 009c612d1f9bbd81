"""Figures: fitted curves, the allocation over the epochs, and images with their predictions.

Each function returns a matplotlib `Figure` and changes no global state, so it works on a server and
in a notebook. A colour always stands for a domain, or for the context that matches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullLocator, PercentFormatter, StrMethodFormatter
from numpy.typing import NDArray

from leaflearn.plot.style import FAINT, INK, color_of, styled

Array = NDArray[Any]
WRONG = "#B00020"


@dataclass(frozen=True, eq=False)
class Panel:
    """The curves of one learner.

    Parameters
    ----------
    title
        The title of the panel.
    curves
        The predictions on the grid, shape (N, K).
    domains
        The domain that each curve matches, -1 for none, shape (K,).
    point_domains
        The domain that each data point was allocated to, shape (n_points,); None leaves the
        points grey.

    Examples
    --------
    >>> Panel("One model", curves=np.zeros((5, 1)), domains=[-1]).title
    'One model'
    """

    title: str
    curves: Array
    domains: Sequence[int] | Array
    point_domains: Array | None = None


@styled
def plot_curves(
    x: Array,
    points: tuple[Array, Array],
    panels: Sequence[Panel],
    names: Sequence[str],
    n_columns: int = 2,
) -> Figure:
    """Draw the curves of several learners over the grid `x` (N,), with their training points.

    Examples
    --------
    >>> x = np.linspace(0, 1, 5)
    >>> truth = Panel("Truth", np.stack([x, -x], axis=1), [0, 1])
    >>> pooled = Panel("Pooled", 0 * x[:, None], [-1])
    >>> figure = plot_curves(x, (x, x), [truth, pooled], ["up", "down"])
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Truth', 'Pooled']
    """
    n_rows = -(-len(panels) // n_columns)
    figure = Figure(figsize=(6.0 * n_columns, 3.9 * n_rows + 0.6), layout="constrained")
    grid = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        _draw_panel(axes, x, points, panel)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    for axes in grid[-1]:
        axes.set_xlabel("x")
    for axes in grid[:, 0]:
        axes.set_ylabel("y", rotation=0, labelpad=12)
    figure.legend(
        handles=_curve_legend(names, panels), loc="outside lower center", ncols=len(names) + 2
    )
    return figure


@styled
def plot_allocation(
    found: Array, truth: Array, names: Sequence[str], epochs: Array | None = None
) -> Figure:
    """Draw the context of every group over the epochs, and below it the share that is right.

    Parameters
    ----------
    found
        The domain that matches the context of each group after every epoch, -1 for none, shape
        (T, n_groups).
    truth
        The domain of each group, shape (n_groups,).
    names
        The names of the domains.
    epochs
        The number of each epoch, shape (T,); None means 1, 2, ...

    Examples
    --------
    >>> figure = plot_allocation(np.array([[0, 0], [0, 1]]), np.array([0, 1]), ["up", "down"])
    >>> figure.axes[1].lines[0].get_ydata()
    array([0.5, 1. ])
    """
    epochs = np.arange(1, len(found) + 1) if epochs is None else epochs
    right = (found == truth).mean(axis=1)  #                                    (T,)
    figure = Figure(figsize=(11.0, 7.2), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    _draw_stripes(above, found, truth, names, epochs)
    below.plot(epochs, right, color=INK, clip_on=False, zorder=3)
    below.set(
        xlabel="epoch, on a logarithmic scale",
        ylim=(0, 1),
        xscale="log",
        xlim=(epochs[0] - 0.5, epochs[-1] + 0.5),
    )
    below.set_title(f"Groups in the right context: {right[-1]:.1%} at the end")
    below.set_yticks([0.0, 0.5, 1.0])
    below.yaxis.set_major_formatter(PercentFormatter(1.0))
    below.set_xticks(
        [
            tick
            for power in range(7)
            for tick in (10**power, 2 * 10**power, 5 * 10**power)
            if tick <= epochs[-1]
        ]
    )
    below.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    below.xaxis.set_minor_locator(NullLocator())
    below.grid(axis="y", color=FAINT, linewidth=0.8, alpha=0.6)
    return figure


@styled
def plot_answers(
    images: Array, answers: Array, truths: Array, names: Sequence[str], n_columns: int = 8
) -> Figure:
    """Draw images, and below each the prediction of every context.

    A wrong prediction is red and followed by the true label.

    Parameters
    ----------
    images
        Colour images between 0 and 1, shape (n, 3, height, width).
    answers, truths
        The prediction of the context that matches each domain, and the true label, as text, shape
        (n, n_domains).
    names
        The names of the domains.

    Examples
    --------
    >>> answers, truths = np.array([["7", "red"]]), np.array([["1", "red"]])
    >>> figure = plot_answers(np.zeros((1, 3, 8, 8)), answers, truths, ["digit", "color"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['7, not 1', 'red']
    """
    n_columns = min(n_columns, len(images))
    n_rows = -(-len(images) // n_columns)
    height = 2.2 * n_rows + 0.7
    figure = Figure(figsize=(1.6 * n_columns, height))
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    figure.subplots_adjust(
        left=0.02, right=0.98, bottom=0.75 / height, top=1 - 0.7 / height, hspace=0.6
    )
    for axes in grid.flat:
        axes.axis("off")
    for axes, image, answer, truth in zip(grid.flat, images, answers, truths, strict=False):
        _draw_answers(axes, image, answer, truth)
    n_wrong = int((answers != truths).sum())
    title = f"Predictions of each context: {', '.join(names)} ({n_wrong} of {answers.size} wrong)"
    figure.suptitle(title, x=0.02, y=1 - 0.15 / height, ha="left", va="top", fontsize=16)
    return figure


def _draw_panel(axes: Axes, x: Array, points: tuple[Array, Array], panel: Panel) -> None:
    colors = FAINT if panel.point_domains is None else [color_of(d) for d in panel.point_domains]
    axes.scatter(*points, s=34, c=colors, alpha=0.3, linewidths=0)
    for curve, domain in zip(panel.curves.T, panel.domains, strict=True):
        axes.plot(x, curve, color=color_of(domain))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title(panel.title)


def _curve_legend(names: Sequence[str], panels: Sequence[Panel]) -> list[Line2D]:
    handles = [Line2D([], [], color=color_of(d), label=name) for d, name in enumerate(names)]
    if any(domain < 0 for panel in panels for domain in panel.domains):
        handles.append(Line2D([], [], color=INK, label="pooled model"))
    return [*handles, Line2D([], [], color=FAINT, marker="o", linestyle="", label="data")]


def _draw_stripes(
    axes: Axes, found: Array, truth: Array, names: Sequence[str], epochs: Array
) -> None:
    order = np.argsort(truth, kind="stable")  # groups of one domain next to each other
    colors = ListedColormap([FAINT, *(color_of(d) for d in range(len(names)))])
    # A mesh instead of an image: epochs get narrower on a logarithmic axis.
    edges = np.append(epochs - 0.5, epochs[-1] + 0.5)
    axes.pcolormesh(
        edges, np.arange(len(truth) + 1), found.T[order], cmap=colors, vmin=-1, vmax=len(names) - 1
    )
    axes.invert_yaxis()
    ends = np.cumsum(np.bincount(truth, minlength=len(names)))
    for end in ends[:-1]:
        axes.axhline(end, color="white", linewidth=3)
    axes.set_yticks((np.array([0, *ends[:-1]]) + ends) / 2, names)
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(f"The context of each of {len(truth):,} groups, sorted by hidden domain")


def _draw_answers(axes: Axes, image: Array, answers: Array, truths: Array) -> None:
    axes.imshow(image.transpose(1, 2, 0), vmin=0.0, vmax=1.0, interpolation="nearest")
    for line, (answer, truth) in enumerate(zip(answers, truths, strict=True)):
        is_right = answer == truth
        text = str(answer) if is_right else f"{answer}, not {truth}"
        place: Any = {"transform": axes.transAxes, "ha": "center", "va": "top"}
        axes.text(
            0.5,
            -0.05 - 0.2 * line,
            text,
            color=INK if is_right else WRONG,
            weight="normal" if is_right else "bold",
            **place,
        )
