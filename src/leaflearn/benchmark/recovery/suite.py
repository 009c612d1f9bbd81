"""Many runs of the recovery suite, one after the other or in several processes, each recorded as soon as it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from leaflearn.benchmark.experiments.processes import run_jobs
from leaflearn.benchmark.recovery.records import Record, Records
from leaflearn.benchmark.recovery.run import RULES, run
from leaflearn.benchmark.recovery.tasks import TASKS

Watch = Callable[
    [str, Iterator[Record], int], Iterable[Record]
]  # what is going on, the records as they come, how many -> the same


class Job(NamedTuple):
    """One run that is to be done; it carries the rule's settings, because a new process knows only those of the library."""

    task: str
    rule: str
    seed: int
    settings: dict[str, Any]
    keep_contexts: bool = False

    def run(self) -> Record:
        """Run it, and say which run it was if that fails."""
        RULES[self.rule] = self.settings
        try:
            return run(TASKS[self.task], self.rule, self.seed, keep_contexts=self.keep_contexts)
        except Exception as error:
            raise RuntimeError(
                f"task {self.task}, rule {self.rule}, seed {self.seed}: {error}"
            ) from error


def run_suite(
    records: Records,
    tasks: Sequence[str],
    rules: Sequence[str],
    seeds: Sequence[int],
    n_jobs: int,
    watch: Watch,
) -> None:
    """Run what is not recorded yet, then the oracle for each seed on which the default misses its threshold.

    Parameters
    ----------
    records
        Where to find what was run before, and to add what is run now.
    tasks, rules, seeds
        Every task is run by every rule on every seed. Seeds are the outer loop, so that after an interruption all tasks have come as far.
    n_jobs
        How many processes; each uses one thread.
    watch
        Is handed the title, the records as they come and their number, and hands the records on; a place for a progress bar.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> RULES["glance"] = {"max_epochs": 1, "n_init": 1, "init": "random"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = Records(Path(folder) / "records.jsonl")
    ...     run_suite(records, ["functions-m50"], ["glance"], range(2), 1, lambda title, coming, n: coming)
    ...     [(record["rule"], record["seed"]) for record in records.all()]
    [('glance', 0), ('glance', 1)]
    >>> del RULES["glance"]
    """
    wanted = [(task, rule, seed) for seed in seeds for task in tasks for rule in rules]
    _run_missing(records, wanted, seeds[0], n_jobs, watch, "recovery")
    asked = set(wanted)
    missed = [
        r
        for r in records.all()
        if (r["task"], r["rule"], r["seed"]) in asked
        and r["rule"] == "default"
        and not r["recovered"]
    ]
    _run_missing(
        records,
        [(r["task"], "oracle", r["seed"]) for r in missed],
        seeds[0],
        n_jobs,
        watch,
        "oracle, where the default missed",
    )


def _run_missing(
    records: Records,
    wanted: Iterable[tuple[str, str, int]],
    first_seed: int,
    n_jobs: int,
    watch: Watch,
    title: str,
) -> None:
    jobs = [
        Job(task, rule, seed, RULES[rule], keep_contexts=rule == "default" and seed == first_seed)
        for task, rule, seed in wanted
        if (task, rule, seed) not in records
    ]
    if not jobs:
        return
    with closing(run_jobs(jobs, n_jobs)) as coming:  # an interruption ends the processes too
        for record in watch(title, coming, len(jobs)):
            records.add(record)
