"""How often gradient boosting as local model recovers the three functions, with default settings.

    python benchmarks/boosting.py [--seeds 10] [--first-seed 2000] [--record boosting.jsonl]

50 groups of 10 rows, three contexts. Recovered: the RMSE of every function on a grid is below 0.15.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # must be set before the libraries are loaded

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

from leaflearn import LeafRegressor
from leaflearn.benchmark.datasets import functions
from leaflearn.benchmark.datasets.sampling import sample_groups
from leaflearn.benchmark.evaluation import best_errors, rmse

THRESHOLD = 0.15


def run(seed: int) -> dict[str, Any]:
    """One fit, and the RMSE of the best context on each function."""
    domains = functions()
    (x, y, groups), _ = sample_groups(domains, n_groups=50, group_size=10, random_state=seed)
    began = time.process_time()
    leaf = LeafRegressor(
        3, local_model=GradientBoostingRegressor(random_state=seed), random_state=seed
    ).fit(x, y, groups=groups)
    errors = []
    for domain in domains:
        predictions = leaf.predict_each(domain.test.x)[..., None]
        truth = np.asarray(domain.test.y).reshape(-1, 1)
        errors.append(float(best_errors(predictions, [truth], rmse).error[0]))
    seconds = round(time.process_time() - began, 1)
    return {
        "seed": seed,
        "errors": [round(error, 4) for error in errors],
        "converged": bool(leaf.converged_),
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=2000)
    parser.add_argument("--record", type=Path, help="file for one line per fit")
    arguments = parser.parse_args()
    recovered = 0
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        record = run(seed)
        recovered += max(record["errors"]) < THRESHOLD
        print(record, flush=True)
        if arguments.record:
            with arguments.record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
    print(f"recovered on {recovered} of {arguments.seeds}")


if __name__ == "__main__":
    main()
