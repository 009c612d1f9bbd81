"""The time of one step: the literal Algorithm 1 and the library, on the paper's regression task.

make bench
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import reference
from leaflearn.core.algorithm import step
from leaflearn.core.allocation import Hard
from leaflearn.core.batches import Batches
from leaflearn.core.losses import SquaredError
from leaflearn.core.model_set import LoopedModels, ModelSet, StackedModels
from leaflearn.engines.networks import mlp

N_CONTEXTS, N_GROUPS, GROUP_SIZE, N_RESTARTS = 3, 32, 2, 16


def make_optimizer(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-4, fused=True)


def measure(run: Callable[[], object], seconds: float = 1.0, repeats: int = 5) -> float:
    """Milliseconds of one call, the best of several rounds, because noise only adds time."""
    run()
    began = time.perf_counter()
    run()
    n_calls = max(1, int(seconds / repeats / (time.perf_counter() - began)))
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(n_calls):
            run()
        best = min(best, (time.perf_counter() - began) / n_calls)
    return 1000 * best


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = torch.rand(N_GROUPS * GROUP_SIZE, 1) * 4 - 2, torch.randn(N_GROUPS * GROUP_SIZE, 1)
    batches = Batches(x, y, torch.arange(N_GROUPS).repeat_interleave(GROUP_SIZE))
    groups = [(x[batches.group == i], y[batches.group == i]) for i in range(N_GROUPS)]
    modules = [mlp(1, 1) for _ in range(N_CONTEXTS)]

    def time_literal(run: Callable[..., None], *arguments: object) -> float:
        literal = copy.deepcopy(modules)
        optimizer = make_optimizer([p for module in literal for p in module.parameters()])
        return measure(lambda: run(literal, optimizer, groups, *arguments))

    baseline = time_literal(reference.run_batched)

    def time_library(models: ModelSet) -> float:
        optimizer = make_optimizer(models.parameters())
        return measure(lambda: step(models, batches, SquaredError(), Hard(), optimizer))

    restarts = [mlp(1, 1) for _ in range(N_RESTARTS * N_CONTEXTS)]
    rows = {
        "the literal Algorithm 1": time_literal(reference.run_algorithm_1, reference.squared_error),
        "the same, a group at once": baseline,
        "looped models": time_library(LoopedModels(copy.deepcopy(modules), (N_CONTEXTS,))),
        "stacked models": time_library(StackedModels(copy.deepcopy(modules), (N_CONTEXTS,))),
        f"{N_RESTARTS} restarts stacked": time_library(
            StackedModels(restarts, (N_RESTARTS, N_CONTEXTS))
        ),
    }
    groups_of = f"{N_GROUPS} groups of {GROUP_SIZE}"
    print(f"one step, {N_CONTEXTS} models of five layers of 32, {groups_of}, one thread")
    print(f"{'':40s} times as fast as the first row, and as the second")
    for name, milliseconds in rows.items():
        literal, at_once = rows["the literal Algorithm 1"] / milliseconds, baseline / milliseconds
        print(f"{name:28s} {milliseconds:8.2f} ms {literal:8.1f} {at_once:8.1f}")


if __name__ == "__main__":
    main()
