"""The figures of the recovery suite: how often contexts are recovered, and the data of the tasks.

Rates have a row for each task and a colour for each rule. The large figure shows every number and
the required rate of the default; the compact one fits on half a page.

Tasks are shown side by side. A colour stands for a domain and for the context that matches it.
Functions of one input are curves with the data around them. Points in the plane with two labels
are filled or hollow, contexts side by side. Images have their labels below, in a row for each
context. For linear functions of many inputs, the target of each row is shown against the prediction
of its context's function, so that rows of groups in the right context lie on a line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from leaflearn.benchmark.datasets.domains import DomainSet
from leaflearn.benchmark.datasets.sampling import GroupedSample
from leaflearn.benchmark.datasets.sources import Array
from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.benchmark.recovery.summary import ORACLE, Summary
from leaflearn.benchmark.recovery.tasks import TASKS
from leaflearn.core.matching import match_contexts
from leaflearn.plot.style import FAINT, INK, PALETTE, color_of, styled

# Inches: between two tasks, and for a rule; the same in the compact figure
GAP, LANE = 0.2, 0.26
SMALL_GAP, SMALL_LANE = 0.12, 0.08

WIDTH, HEIGHT = 4.2, 3.3  # inches of the panel of a task
SMALL, LETTERS = 12, 11  # size of small letters, and how many of them fit into an inch
N_ACROSS, N_DOWN = 4, 2  # images in a panel
N_DOTS = 1200  # points of a cloud
CAPTION = (
    "Colour: the context of the group; black: a context that matches no domain; grey: not fitted."
)


def draw_rates(summary: Sequence[Summary]) -> Figure:
    """Draw the rates of all tasks and rules.

    Examples
    --------
    >>> line = Summary("rare", "hard", successes=7, runs=20, low=0.18, high=0.57, worst_error=0.4)
    >>> [label.get_text() for label in draw_rates([line]).axes[0].get_yticklabels()]
    ['rare\\none function 8 times as frequent']
    """
    about = {name: task.about for name, task in TASKS.items()}
    return plot_rates(
        [
            Rate(
                line.task,
                line.rule,
                line.rate,
                line.low,
                line.high,
                line.bar,
                f"{line.successes} of {line.runs}",
                about.get(line.task, ""),
            )
            for line in summary
        ]
    )


def draw_tasks(records: Sequence[dict[str, Any]]) -> Figure:
    """Draw the data of each task that has records, coloured by the contexts that the default found.

    Contexts are those of the first seed for which they are recorded.

    Examples
    --------
    >>> record = {"task": "functions", "rule": "hard", "seed": 0}
    >>> draw_tasks([record]).axes[0].get_title(loc="left")
    'functions'
    """
    recorded = {record["task"] for record in records}
    return plot_tasks(
        [
            _task_panel(name, [r for r in records if r["task"] == name])
            for name in TASKS
            if name in recorded
        ]
    )


@dataclass(frozen=True)
class Rate:
    """How often one rule recovers the contexts of one task.

    Parameters
    ----------
    task, rule
        Their names.
    rate, low, high
        The success rate, and the ends of its interval.
    bar
        The required success rate of the default on this task, if there is one.
    count
        The numbers in words, such as "7 of 20".
    about
        A short description of the task.

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
    """Draw the rates with their intervals, tasks from top to bottom in the given order.

    Examples
    --------
    >>> default = Rate("rare", "default", 0.95, low=0.76, high=0.99, bar=0.95, count="19 of 20")
    >>> hard = Rate("rare", "hard", 0.35, low=0.18, high=0.57, bar=0.95, count="7 of 20")
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
    """The same on half a page: small dots with their intervals, without numbers.

    Examples
    --------
    >>> about = "one is frequent"
    >>> default = Rate("rare", "leaflearn", 0.95, 0.76, 0.99, bar=None, count="", about=about)
    >>> hard = Rate("rare", "LEAF", 0.35, 0.18, 0.57, bar=None, count="", about=about)
    >>> figure = plot_rates_compactly([default, hard])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['rare: one is frequent']
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['leaflearn', 'LEAF']
    """
    tasks, rules = (
        list(dict.fromkeys(rate.task for rate in rates)),
        list(dict.fromkeys(rate.rule for rate in rates)),
    )
    height = SMALL_GAP + SMALL_LANE * len(rules)  # of a task; a rule has the same lane in all
    figure = Figure(figsize=(10.0, height * len(tasks) + 1.2), layout="constrained")
    axes = figure.subplots()
    for rate in rates:
        y = (
            height * tasks.index(rate.task)
            + SMALL_GAP / 2
            + SMALL_LANE * (rules.index(rate.rule) + 0.5)
        )
        color = _color(rate.rule, rules)
        _draw_interval(axes, rate, y, color, linewidth=1.4, alpha=0.6, markersize=5)
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


@dataclass(frozen=True, eq=False)
class TaskPanel:
    """The data of a task, and the contexts that were found.

    Parameters
    ----------
    name, words
        The title, and the small text below it.
    data, sample
        The domains, and the rows that were drawn from them.
    found
        The domain that matches the context of each group, -1 for none, shape (m,); None if nothing
        was fitted.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.sampling import sample_groups
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> data = DATASETS["functions"]()
    >>> sample, truth = sample_groups(data, n_groups=5, random_state=0)
    >>> TaskPanel("functions", "not fitted", data, sample).colors.shape
    (10,)
    """

    name: str
    words: str
    data: DomainSet
    sample: GroupedSample
    found: Array | None = None

    @property
    def colors(self) -> Array:
        """The colour of every row, shape (N,)."""
        if self.found is None:
            return np.full(len(self.sample.groups), FAINT)
        palette = np.array([*_palette(len(self.data)), INK])  # -1 is the last
        return np.asarray(palette[self.found[self.sample.groups]])


@styled
def plot_tasks(panels: Sequence[TaskPanel], n_columns: int = 4) -> Figure:
    """Draw a panel for each task.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.sampling import sample_groups
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> data = DATASETS["colored-digits"]()
    >>> sample, truth = sample_groups(data, n_groups=20, random_state=0)
    >>> figure = plot_tasks([TaskPanel("digits", "the truth", data, sample, truth.domain)])
    >>> figure.axes[0].get_title(loc="left")
    'digits'
    """
    n_columns = min(n_columns, len(panels))
    n_rows = -(-len(panels) // n_columns)
    width = max(WIDTH * n_columns, 2 * WIDTH)
    kinds = dict.fromkeys(_kind_of(panel.data) for panel in panels)
    lines = fill(" ".join([CAPTION, *(KINDS[kind][1] for kind in kinds)]), int(LETTERS * width))
    figure = Figure(
        figsize=(width, HEIGHT * n_rows + 0.3 + 0.22 * len(lines.splitlines())),
        layout="constrained",
    )
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        KINDS[_kind_of(panel.data)][0](axes, panel)
        axes.set_title(panel.name, pad=26)
        axes.text(0, 1.04, panel.words, transform=axes.transAxes, fontsize=SMALL, in_layout=False)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    figure.supxlabel(lines, fontsize=SMALL, x=0.01, ha="left")
    return figure


# Rates


def _color(rule: str, rules: Sequence[str]) -> str:
    if rule == ORACLE:
        return INK
    return color_of([name for name in rules if name != ORACLE].index(rule))


def _draw_rate(axes: Axes, rate: Rate, y: float, color: str) -> None:
    _draw_interval(axes, rate, y, color, linewidth=3, alpha=0.45, markersize=8)
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


def _draw_interval(
    axes: Axes, rate: Rate, y: float, color: str, linewidth: float, alpha: float, markersize: float
) -> None:
    axes.plot(
        [rate.low, rate.high],
        [y, y],
        color=color,
        linewidth=linewidth,
        alpha=alpha,
        solid_capstyle="butt",
        clip_on=False,
    )
    axes.plot(rate.rate, y, "o", color=color, markersize=markersize, clip_on=False, zorder=4)


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
    axes.tick_params(axis="y", length=0, pad=10)  # room for a dot at 0
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
                label="required of the default",
            )
        )
    return handles


# Tasks


def _task_panel(name: str, records: Sequence[dict[str, Any]]) -> TaskPanel:
    seeds = {
        record["seed"]: record.get("contexts") for record in records if record["rule"] == "default"
    }
    seed = min(
        (seed for seed, contexts in seeds.items() if contexts),
        default=min(record["seed"] for record in records),
    )
    task = TASKS[name]
    sample, truth = task.sample(seed)
    n_groups, contexts = len(truth.domain), seeds.get(seed)
    if contexts is None or len(contexts) != n_groups:  # a record of an earlier version of the task
        return TaskPanel(name, f"{n_groups:,} groups, seed {seed}", task.make(seed), sample)
    percent = 100 * allocation_agreement(contexts, truth.domain)
    return TaskPanel(
        name,
        f"{percent:.3g} % of {n_groups:,} groups right, seed {seed}",
        task.make(seed),
        sample,
        match_contexts(contexts, truth.domain)[np.asarray(contexts)],
    )


def _palette(n: int) -> list[str]:
    if n <= len(PALETTE):
        return list(PALETTE[:n])
    return [to_hex(color) for color in matplotlib.colormaps["turbo"](np.linspace(0.05, 0.95, n))]


def _kind_of(data: DomainSet) -> str:
    if data.classes is None:
        return "curves" if data.input_shape == (1,) else "many inputs"
    return "images" if len(data.input_shape) == 3 else "two labels"


def _draw_curves(axes: Axes, panel: TaskPanel) -> None:
    for domain, color in zip(panel.data, _palette(len(panel.data)), strict=True):
        order = np.argsort(domain.test.x[:, 0])
        axes.plot(
            domain.test.x[order, 0], domain.test.y[order], color=color, linewidth=0.9, zorder=1
        )
    axes.scatter(
        panel.sample.x[:, 0],
        panel.sample.y,
        s=20,
        c=panel.colors,
        alpha=0.6,
        linewidths=0,
        zorder=2,
    )
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.tick_params(labelsize=SMALL)


def _draw_against_own(axes: Axes, panel: TaskPanel) -> None:
    """The target of each row against the prediction of its context's function."""
    x = _flatten(panel.sample.x)
    own = _own_domains(panel)
    predictions = np.stack(
        [x @ np.linalg.lstsq(_flatten(d.test.x), d.test.y, rcond=None)[0] for d in panel.data],
        axis=1,
    )
    place = predictions[np.arange(len(x)), own] + 0.8 * np.ptp(panel.sample.y) * own
    axes.scatter(place, panel.sample.y, s=8, c=panel.colors, alpha=0.4, linewidths=0)
    axes.set(xticks=[], yticks=[])


def _draw_sides(axes: Axes, panel: TaskPanel) -> None:
    """The points of each context side by side; labels are filled or hollow."""
    x, filled, colors = (
        _flatten(panel.sample.x)[:N_DOTS],
        panel.sample.y[:N_DOTS] > 0,
        panel.colors[:N_DOTS],
    )
    across, up = x[:, 0] + 1.05 * np.ptp(x[:, 0]) * _own_domains(panel)[:N_DOTS], x[:, -1]
    axes.scatter(across[filled], up[filled], s=14, c=colors[filled], linewidths=0)
    axes.scatter(
        across[~filled],
        up[~filled],
        s=12,
        facecolors="none",
        edgecolors=list(colors[~filled]),
        linewidths=0.8,
    )
    axes.set(xticks=[], yticks=[])


def _own_domains(panel: TaskPanel) -> Array:
    """The domain that matches the context of each row; -1 for none, 0 if not fitted, (N,)."""
    groups = panel.sample.groups
    return (
        np.zeros(len(groups), dtype=int) if panel.found is None else np.asarray(panel.found[groups])
    )


def _draw_images(axes: Axes, panel: TaskPanel) -> None:
    """Rows of training images, each with its label in the colour of its group's context."""
    classes = panel.data.classes or ()
    for place, row in enumerate(_choose_images(panel)):
        down, across = divmod(place, N_ACROSS)
        left, top = 1.15 * across, 1.5 * down
        image = np.asarray(panel.sample.x[row : row + 1])[0]  #           (channels, height, width)
        axes.imshow(
            image.transpose(1, 2, 0),
            extent=(left, left + 1, top + 1, top),
            cmap="gray",
            vmin=0.0,
            vmax=1.0,
            interpolation="nearest",
        )
        label, color = classes[panel.sample.y[row]], panel.colors[row]
        axes.text(
            left + 0.5,
            top + 1.08,
            label,
            color=color,
            ha="center",
            va="top",
            fontsize=SMALL,
            weight="bold",
            parse_math=False,
        )
    axes.set(xlim=(-0.05, 1.15 * N_ACROSS - 0.1), ylim=(1.5 * N_DOWN, -0.05))
    axes.axis("off")


def _choose_images(panel: TaskPanel) -> Array:
    """The first rows of the first groups of each context, as many as fit."""
    _, first = np.unique(panel.sample.groups, return_index=True)  # row of each group (m,)
    own = _own_domains(panel)[first]
    n_each = N_ACROSS if panel.found is not None else N_ACROSS * N_DOWN
    return np.concatenate([first[own == domain][:n_each] for domain in range(len(panel.data))])[
        : N_ACROSS * N_DOWN
    ]


def _flatten(x: Any) -> Array:
    return np.asarray(x).reshape(len(x), -1)


KINDS: dict[str, tuple[Callable[[Axes, TaskPanel], None], str]] = {  # how to draw it, caption
    "curves": (_draw_curves, "Curves: the functions of the domains; points: the data."),
    "images": (_draw_images, "Images: the label of each is below it."),
    "two labels": (_draw_sides, "Filled and hollow points: the two labels, contexts side by side."),
    "many inputs": (
        _draw_against_own,
        "Linear functions of many inputs: each target (vertical) against the prediction of its "
        "context's function, contexts side by side.",
    ),
}
