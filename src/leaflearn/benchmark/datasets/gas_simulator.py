"""Simulated recordings of gas mixtures, for use without the publisher's files.

`gas_simulated` is a data set in memory; `simulate_gas_mixtures` writes files with the publisher's
layout and number format. A recording has 100 rows per second, set points of two gases that jump at
random, and an array of four types of sensors, four of each. From set point to reading:

flow      the inflow fluctuates around its set point, and the chamber fills with a lag
sensor    R = R_air (1 + sensitivities . concentrations) ** -exponent is the resistance,
          and a reading is a constant divided by the resistance
lag       every sensor follows with its own lag
ambient   temperature and humidity, the same for all sensors, drift; electronic noise is added

The conflict: every sensor responds to carbon monoxide as it does to methane, but less. A reading
does not show which of the two gases was present, and it corresponds to two and a half times as much
carbon monoxide as methane. Real sensors are likely to be more selective, and the real conflict less
clear.

Set points jump every few seconds instead of every hundred seconds as in the original, so that short
files contain many mixtures.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.gas_mixtures import (
    RECORDINGS,
    SIMULATED,
    TEST_SHARE,
    is_simulated,
)
from leaflearn.benchmark.datasets.registry import register
from leaflearn.benchmark.datasets.sources import Array, Examples
from leaflearn.benchmark.datasets.store import DataError
from leaflearn.progress import Advance, progress_bar

RATE = 100  # rows per second
MAX_CONCENTRATION = {"methane": 297.0, "CO": 533.33, "ethylene": 20.0}  # ppm
CO_EQUIVALENT = 0.4  # ppm of methane to which sensors respond as to 1 ppm of CO
OFF_SHARE = 0.2  # share of the set points of each gas that are 0
HOLD_TIME = (4.0, 12.0)  # shortest and longest time between jumps, seconds
FLOW_DEVIATION, FLOW_TIME = 0.08, 0.5  # relative standard deviation; correlation time, seconds
AMBIENT_DEVIATION, AMBIENT_TIME = 0.02, 60.0  # the same for temperature and humidity
CHAMBER_LAG = 0.2  # seconds
NOISE = 0.01  # relative standard deviation of a reading
ROWS_AT_ONCE = 50_000
ARRAY_SEED = 0  # the sensors are the same in all recordings

# Per type: reading in air, sensitivity to methane and to ethylene per ppm, exponent, lag (s).
TYPES = {
    "TGS2602": (700.0, 0.004, 0.40, 0.65, 0.4),
    "TGS2600": (2000.0, 0.010, 0.25, 0.45, 0.3),
    "TGS2610": (900.0, 0.030, 0.06, 0.60, 0.2),
    "TGS2620": (1800.0, 0.015, 0.15, 0.55, 0.3),
}
ORDER = ("TGS2602", "TGS2602", "TGS2600", "TGS2600", "TGS2610", "TGS2610", "TGS2620", "TGS2620") * 2
SPREAD = 0.1  # relative difference between sensors of one type


@register("gas-simulated")
def gas_simulated(n_rows: int = 20_000, random_state: int = 0) -> DomainSet:
    """Concentrations of two gases from 16 simulated sensors, in two mixtures.

    Like `gas-mixtures`, but simulated in memory, with `n_rows` rows per mixture.

    Parameters
    ----------
    n_rows
        Rows of each mixture; a tenth of them is for testing.
    random_state
        Seed of set points, drift, noise and the split.

    Examples
    --------
    >>> domains = gas_simulated(n_rows=1000)
    >>> domains.names, len(domains.domains[0].train), len(domains.domains[0].test)
    (('methane', 'CO'), 900, 100)
    """
    if n_rows < 10:
        raise ValueError(f"`n_rows` must be at least 10, to leave test rows; it is {n_rows}.")
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


def simulate_gas_mixtures(folder: Path, n_rows: int = 200_000, random_state: int = 0) -> None:
    """Write both recordings into the folder, with `n_rows` rows each.

    Their headers say that they are simulated. Files of an earlier simulation are replaced, real
    ones never. The same `random_state` writes the same files.

    Parameters
    ----------
    folder
        The target, created if necessary. The loader looks in `data_folder() / GAS.folder`.
    n_rows
        Rows of each file; 200,000 rows are 2,000 seconds and 30 megabytes. The real files have 4.2
        million rows.
    random_state
        Seed of set points, drift and noise. The sensors never change.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     simulate_gas_mixtures(Path(folder), n_rows=100)
    ...     print(*sorted(os.listdir(folder)))
    ethylene_CO.txt ethylene_methane.txt
    """
    if n_rows < 1:
        raise ValueError(f"`n_rows` must be at least 1; it is {n_rows}.")
    from leaflearn.persistence.atomic_files import make_folder  # slow to import

    make_folder(folder)
    _refuse_real_files(folder)
    seeds = np.random.SeedSequence(random_state).spawn(len(RECORDINGS))
    with tempfile.TemporaryDirectory(prefix=".simulated-", dir=folder) as temporary:
        with progress_bar("simulating", total=n_rows * len(RECORDINGS)) as advance:
            for done, (gas, seed) in enumerate(zip(RECORDINGS, seeds, strict=True)):
                _write(
                    Path(temporary) / RECORDINGS[gas],
                    gas,
                    n_rows,
                    np.random.default_rng(seed),
                    advance,
                    done * n_rows,
                )
        for name in RECORDINGS.values():
            os.replace(Path(temporary) / name, folder / name)


def _simulate(gas: str, n_rows: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Readings (n_rows, 16) and concentrations (n_rows, 2) in random order."""
    rows = np.concatenate(list(record(gas, n_rows, generator)))
    rows = rows[generator.permutation(n_rows)].astype(np.float32)
    return rows[:, 3:], rows[:, 1:3]


def _refuse_real_files(folder: Path) -> None:
    for name in RECORDINGS.values():
        if (folder / name).exists() and not is_simulated(folder / name):
            raise DataError(
                f"'{folder / name}' is not a simulated recording and will not be replaced; "
                "move it, or choose another folder."
            )


def _write(
    path: Path, gas: str, n_rows: int, generator: np.random.Generator, advance: Advance, done: int
) -> None:
    with path.open("w", encoding="ascii") as file:
        name = gas.capitalize() if gas.islower() else gas
        file.write(
            f"Time (seconds), {name} conc (ppm), Ethylene conc (ppm), "
            f"sensor readings (16 channels) {SIMULATED}\n"
        )
        for table in record(gas, n_rows, generator):
            np.savetxt(file, table, fmt="%-7.2f ", delimiter="")
            done += len(table)
            advance(done)


def record(gas: str, n_rows: int, generator: np.random.Generator) -> Iterator[Array]:
    """Yield the rows of a recording in blocks: seconds, set points, readings, (n, 19).

    Examples
    --------
    >>> next(record("methane", 10, np.random.default_rng(0))).shape
    (10, 19)
    """
    jumps, levels = _set_points(gas, n_rows, generator)
    chamber, sensors = _Chamber(generator), _Sensors(gas, generator)
    for start in range(0, n_rows, ROWS_AT_ONCE):
        row = np.arange(start, min(start + ROWS_AT_ONCE, n_rows))  #                           (n,)
        set_points = levels[np.searchsorted(jumps, row, side="right") - 1]  #                 (n, 2)
        yield np.column_stack([row / RATE, set_points, sensors.read(chamber.fill(set_points))])


def _set_points(gas: str, n_rows: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Rows where the set points jump, (jumps,), and the concentrations from there, (jumps, 2)."""
    n_jumps = 1 + int(n_rows / (RATE * HOLD_TIME[0]))  # enough for the shortest hold times
    hold_times = generator.uniform(*HOLD_TIME, size=n_jumps) * RATE
    jumps = np.concatenate([[0], np.cumsum(hold_times)[:-1].astype(int)])
    highest = [MAX_CONCENTRATION[gas], MAX_CONCENTRATION["ethylene"]]
    levels = generator.uniform(0, highest, size=(n_jumps, 2))
    levels[generator.random((n_jumps, 2)) < OFF_SHARE] = 0.0
    return jumps, np.round(levels, 2)


class _Chamber:
    """The concentrations in the chamber."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.flow = _AutoregressiveNoise(FLOW_DEVIATION, FLOW_TIME, 2, generator)
        self.lag = _FirstOrderLag(np.full(2, CHAMBER_LAG), start=np.zeros(2))

    def fill(self, set_points: Array) -> Array:
        """Concentrations in the chamber, (n, 2)."""
        return self.lag.follow(set_points * (1.0 + self.flow.draw(len(set_points))))


class _Sensors:
    """The readings of the sensor array."""

    def __init__(self, gas: str, generator: np.random.Generator) -> None:
        spread = np.random.default_rng(ARRAY_SEED).normal(0.0, SPREAD, (5, len(ORDER)))
        columns = np.array([TYPES[kind] for kind in ORDER]).T * np.exp(spread)  #          (5, 16)
        self.air, methane, ethylene, self.exponent, lag = columns
        own_gas = methane if gas == "methane" else CO_EQUIVALENT * methane
        self.sensitivity = np.stack([own_gas, ethylene])  #                                (2, 16)
        self.lag = _FirstOrderLag(lag, start=np.ones(len(ORDER)))
        self.ambient = _AutoregressiveNoise(AMBIENT_DEVIATION, AMBIENT_TIME, 1, generator)
        self.generator = generator

    def read(self, concentrations: Array) -> Array:
        """Readings for these concentrations (n, 2), shape (n, 16)."""
        response = self.lag.follow((1.0 + concentrations @ self.sensitivity) ** self.exponent)
        noise = self.generator.normal(1.0, NOISE, response.shape)
        return np.asarray(self.air * response * (1.0 + self.ambient.draw(len(response))) * noise)


class _FirstOrderLag:
    """Filters each column of a signal with a first-order lag; keeps its state between calls."""

    def __init__(self, seconds: Array, start: Array) -> None:
        # share of the distance covered in one row, (columns,)
        self.step = 1.0 - np.exp(-1.0 / (RATE * seconds))
        self.last = (
            start  #                                                                   (columns,)
        )

    def follow(self, signal: Array) -> Array:
        """The filtered signal, (n, columns) like the signal."""
        from scipy.signal import lfilter  # slow to import

        columns = [
            lfilter([step], [1.0, step - 1.0], column, zi=[(1.0 - step) * last])[0]
            for step, last, column in zip(self.step, self.last, signal.T, strict=True)
        ]
        self.last = np.array([column[-1] for column in columns])
        return np.stack(columns, axis=1)


class _AutoregressiveNoise:
    """Noise with mean 0, this standard deviation and this correlation time."""

    def __init__(
        self, deviation: float, seconds: float, n_columns: int, generator: np.random.Generator
    ) -> None:
        self.lag = _FirstOrderLag(
            np.full(n_columns, seconds), start=generator.normal(0.0, deviation, n_columns)
        )
        # so that the lag reduces it to `deviation`
        self.noise = deviation * np.sqrt((2.0 - self.lag.step) / self.lag.step)
        self.generator = generator

    def draw(self, n: int) -> Array:
        """The next rows, (n, columns)."""
        return self.lag.follow(self.generator.normal(0.0, self.noise, (n, len(self.noise))))
