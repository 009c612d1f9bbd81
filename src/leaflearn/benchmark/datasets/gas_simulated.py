"""The two gas mixtures as a simulation in memory, for machines that have no files of the real recordings."""

from __future__ import annotations

import numpy as np

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.gas_mixtures import RECORDINGS, SIMULATED
from leaflearn.benchmark.datasets.registry import register
from leaflearn.benchmark.datasets.sources import Array, Examples

TEST_SHARE = 0.1


@register("gas-simulated")
def gas_simulated(n_rows: int = 20_000, random_state: int = 0) -> DomainSet:
    """Concentrations of two gases from 16 simulated sensors, in two mixtures.

    As `gas-mixtures`, with `n_rows` rows a mixture that are simulated and never written.

    Parameters
    ----------
    n_rows
        Rows of each mixture, a tenth of them to test on.
    random_state
        Seed of set points, drift, noise and the split.

    Examples
    --------
    >>> domains = gas_simulated(n_rows=1000)
    >>> domains.names, len(domains.domains[0].train), len(domains.domains[0].test)
    (('methane', 'CO'), 900, 100)
    """
    if n_rows < 10:
        raise ValueError(
            f"`n_rows` must be at least 10, so that there is something to test on; it is {n_rows}."
        )
    seeds = np.random.SeedSequence(random_state).spawn(len(RECORDINGS))
    tables = [
        _simulate(gas, n_rows, np.random.default_rng(seed))
        for gas, seed in zip(RECORDINGS, seeds, strict=True)
    ]
    n_test = round(TEST_SHARE * n_rows)
    readings = np.concatenate([x[n_test:] for x, _ in tables])
    mean, scale = readings.mean(axis=0), readings.std(axis=0)
    domains = []
    for name, (x, y) in zip(RECORDINGS, tables, strict=True):
        scaled = ((x - mean) / scale).astype(np.float32)
        domains.append(
            Domain(
                name,
                train=Examples(scaled[n_test:], y[n_test:]),
                test=Examples(scaled[:n_test], y[:n_test]),
            )
        )
    return DomainSet(
        f"gas-simulated {SIMULATED}",
        tuple(domains),
        n_groups=max(1, 2 * n_rows // 50),
        group_size=50,
    )


def _simulate(gas: str, n_rows: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Readings (n_rows, 16) and concentrations (n_rows, 2), in an order drawn at random: the first are as good to test on as any."""
    from leaflearn.benchmark.datasets.gas_simulator import (
        record,
    )  # here, because it needs scipy, which takes its time

    rows = np.concatenate(list(record(gas, n_rows, generator)))
    rows = rows[generator.permutation(n_rows)].astype(np.float32)
    return rows[:, 3:], rows[:, 1:3]
