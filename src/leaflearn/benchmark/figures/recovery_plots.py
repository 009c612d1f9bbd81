"""How often contexts are recovered, as a picture: a row for each task, a colour for each rule.

One picture for the screen has every number, and what the default should reach. The other fits on half a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from leaflearn.plot.style import FAINT, INK, color_of, styled

GAP, LANE = 0.2, 0.26  # inches: the space between two tasks, and that of a rule
SMALL_GAP, SMALL_LANE = 0.12, 0.08  # the same on half a page
TOLD = "oracle"  # the rule that knows the truth is black


@dataclass(frozen=True)
class Rate:
    """How often one rule recovered the contexts of one task.

    Parameters
    ----------
    task, rule
        Their names.
    rate, low, high
        The share of runs, and the ends of its interval.
    bar
        How often the default should succeed on this task, if that is stated.
    count
        In words, such as "7 of 20".
    about
        What the task is, in a few words.

    Examples
    --------
    >>> Rate("rare", "hard", rate=0.35, low=0.18, high=0.57, bar=0.95, count="7 of 20").count
    '7 of 20'
    """

    task: str
    rule: str
    rate: float
    low: float
    high: float
    bar: float | None
    count: str
    about: str = ""


@styled
def plot_rates(rates: Sequence[Rate]) -> Figure:
    """Draw the rates with their intervals, tasks from top to bottom in the order in which they come.

    Examples
    --------
    >>> default = Rate("rare", "default", rate=0.95, low=0.76, high=0.99, bar=0.95, count="19 of 20")
    >>> hard = Rate("rare", "hard", rate=0.35, low=0.18, high=0.57, bar=0.95, count="7 of 20")
    >>> [label.get_text() for label in plot_rates([default, hard]).axes[0].get_yticklabels()]
    ['rare']
    """
    tasks, rules = (
        list(dict.fromkeys(rate.task for rate in rates)),
        list(dict.fromkeys(rate.rule for rate in rates)),
    )
    by_task = [[rate for rate in rates if rate.task == task] for task in tasks]
    edges = np.cumsum([0.0, *(GAP + LANE * len(of_task) for of_task in by_task)])
    figure = Figure(figsize=(12.0, edges[-1] + 1.9), layout="constrained")
    axes = figure.subplots()
    for of_task, top, bottom in zip(by_task, edges, edges[1:], strict=False):
        _draw_row(axes, top, bottom, of_task[0].bar)
        for lane, rate in enumerate(of_task):
            _draw_rate(axes, rate, top + GAP / 2 + LANE * (lane + 0.5), _color(rate.rule, rules))
    axes.set_yticks(
        (edges[1:] + edges[:-1]) / 2,
        [f"{of_task[0].task}\n{of_task[0].about}".strip() for of_task in by_task],
    )
    axes.set(xlim=(0, 1), ylim=(edges[-1], 0))
    axes.set_title("How often the contexts were recovered, with 95 % intervals")
    _finish(axes)
    figure.legend(
        handles=_legend(rates, rules), loc="outside lower center", ncols=min(len(rules) + 1, 4)
    )
    return figure


@styled
def plot_rates_compactly(rates: Sequence[Rate]) -> Figure:
    """The same on half a page: small dots with their intervals, and no numbers.

    Examples
    --------
    >>> default = Rate("rare", "leaflearn", rate=0.95, low=0.76, high=0.99, bar=None, count="19 of 20", about="one is frequent")
    >>> hard = Rate("rare", "LEAF", rate=0.35, low=0.18, high=0.57, bar=None, count="7 of 20", about="one is frequent")
    >>> figure = plot_rates_compactly([default, hard])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()], [text.get_text() for text in figure.legends[0].get_texts()]
    (['rare: one is frequent'], ['leaflearn', 'LEAF'])
    """
    tasks, rules = (
        list(dict.fromkeys(rate.task for rate in rates)),
        list(dict.fromkeys(rate.rule for rate in rates)),
    )
    height = SMALL_GAP + SMALL_LANE * len(rules)  # of a task; a rule has the same lane in each
    figure = Figure(figsize=(10.0, height * len(tasks) + 1.2), layout="constrained")
    axes = figure.subplots()
    for rate in rates:
        y = (
            height * tasks.index(rate.task)
            + SMALL_GAP / 2
            + SMALL_LANE * (rules.index(rate.rule) + 0.5)
        )
        color = _color(rate.rule, rules)
        axes.plot(
            [rate.low, rate.high],
            [y, y],
            color=color,
            linewidth=1.4,
            alpha=0.6,
            solid_capstyle="butt",
            clip_on=False,
        )
        axes.plot(rate.rate, y, "o", color=color, markersize=5, clip_on=False, zorder=4)
    for place in range(1, len(tasks)):
        axes.axhline(height * place, color=FAINT, linewidth=0.8, alpha=0.7)
    about = {rate.task: f"{rate.task}: {rate.about}".removesuffix(": ") for rate in rates}
    axes.set_yticks(
        height * (np.arange(len(tasks)) + 0.5), [about[task] for task in tasks], fontsize=12
    )
    axes.set(
        xlim=(0, 1),
        ylim=(height * len(tasks), 0),
        xlabel="runs that recovered the contexts, with 95 % intervals",
    )
    _finish(axes)
    handles = [
        Line2D(
            [], [], color=_color(rule, rules), marker="o", markersize=5, linewidth=1.4, label=rule
        )
        for rule in rules
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure


def _color(rule: str, rules: Sequence[str]) -> str:
    return INK if rule == TOLD else color_of([name for name in rules if name != TOLD].index(rule))


def _draw_rate(axes: Axes, rate: Rate, y: float, color: str) -> None:
    axes.plot(
        [rate.low, rate.high],
        [y, y],
        color=color,
        linewidth=3,
        alpha=0.45,
        solid_capstyle="butt",
        clip_on=False,
    )
    axes.plot(rate.rate, y, "o", color=color, markersize=8, clip_on=False, zorder=4)
    axes.annotate(
        rate.count,
        (1.0, y),
        (14, 0),
        textcoords="offset points",
        color=color,
        va="center",
        fontsize=12,
        annotation_clip=False,
    )


def _draw_row(axes: Axes, top: float, bottom: float, bar: float | None) -> None:
    axes.axhline(top, color=FAINT, linewidth=0.8, alpha=0.7)
    if bar is not None:
        axes.plot(
            [bar, bar],
            [top + GAP / 4, bottom - GAP / 4],
            color=INK,
            linewidth=1.4,
            linestyle=(0, (2, 1.5)),
            zorder=3,
        )


def _finish(axes: Axes) -> None:
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(axis="x", color=FAINT, linewidth=0.8, alpha=0.5)
    axes.tick_params(axis="y", length=0, pad=10)  # a dot at 0 has room
    axes.spines["left"].set_visible(False)


def _legend(rates: Sequence[Rate], rules: Sequence[str]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=_color(rule, rules), marker="o", linewidth=3, label=rule)
        for rule in rules
    ]
    if any(rate.bar is not None for rate in rates):
        handles.append(
            Line2D(
                [],
                [],
                color=INK,
                linewidth=1.4,
                linestyle=(0, (2, 1.5)),
                label="what the default should reach",
            )
        )
    return handles
