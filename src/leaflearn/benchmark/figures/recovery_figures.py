"""The two pictures of `leaflearn bench recovery`: how often, and of what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.benchmark.figures.recovery_plots import Rate, plot_rates
from leaflearn.benchmark.figures.task_images import TaskPicture, plot_tasks
from leaflearn.benchmark.recovery.summary import Summary
from leaflearn.benchmark.recovery.tasks import TASKS
from leaflearn.core.matching import match_contexts


def draw_rates(summary: Sequence[Summary]) -> Figure:
    """The rates of all tasks and rules.

    Examples
    --------
    >>> line = Summary("rare", "hard", successes=7, runs=20, low=0.18, high=0.57, worst_error=0.4)
    >>> [label.get_text() for label in draw_rates([line]).axes[0].get_yticklabels()]
    ['rare\\none function 8 times as frequent']
    """
    about = {name: task.about for name, task in TASKS.items()}
    return plot_rates([
        Rate(s.task, s.rule, s.rate, s.low, s.high, s.bar, f"{s.successes} of {s.runs}", about.get(s.task, "")) for s in summary
    ])  # fmt: skip


def draw_tasks(records: Sequence[dict[str, Any]]) -> Figure:
    """The data of each task that has records, coloured by what the default found on the first seed of which that is recorded.

    Examples
    --------
    >>> record = {"task": "functions", "rule": "hard", "seed": 0}
    >>> draw_tasks([record]).axes[0].get_title(loc="left")
    'functions'
    """
    recorded = {record["task"] for record in records}
    return plot_tasks(
        [
            _picture(name, [r for r in records if r["task"] == name])
            for name in TASKS
            if name in recorded
        ]
    )


def _picture(name: str, records: Sequence[dict[str, Any]]) -> TaskPicture:
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
    if contexts is None or len(contexts) != n_groups:  # a record of the task as it was once
        return TaskPicture(name, f"{n_groups:,} groups, seed {seed}", task.make(seed), sample)
    words = f"{100 * allocation_agreement(contexts, truth.domain):.3g} % of {n_groups:,} groups right, seed {seed}"
    return TaskPicture(
        name,
        words,
        task.make(seed),
        sample,
        match_contexts(contexts, truth.domain)[np.asarray(contexts)],
    )
