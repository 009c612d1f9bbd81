"""One run: assemble its parts, train the method epoch by epoch, and measure it."""

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
from leaflearn.benchmark.experiments.measures import MEASURES, Trained, snapshot
from leaflearn.benchmark.experiments.own_methods import register_from
from leaflearn.benchmark.experiments.parts import (
    make_domains,
    make_learner,
    make_network,
    make_optimizer,
)
from leaflearn.benchmark.experiments.run_record import RunRecord
from leaflearn.benchmark.experiments.spec import Run
from leaflearn.benchmark.methods import Method, describe
from leaflearn.benchmark.methods.running import make_oracle_info

CHECKPOINT_SECONDS = 60.0  # between two checkpoints
MAX_RECORDS = 100  # lines of the learning curve, not counting the last


@dataclass(frozen=True)
class LearningRun:
    """A run and the folder of all runs; it can run in another process.

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
    also: Path | None = None  # a file that registers the user's own methods, for a new process

    def run(self) -> dict[str, Any]:
        """Run or resume it, and return its result; a finished run is not repeated."""
        if self.also is not None:
            register_from(self.also)
        record = RunRecord(self.root, self.what)
        if not record.is_done:
            _warm_up()
            try:
                with threadpool_limits(1):  # torch has one thread already; this is for the others
                    record.finish(_learn(record, self.what.settings))
            except (ValueError, OSError) as error:  # what a user can fix
                raise ValueError(f"{record.name}: {error}") from error
            except Exception as error:
                raise RuntimeError(f"{record.name}: {error}") from error
        return record.result


@cache
def _warm_up() -> None:
    """Make an optimizer, because the first one of a process loads large parts of torch.

    That takes seconds, which would be counted as training time of whichever method runs first.
    """
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])


def _learn(record: RunRecord, settings: dict[str, Any]) -> dict[str, Any]:
    method, sampler, seconds = _assemble(settings)
    state = record.resume()
    if state is not None and not _load_state(method, state):
        state = None
        method, sampler, seconds = _assemble(settings)  # the first may be partly overwritten
    if state is None:
        record.begin()
        record.restart()
        state = {"n_epochs": 0, "seconds": seconds, "snapshots": {}}
    else:
        record.go_on()
    seconds, snapshots = state["seconds"], state["snapshots"]
    every = -(-settings["n_epochs"] // MAX_RECORDS)
    saved_at = time.monotonic()
    for epoch in range(state["n_epochs"], settings["n_epochs"]):
        if epoch in settings.get("snapshots", ()):
            snapshots[str(epoch)] = snapshot(method, sampler)
        began = time.process_time()
        numbers = _learn_epoch(method, sampler, epoch)
        seconds += time.process_time() - began
        if epoch % every == 0 or epoch == settings["n_epochs"] - 1:
            record.add({"epoch": epoch, "seconds": round(seconds, 2), **numbers})
        if time.monotonic() - saved_at > CHECKPOINT_SECONDS:
            progress = {"n_epochs": epoch + 1, "seconds": seconds, "snapshots": snapshots}
            record.save({**progress, "method": method.state_dict()})
            saved_at = time.monotonic()
    if settings["n_epochs"] in settings.get("snapshots", ()):
        snapshots[str(settings["n_epochs"])] = snapshot(method, sampler)
    trained = Trained(method, sampler, seconds, settings["seed"])
    measured = {name: MEASURES[name](trained) for name in settings.get("measures", ["errors"])}
    result = {
        "domains": list(sampler.domains.names),
        "data": sampler.domains.name,
        "seconds": round(seconds, 2),
        "usage": _usage(record),
    }
    result |= {"about": about} if (about := method.about()) else {}
    return result | measured | ({"snapshots": snapshots} if snapshots else {})


def _load_state(method: Method, state: dict[str, Any]) -> bool:
    """Restore the method; False if the checkpoint, of another version perhaps, does not fit."""
    try:
        method.load_state_dict(state["method"])
    except (RuntimeError, KeyError, ValueError):
        return False
    return True


def _usage(record: RunRecord) -> list[float]:
    """Share of the groups that each local model was trained on in the last epoch.

    Empty for methods without local models.
    """
    last = record.records()[-1]
    return [last[name] for name in sorted(last) if name.startswith("usage_")]


def _assemble(settings: dict[str, Any]) -> tuple[Method, BilevelSampler, float]:
    """The prepared method, its sampler, and the processor seconds that the preparation took."""
    domains = make_domains(settings["dataset"])
    sampler = BilevelSampler(domains, random_state=settings["seed"], **settings.get("sampler", {}))
    problem = describe(
        sampler,
        make_network(settings["network"], domains.input_shape),
        settings["n_epochs"],
        settings["seed"],
        make_optimizer(settings["optimizer"]),
        settings.get("slows_down", False),
    )
    method = make_learner(settings["method"])
    began = time.process_time()
    method.prepare(problem)
    return method, sampler, time.process_time() - began


def _learn_epoch(method: Method, sampler: BilevelSampler, epoch: int) -> dict[str, float]:
    """Train on one epoch; return the mean of every number that the updates report."""
    steps: list[dict[str, float]] = list(_updates(method, sampler, epoch))
    method.end_epoch()
    return {name: round(float(np.mean([step[name] for step in steps])), 5) for name in steps[0]}


def _updates(method: Method, sampler: BilevelSampler, epoch: int) -> Iterator[dict[str, float]]:
    for batches, truth in sampler.epoch(epoch):
        yield method.update(batches, make_oracle_info(method, truth))
