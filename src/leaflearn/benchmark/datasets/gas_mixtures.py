"""Gas mixtures: which gases does the array of sensors smell, and how much of each? The paper's regression on real data (Appendix).

Sixteen sensors were exposed for twelve hours to ethylene and methane, and for another twelve to ethylene and carbon monoxide. The gases
were dosed to move the sensors about equally far, so that one and the same reading means less methane or more carbon monoxide. The two
recordings are the domains.

The publisher's files are 1.3 gigabytes of text. They are read once, a few megabytes at a time, and kept as numpy files; see `prepared.py`.
`gas_simulator.py` writes files of the same layout for those who do not have them.
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

RECORDINGS = {
    "methane": "ethylene_methane.txt",
    "CO": "ethylene_CO.txt",
}  # of each domain, and in their order
N_ROWS = {"ethylene_methane.txt": 4_178_504, "ethylene_CO.txt": 4_208_261}  # as published
SIMULATED = "(simulated)"  # stands in the header of a file that no sensor ever recorded
N_SENSORS, N_GASES = 16, 2
N_COLUMNS = 1 + N_GASES + N_SENSORS  # time, the mixture's own gas, ethylene, the sensors
TEST_SHARE = 0.1
SEED = 0  # of the split, which is part of the data
VERSION = 1  # of the prepared arrays: raise it when what is made changes
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
            "https://archive.ics.uci.edu/static/public/322/gas+sensor+array+under+dynamic+gas+mixtures.zip",
            "gas-mixtures.zip",
            archive=True,
        ),
    ),
    by_hand="Unpack the zip file from https://archive.ics.uci.edu/dataset/322 there (370 MB, 1.3 GB unpacked), "
    "or simulate the two recordings with 'leaflearn data get gas-mixtures --simulated'.",
)


@register("gas-mixtures", files=GAS)
def gas_mixtures() -> DomainSet:
    """Concentrations of two gases from 16 sensors, in two mixtures.

    Inputs are the readings of the sensors at one moment, float32 (N, 16), shifted and scaled to mean 0 and standard deviation 1 over the
    training rows of both domains together. Targets are float32 (N, 2) in parts per million, the mixture's own gas (methane or CO) and
    ethylene. They are not scaled: the paper's errors, 32 to 90, have no unit but fit gases that reach 297 and 533 parts per million, so
    that errors here compare with them. The root mean squared error over both targets is then mostly that of the first gas, since ethylene
    only reaches 20.

    A tenth of the rows of each domain is there to test on. Chance decides by the sixteen readings themselves, so that equal rows are always
    on the same side and no test input was ever trained on. Rows a hundredth of a second apart do come to different sides, as in the paper.

    Where the files were simulated, the name of the set says so.

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
    """Does the header of this recording say that it was simulated?

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
    """Fill the folder with the arrays of all domains and parts. The scale is only known at the end, so that it takes two passes."""
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
    """Append the rows of a recording to the unscaled train and test files; what `_moments` says of the training rows, (3, 16)."""
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
            f"'{path}' has {n_rows:,} rows and the published file has {published:,}; get the file again."
        )
    if not min(counts.values()):
        raise DataError(
            f"'{path}' has too few rows ({n_rows}) to train on some and test on others; get the file again."
        )


def _read(path: Path) -> Iterator[tuple[Array, int]]:
    """The rows of a recording, some at a time, float32 (n, 18): sensors, then gases; and how many bytes have been read so far."""
    with path.open("rb") as file:
        _check_header(path, file.readline(READ_AT_ONCE))
        first_line = 2
        while text := file.read(READ_AT_ONCE) + file.readline(READ_AT_ONCE):
            table = _parse(
                path, text, first_line
            )  #                                         (n, 19)
            rows = np.concatenate(
                [table[:, 1 + N_GASES :], table[:, 1 : 1 + N_GASES]], axis=1, dtype=STORED
            )
            yield (
                rows + np.float32(0),
                file.tell(),
            )  # adding 0 turns -0, which has other bytes, into 0
            first_line += text.count(b"\n")
            if not text.endswith(b"\n"):  # a number that was cut is a number still
                raise DataError(
                    f"'{path}', line {first_line}: the line does not end, so that part of it may be lost; get the file again."
                )


def _check_header(path: Path, line: bytes) -> None:
    fields = line.split()
    if not fields:
        raise DataError(
            f"'{path}', line 1: it is empty, and a header was expected; get the file again."
        )
    if _is_number(fields[0]):
        raise DataError(
            f"'{path}', line 1: numbers were found where a header was expected; get the file again."
        )


def _parse(path: Path, text: bytes, first_line: int) -> Array:
    """The numbers in lines of text, float64 (n, 19)."""
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
    """Whole numbers are read twice as fast as decimal ones."""
    return _load(text.replace(b".", b""), np.int64)


def _has_two_decimals(text: bytes) -> bool:
    """Is every number like 0.00, as the publisher wrote them?"""
    pattern = text.translate(bytes.maketrans(b"123456789\t\r\n", b"000000000   ")) + b" "
    return pattern.count(b".00 ") == pattern.count(b".") == N_COLUMNS * text.count(b"\n")


def _load(text: bytes, dtype: type) -> Array:
    return np.loadtxt(text.splitlines(), dtype=dtype, comments=None, ndmin=2, encoding="latin1")


def _fault(text: bytes, first_line: int) -> str:
    """The first line that is not what it should be, and why."""
    for number, line in enumerate(text.split(b"\n"), first_line):
        fields = line.split()
        if len(fields) not in (0, N_COLUMNS):
            return f"line {number}: {len(fields)} columns were found and {N_COLUMNS} are expected"
        for field in fields:
            if not _is_number(field):
                return f"line {number}: {field.decode('latin1')!r} was found where a number was expected"
    return f"lines {first_line} to {number}: they cannot be read as {N_COLUMNS} columns of numbers"


def _is_number(field: bytes) -> bool:
    try:
        return abs(float(field)) <= LARGEST  # nor is nan
    except ValueError:
        return False


def _is_test(x: Array) -> Array:
    """Which rows are to test on, (n,): drawn by the bytes of the row, so that equal rows share their fate."""
    words = np.ascontiguousarray(x, dtype=STORED).view(
        "<u8"
    )  #                               (n, 8)
    mixed = np.full(len(x), SEED, dtype=np.uint64)
    for word in (
        *words.T,
        np.uint64(0),
        np.uint64(0),
    ):  # twice more, so that the last sensors move every bit of the result too
        mixed = (mixed ^ word) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed < TEST_SHARE * 2.0**64


def _moments(x: Array) -> Array:
    """Number, sum and sum of squares of every column, (3, 16); those of several parts can be added."""
    x = x.astype(np.float64)
    return np.stack([np.full(N_SENSORS, len(x)), x.sum(axis=0), np.square(x).sum(axis=0)])


def _mean_and_scale(moments: Array) -> tuple[Array, Array]:
    count, total, squares = moments
    mean = total / count
    scale = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
    return mean, np.where(
        scale > 1e-6 * np.abs(mean), scale, 1.0
    )  # a sensor that always says the same stays at 0


def _standardise(unscaled: Path, mean: Array, scale: Array) -> None:
    """Turn a file of rows into the two arrays of a part, and remove it."""
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
