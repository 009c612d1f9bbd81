"""Many runs of the comparison on real tables, each recorded in a file as soon as it is done.

The file has one line of JSON per run, so an interruption loses at most the runs in progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from leaflearn.benchmark.experiments.processes import run_jobs
from leaflearn.benchmark.experiments.run_record import describe_environment
from leaflearn.benchmark.json_lines import KeyedRecords, Record
from leaflearn.benchmark.real.contract import Method
from leaflearn.benchmark.real.run import METHODS, MISSING, run
from leaflearn.benchmark.real.tables import RealTable, all_tables

Key = tuple[str, str, int]  # table, method, split
Watch = Callable[[str, Iterator[Record], int], Iterable[Record]]  # title, records, how many
KEY = ("table", "method", "split")
FIELDS = ("outcome", "measure", "cells", "seconds")


def run_real(
    records: RealRecords,
    tables: Sequence[str],
    methods: Sequence[str],
    n_splits: int,
    n_jobs: int,
    watch: Watch,
) -> None:
    """Run what is not recorded yet.

    Parameters
    ----------
    records
        Earlier runs; new runs are added. Runs of methods that were not installed are repeated.
    tables, methods
        Every method is run on every table.
    n_splits
        The first so many splits are run. They are the outer loop, so that an interruption affects
        all tables alike.
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
    ...     records = RealRecords(Path(folder) / "records.jsonl")
    ...     run_real(records, [], ["pooled linear"], 1, 1, lambda title, coming, n: coming)
    ...     records.all()
    []
    """
    found = {name: all_tables()[name] for name in tables}
    for table in found.values():
        table.check()
    commit = describe_environment()["commit"]
    jobs = [
        RealJob(table, method, METHODS[method], split, commit)
        for split in range(n_splits)
        for name, table in found.items()
        for method in methods
        if not records.has((name, method, split))
    ]
    if not jobs:
        return
    with closing(run_jobs(jobs, n_jobs)) as coming:  # an interruption also ends the processes
        for record in watch("real tables", coming, len(jobs)):
            records.add(record)


class RealRecords(KeyedRecords):
    """The records of a file, by table, method and split.

    Parameters
    ----------
    path
        The file; it may not exist yet. Of two records of the same run, the later one counts.

    Examples
    --------
    >>> import tempfile
    >>> record = {"table": "wages", "method": "lme4", "split": 3, "outcome": "missing"}
    >>> record |= {"measure": "rmse", "cells": {}, "seconds": 0.0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = RealRecords(Path(folder) / "records.jsonl")
    ...     records.add(record)
    ...     before = records.has(("wages", "lme4", 3))
    ...     records.add(record | {"outcome": "ok"})
    ...     before, records.has(("wages", "lme4", 3)), len(records.all())
    (False, True, 1)
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, KEY, FIELDS)

    def has(self, key: Key) -> bool:
        """Whether the run is recorded, and not as one whose program was not installed."""
        record = self.get(key)
        return record is not None and record["outcome"] != MISSING


class RealJob(NamedTuple):
    """One run; it carries its table and its method, for a new process that lacks added ones."""

    table: RealTable
    method: str
    fit: Method
    split: int
    commit: str | None

    def run(self) -> Record:
        """Run it."""
        METHODS[self.method] = self.fit
        return run(self.table, self.method, self.split, self.commit)
