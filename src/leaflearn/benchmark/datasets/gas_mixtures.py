"""Gas mixtures: concentrations from sensor readings, the paper's regression task on real data.

Sixteen sensors were exposed to ethylene and methane for twelve hours, and to ethylene and carbon
monoxide for another twelve. The gases were dosed so that the sensors respond about equally, so the
same reading means less methane or more carbon monoxide. The two recordings are the domains.

The publisher's files are 1.3 gigabytes of text. They are read once, a few megabytes at a time, and
cached as numpy files; see `prepared.py`. `gas_simulator.py` writes simulated files with the same
layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.prepared import prepare
from leaflearn.benchmark.datasets.registry import register
from leaflearn.benchmark.datasets.sources import Array, Examples
from leaflearn.benchmark.datasets.store import DataError, Files, RemoteFile, locate
from leaflearn.progress import Advance, progress_bar

# file of each domain, in the order of the domains
RECORDINGS = {"methane": "ethylene_methane.txt", "CO": "ethylene_CO.txt"}
N_ROWS = {"ethylene_methane.txt": 4_178_504, "ethylene_CO.txt": 4_208_261}  # as published
SIMULATED = "(simulated)"  # in the header of a simulated file
N_SENSORS, N_GASES = 16, 2
N_COLUMNS = 1 + N_GASES + N_SENSORS  # time, the mixture's own gas, ethylene, the sensors
TEST_SHARE = 0.1
SEED = 0  # of the split, which is part of the data
VERSION = 1  # of the prepared arrays; increase it when `_make` changes
READ_AT_ONCE = 8 << 20  # bytes of text
ROWS_AT_ONCE = 100_000
STORED = np.dtype("<f4")
LARGEST = float(np.finfo(STORED).max)

GAS = Files(
    folder="gas-sensor-array-under-dynamic-gas-mixtures",
    title="Gas sensor array under dynamic gas mixtures, by J. Fonollosa et al.",
    terms="CC BY 4.0",
    contents={"ethylene_methane.txt": None, "ethylene_CO.txt": None},
    remote=(
        RemoteFile(
            "https://archive.ics.uci.edu/static/public/322/"
            "gas+sensor+array+under+dynamic+gas+mixtures.zip",
            "gas-mixtures.zip",
            archive=True,
        ),
    ),
    by_hand="Unpack the zip file from https://archive.ics.uci.edu/dataset/322 there "
    "(370 MB, 1.3 GB unpacked), "
    "or simulate the two recordings with 'leaflearn data get gas-mixtures --simulated'.",
)


@register("gas-mixtures", files=GAS)
def gas_mixtures() -> DomainSet:
    """Concentrations of two gases from 16 sensors, in two mixtures.

    Inputs are the sensor readings at one time, float32 (N, 16), standardized over the training rows
    of both domains. Targets are float32 (N, 2) in parts per million: the mixture's own gas (methane
    or CO) and ethylene. They are not scaled: the paper's errors, 32 to 90, have no unit, but they
    fit gases that reach 297 and 533 parts per million, so the errors here can be compared with
    them. The root mean squared error over both targets is mostly that of the first gas, since
    ethylene only reaches 20.

    A tenth of the rows of each domain is for testing. A hash of the sixteen readings decides, so
    equal rows are always in the same part and no test input occurs in training. Rows a hundredth of
    a second apart can be in different parts, as in the paper.

    The name of the set says so if the files are simulated.

    Examples
    --------
    >>> domains = gas_mixtures()
    >>> domains.names, domains.input_shape, domains.group_size
    (('methane', 'CO'), (16,), 50)
    """
    folder = locate(GAS)
    paths = {name: folder / file for name, file in RECORDINGS.items()}
    prepared = prepare("gas-mixtures", paths.values(), partial(_make, paths), version=VERSION)
    domains = tuple(
        Domain(
            name, train=_examples(prepared, name, "train"), test=_examples(prepared, name, "test")
        )
        for name in paths
    )
    suffix = f" {SIMULATED}" if any(is_simulated(path) for path in paths.values()) else ""
    return DomainSet(f"gas-mixtures{suffix}", domains, n_groups=2000, group_size=50)


def is_simulated(path: Path) -> bool:
    """Return whether the header of this recording says that it is simulated.

    Examples
    --------
    >>> import os
    >>> is_simulated(Path(os.devnull))
    False
    """
    with path.open("rb") as file:
        return SIMULATED.encode() in file.readline(READ_AT_ONCE)


def _examples(folder: Path, name: str, part: str) -> Examples:
    x, y = (np.load(folder / f"{name}-{part}-{column}.npy", mmap_mode="r") for column in "xy")
    return Examples(x, y)


def _make(paths: dict[str, Path], folder: Path) -> None:
    """Write the arrays of all domains and parts in two passes; the first one finds the scale."""
    moments = np.zeros((3, N_SENSORS))
    with progress_bar(
        "reading the gas recordings",
        sum(path.stat().st_size for path in paths.values()),
        in_bytes=True,
    ) as advance:
        done = 0
        for name, path in paths.items():
            moments += _split(path, folder / name, advance, done)
            done += path.stat().st_size
    mean, scale = _mean_and_scale(moments)
    for name in paths:
        for part in ("train", "test"):
            _standardise(folder / f"{name}-{part}", mean, scale)


def _split(path: Path, stem: Path, advance: Advance, done: int) -> Array:
    """Split a recording into unscaled train and test files; return the training rows' moments."""
    counts, moments = {"train": 0, "test": 0}, np.zeros((3, N_SENSORS))
    with (
        Path(f"{stem}-train").open("wb") as train_file,
        Path(f"{stem}-test").open("wb") as test_file,
    ):
        for rows, read in _read(path):
            is_test = _is_test(rows[:, :N_SENSORS])
            for part, file, chosen in (
                ("train", train_file, rows[~is_test]),
                ("test", test_file, rows[is_test]),
            ):
                chosen.tofile(file)
                counts[part] += len(chosen)
            moments += _moments(rows[~is_test, :N_SENSORS])
            advance(done + read)
    _check_counts(path, counts)
    return moments


def _check_counts(path: Path, counts: dict[str, int]) -> None:
    n_rows, published = sum(counts.values()), 0 if is_simulated(path) else N_ROWS[path.name]
    if n_rows < published:
        raise DataError(
            f"'{path}' has {n_rows:,} rows, but the published file has {published:,}; "
            "get the file again."
        )
    if not min(counts.values()):
        raise DataError(
            f"'{path}' has too few rows ({n_rows}) for a training part and a test part; "
            "get the file again."
        )


def _read(path: Path) -> Iterator[tuple[Array, int]]:
    """Yield rows of a recording, float32 (n, 18), sensors first, and the number of bytes read."""
    with path.open("rb") as file:
        _check_header(path, file.readline(READ_AT_ONCE))
        first_line = 2
        while text := file.read(READ_AT_ONCE) + file.readline(READ_AT_ONCE):
            table = _parse(path, text, first_line)  #                                        (n, 19)
            rows = np.concatenate(
                [table[:, 1 + N_GASES :], table[:, 1 : 1 + N_GASES]], axis=1, dtype=STORED
            )
            # adding 0 turns -0, which has different bytes, into 0
            yield (rows + np.float32(0), file.tell())
            first_line += text.count(b"\n")
            if not text.endswith(b"\n"):  # a truncated number would still parse
                raise DataError(
                    f"'{path}', line {first_line}: the last line is incomplete; get the file again."
                )


def _check_header(path: Path, line: bytes) -> None:
    fields = line.split()
    if not fields:
        raise DataError(
            f"'{path}', line 1: the line is empty, but a header was expected; get the file again."
        )
    if _is_number(fields[0]):
        raise DataError(
            f"'{path}', line 1: it has numbers, but a header was expected; get the file again."
        )


def _parse(path: Path, text: bytes, first_line: int) -> Array:
    """Parse the numbers in lines of text, float64 (n, 19)."""
    if text.isspace():
        return np.empty((0, N_COLUMNS))
    try:
        table = _hundredths(text) / 100 if _has_two_decimals(text) else _load(text, np.float64)
    except ValueError:
        table = np.empty((0, 0))
    if table.shape[1] != N_COLUMNS or not (np.abs(table) <= LARGEST).all():
        raise DataError(f"'{path}', {_fault(text, first_line)}; get the file again.")
    return table


def _hundredths(text: bytes) -> Array:
    """Numbers times 100 as integers, which numpy reads twice as fast as decimals."""
    return _load(text.replace(b".", b""), np.int64)


def _has_two_decimals(text: bytes) -> bool:
    """Whether every number has two decimals, as in the publisher's files."""
    pattern = text.translate(bytes.maketrans(b"123456789\t\r\n", b"000000000   ")) + b" "
    return pattern.count(b".00 ") == pattern.count(b".") == N_COLUMNS * text.count(b"\n")


def _load(text: bytes, dtype: type) -> Array:
    return np.loadtxt(text.splitlines(), dtype=dtype, comments=None, ndmin=2, encoding="latin1")


def _fault(text: bytes, first_line: int) -> str:
    """Describe the first line that cannot be parsed."""
    for number, line in enumerate(text.split(b"\n"), first_line):
        fields = line.split()
        if len(fields) not in (0, N_COLUMNS):
            return f"line {number}: it has {len(fields)} columns, but {N_COLUMNS} were expected"
        for field in fields:
            if not _is_number(field):
                text_found = field.decode("latin1")
                return f"line {number}: it has {text_found!r}, but a number was expected"
    return f"lines {first_line} to {number}: they cannot be read as {N_COLUMNS} columns of numbers"


def _is_number(field: bytes) -> bool:
    try:
        return abs(float(field)) <= LARGEST  # false for nan
    except ValueError:
        return False


def _is_test(x: Array) -> Array:
    """Which rows are for testing, (n,): a hash of the readings, the same for equal rows."""
    words = np.ascontiguousarray(x, dtype=STORED).view("<u8")  #                              (n, 8)
    mixed = np.full(len(x), SEED, dtype=np.uint64)
    # two extra rounds, so that the last sensors affect every bit
    for word in (*words.T, np.uint64(0), np.uint64(0)):
        mixed = (mixed ^ word) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed < TEST_SHARE * 2.0**64


def _moments(x: Array) -> Array:
    """Count, sum and sum of squares of every column, (3, 16)."""
    x = x.astype(np.float64)
    return np.stack([np.full(N_SENSORS, len(x)), x.sum(axis=0), np.square(x).sum(axis=0)])


def _mean_and_scale(moments: Array) -> tuple[Array, Array]:
    count, total, squares = moments
    mean = total / count
    scale = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
    # a constant sensor becomes 0
    return mean, np.where(scale > 1e-6 * np.abs(mean), scale, 1.0)


def _standardise(unscaled: Path, mean: Array, scale: Array) -> None:
    """Convert a file of rows into the two arrays of a part, and delete it."""
    n_rows = unscaled.stat().st_size // (STORED.itemsize * (N_SENSORS + N_GASES))
    with (
        unscaled.open("rb") as rows_file,
        Path(f"{unscaled}-x.npy").open("wb") as x_file,
        Path(f"{unscaled}-y.npy").open("wb") as y_file,
    ):
        for file, width in ((x_file, N_SENSORS), (y_file, N_GASES)):
            np.lib.format.write_array_header_1_0(
                file, {"descr": STORED.str, "fortran_order": False, "shape": (n_rows, width)}
            )
        while len(
            rows := np.fromfile(rows_file, STORED, ROWS_AT_ONCE * (N_SENSORS + N_GASES)).reshape(
                -1, N_SENSORS + N_GASES
            )
        ):
            ((rows[:, :N_SENSORS] - mean) / scale).astype(STORED).tofile(x_file)
            rows[:, N_SENSORS:].tofile(y_file)
    unscaled.unlink()
