"""What the records of the recovery suite say: how often, how well, at what cost, and whether failures were told.

A run succeeds when it stays below the threshold of its task. Some data sets are too small for that even when the truth is known. Where the
oracle misses the threshold itself, a run also succeeds when no domain's error is more than 1.5 times the oracle's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from leaflearn.benchmark.recovery.records import Record
from leaflearn.benchmark.recovery.run import RULES
from leaflearn.benchmark.recovery.tasks import TASKS

AS_GOOD = 1.5  # times the oracle's error: as good as can be asked for
ORACLE, UNIT = "oracle", "hard"  # what errors and costs are compared with


@dataclass(frozen=True)
class Summary:
    """All runs of one rule on one task; None where there is nothing to say it of.

    Examples
    --------
    >>> Summary("rare", "hard", successes=7, runs=20, low=0.18, high=0.57, worst_error=0.4).rate
    0.35
    """

    task: str
    rule: str
    successes: int
    runs: int
    low: float  # Wilson's 95 % interval of the rate
    high: float
    worst_error: float  # mean over seeds of the worst domain's error
    oracle_ratio: float | None = None  # of the worst errors to the oracle's, on seeds that both ran
    oracle_runs: int = 0  # how many seeds these are
    cost: float | None = None  # seconds, in units of a plain run of the printed rule
    failures_flagged: int = 0  # failures that did not converge or warned
    successes_flagged: int = 0
    counted_right: float | None = (
        None  # share of runs that ended with as many contexts as there are domains
    )
    bar: float | None = None  # how often the default should succeed

    @property
    def rate(self) -> float:
        """Share of runs that succeeded."""
        return self.successes / self.runs


def succeeded(record: Record, oracle: Record | None) -> bool:
    """Did the run recover the contexts, as well as that can be done on its data?

    Examples
    --------
    >>> run, oracle = {"recovered": False, "errors": [0.20, 0.10]}, {"recovered": False, "errors": [0.16, 0.08]}
    >>> succeeded(run, None), succeeded(run, oracle), succeeded(run, oracle | {"recovered": True})
    (False, True, False)
    """
    if record["recovered"] or oracle is None or oracle["recovered"]:
        return bool(record["recovered"])
    return all(
        error <= AS_GOOD * best
        for error, best in zip(record["errors"], oracle["errors"], strict=True)
    )


def summarize(records: Iterable[Record]) -> list[Summary]:
    """Summarise runs by task and rule, in the order of `TASKS` and `RULES`, with names unknown there behind.

    The oracle gets a line of its own only where it ran on every seed that the default ran on. Else it ran where the default failed, on
    the hardest data, and its rate would mislead.

    Examples
    --------
    >>> run = {"task": "rare", "errors": [0.1, 0.2], "converged": True, "warnings": 0, "recovered": False}
    >>> slow, quick = {**run, "rule": "default", "seed": 0, "seconds": 6.0}, {**run, "rule": "hard", "seed": 0, "seconds": 3.0}
    >>> [(line.rule, line.worst_error, line.cost) for line in summarize([quick, slow])]
    [('default', 0.2, 2.0), ('hard', 0.2, 1.0)]
    """
    runs: dict[tuple[str, str], dict[int, Record]] = {}
    for record in records:
        runs.setdefault((record["task"], record["rule"]), {})[record["seed"]] = record
    lines = [
        _summarize_one(
            task, rule, by_seed, runs.get((task, ORACLE), {}), runs.get((task, UNIT), {})
        )
        for (task, rule), by_seed in runs.items()
        if rule != ORACLE or set(runs.get((task, "default"), {})) <= set(by_seed)
    ]
    return sorted(
        lines,
        key=lambda line: (_place(line.task, TASKS), line.task, _place(line.rule, RULES), line.rule),
    )


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
    interval = binomtest(sum(is_success), len(runs)).proportion_ci(
        confidence_level=0.95, method="wilson"
    )
    shared = [seed for seed in by_seed if seed in oracles]
    counts = [
        run["n_contexts_found"] == len(run["errors"]) for run in runs if "n_contexts_found" in run
    ]
    return Summary(
        task, rule, sum(is_success), len(runs), float(interval.low), float(interval.high), _worst_error(runs),
        oracle_ratio=_ratio(_worst_error([by_seed[s] for s in shared]), _worst_error([oracles[s] for s in shared])) if shared else None,
        oracle_runs=len(shared),
        cost=_ratio(_mean_seconds(runs), _mean_seconds(list(units.values()))) if units else None,
        failures_flagged=sum(flag for flag, success in zip(is_flagged, is_success, strict=True) if not success),
        successes_flagged=sum(flag for flag, success in zip(is_flagged, is_success, strict=True) if success),
        counted_right=float(np.mean(counts)) if counts else None,
        bar=TASKS[task].bar if task in TASKS else None,
    )  # fmt: skip


def _worst_error(runs: Sequence[Record]) -> float:
    return float(np.mean([max(run["errors"]) for run in runs]))


def _mean_seconds(runs: Sequence[Record]) -> float:
    return float(np.mean([run["seconds"] for run in runs]))


def _ratio(value: float, unit: float) -> float | None:
    return value / unit if unit else None
