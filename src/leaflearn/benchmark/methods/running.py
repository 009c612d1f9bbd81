"""Train a method on the meta-batches of a sampler; it sees only what it declares in `sees`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from leaflearn.benchmark.datasets.domains import DomainSet, Truth
from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.benchmark.methods.contract import Method, OracleInfo, Problem
from leaflearn.benchmark.methods.optimizers import Optimize, sgd
from leaflearn.core.batches import Batches

PEEK_EPOCH = 1_000_000  # drawn from before training; no training reaches this epoch


def describe(
    sampler: BilevelSampler,
    network: Callable[[int], nn.Module],
    n_epochs: int,
    seed: int = 0,
    optimizer: Optimize = sgd,
    slows_down: bool = False,
) -> Problem:
    """Return what a method may know before training.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> from leaflearn.engines.networks import mlp
    >>> sampler = BilevelSampler(DATASETS["functions"]())
    >>> problem = describe(sampler, lambda n_outputs: mlp(1, n_outputs), n_epochs=2)
    >>> problem.input_shape, problem.n_domains, problem.is_classification, problem.n_steps
    ((1,), 3, False, 16)
    """
    domains: DomainSet = sampler.domains
    is_classification = domains.classes is not None
    return Problem(
        domains.input_shape,
        len(domains.classes) if domains.classes is not None else _count_outputs(domains),
        is_classification,
        len(domains),
        n_epochs * len(sampler),
        sampler.n_rows,
        network,
        lambda n_rows: _peek(sampler, n_rows),
        seed,
        optimizer,
        slows_down,
    )


def train(
    method: Method, sampler: BilevelSampler, problem: Problem, n_epochs: int
) -> list[dict[str, float]]:
    """Prepare and train the method; return the mean of the numbers from `update` for each epoch.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> from leaflearn.benchmark.methods import make_method
    >>> from leaflearn.engines.networks import mlp
    >>> sampler = BilevelSampler(DATASETS["functions"]())
    >>> problem = describe(sampler, lambda n_outputs: mlp(1, n_outputs), n_epochs=3)
    >>> history = train(make_method("erm"), sampler, problem, n_epochs=3)
    >>> len(history), sorted(history[0])
    (3, ['loss'])
    """
    method.prepare(problem)
    history = []
    for epoch in range(n_epochs):
        rows = [
            method.update(batches, make_oracle_info(method, truth))
            for batches, truth in sampler.epoch(epoch)
        ]
        method.end_epoch()
        history.append({name: float(np.mean([row[name] for row in rows])) for name in rows[0]})
    return history


def make_oracle_info(method: Method, truth: Truth) -> OracleInfo | None:
    """Return what this method may see of the truth; None for methods that are not oracles.

    Examples
    --------
    >>> from leaflearn.benchmark.methods import make_method
    >>> truth = Truth(domain=np.array([1, 0]), names=("up", "down"))
    >>> make_oracle_info(make_method("leaf"), truth) is None
    True
    >>> make_oracle_info(make_method("mtl-oracle"), truth).domain
    tensor([1, 0])
    """
    if not method.sees:
        return None
    domain = torch.from_numpy(truth.domain) if "domain" in method.sees else None
    label_sets = None
    if "label_set" in method.sees:
        if truth.label_sets is None:
            raise ValueError(
                f"{method.name} needs the targets of each input in all domains, but the domains of "
                "this data set do not share inputs; choose another data set."
            )
        label_sets = torch.from_numpy(np.asarray(truth.label_sets))
    return OracleInfo(domain, label_sets)


def _peek(sampler: BilevelSampler, n_rows: int) -> Batches:
    """Join meta-batches of a separate epoch until there are enough rows."""
    parts: list[Batches] = []
    for batches, _ in sampler.epoch(PEEK_EPOCH):
        parts.append(batches)
        if sum(len(part.x) for part in parts) >= n_rows:
            break
    starts = np.cumsum([0] + [part.n_groups for part in parts])
    return Batches(
        torch.cat([part.x for part in parts]),
        torch.cat([part.y for part in parts]),
        torch.cat(
            [part.group + int(start) for part, start in zip(parts, starts[:-1], strict=True)]
        ),
        n_groups=int(starts[-1]),
    )


def _count_outputs(domains: DomainSet) -> int:
    y = np.asarray(domains.domains[0].test.y)
    return 1 if y.ndim == 1 else int(y.shape[1])
