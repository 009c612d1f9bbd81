"""A summary of the records of the recovery suite: success rates, errors, costs and warnings.

A run succeeds if its errors stay below the threshold of its task. Some data sets are too small for
that even if the truth is known. If the oracle misses the threshold itself, a run also succeeds if
its error in no domain is more than 1.5 times the oracle's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from leaflearn.benchmark.json_lines import Record
from leaflearn.benchmark.recovery import settings
from leaflearn.benchmark.recovery.run import RULES
from leaflearn.benchmark.recovery.tasks import TASKS

ORACLE = "oracle"  # the rule that is given the domains
HEAD = (
    "task", "rule", "recovered", "95 % interval", "bar", "worst error", "of the oracle's", "cost",
    "failures flagged", "successes flagged", "counted",
)  # fmt: skip
NOTE = (
    "Recovered: below the task's threshold or, if the oracle misses it too, within 1.5 times the "
    "oracle's error in every domain. Worst error: of the worst domain, mean over seeds. Of the "
    "oracle's: the ratio of these means, on the seeds that the oracle ran on too; their number is "
    "in brackets. Cost: processor seconds, in units of one plain hard run. Flagged: did not "
    "converge, or gave a warning. Counted: ended with as many contexts as there are domains."
)


@dataclass(frozen=True)
class Summary:
    """All runs of one rule on one task; None stands for what cannot be computed.

    Examples
    --------
    >>> Summary("rare", "hard", successes=7, runs=20, low=0.18, high=0.57, worst_error=0.4).rate
    0.35
    """

    task: str
    rule: str
    successes: int
    runs: int
    low: float  # Wilson's interval of the rate
    high: float
    worst_error: float  # mean over seeds of the worst domain's error
    oracle_ratio: float | None = None  # of the worst errors to the oracle's, on common seeds
    oracle_runs: int = 0  # number of common seeds
    cost: float | None = None  # seconds, in units of a single run of the printed rule
    failures_flagged: int = 0  # failures that did not converge or gave a warning
    successes_flagged: int = 0
    counted_right: float | None = None  # share of runs with as many contexts as domains
    bar: float | None = None  # required success rate of the default

    @property
    def rate(self) -> float:
        """Share of runs that succeeded."""
        return self.successes / self.runs


def succeeded(record: Record, oracle: Record | None) -> bool:
    """Did the run recover the contexts, as far as its data allow?

    Examples
    --------
    >>> run = {"recovered": False, "errors": [0.20, 0.10]}
    >>> oracle = {"recovered": False, "errors": [0.16, 0.08]}
    >>> succeeded(run, None), succeeded(run, oracle), succeeded(run, oracle | {"recovered": True})
    (False, True, False)
    """
    if record["recovered"] or oracle is None or oracle["recovered"]:
        return bool(record["recovered"])
    return all(
        error <= settings.RECOVERY.max_oracle_ratio * best
        for error, best in zip(record["errors"], oracle["errors"], strict=True)
    )


def summarize(records: Iterable[Record]) -> list[Summary]:
    """Summarise runs by task and rule, in the order of `TASKS` and `RULES`; other names come last.

    The oracle gets a line only if it ran on every seed that the default ran on. Otherwise it ran
    where the default failed, on the hardest data, and its rate would be misleading.

    Examples
    --------
    >>> run = {"task": "rare", "seed": 0, "errors": [0.1, 0.2], "recovered": False}
    >>> run |= {"converged": True, "warnings": 0}
    >>> runs = [{**run, "rule": "hard", "seconds": 3.0}, {**run, "rule": "default", "seconds": 6.0}]
    >>> [(line.rule, line.worst_error, line.cost) for line in summarize(runs)]
    [('default', 0.2, 2.0), ('hard', 0.2, 1.0)]
    """
    runs: dict[tuple[str, str], dict[int, Record]] = {}
    for record in records:
        runs.setdefault((record["task"], record["rule"]), {})[record["seed"]] = record
    lines = [
        _summarize_one(
            task,
            rule,
            by_seed,
            runs.get((task, ORACLE), {}),
            runs.get((task, settings.RECOVERY.cost_unit), {}),
        )
        for (task, rule), by_seed in runs.items()
        if rule != ORACLE or set(runs.get((task, "default"), {})) <= set(by_seed)
    ]
    return sorted(
        lines,
        key=lambda line: (_place(line.task, TASKS), line.task, _place(line.rule, RULES), line.rule),
    )


def as_cells(line: Summary) -> tuple[str, ...]:
    """A summary as the cells of a table with the columns of `HEAD`.

    Examples
    --------
    >>> line = Summary("rare", "hard", successes=7, runs=20, low=0.18, high=0.57, worst_error=0.4)
    >>> as_cells(line)[:6]
    ('rare', 'hard', '7 of 20', '18 to 57 %', '', '0.400')
    """
    failures = line.runs - line.successes
    return (
        line.task,
        line.rule,
        f"{line.successes} of {line.runs}",
        f"{100 * line.low:.0f} to {100 * line.high:.0f} %",
        f"{100 * line.bar:.0f} %" if line.bar is not None and line.rule == "default" else "",
        f"{line.worst_error:.3f}",
        "" if line.oracle_ratio is None else f"{line.oracle_ratio:.2f} ({line.oracle_runs})",
        "" if line.cost is None else f"{line.cost:.1f}",
        f"{line.failures_flagged} of {failures}" if failures else "",
        f"{line.successes_flagged} of {line.successes}" if line.successes else "",
        "" if line.counted_right is None else f"{100 * line.counted_right:.0f} %",
    )


def render_markdown(lines: Sequence[Summary]) -> str:
    """The summary as a Markdown page that shows the two figures beside it.

    Examples
    --------
    >>> line = Summary("rare", "hard", successes=7, runs=20, low=0.18, high=0.57, worst_error=0.4)
    >>> print(render_markdown([line]).splitlines()[4][:52])
    | rare | hard | 7 of 20 | 18 to 57 % |  | 0.400 |  |
    """
    rows = [HEAD, ("---",) * len(HEAD), *map(as_cells, lines)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    rates = "![How often the contexts were recovered](recovery.png)"
    tasks = "![The data of each task](tasks.png)"
    title = "# How often the contexts are recovered"
    return f"{title}\n\n{table}\n\n{NOTE}\n\n{rates}\n\n{tasks}\n"


def _place(name: str, known: Iterable[str]) -> int:
    names = list(known)
    return names.index(name) if name in names else len(names)


def _summarize_one(
    task: str,
    rule: str,
    by_seed: dict[int, Record],
    oracles: dict[int, Record],
    units: dict[int, Record],
) -> Summary:
    runs = list(by_seed.values())
    is_success = [
        succeeded(run, None if rule == ORACLE else oracles.get(run["seed"])) for run in runs
    ]
    is_flagged = [not run["converged"] or run["warnings"] > 0 for run in runs]
    flagged = Counter(success for flag, success in zip(is_flagged, is_success, strict=True) if flag)
    interval = binomtest(sum(is_success), len(runs)).proportion_ci(
        confidence_level=settings.RECOVERY.confidence_level, method="wilson"
    )
    common = [seed for seed in by_seed if seed in oracles]
    ratio = None
    if common:
        ours, best = ([of_rule[seed] for seed in common] for of_rule in (by_seed, oracles))
        ratio = _ratio(_worst_error(ours), _worst_error(best))
    counts = [
        run["n_contexts_found"] == len(run["errors"]) for run in runs if "n_contexts_found" in run
    ]
    return Summary(
        task,
        rule,
        sum(is_success),
        len(runs),
        float(interval.low),
        float(interval.high),
        _worst_error(runs),
        oracle_ratio=ratio,
        oracle_runs=len(common),
        cost=_ratio(_mean_seconds(runs), _mean_seconds(list(units.values()))) if units else None,
        failures_flagged=flagged[False],
        successes_flagged=flagged[True],
        counted_right=float(np.mean(counts)) if counts else None,
        bar=TASKS[task].bar if task in TASKS else None,
    )


def _worst_error(runs: Sequence[Record]) -> float:
    return float(np.mean([max(run["errors"]) for run in runs]))


def _mean_seconds(runs: Sequence[Record]) -> float:
    return float(np.mean([run["seconds"] for run in runs]))


def _ratio(value: float, unit: float) -> float | None:
    return value / unit if unit else None
