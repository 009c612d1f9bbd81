"""All runs of some experiments, each recorded in a folder of its own; what is done is not done again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from leaflearn.benchmark.experiments.learning_run import LearningRun
from leaflearn.benchmark.experiments.processes import run_jobs
from leaflearn.benchmark.experiments.run_folder import RunFolder
from leaflearn.benchmark.experiments.spec import Run, Spec

Complaint = str  # what was wrong with a run, empty where it was done
Watch = Callable[
    [Iterator[Complaint], int], Iterable[Complaint]
]  # as they come, how many -> the same, with a progress bar
MOST_SEEDS = 1000


@dataclass(frozen=True)
class Attempt:
    """A run that may fail without ending the others: its data may not be here, or its settings may not go together.

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

    def run(self) -> Complaint:
        """Run it, and say in a sentence why not where a user can mend it."""
        try:
            self.job.run()
        except ValueError as error:
            return str(error)
        return ""


def missing_runs(specs: Sequence[Spec], root: Path, n_seeds: int | None = None) -> list[Run]:
    """The runs that are not done yet; one that stands in several tables comes once.

    Examples
    --------
    >>> from leaflearn.benchmark.experiments.spec import load_spec
    >>> len(missing_runs([load_spec("fig-regression", "smoke")] * 2, Path("nowhere")))
    10
    """
    runs = {RunFolder(root, run).path: run for spec in specs for run in spec.runs(n_seeds)}
    return [run for run in runs.values() if not RunFolder(root, run).is_done]


def reproduce(
    specs: Sequence[Spec],
    root: Path,
    n_seeds: int | None,
    n_jobs: int,
    watch: Watch,
    also: Path | None = None,
) -> list[Complaint]:
    """Run what is missing, and give the complaints of runs that could not be done; these do not end the others.

    Parameters
    ----------
    specs
        The experiments, each at its scale.
    root
        The folder of all runs.
    n_seeds
        How many of each; as many as the specs say where None.
    n_jobs
        How many processes, of one thread each.
    watch
        Is handed the results as they come and their number, and hands them on; a place for a progress bar.
    also
        A Python file that registers methods of the user's own.

    Examples
    --------
    >>> import tempfile
    >>> from leaflearn.benchmark.experiments.spec import load_spec
    >>> spec = load_spec("table-identifiability", "smoke")
    >>> with tempfile.TemporaryDirectory() as root:
    ...     complaints = reproduce([spec], Path(root), 1, 1, lambda coming, n: coming)
    ...     complaints, missing_runs([spec], Path(root), 1)
    ([], [])
    """
    left_out = {run.key for spec in specs for run in spec.runs(n_seeds) if spec.lacks_data(run)}
    jobs = [
        Attempt(LearningRun(root, run, also))
        for run in missing_runs(specs, root, n_seeds)
        if run.key not in left_out
    ]
    if not jobs:
        return []
    with closing(run_jobs(jobs, n_jobs)) as coming:  # an interruption ends the processes too
        return [complaint for complaint in watch(coming, len(jobs)) if complaint]


def finished_runs(spec: Spec, root: Path) -> Iterator[tuple[Run, RunFolder]]:
    """The runs of an experiment that are done, over however many seeds."""
    for run in spec.runs(1):
        for seed in range(MOST_SEEDS):
            this = Run(run.method, run.setting, {**run.settings, "seed": seed})
            folder = RunFolder(root, this)
            if folder.is_done:
                yield this, folder
            elif seed >= _planned(spec):
                break


def learning_hours(specs: Sequence[Spec], root: Path) -> float:
    """Processor hours of learning behind the runs that are done, each counted once, whenever they were done.

    Examples
    --------
    >>> from leaflearn.benchmark.experiments.spec import load_spec
    >>> learning_hours([load_spec("fig-regression", "smoke")], Path("nowhere"))
    0.0
    """
    seconds = {
        run.key: float(folder.result["seconds"])
        for spec in specs
        for run, folder in finished_runs(spec, root)
    }
    return sum(seconds.values()) / 3600


def _planned(spec: Spec) -> int:
    return int(spec.at_scale.get("n_seeds", spec.content.get("n_seeds", 1)))
