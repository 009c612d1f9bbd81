"""All runs of some experiments; a finished run is not repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from leaflearn.benchmark.experiments.learning_run import LearningRun
from leaflearn.benchmark.experiments.processes import run_jobs
from leaflearn.benchmark.experiments.run_record import RunRecord, pack_folders
from leaflearn.benchmark.experiments.spec import Run, Spec

Failure = str  # why a run failed, empty if it is done
Watch = Callable[[Iterator[Failure], int], Iterable[Failure]]  # results, how many -> the results
MAX_SEEDS = 1000


def reproduce(
    specs: Sequence[Spec],
    root: Path,
    n_seeds: int | None,
    n_jobs: int,
    watch: Watch,
    also: Path | None = None,
) -> list[Failure]:
    """Run what is missing; return why runs failed. A failure does not stop the other runs.

    Parameters
    ----------
    specs
        The experiments, each at its scale.
    root
        The folder of all runs. Folders of finished runs are packed first.
    n_seeds
        Number of seeds of each run; None uses the number in the specs.
    n_jobs
        Number of processes, with one thread each.
    watch
        Called with an iterator over the results and their number; returns an iterator over the
        same results, for example with a progress bar.
    also
        A Python file that registers the user's own methods.

    Examples
    --------
    >>> import tempfile
    >>> from leaflearn.benchmark.experiments.spec import load_spec
    >>> spec = load_spec("table-identifiability", "smoke")
    >>> with tempfile.TemporaryDirectory() as root:
    ...     failures = reproduce([spec], Path(root), 1, 1, lambda coming, n: coming)
    ...     failures, missing_runs([spec], Path(root), 1)
    ([], [])
    """
    pack_folders(root)
    left_out = {run.key for spec in specs for run in spec.runs(n_seeds) if spec.lacks_data(run)}
    jobs = [
        Attempt(LearningRun(root, run, also))
        for run in missing_runs(specs, root, n_seeds)
        if run.key not in left_out
    ]
    if not jobs:
        return []
    with closing(run_jobs(jobs, n_jobs)) as coming:  # an interruption also ends the processes
        return [failure for failure in watch(coming, len(jobs)) if failure]


@dataclass(frozen=True)
class Attempt:
    """A run that may fail without stopping the others.

    Its data may be missing, or its settings may not fit together.

    Examples
    --------
    >>> import tempfile
    >>> from leaflearn.benchmark.experiments.spec import Run
    >>> settings = {"dataset": {"name": "functions"}, "sampler": {"group_size": 0}, "seed": 0}
    >>> with tempfile.TemporaryDirectory() as root:
    ...     Attempt(LearningRun(Path(root), Run("leaf", "", settings))).run()
    'functions-leaf-0-...: ...'
    """

    job: LearningRun

    def run(self) -> Failure:
        """Run it; if it fails for a reason that a user can fix, return that reason."""
        try:
            self.job.run()
        except ValueError as error:
            return str(error)
        return ""


def missing_runs(specs: Sequence[Spec], root: Path, n_seeds: int | None = None) -> list[Run]:
    """The runs that are not done yet; a run of several experiments is listed once.

    Examples
    --------
    >>> from leaflearn.benchmark.experiments.spec import load_spec
    >>> len(missing_runs([load_spec("fig-regression", "smoke")] * 2, Path("nowhere")))
    10
    """
    records = {
        record.name: record
        for spec in specs
        for run in spec.runs(n_seeds)
        if (record := RunRecord(root, run))
    }
    return [record.run for record in records.values() if not record.is_done]


def finished_runs(spec: Spec, root: Path) -> Iterator[tuple[Run, RunRecord]]:
    """The finished runs of an experiment, over any number of seeds."""
    n_planned = int(spec.at_scale.get("n_seeds", spec.content.get("n_seeds", 1)))
    for run in spec.runs(1):
        for seed in range(MAX_SEEDS):
            this = Run(run.method, run.setting, {**run.settings, "seed": seed})
            record = RunRecord(root, this)
            if record.is_done:
                yield this, record
            elif seed >= n_planned:
                break


def learning_hours(specs: Sequence[Spec], root: Path) -> float:
    """Processor hours of training of all finished runs; each run counts once.

    Examples
    --------
    >>> from leaflearn.benchmark.experiments.spec import load_spec
    >>> learning_hours([load_spec("fig-regression", "smoke")], Path("nowhere"))
    0.0
    """
    seconds = {
        run.key: float(record.result["seconds"])
        for spec in specs
        for run, record in finished_runs(spec, root)
    }
    return sum(seconds.values()) / 3600
