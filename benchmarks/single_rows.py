"""Single rows of real images: the default and the multi-task oracle on Fashion Product Images.

    python benchmarks/single_rows.py [--seeds 5] [--first-seed 0] [--height 20] [--epochs 6]
        [--record FILE]

Every group is one image with one label of gender, category or colour; which of the three is hidden.
The default learner is given the number of contexts, the oracle also the context of every group.
Both have the same network, optimizer and number of epochs. The test images are used only for the
printed errors. A record is one line of JSON per seed; recorded seeds are not repeated.
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
from torch import nn

from leaflearn import LeafClassifier
from leaflearn.benchmark.datasets import fashion_parallel
from leaflearn.benchmark.datasets.sampling import sample_groups
from leaflearn.benchmark.evaluation import allocation_agreement, best_errors, error_rate
from leaflearn.core.allocation import Given

WIDTHS = (16, 32, 64)


def convolutions(input_shape: tuple[int, ...], n_outputs: int) -> nn.Sequential:
    """Three convolutions, each halving the image, and a linear layer."""
    layers: list[nn.Module] = []
    channels = input_shape[0]
    for width in WIDTHS:
        layers += [
            nn.Conv2d(channels, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        ]
        channels = width
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(n_outputs))


def make(input_shape: tuple[int, ...], n_outputs: int) -> nn.Sequential:
    """The network with all its weights initialized."""
    network = convolutions(input_shape, n_outputs).eval()
    with torch.no_grad():
        network(torch.zeros(1, *input_shape))
    return network.train()


def run(seed: int, height: int, epochs: int) -> dict[str, Any]:
    """Fit the default and the oracle on one sample."""
    domains = fashion_parallel(height)
    sample, truth = sample_groups(domains, random_state=seed)
    record: dict[str, Any] = {"seed": seed, "height": height, "epochs": epochs}
    for name, settings in {
        "default": {},
        "oracle": {"allocation": Given(torch.as_tensor(truth.domain)), "refresh": False},
    }.items():
        leaf = LeafClassifier(
            3,
            local_model=make,
            max_epochs=epochs,
            groups_per_step=64,
            n_init=1,
            random_state=seed,
            **settings,
        )
        began = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            leaf.fit(np.asarray(sample.x), sample.y, sample.groups)
        x = np.asarray(domains.domains[0].test.x[:])
        errors = best_errors(
            leaf.predict_each(x), [domain.test.y for domain in domains], error_rate
        ).error
        agreement = allocation_agreement(leaf.contexts_, truth.domain)
        record[name] = {
            "errors": [round(100 * float(e), 2) for e in errors],
            "mean": round(100 * float(errors.mean()), 2),
            "agreement": round(agreement, 4),
            "seconds": round(time.process_time() - began, 1),
            "init": leaf.init_,
            "warnings": [str(w.message) for w in caught],
        }
    return record


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--height", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--record", type=Path, default=None)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    path = arguments.record
    done = (
        {r["seed"]: r for r in map(json.loads, path.read_text().splitlines())}
        if path and path.exists()
        else {}
    )
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        if seed not in done:
            done[seed] = run(seed, arguments.height, arguments.epochs)
            if path:
                with path.open("a") as file:
                    file.write(json.dumps(done[seed]) + "\n")
        ours, oracle = done[seed]["default"], done[seed]["oracle"]
        print(
            f"seed {seed} ours {ours['errors']} mean {ours['mean']}, "
            f"{100 * ours['agreement']:.1f} % of groups right, {ours['seconds']} s; "
            f"oracle {oracle['errors']} mean {oracle['mean']}, {oracle['seconds']} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
