"""Many runs of the recovery suite, each recorded in a file as soon as it is done.

The file has one line of JSON per run, so an interruption loses at most the runs in progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from leaflearn.benchmark.experiments.processes import run_jobs
from leaflearn.benchmark.json_lines import KeyedRecords, Record
from leaflearn.benchmark.recovery.run import RULES, run
from leaflearn.benchmark.recovery.tasks import TASKS

Key = tuple[str, str, int]  # task, rule, seed
Watch = Callable[[str, Iterator[Record], int], Iterable[Record]]  # title, records, how many
KEY = ("task", "rule", "seed")
FIELDS = ("recovered", "errors", "seconds", "converged", "warnings")


def run_suite(
    records: Records,
    tasks: Sequence[str],
    rules: Sequence[str],
    seeds: Sequence[int],
    n_jobs: int,
    watch: Watch,
) -> None:
    """Run what is not recorded yet, then the oracle for each seed on which the default fails.

    Parameters
    ----------
    records
        Earlier runs; new runs are added.
    tasks, rules, seeds
        Every task is run by every rule on every seed. Seeds are the outer loop, so that an
        interruption affects all tasks alike.
    n_jobs
        Number of processes, with one thread each.
    watch
        Called with a title, an iterator over the records and their number; returns an iterator
        over the same records, for example with a progress bar.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> RULES["quick"] = {"max_epochs": 1, "n_init": 1, "init": "random"}
    >>> def watch(title, coming, n):
    ...     return coming
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = Records(Path(folder) / "records.jsonl")
    ...     run_suite(records, ["functions-m50"], ["quick"], range(2), 1, watch)
    ...     [(record["rule"], record["seed"]) for record in records.all()]
    [('quick', 0), ('quick', 1)]
    >>> del RULES["quick"]
    """
    wanted = [(task, rule, seed) for seed in seeds for task in tasks for rule in rules]
    _run_missing(records, wanted, seeds[0], n_jobs, watch, "recovery")
    requested = {key for key in wanted if key[1] == "default"}
    failed = [r for r in records.all() if records.key_of(r) in requested and not r["recovered"]]
    oracles = [(r["task"], "oracle", r["seed"]) for r in failed]
    _run_missing(records, oracles, seeds[0], n_jobs, watch, "oracle, where the default failed")


class Records(KeyedRecords):
    """The records of a file, by task, rule and seed.

    Parameters
    ----------
    path
        The file; it may not exist yet. Of two records of the same run, the later one counts.

    Examples
    --------
    >>> import tempfile
    >>> record = {"task": "rare", "rule": "hard", "seed": 3, "recovered": False}
    >>> record |= {"errors": [0.3, 0.1, 0.1], "seconds": 2.8, "converged": True, "warnings": 0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Records(Path(folder) / "records.jsonl").add(record)
    ...     ("rare", "hard", 3) in Records(Path(folder) / "records.jsonl")
    True
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, KEY, FIELDS)


class RecoveryJob(NamedTuple):
    """One run; it carries the settings of its rule, for a new process that lacks added rules."""

    task: str
    rule: str
    seed: int
    settings: dict[str, Any]
    keep_contexts: bool = False

    def run(self) -> Record:
        """Run it; an error names the run."""
        RULES[self.rule] = self.settings
        try:
            return run(TASKS[self.task], self.rule, self.seed, keep_contexts=self.keep_contexts)
        except Exception as error:
            raise RuntimeError(
                f"task {self.task}, rule {self.rule}, seed {self.seed}: {error}"
            ) from error


def _run_missing(
    records: Records,
    wanted: Iterable[Key],
    first_seed: int,
    n_jobs: int,
    watch: Watch,
    title: str,
) -> None:
    jobs = [
        RecoveryJob(
            task, rule, seed, RULES[rule], keep_contexts=rule == "default" and seed == first_seed
        )
        for task, rule, seed in wanted
        if (task, rule, seed) not in records
    ]
    if not jobs:
        return
    with closing(run_jobs(jobs, n_jobs)) as coming:  # an interruption also ends the processes
        for record in watch(title, coming, len(jobs)):
            records.add(record)
