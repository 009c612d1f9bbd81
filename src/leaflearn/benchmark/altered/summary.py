"""A summary of the runs on altered tables: contexts found, beside what an oracle finds.

The bars count where the oracle, which knows the models, reaches an adjusted Rand index of 0.95:
elsewhere the rows of a group do not determine its context. A run that failed counts as wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from leaflearn.benchmark.altered.run import ORACLE
from leaflearn.benchmark.altered.settings import ALTERED
from leaflearn.benchmark.altered.tasks import TASKS
from leaflearn.benchmark.groups.scoring import collect_reliability
from leaflearn.benchmark.groups.summary import Table, render_table
from leaflearn.benchmark.json_lines import Record
from leaflearn.benchmark.real.run import OK, OWN
from leaflearn.benchmark.real.summary import in_order

PICTURE = "altered.png"
HEAD = ("task", "oracle", "method", "contexts found", "ARI", "sure and wrong", "failed")
NOTE = (
    "A third of the groups of a real table is altered, or a column of the groups is hidden. "
    "Oracle: mean adjusted Rand index (ARI) of an oracle that knows the model of each context; "
    f"where it is at least {ALTERED.oracle_bar:g}, a method should reach {ALTERED.ari_bar:g}, and "
    f"find the right number of contexts in {100 * ALTERED.number_bar:.0f} % of the data sets. Sure "
    "and wrong: share of groups in a wrong context that is stated as at least 90 % probable."
)


@dataclass(frozen=True)
class TaskSummary:
    """One method on one task.

    Parameters
    ----------
    task, method
        What was run.
    oracle
        Mean adjusted Rand index of the oracle on the same seeds; None if it was not run.
    found
        Numbers of contexts found, one per data set without a failure.
    n_true
        The true number; None if all fits failed.
    aris
        The adjusted Rand index of each data set, 0 for failed fits.
    n_solvable, n_good, n_number_right
        Data sets in which the oracle reaches its bar; those among them in which the method reaches
        its own; and in which its number of contexts is right.
    sure_wrong
        Share of groups that are confidently wrong where several contexts were found, or None.
    n_failed
        Fits that failed.

    Examples
    --------
    >>> TaskSummary("bdf-unit", "leaflearn", 1.0, (2,), 2, (0.97,), 1, 1, 1, 0.0, 0).n_good
    1
    """

    task: str
    method: str
    oracle: float | None
    found: tuple[int, ...]
    n_true: int | None
    aris: tuple[float, ...]
    n_solvable: int
    n_good: int
    n_number_right: int
    sure_wrong: float | None
    n_failed: int


def summarize(records: Iterable[Record]) -> list[TaskSummary]:
    """Summarize runs by task and method, in their usual order.

    Examples
    --------
    >>> score = {"n_found": 2, "n_true": 2, "ari": 0.96, "n_groups": 9, "n_sure_wrong": 0}
    >>> record = {"task": "bdf-unit", "seed": 0, "outcome": "ok", "contexts": score}
    >>> (line,) = summarize([record | {"method": name} for name in ("oracle", "leaflearn")])
    >>> line.oracle, line.n_solvable, line.n_good, line.n_number_right
    (0.96, 1, 1, 1)
    """
    runs: dict[tuple[str, str], dict[int, Record]] = {}
    for record in records:
        runs.setdefault((record["task"], record["method"]), {})[record["seed"]] = record
    tasks = in_order({task for task, _ in runs}, TASKS)
    methods = in_order({method for _, method in runs if method != ORACLE}, OWN)
    return [
        _summarize_one(task, method, runs[task, method], runs.get((task, ORACLE), {}))
        for task in tasks
        for method in methods
        if (task, method) in runs
    ]


def _summarize_one(
    task: str, method: str, by_seed: dict[int, Record], oracles: dict[int, Record]
) -> TaskSummary:
    scores = {seed: run.get("contexts") for seed, run in by_seed.items()}
    finished = [score for score in scores.values() if score]
    best = {s: r["contexts"]["ari"] for s, r in oracles.items() if "contexts" in r and s in by_seed}
    is_solvable = [seed for seed, ari in best.items() if ari >= ALTERED.oracle_bar]
    solvable = [score for seed in is_solvable if (score := scores[seed])]
    several = [score for score in finished if score["n_found"] > 1]
    n_groups = sum(score["n_groups"] for score in several)
    return TaskSummary(
        task,
        method,
        float(np.mean(list(best.values()))) if best else None,
        tuple(score["n_found"] for score in finished),
        finished[0]["n_true"] if finished else None,
        tuple(score["ari"] if score else 0.0 for score in scores.values()),
        len(is_solvable),
        sum(score["ari"] >= ALTERED.ari_bar for score in solvable),
        sum(score["n_found"] == score["n_true"] for score in solvable),
        sum(score["n_sure_wrong"] for score in several) / n_groups if n_groups else None,
        sum(run["outcome"] != OK for run in by_seed.values()),
    )


def describe(lines: Sequence[TaskSummary]) -> list[str]:
    """Each method against the bars, as a sentence.

    Examples
    --------
    >>> line = TaskSummary("bdf-unit", "leaflearn", 1.0, (2,), 2, (0.97,), 1, 1, 1, 0.0, 0)
    >>> print(describe([line])[0])
    leaflearn: where the oracle reaches 0.95, an ARI of 0.9 in 1 of 1 data sets (100 %), and the \
right number of contexts in 1 (100 %; bar 80 %).
    """
    found = []
    for method in dict.fromkeys(line.method for line in lines):
        own = [line for line in lines if line.method == method]
        n = sum(line.n_solvable for line in own)
        if not n:
            found.append(f"{method}: the oracle reaches {ALTERED.oracle_bar:g} in no data set.")
            continue
        good, right = sum(line.n_good for line in own), sum(line.n_number_right for line in own)
        found.append(
            f"{method}: where the oracle reaches {ALTERED.oracle_bar:g}, an ARI of "
            f"{ALTERED.ari_bar:g} in {good} of {n} data sets ({100 * good / n:.0f} %), and the "
            f"right number of contexts in {right} ({100 * right / n:.0f} %; bar "
            f"{100 * ALTERED.number_bar:.0f} %)."
        )
    return found


def make_table(lines: Sequence[TaskSummary]) -> Table:
    """A row for each task and method, below the head.

    Examples
    --------
    >>> line = TaskSummary("bdf-unit", "leaflearn", 1.0, (2, 1), 2, (0.9, 0.1), 2, 1, 1, 0.0, 0)
    >>> make_table([line])[1]
    ('bdf-unit', '1.00', 'leaflearn', '2, 1', '0.50', '0.0 %', '0')
    """
    return [
        HEAD,
        *(
            (
                line.task,
                "" if line.oracle is None else f"{line.oracle:.2f}",
                line.method,
                ", ".join(map(str, line.found)),
                f"{np.mean(line.aris):.2f}",
                "" if line.sure_wrong is None else f"{100 * line.sure_wrong:.1f} %",
                str(line.n_failed),
            )
            for line in lines
        ),
    ]


def as_json(records: Sequence[Record]) -> dict[str, Any]:
    """The whole summary as what JSON can hold.

    Examples
    --------
    >>> as_json([])
    {'tasks': [], 'reliability': {}}
    """
    return {
        "tasks": [asdict(line) for line in summarize(records)],
        "reliability": {
            method: [asdict(b) for b in collect_reliability(scores)]
            for method, scores in _scores_of(records).items()
        },
    }


def render_markdown(records: Sequence[Record]) -> str:
    """The summary as a Markdown page that shows the figure beside it.

    Examples
    --------
    >>> render_markdown([]).splitlines()[0]
    '# Real tables with known contexts'
    """
    lines = summarize(records)
    parts = ["# Real tables with known contexts", NOTE, *describe(lines)]
    if lines:
        parts += [render_table(make_table(lines)), f"![Agreement with the truth]({PICTURE})"]
    rows: Table = [("method", "groups", "stated", "right")]
    for method, scores in _scores_of(records).items():
        rows += [
            (method, str(b.n_groups), f"{b.stated:.3f}", f"{b.right:.3f}")
            for b in collect_reliability(scores)
        ]
    if len(rows) > 1:
        parts += ["## Reliability of stated probabilities", render_table(rows)]
    return "\n\n".join(parts) + "\n"


def _scores_of(records: Iterable[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        if "contexts" in record:
            found.setdefault(record["method"], []).append(record["contexts"])
    return found
