"""The cost of the bilevel sampler relative to training: Colored MNIST as groups of one, one thread.

LEAFLEARN_DATA=... python benchmarks/sampling.py
"""

from __future__ import annotations

import time

import torch
from torch import nn

from leaflearn.benchmark.datasets import colored_mnist
from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.core.algorithm import step
from leaflearn.core.allocation import Hard
from leaflearn.core.losses import CrossEntropy
from leaflearn.core.model_set import LoopedModels

GROUPS_PER_STEP = 128
TRAINED_STEPS = 60  # of the 469 in an epoch; every step costs the same


def make_network(n_outputs: int) -> nn.Module:
    """Three convolutions and a linear layer, as in the paper, small so that sampling counts."""
    layers: list[nn.Module] = []
    for n_in, n_out in ((3, 16), (16, 32), (32, 32)):
        layers += [nn.Conv2d(n_in, n_out, 3, stride=2, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 4 * 4, n_outputs))


def main() -> None:
    torch.set_num_threads(1)
    data = colored_mnist()
    sampler = BilevelSampler(data, groups_per_step=GROUPS_PER_STEP)
    sampling = float("inf")
    for number in range(3):
        began = time.perf_counter()
        n_rows = sum(len(batches.x) for batches, _ in sampler.epoch(number))
        sampling = min(sampling, time.perf_counter() - began)
    models = LoopedModels([make_network(len(data.classes or ())) for _ in data], (len(data),))
    optimizer = torch.optim.Adam(models.parameters(), lr=0.002, betas=(0.5, 0.999))
    steps = [
        batches for _, (batches, _) in zip(range(TRAINED_STEPS), sampler.epoch(0), strict=False)
    ]
    began = time.perf_counter()
    for batches in steps:
        step(models, batches, CrossEntropy(), Hard(), optimizer)
    training = (time.perf_counter() - began) * len(sampler) / len(steps)
    print(f"an epoch of {n_rows:,} images as groups of one, {GROUPS_PER_STEP} per step, one thread")
    print(
        f"sampling {sampling:.2f} s, training {training:.1f} s: {100 * sampling / training:.1f} %"
    )


if __name__ == "__main__":
    main()
