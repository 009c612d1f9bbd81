"""Many runs on simulated groups, each recorded in a file as soon as it is done.

The file has one line of JSON per run, so an interruption loses at most the runs in progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from leaflearn.benchmark.experiments.processes import run_jobs
from leaflearn.benchmark.experiments.run_record import describe_environment
from leaflearn.benchmark.groups.run import run
from leaflearn.benchmark.groups.simulation import SCENARIOS
from leaflearn.benchmark.json_lines import KeyedRecords, Record
from leaflearn.benchmark.real.contract import Method
from leaflearn.benchmark.real.run import OWN

Watch = Callable[[str, Iterator[Record], int], Iterable[Record]]  # title, records, how many
KEY = ("scenario", "method", "seed")
FIELDS = ("outcome", "seconds")


def select(beginnings: Sequence[str]) -> list[str]:
    """Names of scenarios that are, or begin with, one of these; parts between slashes are whole.

    Raises
    ------
    ValueError
        If none begins with one of them.

    Examples
    --------
    >>> select(["cost", "kind/offset/6"])[-2:]
    ['cost/100000-rows', 'cost/1000000-rows']
    >>> select(["weather"])
    Traceback (most recent call last):
        ...
    ValueError: No scenario begins with 'weather'; they begin with degree, kind, cost.
    """
    for beginning in beginnings:
        if not any(_begins(name, beginning) for name in SCENARIOS):
            studies = dict.fromkeys(scenario.study for scenario in SCENARIOS.values())
            raise ValueError(
                f"No scenario begins with '{beginning}'; they begin with {', '.join(studies)}."
            )
    return [name for name in SCENARIOS if any(_begins(name, start) for start in beginnings)]


def _begins(name: str, beginning: str) -> bool:
    return f"{name}/".startswith(f"{beginning}/")


def run_groups(
    records: GroupsRecords,
    scenarios: Sequence[str],
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
    scenarios, methods, seeds
        Every method is run on every scenario and seed. Seeds are the outer loop, so that an
        interruption affects all scenarios alike.
    n_jobs
        Number of processes, with one thread each.
    watch
        Called with a title, an iterator over the records and their number; returns an iterator
        over the same records, for example with a progress bar.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = GroupsRecords(Path(folder) / "records.jsonl")
    ...     run_groups(records, [], ["leaflearn"], [0], 1, lambda title, coming, n: coming)
    ...     records.all()
    []
    """
    commit = describe_environment()["commit"]
    jobs = [
        GroupsJob(scenario, method, OWN[method], seed, commit)
        for seed in seeds
        for scenario in scenarios
        for method in methods
        if (scenario, method, seed) not in records
    ]
    if not jobs:
        return
    with closing(run_jobs(jobs, n_jobs)) as coming:  # an interruption also ends the processes
        for record in watch("simulated groups", coming, len(jobs)):
            records.add(record)


class GroupsRecords(KeyedRecords):
    """The records of a file, by scenario, method and seed.

    Examples
    --------
    >>> import tempfile
    >>> record = {"scenario": "degree/slopes/linear/values", "method": "leaflearn", "seed": 0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = GroupsRecords(Path(folder) / "records.jsonl")
    ...     records.add(record | {"outcome": "ok", "seconds": 1.0})
    ...     ("degree/slopes/linear/values", "leaflearn", 0) in records
    True
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, KEY, FIELDS)


class GroupsJob(NamedTuple):
    """One run; it carries its method, for a new process that lacks added ones."""

    scenario: str
    method: str
    fit: Method
    seed: int
    commit: str | None

    def run(self) -> Record:
        """Run it."""
        return run(SCENARIOS[self.scenario], self.method, self.seed, self.commit, self.fit)
