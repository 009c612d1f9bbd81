"""Recordings of gas mixtures that no sensor ever made, for those who do not have the real ones.

The files have the publisher's layout and numbers of the same size: a hundred rows a second, set points of two gases that jump at random,
and an array of four types of sensors, four of each. What happens between a set point and a reading:

flow      the gas that arrives wavers around its set point, and takes its time to fill the chamber
sensor    resistance falls with a power of what the sensor smells, R = R_air (1 + sensitivities . concentrations) ** -exponent,
          and a reading is a constant divided by the resistance
delay     every sensor follows with a delay of its own
ambient   warmth and humidity, the same for all, drift; then comes electronic noise

The conflict: to every sensor, carbon monoxide smells like methane, only weaker. A reading does not say which of the two it was, and means
two and a half times as much of the one as of the other. Real sensors are likely to be more choosy, and the real conflict less plain.

Time runs faster than in the original, a jump every few seconds instead of every hundred, so that short files see many mixtures.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from leaflearn.benchmark.datasets.gas_mixtures import RECORDINGS, SIMULATED, is_simulated
from leaflearn.benchmark.datasets.sources import Array
from leaflearn.benchmark.datasets.store import DataError
from leaflearn.persistence.atomic_files import make_folder
from leaflearn.progress import Advance, progress_bar

RATE = 100  # rows a second
HIGHEST = {"methane": 297.0, "CO": 533.33, "ethylene": 20.0}  # ppm
CO_SMELLS_LIKE = 0.4  # ppm of methane that a ppm of it is mistaken for
OFF_SHARE = 0.2  # of the set points of each gas are 0
STAY = (4.0, 12.0)  # shortest and longest time between jumps, seconds
FLOW_WAVER, FLOW_MEMORY = (
    0.08,
    0.5,
)  # standard deviation of the flow, as a share of it; seconds until it has forgotten
AMBIENT_DRIFT, AMBIENT_MEMORY = 0.02, 60.0  # the same of what warmth and humidity do to readings
CHAMBER_DELAY = 0.2  # seconds
NOISE = 0.01  # standard deviation, as a share of the reading
ROWS_AT_ONCE = 50_000
ARRAY_SEED = 0  # the array is one and the same, whatever it records

# Of each type: reading in air, sensitivity to methane and to ethylene per ppm, exponent, seconds of delay.
TYPES = {
    "TGS2602": (700.0, 0.004, 0.40, 0.65, 0.4),
    "TGS2600": (2000.0, 0.010, 0.25, 0.45, 0.3),
    "TGS2610": (900.0, 0.030, 0.06, 0.60, 0.2),
    "TGS2620": (1800.0, 0.015, 0.15, 0.55, 0.3),
}
ORDER = ("TGS2602", "TGS2602", "TGS2600", "TGS2600", "TGS2610", "TGS2610", "TGS2620", "TGS2620") * 2
SPREAD = 0.1  # by how much two sensors of one type differ, relative


def simulate_gas_mixtures(folder: Path, n_rows: int = 200_000, random_state: int = 0) -> None:
    """Write both recordings into the folder, with `n_rows` rows each and a header that says that they are simulated.

    Files of an earlier simulation are replaced, real ones never. The same `random_state` writes the same files.

    Parameters
    ----------
    folder
        Where to; it is made where it is missing. The loader looks in `data_folder() / GAS.folder`.
    n_rows
        Rows of each file; 200,000 are 2,000 seconds, 30 megabytes. The real ones have 4.2 million.
    random_state
        Seed of set points, drift and noise. The sensors themselves never change.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     simulate_gas_mixtures(Path(folder), n_rows=100)
    ...     print(*sorted(os.listdir(folder)))
    ethylene_CO.txt ethylene_methane.txt
    """
    if n_rows < 1:
        raise ValueError(f"`n_rows` must be at least 1; it is {n_rows}.")
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


def _refuse_real_files(folder: Path) -> None:
    for name in RECORDINGS.values():
        if (folder / name).exists() and not is_simulated(folder / name):
            raise DataError(
                f"'{folder / name}' is not a simulated recording and will not be replaced; move it away or simulate elsewhere."
            )


def _write(
    path: Path, gas: str, n_rows: int, generator: np.random.Generator, advance: Advance, done: int
) -> None:
    with path.open("w", encoding="ascii") as file:
        name = gas.capitalize() if gas.islower() else gas
        file.write(
            f"Time (seconds), {name} conc (ppm), Ethylene conc (ppm), sensor readings (16 channels) {SIMULATED}\n"
        )
        for table in record(gas, n_rows, generator):
            np.savetxt(file, table, fmt="%-7.2f ", delimiter="")
            done += len(table)
            advance(done)


def record(gas: str, n_rows: int, generator: np.random.Generator) -> Iterator[Array]:
    """The rows of a recording, some at a time: seconds, set points, readings, (n, 19).

    Examples
    --------
    >>> next(record("methane", 10, np.random.default_rng(0))).shape
    (10, 19)
    """
    jumps, levels = _set_points(gas, n_rows, generator)
    chamber, sensors = _Chamber(generator), _Sensors(gas, generator)
    for start in range(0, n_rows, ROWS_AT_ONCE):
        row = np.arange(start, min(start + ROWS_AT_ONCE, n_rows))  #                           (n,)
        set_points = levels[
            np.searchsorted(jumps, row, side="right") - 1
        ]  #                  (n, 2)
        yield np.column_stack([row / RATE, set_points, sensors.read(chamber.fill(set_points))])


def _set_points(gas: str, n_rows: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """The rows at which the set points jump, the first one included, and the two concentrations from then on, (jumps,) and (jumps, 2)."""
    n_jumps = 1 + int(n_rows / (RATE * STAY[0]))  # enough even if every stay is the shortest
    stays = generator.uniform(*STAY, size=n_jumps) * RATE
    jumps = np.concatenate([[0], np.cumsum(stays)[:-1].astype(int)])
    levels = generator.uniform(0, [HIGHEST[gas], HIGHEST["ethylene"]], size=(n_jumps, 2))
    levels[generator.random((n_jumps, 2)) < OFF_SHARE] = 0.0
    return jumps, np.round(levels, 2)


class _Chamber:
    """What fills the chamber while the set points jump."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.waver = _Drift(FLOW_WAVER, FLOW_MEMORY, 2, generator)
        self.delay = _Delay(np.full(2, CHAMBER_DELAY), start=np.zeros(2))

    def fill(self, set_points: Array) -> Array:
        """Concentrations in the chamber, (n, 2)."""
        return self.delay.follow(set_points * (1.0 + self.waver.go_on(len(set_points))))


class _Sensors:
    """The array: what it reads while concentrations change."""

    def __init__(self, gas: str, generator: np.random.Generator) -> None:
        spread = np.random.default_rng(ARRAY_SEED).normal(0.0, SPREAD, (5, len(ORDER)))
        self.air, methane, ethylene, self.exponent, delay = np.array(
            [TYPES[kind] for kind in ORDER]
        ).T * np.exp(spread)  # (16,) each
        self.sensitivity = np.stack(
            [methane if gas == "methane" else CO_SMELLS_LIKE * methane, ethylene]
        )  # (2, 16)
        self.delay = _Delay(delay, start=np.ones(len(ORDER)))
        self.ambient = _Drift(AMBIENT_DRIFT, AMBIENT_MEMORY, 1, generator)
        self.generator = generator

    def read(self, concentrations: Array) -> Array:
        """Readings for these concentrations (n, 2), shape (n, 16)."""
        response = self.delay.follow((1.0 + concentrations @ self.sensitivity) ** self.exponent)
        noise = self.generator.normal(1.0, NOISE, response.shape)
        return np.asarray(self.air * response * (1.0 + self.ambient.go_on(len(response))) * noise)


class _Delay:
    """Follows every column of a signal as a first-order lag does, and remembers where it was."""

    def __init__(self, seconds: Array, start: Array) -> None:
        self.step = 1.0 - np.exp(
            -1.0 / (RATE * seconds)
        )  # share of the way that is gone in a row (columns,)
        self.last = (
            start  #                                                                   (columns,)
        )

    def follow(self, signal: Array) -> Array:
        """The delayed signal, (n, columns) like the signal."""
        columns = [
            lfilter([step], [1.0, step - 1.0], column, zi=[(1.0 - step) * last])[0]
            for step, last, column in zip(self.step, self.last, signal.T, strict=True)
        ]
        self.last = np.array([column[-1] for column in columns])
        return np.stack(columns, axis=1)


class _Drift:
    """Wanders around 0 with this standard deviation and forgets where it was after so many seconds: delayed noise."""

    def __init__(
        self, deviation: float, memory: float, n_columns: int, generator: np.random.Generator
    ) -> None:
        self.delay = _Delay(
            np.full(n_columns, memory), start=generator.normal(0.0, deviation, n_columns)
        )
        self.noise = deviation * np.sqrt(
            (2.0 - self.delay.step) / self.delay.step
        )  # the delay leaves `deviation` of it
        self.generator = generator

    def go_on(self, n: int) -> Array:
        """The next rows, (n, columns)."""
        return self.delay.follow(self.generator.normal(0.0, self.noise, (n, len(self.noise))))
