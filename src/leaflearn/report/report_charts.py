"""The charts of the report: small, one idea each, so that they can be read on a phone. Contexts differ by colour, dashes and marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from leaflearn.report.column_curves import ColumnCurve
from leaflearn.report.inline_svg import INK, LINE, SOFT, color_of_context
from leaflearn.report.number_text import show_day
from leaflearn.report.safe_text import isolated

P = ParamSpec("P")
WIDTH, HEIGHT = 4.8, 3.2  # inches; 72 units of the picture each
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1.5, 1.5)),
    (0, (6, 2, 1.5, 2)),
    (0, (9, 3)),
    (0, (3, 1, 1, 1, 1, 1)),
)
MARKS = ("o", "s", "^", "D", "v", "P")
MOST_POINTS = 300  # of a curve over epochs
LONGEST_LABEL = 22  # characters beside an axis
FEWEST_MOMENTS = 3  # of training, to be drawn at all
STYLE: Any = {
    "font.size": 11.5,
    "axes.labelsize": 11.5,
    "lines.linewidth": 2.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "text.parse_math": False,  # a dollar in a name is a dollar
}


def _drawn_for_a_page(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


@_drawn_for_a_page
def draw_curve(curve: ColumnCurve, answer: str) -> Figure:
    """What each context answers along a number or a date. `answer` says what is answered.

    Examples
    --------
    >>> curve = ColumnCurve("dose", "number", [0.0, 1.0], np.full(2, 0.5), np.array([[0.0, 1.0], [1.0, 0.0]]), -1, 0.5)
    >>> len(draw_curve(curve, "effect").axes[0].lines)
    2
    """
    figure, axes = _begin(isolated(curve.column, LONGEST_LABEL + 10), answer)
    is_short = len(curve.values) <= 12
    for k in range(curve.answers.shape[1]):
        mark: dict[str, Any] = (
            {"marker": MARKS[k % len(MARKS)], "markersize": 6} if is_short else {}
        )
        axes.plot(
            curve.values,
            curve.answers[:, k],
            color=color_of_context(k),
            linestyle=DASHES[k % len(DASHES)],
            **mark,
        )
    axes.xaxis.set_major_locator(MaxNLocator(4 if curve.kind == "date" else 6))
    if curve.kind == "date":
        axes.xaxis.set_major_formatter(FuncFormatter(lambda day, _: show_day(day)))
    _mark_percent(axes.yaxis, curve)
    return figure


@_drawn_for_a_page
def draw_categories(curve: ColumnCurve, answer: str) -> Figure:
    """What each context answers for each value of a category, as marks on a line.

    Examples
    --------
    >>> curve = ColumnCurve("genre", "category", ["crime", "travel"], np.full(2, 0.5), np.array([[0.0, 1.0], [1.0, 0.0]]), -1, 0.5)
    >>> figure = draw_categories(curve, "rating")
    >>> [len(label.get_text()) for label in figure.axes[0].get_yticklabels()]
    [7, 8]
    """
    n_values, n_contexts = curve.answers.shape
    figure, axes = _begin(
        answer, "", height=max(1.6, 0.9 + 0.34 * n_values + 0.06 * n_values * n_contexts)
    )
    for k in range(n_contexts):
        place = np.arange(n_values) + 0.12 * (k - (n_contexts - 1) / 2)
        style: dict[str, Any] = {
            "color": color_of_context(k),
            "marker": MARKS[k % len(MARKS)],
            "markersize": 8,
            "linestyle": "none",
        }
        axes.plot(curve.answers[:, k], place, **style)
    axes.set_yticks(range(n_values), [isolated(value, LONGEST_LABEL) for value in curve.values])
    axes.set_ylim(n_values - 0.5, -0.5)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    _mark_percent(axes.xaxis, curve)
    return figure


@_drawn_for_a_page
def draw_history(history: Mapping[str, NDArray[Any]], column: str, label: str) -> Figure:
    """The loss over the epochs, or the share of the groups in each context.

    Examples
    --------
    >>> history = {"epoch": np.arange(1, 5), "usage": np.full((4, 2), 0.5)}
    >>> len(draw_history(history, "usage", "share of the groups").axes[0].lines)
    2
    """
    figure, axes = _begin("epoch", label)
    chosen = _thin(len(history["epoch"]))
    values = history[column][chosen]
    for k in range(1 if values.ndim == 1 else min(values.shape[1], len(DASHES))):
        color = INK if values.ndim == 1 else color_of_context(k)
        axes.plot(
            history["epoch"][chosen],
            values if values.ndim == 1 else values[:, k],
            color=color,
            linestyle=DASHES[k],
        )
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    if values.ndim == 2:
        axes.yaxis.set_major_formatter(FuncFormatter(_as_percent))
    return figure


@_drawn_for_a_page
def draw_starts(starts: Sequence[Mapping[str, Any]]) -> Figure:
    """The loss of every start over its epochs; the one that was kept is drawn thick.

    Examples
    --------
    >>> starts = [{"curve": np.array([2.0, 1.0, 0.5]), "kept": kept} for kept in (True, False)]
    >>> len(draw_starts(starts).axes[0].lines)
    2
    """
    figure, axes = _begin("epoch", "loss")
    for start in sorted(starts, key=lambda start: bool(start["kept"])):
        chosen = _thin(len(start["curve"]))
        style: dict[str, Any] = (
            {"color": INK, "linewidth": 3.0}
            if start["kept"]
            else {"color": SOFT, "linewidth": 1.2, "linestyle": DASHES[1]}
        )
        axes.plot(chosen + 1, np.asarray(start["curve"])[chosen], **style)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    return figure


@_drawn_for_a_page
def draw_selection(selection: Mapping[str, NDArray[Any]], chosen: int) -> Figure:
    """The error on held-out rows for each number of contexts that was tried, with a ring around the chosen one.

    Examples
    --------
    >>> selection = {"n_contexts": np.array([1, 2, 3]), "held_out": np.array([0.9, 0.1, 0.1])}
    >>> len(draw_selection(selection, 2).axes[0].lines)
    2
    """
    figure, axes = _begin("number of contexts", "error on held-out rows")
    axes.plot(selection["n_contexts"], selection["held_out"], color=INK, marker="o", markersize=6)
    here = selection["n_contexts"] == chosen
    ring: dict[str, Any] = {
        "markersize": 16,
        "markerfacecolor": "none",
        "markeredgecolor": color_of_context(0),
        "markeredgewidth": 2.5,
    }
    axes.plot(
        selection["n_contexts"][here],
        selection["held_out"][here],
        marker="o",
        linestyle="none",
        **ring,
    )
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(x=0.08)
    return figure


def _begin(x_label: str, y_label: str, height: float = HEIGHT) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=x_label, ylabel=y_label)
    return figure, axes


def _thin(n: int) -> NDArray[np.intp]:
    """At most so many moments, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).astype(np.intp))


def _mark_percent(axis: Any, curve: ColumnCurve) -> None:
    if curve.label >= 0:
        axis.set_major_formatter(FuncFormatter(_as_percent))


def _as_percent(value: float, _: Any) -> str:
    return f"{100 * value:.0f} %"
