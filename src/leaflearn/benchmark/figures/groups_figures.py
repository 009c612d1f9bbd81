"""Figures of contexts whose truth is known: simulated groups, and altered real tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leaflearn.benchmark.altered.settings import ALTERED
from leaflearn.benchmark.altered.summary import TaskSummary
from leaflearn.benchmark.groups.settings import GROUPS
from leaflearn.benchmark.groups.summary import (
    ScenarioSummary,
    reliability_of,
    summarize,
)
from leaflearn.benchmark.json_lines import Record
from leaflearn.plot.style import FAINT, INK, color_of, styled

ROW = 0.32  # inches of a task
SMALL = 11
DISTANCE = "distance of contexts in effect SDs"


@styled
def draw_groups(records: Sequence[Record]) -> Figure:
    """Draw what was found on simulated groups.

    Panels: the share of data sets with the right number of contexts, against the distance of the
    contexts in standard deviations (SD) of the effects (0: degree only); the adjusted Rand index,
    with its ceiling dashed; stated probabilities against rightness.

    Examples
    --------
    >>> figure = draw_groups([])
    >>> [axes.get_title(loc="left") for axes in figure.axes][1:]
    ['agreement (dashed: best possible)', 'reliability']
    """
    lines = summarize(records)
    methods = list(dict.fromkeys(line.method for line in lines))
    figure = Figure(figsize=(13, 4.4), layout="constrained")
    rates, agreement, reliability = figure.subplots(1, 3)
    for place, method in enumerate(methods):
        own = [line for line in lines if line.method == method]
        color = color_of(place)
        for answers, style in (("values", "-"), ("yes-no", ":")):
            curve = _by_separation([line for line in own if line.scenario.endswith(answers)])
            if not curve:
                continue
            apart = sorted(s for s in curve if s > 0)
            shares = {s: _share_right(curve[s]) for s in curve}
            rates.plot(
                apart,
                [shares[s] for s in apart],
                style,
                marker="o",
                color=color,
                label=f"{method}, {answers}",
            )
            if 0 in curve:  # another question, so no line leads there
                rates.plot([0], [shares[0]], marker="o" if style == "-" else "s", color=color)
            found = [_mean([line.ari for line in curve[s]]) for s in apart]
            best = [_mean([line.best_ari for line in curve[s]]) for s in apart]
            agreement.plot(apart, found, style, marker="o", color=color)
            agreement.plot(apart, best, "--", color=FAINT, zorder=1)
    rates.axhline(GROUPS.one_context_bar, color=FAINT, linewidth=1)
    _finish(rates, "number right (0: degree only)", DISTANCE)
    _finish(agreement, "agreement (dashed: best possible)", DISTANCE)
    rates.set_ylabel("share of data sets", fontsize=SMALL)
    agreement.set_ylabel("adjusted Rand index", fontsize=SMALL)
    reliability.plot([0.4, 1], [0.4, 1], color=FAINT, linewidth=1)
    for method, bins in reliability_of(records).items():
        stated, right = [b.stated for b in bins], [b.right for b in bins]
        reliability.plot(stated, right, marker="o", color=color_of(methods.index(method)))
    _finish(reliability, "reliability", "stated probability of the context")
    reliability.set_ylabel("share of groups in the right context", fontsize=SMALL)
    if methods:
        figure.legend(*rates.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


@styled
def draw_altered(lines: Sequence[TaskSummary]) -> Figure:
    """Draw the agreement of every method with the truth on altered tables, and the oracle's.

    Examples
    --------
    >>> line = TaskSummary("bdf-unit", "leaflearn", 1.0, (2,), 2, (0.97,), 1, 1, 1, 0.0, 0)
    >>> [label.get_text() for label in draw_altered([line]).axes[0].get_yticklabels()]
    ['bdf-unit']
    """
    tasks = list(dict.fromkeys(line.task for line in lines))
    methods = list(dict.fromkeys(line.method for line in lines))
    figure = Figure(figsize=(8, ROW * len(tasks) + 1.8), layout="constrained")
    axes = figure.subplots()
    for line in lines:
        row, place = tasks.index(line.task), methods.index(line.method)
        if line.oracle is not None:
            axes.plot(line.oracle, row, marker="|", markersize=15, color=INK, linestyle="")
        axes.plot(
            np.mean(line.aris), row, marker="o", color=color_of(place), linestyle="", alpha=0.8
        )
    for place, method in enumerate(methods):
        axes.plot([], [], marker="o", linestyle="", color=color_of(place), label=method)
    axes.plot([], [], marker="|", markersize=12, linestyle="", color=INK, label="oracle")
    axes.axvline(ALTERED.ari_bar, color=FAINT, linewidth=1)
    axes.set(xlim=(-0.15, 1.05), ylim=(len(tasks) - 0.5, -0.5))
    axes.set_yticks(range(len(tasks)), tasks, fontsize=SMALL)
    axes.set_xlabel("adjusted Rand index, mean over data sets", fontsize=SMALL)
    figure.legend(loc="outside upper center", ncols=4, fontsize=SMALL)
    return figure


def _by_separation(lines: Sequence[ScenarioSummary]) -> dict[int, list[ScenarioSummary]]:
    """Lines by the distance of the contexts, which is 0 where groups differ by degree."""
    found: dict[int, list[ScenarioSummary]] = {}
    for line in lines:
        study, _, separation, _ = line.scenario.split("/")
        found.setdefault(int(separation) if study == "kind" else 0, []).append(line)
    return found


def _share_right(lines: Sequence[ScenarioSummary]) -> float:
    return sum(line.n_number_right for line in lines) / sum(line.n_runs for line in lines)


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


def _finish(axes: Axes, title: str, label: str) -> None:
    axes.set_title(title)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel(label, fontsize=SMALL)
