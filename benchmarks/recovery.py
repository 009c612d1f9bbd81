"""How often the contexts are recovered: tasks with known truth, a new data set for each seed.

    python benchmarks/recovery.py [--tasks functions,rare] [--seeds 10] [--first-seed 0] [--record FILE]
                                  [--rule default|hard|sampled|soft|annealed|oracle]

A record is one line of JSON for each task, rule and seed; those that are in the file already are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.core.allocation import Given
from leaflearn.evaluation import allocation_agreement, error_rate, rmse
from leaflearn.experiments.recovery_tasks import TASKS, Task

PLAIN: dict[str, Any] = {"n_init": 1, "refresh": False, "init": "random"}  # one run of a rule, and nothing around it
RULES: dict[str, dict[str, Any]] = {
    "default": {},
    "hard": {"allocation": "hard", **PLAIN},
    "sampled": {"allocation": "sampled", **PLAIN},
    "soft": {"allocation": "soft", **PLAIN},
    "annealed": {"init": "random"},  # random starts, annealed, and fresh models
    "oracle": PLAIN,
}


def run(task: Task, rule: str, seed: int) -> dict[str, Any]:
    """Fit one data set and measure what came out."""
    data = task.make(seed)
    sample, truth = task.sample(seed)
    settings = {"n_contexts": task.n_contexts, **RULES[rule]}
    if rule == "oracle":
        settings |= {"n_contexts": len(data), "allocation": Given(torch.as_tensor(truth.domain))}
    estimator = (LeafRegressor if data.classes is None else LeafClassifier)(random_state=seed, **settings)
    began = time.process_time()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        estimator.fit(sample.x.reshape(len(sample.x), -1), sample.y, groups=sample.groups)
    seconds = time.process_time() - began
    measure = rmse if data.classes is None else error_rate
    errors = [measure(estimator.predict_each(np.asarray(d.test.x).reshape(len(d.test), -1)), d.test.y).min() for d in data]
    agreement = allocation_agreement(estimator.contexts_, truth.domain)
    recovered = agreement >= task.groups_right if task.groups_right else max(errors) < task.threshold
    return {
        "task": task.name, "rule": rule, "seed": seed, "recovered": bool(recovered), "errors": [round(float(e), 4) for e in errors],
        "agreement": round(agreement, 4), "seconds": round(seconds, 2), "converged": bool(estimator.converged_),
        "warnings": len(warned), "init": estimator.init_,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--rule", choices=RULES, default="default")
    parser.add_argument("--record", type=Path, default=None)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    path = arguments.record
    records = [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []
    done = {(r["task"], r["rule"], r["seed"]): r for r in records}
    for name in arguments.tasks.split(","):
        rows = []
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            key = (name, arguments.rule, seed)
            if key not in done:
                done[key] = run(TASKS[name], arguments.rule, seed)
                if path:
                    with path.open("a") as file:
                        file.write(json.dumps(done[key]) + "\n")
            rows.append(done[key])
        seconds = np.mean([r["seconds"] for r in rows])
        print(f"{name:18s} {arguments.rule:9s} {sum(r['recovered'] for r in rows):3d} of {len(rows)}  {seconds:5.1f} s a fit", flush=True)


if __name__ == "__main__":
    main()
