"""How often the refit engine finds the contexts: linear models, boosted trees in and out of fold.

    python benchmarks/refit_recovery.py [--seeds 20]

A linear task counts as found if every group is in its context (in any order of contexts), a task
for trees if 99 % of the groups are. Linear tasks run with the engine's defaults. Trees run on half
as many seeds from a single start, because several starts would hide the effect of the rule.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # must be set before the libraries are loaded

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from leaflearn.core.allocation import Annealed, Hard, Rule
from leaflearn.engines.refit import refit
from leaflearn.engines.refit_task import SquaredRowLoss

N_CONTEXTS = 3
Task = tuple[Any, Any, Any, Any]  # x (N, p), y (N,), group (N,), domain of each group (m,)

MODELS: dict[str, Callable[[int], Any]] = {
    "linear": lambda _: LinearRegression(),
    "boosting": lambda seed: GradientBoostingRegressor(
        n_estimators=40, learning_rate=0.3, random_state=seed
    ),
    "hist boosting": lambda seed: HistGradientBoostingRegressor(
        max_iter=40, learning_rate=0.2, random_state=seed
    ),
}
RULES: dict[str, Callable[[Any], Rule]] = {
    "hard": lambda _: Hard(),
    "annealed": lambda y: Annealed(start=0.5 * y.var()),
}


def linear_task(seed: int, n_groups: int = 300, group_size: int = 20, n_features: int = 10) -> Task:
    rng = np.random.default_rng(seed)
    domain, group = (
        rng.integers(N_CONTEXTS, size=n_groups),
        np.repeat(np.arange(n_groups), group_size),
    )
    x = rng.normal(size=(len(group), n_features))
    coefficients = rng.normal(size=(N_CONTEXTS, n_features))
    y = (x * coefficients[domain[group]]).sum(1) + 0.5 * rng.normal(size=len(group))
    return x, y, group, domain


def three_functions(seed: int, n_groups: int = 250, group_size: int = 10) -> Task:
    rng = np.random.default_rng(seed)
    domain = rng.integers(N_CONTEXTS, size=n_groups)
    group = np.repeat(np.arange(n_groups), group_size)
    x = rng.uniform(-2, 2, size=len(group))
    functions = [2 * np.abs(x) - 2, 2 * np.sin(3 * x + np.pi / 2), 1.5 * np.log(2.5 - x) - 1]
    values = np.stack(functions, 1)  # (N, 3)
    y = values[np.arange(len(x)), domain[group]] + 0.01 * rng.normal(size=len(x))
    return x[:, None], y, group, domain


def share_right(contexts: Any, domain: Any) -> float:
    """Share of the groups in the right context, under the best one-to-one match."""
    table = np.zeros((N_CONTEXTS, N_CONTEXTS))
    np.add.at(table, (contexts, domain), 1)
    return float(table[linear_sum_assignment(-table)].sum() / len(domain))


def measure(
    make_task: Callable[[int], Task],
    model: str,
    rule: str,
    n_seeds: int,
    enough: float,
    **options: Any,
) -> str:
    found, right, began = 0, [], time.perf_counter()
    for seed in range(n_seeds):
        x, y, group, domain = make_task(seed)
        rng = np.random.default_rng(seed)
        answer = refit(
            MODELS[model],
            x,
            y,
            group,
            SquaredRowLoss(),
            RULES[rule](y),
            N_CONTEXTS,
            rng=rng,
            **options,
        )
        right.append(share_right(answer.contexts, domain))
        found += right[-1] >= enough
    seconds = (time.perf_counter() - began) / n_seeds
    scores = {True: "out of fold", False: "in sample"}[answer.out_of_fold]
    counts = f"{found:3} of {n_seeds:<3} {np.mean(right):7.1%} {seconds:9.2f}"
    return f"{model:14} {rule:9} {scores:12} {counts}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    n_seeds = parser.parse_args().seeds
    torch.set_num_threads(1)
    print(
        f"{'local model':14} {'rule':9} {'scores':12} {'found':>10} {'right':>7} {'s per fit':>9}"
    )
    for rule in RULES:
        print(measure(linear_task, "linear", rule, n_seeds, enough=1.0), flush=True)
    for model, rule in [("boosting", "hard"), ("boosting", "annealed"), ("hist boosting", "hard")]:
        for out_of_fold in [False, True]:
            options = {"out_of_fold": out_of_fold, "n_init": 1, "max_iter": 20}
            print(
                measure(three_functions, model, rule, max(n_seeds // 2, 1), enough=0.99, **options),
                flush=True,
            )


if __name__ == "__main__":
    main()
