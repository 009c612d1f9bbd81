"""The contribution of each part of the start: contexts before training, with one part left out.

    python benchmarks/ablation.py [--seeds 20] [--first-seed 2000] [--record FILE]

A start counts as right if at least 95 % of the groups are in the right context. No network is
trained, so a run takes seconds; `leaflearn bench recovery --rules default,annealed` measures what
networks add. A record is one line of JSON per part, task and seed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.benchmark.recovery.tasks import TASKS
from leaflearn.initialization import search, settings
from leaflearn.initialization.start import find_start

NAMES = ("functions", "rare", "functions-m50", "functions-mixed", "five-planes")
RIGHT = 0.95
RECORDED_NAMES = {  # of parts, in records of November 2026
    "groups judged by models that have not seen them": "losses of left-out groups",
    "waves (straight lines alone)": "random Fourier features (linear models)",
    "a ridge that follows the loss (0.1)": "ridge that follows the loss (0.1)",
    "strangers set aside": "exclusion of outlier rows",
}


def score_in_sample(
    table: search.GroupTable, weights: Tensor, ridge: Tensor, row_weight: Tensor | None = None
) -> Tensor:
    """Squared error of every row under models that were fitted to its group, (R, K, m, n)."""
    coefficients, *_ = search.solve(table, weights, ridge, row_weight)
    residual = table.y.flatten(0, 1) - table.features.flatten(0, 1) @ coefficients
    return residual.square().sum(-1).reshape(*weights.shape, -1) * table.weight


@contextmanager
def changed(**changes: Any) -> Iterator[None]:
    """Other values of `settings.SEARCH` for a while."""
    with mock.patch.object(settings, "SEARCH", replace(settings.SEARCH, **changes)):
        yield


LEFT_OUT: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "nothing": lambda: changed(),
    "losses of left-out groups": lambda: mock.patch.object(
        search, "leave_group_out", score_in_sample
    ),
    "annealing": lambda: changed(soft_rounds=1),
    "several scales (0.3 alone)": lambda: changed(scales=(0.3,)),
    "random Fourier features (linear models)": lambda: changed(scales=(1e6,)),
    "several starts": lambda: changed(n_starts=1, n_extra_starts=1),
    "split and merge": lambda: changed(split_merge_rounds=0),
    "ridge that follows the loss (0.1)": lambda: changed(min_loss=1.0),
    "exclusion of outlier rows": lambda: changed(
        outliers=replace(settings.SEARCH.outliers, min_share=1.0)
    ),
}


def run(name: str, left_out: str, seed: int) -> dict[str, Any]:
    """The start of one data set, with one part left out."""
    task = TASKS[name]
    sample, truth = task.sample(seed)
    began = time.process_time()
    with LEFT_OUT[left_out]():
        found = find_start(sample.x, sample.y[:, None], sample.groups, task.n_contexts, 0, seed)
    agreement = allocation_agreement(found.contexts, truth.domain)
    seconds = time.process_time() - began
    return {
        "task": name,
        "left_out": left_out,
        "seed": seed,
        "agreement": round(agreement, 4),
        "seconds": round(seconds, 2),
    }


def read_records(path: Path | None) -> dict[tuple[str, str, int], dict[str, Any]]:
    """The records of a file by task, part and seed."""
    lines = path.read_text().splitlines() if path and path.exists() else []
    records = [json.loads(line) for line in lines]
    return {
        (r["task"], RECORDED_NAMES.get(r["left_out"], r["left_out"]), r["seed"]): r for r in records
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
    done = read_records(path)
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
