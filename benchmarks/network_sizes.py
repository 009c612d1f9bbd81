"""How large must pictures and networks be? The multi-task oracle on a part of the training pictures that is held out.

    LEAFLEARN_DATA=... python benchmarks/network_sizes.py [--dataset fashion-parallel] [--epochs 10] [--sizes small,usual]

Prints, for each size, the validation error of each domain in percent and the processor seconds that the oracle learnt for.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
import torch

from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.domains import DomainSet
from leaflearn.benchmark.datasets.sources import Examples, Images
from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.benchmark.experiments.method_errors import method_errors
from leaflearn.benchmark.experiments.parts import make_network, make_optimizer
from leaflearn.benchmark.methods import describe, make_method, train

SIZES = {  # height of the pictures, widths of the convolutions
    "small": (20, [16, 32, 32, 64]),
    "usual": (40, [16, 32, 32, 64, 64]),
    "wide": (40, [32, 64, 64, 128, 128]),
    "whole pictures": (80, [16, 32, 32, 64, 64]),
}
HELD_OUT = 1 / 6  # of the training pictures
ROWS = 128  # in a step


def with_validation(domains: DomainSet, seed: int) -> DomainSet:
    """The same domains with a part of their training rows in the place of the test rows; one and the same part where they share rows."""
    parts = []
    for domain in domains:
        train_part = domain.train
        if not isinstance(train_part, Examples):
            raise TypeError(f"'{domain.name}' has no table of training rows to hold some out of.")
        rows = np.random.default_rng(seed).permutation(len(train_part))
        cut = round(HELD_OUT * len(rows))
        held_out, kept = (_take(train_part, np.sort(part)) for part in (rows[:cut], rows[cut:]))
        parts.append(replace(domain, train=kept, test=held_out))
    return replace(domains, domains=tuple(parts))


def _take(table: Examples, rows: np.ndarray) -> Examples:
    x = Images(table.x.stored[rows]) if isinstance(table.x, Images) else np.asarray(table.x)[rows]
    return Examples(x, np.asarray(table.y)[rows])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="fashion-parallel")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--sizes", default=",".join(SIZES))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for size in arguments.sizes.split(","):
        height, channels = SIZES[size]
        domains = with_validation(DATASETS[arguments.dataset](height=height), seed=0)
        sampler = BilevelSampler(domains, group_size=1, groups_per_step=ROWS, random_state=0)
        network = make_network({"name": "convnet", "channels": channels}, domains.input_shape)
        optimizer = make_optimizer({"name": "adam", "learning_rate": 0.002})
        problem, method = (
            describe(sampler, network, arguments.epochs, 0, optimizer, slows_down=True),
            make_method("mtl-oracle"),
        )
        began = time.process_time()
        train(method, sampler, problem, arguments.epochs)
        seconds = time.process_time() - began
        errors = " / ".join(
            f"{100 * error:.1f}" for error in method_errors(method, domains)["best"]
        )
        print(
            f"{size:16s} {height} pixels, convolutions {channels}: {errors} %, {seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
