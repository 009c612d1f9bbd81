"""What each ingredient of the start is worth: contexts before anything is trained, with one thing left out at a time.

    python benchmarks/ablation.py [--seeds 20] [--first-seed 2000] [--record FILE]

Right means that at least 95 % of the groups are in the right context. No network is trained, so a run takes seconds. What networks add
shows in `leaflearn bench recovery --rules default,annealed`. A record is one line of JSON for each ingredient, task and seed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.benchmark.recovery.tasks import TASKS
from leaflearn.initialization import search, smoothers, start
from leaflearn.initialization import surrogate as reading
from leaflearn.initialization.smoothers import GroupTable

NAMES = ("functions", "rare", "functions-m50", "functions-mixed", "five-planes")
RIGHT = 0.95


def score_in_sample(
    table: GroupTable, weights: Tensor, ridge: Tensor, row_weight: Tensor | None = None
) -> Tensor:
    """Squared error of every row under models that have learnt from its group, (R, K, m, n)."""
    coefficients, *_ = smoothers.solve(table, weights, ridge, row_weight)
    x, y = (
        table.features.reshape(-1, table.features.shape[-1]),
        table.y.reshape(-1, table.y.shape[-1]),
    )
    losses = (y - x @ coefficients).square().sum(-1).reshape(*weights.shape, -1)
    return losses * table.weight


@contextmanager
def replaced(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Names of modules that have another value for a while."""
    before = [getattr(module, name) for module, name, _ in changes]
    for module, name, value in changes:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(changes, before, strict=True):
            setattr(module, name, value)


LEFT_OUT: dict[str, Callable[[], Any]] = {
    "nothing": lambda: replaced(),
    "groups judged by models that have not seen them": lambda: replaced(
        (search, "leave_group_out", score_in_sample)
    ),
    "annealing": lambda: replaced((search, "SOFT_ROUNDS", 1)),
    "several scales (0.3 alone)": lambda: replaced((reading, "SCALES", (0.3,))),
    "waves (straight lines alone)": lambda: replaced((reading, "SCALES", (1e6,))),
    "several starts": lambda: replaced((reading, "STARTS_EACH", 1), (reading, "STARTS_MORE", 1)),
    "split and merge": lambda: replaced((search, "EXCHANGES", 0)),
    "a ridge that follows the loss (0.1)": lambda: replaced(
        (search, "LEAST_LOSS", 1.0), (reading, "LEAST_LOSS", 1.0)
    ),
    "strangers set aside": lambda: replaced((reading, "MANY", 1.0)),
}


def run(name: str, left_out: str, seed: int) -> dict[str, Any]:
    """The start of one data set, with one thing left out."""
    task = TASKS[name]
    sample, truth = task.sample(seed)
    began = time.process_time()
    with LEFT_OUT[left_out]():
        found = start.find_start(
            sample.x, sample.y[:, None], sample.groups, task.n_contexts, 0, seed
        )
    agreement = allocation_agreement(found.contexts, truth.domain)
    seconds = time.process_time() - began
    return {
        "task": name,
        "left_out": left_out,
        "seed": seed,
        "agreement": round(agreement, 4),
        "seconds": round(seconds, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=2000)
    parser.add_argument("--record", type=Path, default=None)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    path = arguments.record
    records = (
        [json.loads(line) for line in path.read_text().splitlines()]
        if path and path.exists()
        else []
    )
    done = {(r["task"], r["left_out"], r["seed"]): r for r in records}
    print(f"{'left out':52s}" + "".join(f"{name:>17s}" for name in NAMES))
    for left_out in LEFT_OUT:
        cells = []
        for name in NAMES:
            rows = []
            for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
                key = (name, left_out, seed)
                if key not in done:
                    done[key] = run(name, left_out, seed)
                    if path:
                        with path.open("a") as file:
                            file.write(json.dumps(done[key]) + "\n")
                rows.append(done[key])
            cells.append(f"{sum(r['agreement'] >= RIGHT for r in rows)} of {len(rows)}")
        print(f"{left_out:52s}" + "".join(f"{cell:>17s}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
