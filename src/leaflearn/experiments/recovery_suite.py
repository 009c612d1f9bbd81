"""Many runs of the recovery suite, one after the other or in several processes, each recorded as soon as it is done."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from typing import Any, NamedTuple

import torch

from leaflearn.core.threads import one_thread
from leaflearn.experiments.recovery import RULES, run
from leaflearn.experiments.recovery_records import Record, Records
from leaflearn.experiments.recovery_tasks import TASKS

Watch = Callable[[str, Iterator[Record], int], Iterable[Record]]  # what is going on, the records as they come, how many -> the same


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
            raise RuntimeError(f"task {self.task}, rule {self.rule}, seed {self.seed}: {error}") from error


def run_suite(records: Records, tasks: Sequence[str], rules: Sequence[str], seeds: Sequence[int], n_jobs: int, watch: Watch) -> None:
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
    missed = [r for r in records.all() if (r["task"], r["rule"], r["seed"]) in asked and r["rule"] == "default" and not r["recovered"]]
    _run_missing(records, [(r["task"], "oracle", r["seed"]) for r in missed], seeds[0], n_jobs, watch, "oracle, where the default missed")


def _run_missing(records: Records, wanted: Iterable[tuple[str, str, int]], first_seed: int, n_jobs: int, watch: Watch, title: str) -> None:
    jobs = [
        Job(task, rule, seed, RULES[rule], keep_contexts=rule == "default" and seed == first_seed)
        for task, rule, seed in wanted
        if (task, rule, seed) not in records
    ]
    if not jobs:
        return
    with closing(_run_here(jobs) if n_jobs == 1 else _run_in_processes(jobs, n_jobs)) as coming:  # an interruption ends the processes too
        for record in watch(title, coming, len(jobs)):
            records.add(record)


def _run_here(jobs: Sequence[Job]) -> Generator[Record, None, None]:
    with one_thread():
        for job in jobs:
            yield job.run()


def _run_in_processes(jobs: Sequence[Job], n_jobs: int) -> Generator[Record, None, None]:
    """Records in the order in which they come. Whatever happens here, no process goes on working behind."""
    before = set(multiprocessing.active_children())
    fresh = multiprocessing.get_context("spawn")  # a fork of a process in which torch has run can hang
    with ProcessPoolExecutor(min(n_jobs, len(jobs)), mp_context=fresh, initializer=_prepare_process) as pool:
        futures = [pool.submit(job.run) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool:
            raise OSError(
                "A process was ended from outside, perhaps for want of memory; what is recorded stays. Try fewer --jobs."
            ) from None
        except BaseException:
            for future in futures:
                future.cancel()
            for process in set(multiprocessing.active_children()) - before:
                process.terminate()
            raise


def _prepare_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process is interrupted too, and ends this one
    torch.set_num_threads(1)
