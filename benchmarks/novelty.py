"""Are sources of a context that was left out of training distinguished from known ones?

    python benchmarks/novelty.py [--tasks functions,renamed] [--seeds 10] [--first-seed 3000]
        [--rows 10] [--sources 200]

For each task, seed and domain: a fit without that domain, then `identify` on sources of a few
labelled rows, half of them from known domains and half from the domain that was left out. Images
come from the test split; points of functions are new draws.

    AUROC      of `novelty`; 1 if every new source has a larger value than every known source
    alarms     share of known sources that `is_new` flags; the target is 1 %
    slips      the same, with one target of each known source replaced by that of another row
    found      share of new sources that `is_new` flags
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.benchmark.datasets import colored_digits, functions
from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sampling import sample_groups
from leaflearn.benchmark.datasets.sources import Examples

Array = NDArray[Any]


def renamed() -> DomainSet:
    """Digits whose names, 0 to 9, are permuted at each of three sites.

    About one name in ten is the same at two sites.
    """
    digits = colored_digits().domains[0]
    orders = [np.random.default_rng(site).permutation(10) for site in range(3)]
    domains = tuple(
        Domain(
            f"site {site}",
            *(Examples(np.asarray(part.x), order[part.y]) for part in (digits.train, digits.test)),
        )
        for site, order in enumerate(orders)
    )
    return DomainSet("renamed", domains, n_groups=500, group_size=4, classes=tuple("0123456789"))


def same_names() -> DomainSet:
    """Coloured digits from 0 to 7, and colours with the same numbers as labels."""
    digit, color = colored_digits().domains

    def part(name: str, first: int, at: str) -> Examples:
        x, y, keep = (
            getattr(digit, at).x,
            getattr({"digit": digit, "color": color}[name], at).y,
            getattr(digit, at).y < 8,
        )
        return Examples(np.asarray(x)[keep], y[keep] - first)

    domains = tuple(
        Domain(name, part(name, first, "train"), part(name, first, "test"))
        for name, first in (("digit", 0), ("color", 10))
    )
    return DomainSet("same-names", domains, n_groups=500, group_size=4, classes=tuple("01234567"))


TASKS: dict[str, Callable[[], DomainSet]] = {
    "functions": functions,  # three, one left out
    "renamed": renamed,
    "same-names": same_names,
    "colored-digits": colored_digits,  # the labels of the left-out domain are new
}


class Measured(NamedTuple):
    """The measures of one fit."""

    auroc: float
    alarms: float
    slips: float
    found: float
    seconds: float


def run(data: DomainSet, left_out: int, seed: int, n_rows: int, n_sources: int) -> Measured:
    """Fit without a domain, and identify sources of all domains."""
    known = [domain for d, domain in enumerate(data.domains) if d != left_out]
    sample, _ = sample_groups(replace(data, domains=tuple(known)), random_state=seed)
    estimator = (LeafRegressor if data.classes is None else LeafClassifier)(
        len(known), random_state=seed
    )
    began = time.process_time()
    estimator.fit(_flat(sample.x), sample.y, groups=sample.groups)
    seconds = time.process_time() - began
    generator = np.random.default_rng([seed, left_out])
    x, y, groups = _sources(known, n_rows, n_sources, generator)
    old = estimator.identify(x, y, groups)
    slips = y.copy()
    slips[::n_rows] = slips[::n_rows][generator.permutation(n_sources)]
    slipped = estimator.identify(x, slips, groups)
    new = estimator.identify(*_sources([data.domains[left_out]], n_rows, n_sources, generator))
    is_unknown = np.repeat([0, 1], n_sources)
    auroc = roc_auc_score(is_unknown, np.concatenate([old.novelty, new.novelty]))
    return Measured(
        float(auroc),
        float(old.is_new.mean()),
        float(slipped.is_new.mean()),
        float(new.is_new.mean()),
        seconds,
    )


def _sources(
    domains: list[Domain], n_rows: int, n_sources: int, generator: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Sources of `n_rows` labelled rows, from the domains in turn."""
    parts = [
        _draw(domains[source % len(domains)], n_rows, generator) for source in range(n_sources)
    ]
    groups = np.repeat(np.arange(n_sources), n_rows)
    return (
        np.concatenate([part.x for part in parts]),
        np.concatenate([part.y for part in parts]),
        groups,
    )


def _draw(domain: Domain, n_rows: int, generator: np.random.Generator) -> Examples:
    if not isinstance(domain.train, Examples):
        return domain.train.draw(n_rows, generator)
    rows = generator.choice(len(domain.test), n_rows, replace=False)
    return Examples(_flat(domain.test.x)[rows], domain.test.y[rows])


def _flat(x: Any) -> Array:
    return np.asarray(x).reshape(len(x), -1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=3000)
    parser.add_argument("--rows", type=int, default=10, help="labelled rows of a source")
    parser.add_argument(
        "--sources", type=int, default=200, help="number of known sources, and of new sources"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    names = (
        f"{'AUROC':>6s} {'worst':>6s} {'alarms':>7s} {'slips':>6s} {'found':>6s} {'seconds':>8s}"
    )
    print(f"{'task':15s} {'left out':10s} {names}")
    for name in arguments.tasks.split(","):
        data = TASKS[name]()
        for left_out, domain in enumerate(data.domains):
            seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
            runs = [run(data, left_out, seed, arguments.rows, arguments.sources) for seed in seeds]
            auroc, alarms, slips, found, seconds = np.mean(runs, axis=0)
            worst = min(measured.auroc for measured in runs)
            row = f"{auroc:6.3f} {worst:6.3f} {alarms:7.3f} {slips:6.3f} {found:6.3f}"
            print(f"{name:15s} {domain.name:10s} {row} {seconds:8.1f}", flush=True)


if __name__ == "__main__":
    main()
