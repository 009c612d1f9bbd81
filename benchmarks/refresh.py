"""The effect of the refresh: default estimators with and without it, and the oracle.

python benchmarks/refresh.py [--seeds 3]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.sampling import sample_groups
from leaflearn.benchmark.evaluation import allocation_agreement, best_errors, error_rate, rmse
from leaflearn.core.allocation import Given

TASKS: dict[str, dict[str, int]] = {
    "functions": {"n_groups": 250, "group_size": 2},
    "colored-digits": {"n_groups": 600, "group_size": 4},
}


def measure(name: str, seed: int) -> None:
    data = DATASETS[name]()
    sample, truth = sample_groups(data, **TASKS[name], random_state=seed)
    x = sample.x.reshape(len(sample.x), -1)
    test_x = data.domains[0].test.x.reshape(len(data.domains[0].test.x), -1)
    plans: dict[str, dict[str, Any]] = {
        "without": {"refresh": False},
        "with": {},
        "oracle": {"allocation": Given(torch.as_tensor(truth.domain))},
    }
    for plan, settings in plans.items():
        estimator = (LeafRegressor if data.classes is None else LeafClassifier)(
            len(data), random_state=seed, **settings
        )
        began = time.perf_counter()
        estimator.fit(x, sample.y, groups=sample.groups)
        seconds = time.perf_counter() - began
        predictions = estimator.predict_each(test_x)
        errors = best_errors(
            predictions,
            [domain.test.y for domain in data],
            rmse if data.classes is None else error_rate,
        ).error
        agreement = allocation_agreement(estimator.contexts_, truth.domain)
        shown = "  ".join(
            f"{domain} {error:.4f}" for domain, error in zip(data.names, errors, strict=True)
        )
        right = f"groups right {agreement:.1%}"
        print(f"{name:15s} seed {seed}  {plan:8s} {shown}  {right}  {seconds:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    torch.set_num_threads(1)
    for seed in range(parser.parse_args().seeds):
        for name in TASKS:
            measure(name, seed)


if __name__ == "__main__":
    main()
