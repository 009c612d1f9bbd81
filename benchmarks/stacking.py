"""When stacking is faster: one step of looped and of stacked networks of growing size, one thread.

python benchmarks/stacking.py
"""

from __future__ import annotations

import copy

import torch
from step import make_optimizer, measure

from leaflearn.core.algorithm import step
from leaflearn.core.allocation import Hard
from leaflearn.core.batches import Batches
from leaflearn.core.losses import SquaredError
from leaflearn.core.model_set import LoopedModels, ModelSet, StackedModels
from leaflearn.engines.networks import mlp

N_FEATURES, GROUP_SIZE, N_GROUPS = 20, 4, 32


def main() -> None:
    torch.set_num_threads(1)
    x, y = torch.randn(N_GROUPS * GROUP_SIZE, N_FEATURES), torch.randn(N_GROUPS * GROUP_SIZE, 1)
    batches = Batches(x, y, torch.arange(N_GROUPS).repeat_interleave(GROUP_SIZE))

    def time_step(models: ModelSet) -> float:
        optimizer = make_optimizer(models.parameters())
        return measure(lambda: step(models, batches, SquaredError(), Hard(), optimizer))

    times = f"{'looped ms':>10} {'stacked ms':>11} {'ratio':>6}"
    print(f"{'hidden layers':>16} {'parameters':>11} {'models':>7} {times}")
    for width in (32, 64, 128, 256, 512):
        for n_models in (3, 12):
            modules = [mlp(N_FEATURES, 1, (width,) * 3) for _ in range(n_models)]
            n_parameters = sum(p.numel() for p in modules[0].parameters())
            looped = time_step(LoopedModels(copy.deepcopy(modules), (n_models,)))
            stacked = time_step(StackedModels(modules, (n_models,)))
            times = f"{looped:>10.2f} {stacked:>11.2f} {looped / stacked:>6.2f}"
            print(f"{f'3 x {width}':>16} {n_parameters:>11,} {n_models:>7} {times}")


if __name__ == "__main__":
    main()
