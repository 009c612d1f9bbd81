"""Many runs on altered tables, each recorded in a file as soon as it is done.

The file has one line of JSON per run, so an interruption loses at most the runs in progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from leaflearn.benchmark.altered.run import ORACLE, run
from leaflearn.benchmark.altered.tasks import TASKS
from leaflearn.benchmark.experiments.processes import run_jobs
from leaflearn.benchmark.experiments.run_record import describe_environment
from leaflearn.benchmark.json_lines import KeyedRecords, Record
from leaflearn.benchmark.real.contract import Method
from leaflearn.benchmark.real.run import OWN

Watch = Callable[[str, Iterator[Record], int], Iterable[Record]]  # title, records, how many
KEY = ("task", "method", "seed")
FIELDS = ("outcome", "seconds")


def run_altered(
    records: AlteredRecords,
    tasks: Sequence[str],
    methods: Sequence[str],
    seeds: Sequence[int],
    n_jobs: int,
    watch: Watch,
) -> None:
    """Run what is not recorded yet.

    Parameters
    ----------
    records
        Earlier runs; new runs are added.
    tasks, methods, seeds
        Every method is run on every task and seed, and so is the oracle. A task with a hidden
        column is run with the first seed only, since all seeds are the same.
    n_jobs
        Number of processes, with one thread each.
    watch
        Called with a title, an iterator over the records and their number; returns an iterator
        over the same records, for example with a progress bar.

    Raises
    ------
    MissingDataError
        If the file of a table is missing; nothing is run then.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = AlteredRecords(Path(folder) / "records.jsonl")
    ...     run_altered(records, [], ["leaflearn"], [0], 1, lambda title, coming, n: coming)
    ...     records.all()
    []
    """
    for task in tasks:
        TASKS[task].table.check()
    commit = describe_environment()["commit"]
    jobs = [
        AlteredJob(task, method, OWN.get(method), seed, commit)
        for seed in seeds
        for task in tasks
        for method in (ORACLE, *methods)
        if (task, method, seed) not in records and (TASKS[task].hidden is None or seed == seeds[0])
    ]
    if not jobs:
        return
    with closing(run_jobs(jobs, n_jobs)) as coming:  # an interruption also ends the processes
        for record in watch("altered tables", coming, len(jobs)):
            records.add(record)


class AlteredRecords(KeyedRecords):
    """The records of a file, by task, method and seed.

    Examples
    --------
    >>> import tempfile
    >>> record = {"task": "hsb82-sector", "method": "oracle", "seed": 0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = AlteredRecords(Path(folder) / "records.jsonl")
    ...     records.add(record | {"outcome": "ok", "seconds": 1.0})
    ...     ("hsb82-sector", "oracle", 0) in records
    True
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, KEY, FIELDS)


class AlteredJob(NamedTuple):
    """One run; it carries its method, for a new process that lacks added ones."""

    task: str
    method: str
    fit: Method | None
    seed: int
    commit: str | None

    def run(self) -> Record:
        """Run it."""
        return run(TASKS[self.task], self.method, self.seed, self.commit, self.fit)
