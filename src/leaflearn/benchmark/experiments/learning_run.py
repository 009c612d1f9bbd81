"""One run: put the parts together, let the method learn epoch by epoch, measure what it has learnt."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.benchmark.experiments.measures import MEASURES, Learnt, snapshot
from leaflearn.benchmark.experiments.own_methods import register_from
from leaflearn.benchmark.experiments.parts import (
    make_domains,
    make_learner,
    make_network,
    make_optimizer,
)
from leaflearn.benchmark.experiments.run_folder import RunFolder
from leaflearn.benchmark.experiments.spec import Run
from leaflearn.benchmark.methods import Method, describe
from leaflearn.benchmark.methods.running import make_oracle_info

SAVED_EVERY = 60.0  # seconds: so much can be lost
MOST_LINES = 100  # of records, beside the last


@dataclass(frozen=True)
class LearningRun:
    """A run and the folder of all runs; it can be run in another process.

    Examples
    --------
    >>> import tempfile
    >>> from leaflearn.benchmark.experiments.spec import load_spec
    >>> first = next(load_spec("fig-regression", "smoke").runs(1))
    >>> with tempfile.TemporaryDirectory() as root:
    ...     sorted(LearningRun(Path(root), first).run()["errors"])
    ['best', 'identified']
    """

    root: Path
    what: Run
    also: Path | None = (
        None  # a file with methods of the user's own, which a new process does not know yet
    )

    def run(self) -> dict[str, Any]:
        """Run it, or go on with it, and give its result; one that is done is not run again."""
        if self.also is not None:
            register_from(self.also)
        folder = RunFolder(self.root, self.what)
        if not folder.is_done:
            _warm_up()
            try:
                with threadpool_limits(
                    1
                ):  # torch has one thread already; neighbours are looked for by others
                    folder.finish(_learn(folder, self.what.settings))
            except (ValueError, OSError) as error:  # what a user can mend
                raise ValueError(f"{folder.path.name}: {error}") from error
            except Exception as error:
                raise RuntimeError(f"{folder.path.name}: {error}") from error
        return folder.result


@cache
def _warm_up() -> None:
    """The first optimizer of a process loads half of torch: seconds that would be counted against the method that happens to come first."""
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])


def _learn(folder: RunFolder, settings: dict[str, Any]) -> dict[str, Any]:
    method, sampler, seconds = _put_together(settings)
    state = folder.resume()
    if state is not None and not _goes_on(method, state):
        (method, sampler, seconds), state = (
            _put_together(settings),
            None,
        )  # what did not go on may be half changed
    if state is None:
        folder.begin()
        folder.restart()
        state = {"n_epochs": 0, "seconds": seconds, "snapshots": {}}
    else:
        folder.go_on()
    seconds, snapshots = state["seconds"], state["snapshots"]
    every = -(-settings["n_epochs"] // MOST_LINES)
    saved_at = time.monotonic()
    for epoch in range(state["n_epochs"], settings["n_epochs"]):
        if epoch in settings.get("snapshots", ()):
            snapshots[str(epoch)] = snapshot(method, sampler)
        began = time.process_time()
        numbers = _learn_epoch(method, sampler, epoch)
        seconds += time.process_time() - began
        if epoch % every == 0 or epoch == settings["n_epochs"] - 1:
            folder.record({"epoch": epoch, "seconds": round(seconds, 2), **numbers})
        if time.monotonic() - saved_at > SAVED_EVERY:
            folder.save(
                {
                    "n_epochs": epoch + 1,
                    "seconds": seconds,
                    "snapshots": snapshots,
                    "method": method.state_dict(),
                }
            )
            saved_at = time.monotonic()
    if settings["n_epochs"] in settings.get("snapshots", ()):
        snapshots[str(settings["n_epochs"])] = snapshot(method, sampler)
    learnt = Learnt(method, sampler, seconds, settings["seed"])
    measured = {name: MEASURES[name](learnt) for name in settings.get("measures", ["errors"])}
    told = {
        "domains": list(sampler.domains.names),
        "data": sampler.domains.name,
        "seconds": round(seconds, 2),
        "usage": _usage(folder),
    }
    told |= {"about": about} if (about := method.about()) else {}
    return told | measured | ({"snapshots": snapshots} if snapshots else {})


def _goes_on(method: Method, state: dict[str, Any]) -> bool:
    """Put the method back to where the run was; False where another version of the library left what does not fit."""
    try:
        method.load_state_dict(state["method"])
    except (RuntimeError, KeyError, ValueError):
        return False
    return True


def _usage(folder: RunFolder) -> list[float]:
    """Share of the groups that each local model learnt from in the last epoch; empty where a method has none."""
    last = folder.records()[-1]
    return [last[name] for name in sorted(last) if name.startswith("usage_")]


def _put_together(settings: dict[str, Any]) -> tuple[Method, BilevelSampler, float]:
    """The method, prepared, what it will learn from, and how many processor seconds it took to prepare."""
    domains = make_domains(settings["dataset"])
    sampler = BilevelSampler(domains, random_state=settings["seed"], **settings.get("sampler", {}))
    network, optimizer = (
        make_network(settings["network"], domains.input_shape),
        make_optimizer(settings["optimizer"]),
    )
    problem = describe(
        sampler,
        network,
        settings["n_epochs"],
        settings["seed"],
        optimizer,
        settings.get("slows_down", False),
    )
    method = make_learner(settings["method"])
    began = time.process_time()
    method.prepare(problem)
    return method, sampler, time.process_time() - began


def _learn_epoch(method: Method, sampler: BilevelSampler, epoch: int) -> dict[str, float]:
    told: list[dict[str, float]] = list(_updates(method, sampler, epoch))
    method.end_epoch()
    return {name: round(float(np.mean([numbers[name] for numbers in told])), 5) for name in told[0]}


def _updates(method: Method, sampler: BilevelSampler, epoch: int) -> Iterator[dict[str, float]]:
    for batches, truth in sampler.epoch(epoch):
        yield method.update(batches, make_oracle_info(method, truth))
