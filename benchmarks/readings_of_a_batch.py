"""What is a batch if groups are single rows? Three readings of the paper, on coloured digits.

    python benchmarks/readings_of_a_batch.py [--seeds 4] [--epochs 40]

Trains with the printed rule. Prints the error of the better of two local models on digits and on
colours, in percent, for each reading and seed.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from leaflearn.benchmark.datasets import colored_digits
from leaflearn.benchmark.datasets.domains import DomainSet
from leaflearn.benchmark.experiments.parts import flat_mlp
from leaflearn.core.algorithm import step
from leaflearn.core.allocation import Hard
from leaflearn.core.batches import Batches
from leaflearn.core.losses import CrossEntropy
from leaflearn.core.model_set import ModelSet, make_model_set

ROWS = 32  # in a step
READINGS = {  # does a step have one domain, and is it one group?
    "each row has a domain, and is allocated alone": (False, False),
    "a step has one domain, each row is allocated alone": (True, False),
    "a step has one domain, and is allocated as a whole": (True, True),
}


def learn(
    domains: DomainSet, has_one_domain: bool, is_one_group: bool, n_epochs: int, seed: int
) -> ModelSet:
    """Two local models trained by the printed rule."""
    torch.manual_seed(seed)
    classes = domains.classes or ()
    models = make_model_set(
        lambda: flat_mlp(domains.input_shape, len(classes), hidden=(256,)), (2,)
    )
    optimizer = torch.optim.Adam(models.parameters(), lr=0.002, betas=(0.5, 0.999))
    images = np.asarray(domains.domains[0].train.x[:])  # shared by both domains
    x = torch.as_tensor(images, dtype=torch.float32)  #                         (N, 3, 8, 8)
    y = torch.stack([torch.as_tensor(np.asarray(d.train.y)) for d in domains])  #    (2, N)
    group = torch.zeros(ROWS, dtype=torch.long) if is_one_group else torch.arange(ROWS)
    for _ in range(n_epochs):
        for rows in torch.randperm(len(x)).split(ROWS):
            if len(rows) == ROWS:
                domain = (
                    torch.randint(2, (1,)).expand(ROWS)
                    if has_one_domain
                    else torch.randint(2, (ROWS,))
                )
                step(
                    models,
                    Batches(x[rows], y[domain, rows], group),
                    CrossEntropy(),
                    Hard(),
                    optimizer,
                )
    return models


def errors(domains: DomainSet, models: ModelSet) -> list[float]:
    """The error of the better model in each domain, in percent."""
    found = []
    for domain in domains:
        x = torch.as_tensor(np.asarray(domain.test.x[:]), dtype=torch.float32)
        predictions = models(x).argmax(-1)  #                                   (2, N)
        wrong = (predictions != torch.as_tensor(np.asarray(domain.test.y))).double().mean(1)
        found.append(round(100 * float(wrong.min()), 1))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=40)
    given = parser.parse_args()
    torch.set_num_threads(1)
    domains = colored_digits()
    print("reading".ljust(56), *domains.names)
    for reading, (has_one_domain, is_one_group) in READINGS.items():
        for seed in range(given.seeds):
            models = learn(domains, has_one_domain, is_one_group, given.epochs, seed)
            print(reading.ljust(56), *errors(domains, models), flush=True)


if __name__ == "__main__":
    main()
