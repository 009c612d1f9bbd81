"""Jobs in this process or in several processes of one thread each; results come as they finish."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol, TypeVar

import torch

from leaflearn.core.threads import one_thread

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Job(Protocol[T_co]):
    """Something that can run, in this process or in another."""

    def run(self) -> T_co:
        """Run it."""
        ...


def run_jobs(jobs: Sequence[Job[T]], n_jobs: int) -> Generator[T, None, None]:
    """Run all jobs, `n_jobs` at a time. Close the generator to stop early and end all processes.

    Examples
    --------
    >>> class Three:
    ...     def run(self):
    ...         return 3
    >>> list(run_jobs([Three(), Three()], n_jobs=1))
    [3, 3]
    """
    return _run_here(jobs) if n_jobs == 1 else _run_in_processes(jobs, n_jobs)


def _run_here(jobs: Sequence[Job[T]]) -> Generator[T, None, None]:
    with one_thread():
        for job in jobs:
            yield job.run()


def _run_in_processes(jobs: Sequence[Job[T]], n_jobs: int) -> Generator[T, None, None]:
    """Results in the order in which they finish. No process outlives the generator."""
    before = set(multiprocessing.active_children())
    spawn = multiprocessing.get_context("spawn")  # a fork of a process that used torch can hang
    with ProcessPoolExecutor(
        min(n_jobs, len(jobs)), mp_context=spawn, initializer=_prepare_process
    ) as pool:
        futures = [pool.submit(job.run) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool:
            raise OSError(
                "A process was killed, possibly because memory ran out; recorded runs are kept. "
                "Run fewer processes at once."
            ) from None
        except BaseException:
            for future in futures:
                future.cancel()
            for process in set(multiprocessing.active_children()) - before:
                process.terminate()
            raise


def _prepare_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends this
    torch.set_num_threads(1)
