"""Gas mixtures: text becomes arrays once, with a fair split; errors name file and line."""

import importlib
import tracemalloc

import numpy as np
import pytest

from leaflearn.benchmark.datasets.gas_mixtures import GAS, RECORDINGS, gas_mixtures, is_simulated
from leaflearn.benchmark.datasets.prepared import SIZES
from leaflearn.benchmark.datasets.registry import DATASETS
from leaflearn.benchmark.datasets.store import DataError, MissingDataError

# the package has a function of that name
module = importlib.import_module("leaflearn.benchmark.datasets.gas_mixtures")

HEADER = "Time (seconds), CO conc (ppm), Ethylene conc (ppm), sensor readings (16 channels)"
N_ROWS = 600
PUBLISHED = dict(module.N_ROWS)


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    """An empty data folder, and no other one that could be looked into or written to."""
    monkeypatch.setenv("LEAFLEARN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # the files of most tests are short
    monkeypatch.setattr(module, "N_ROWS", dict.fromkeys(RECORDINGS.values(), 0))
    folder = tmp_path / "data" / GAS.folder
    folder.mkdir(parents=True)
    return folder


def table(seed, n_rows=N_ROWS):
    """A recording whose first gas counts the rows: time, gases, sensors."""
    generator = np.random.default_rng(seed)
    seconds, ethylene = np.arange(n_rows) / 100, generator.choice([0.0, 6.67, 20.0], n_rows)
    readings = generator.normal(3000, 400, (n_rows, 16)) + 50.0 * np.arange(16)
    return np.round(np.column_stack([seconds, np.arange(n_rows), ethylene, readings]), 2)


def write(path, rows, header=HEADER, form="%-7.2f ", end="\n"):
    """Lay the rows out as the publisher does: padded columns, a blank at the end of each line."""
    path.write_text(
        end.join([header, *("".join(form % value for value in row) for row in rows)]) + end,
        newline="",
    )


@pytest.fixture
def tables(data_folder):
    made = {name: table(seed) for seed, name in enumerate(RECORDINGS)}
    for name, rows in made.items():
        write(data_folder / RECORDINGS[name], rows)
    return made


@pytest.fixture
def move_house(tables, tmp_path, monkeypatch):
    """Call it to switch to another data folder with the same recordings and no cache."""

    def move():
        folder = tmp_path / "other" / GAS.folder
        folder.mkdir(parents=True)
        for name, rows in tables.items():
            write(folder / RECORDINGS[name], rows)
        monkeypatch.setenv("LEAFLEARN_DATA", str(tmp_path / "other"))

    return move


def arrays(domains):
    return [
        np.array(part)
        for domain in domains
        for side in (domain.train, domain.test)
        for part in (side.x, side.y)
    ]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(arrays(one), arrays(other), strict=True))


# What is read


def test_it_is_registered_with_its_files():
    assert (DATASETS["gas-mixtures"].factory, DATASETS["gas-mixtures"].files) == (gas_mixtures, GAS)
    assert list(GAS.contents) == list(RECORDINGS.values())


def test_missing_files_end_in_a_sentence_that_mentions_the_simulation(data_folder):
    with pytest.raises(MissingDataError) as error:
        gas_mixtures()
    assert str(error.value) == (
        "Gas sensor array under dynamic gas mixtures, by J. Fonollosa et al.: "
        f"'ethylene_methane.txt' and 1 more are not in '{data_folder}'. "
        "Unpack the zip file from https://archive.ics.uci.edu/dataset/322 there (370 MB, 1.3 GB "
        "unpacked), "
        "or simulate the two recordings with 'leaflearn data get gas-mixtures --simulated'."
    )


def test_domains_shapes_and_defaults(tables):
    domains = gas_mixtures()
    assert (domains.name, domains.names, domains.classes) == (
        "gas-mixtures",
        ("methane", "CO"),
        None,
    )
    assert (domains.n_groups, domains.group_size, domains.input_shape) == (2000, 50, (16,))
    for domain in domains:
        for part in (domain.train, domain.test):
            assert (part.x.dtype, part.y.dtype) == (np.float32, np.float32)
            assert (part.x.shape[1:], part.y.shape[1:]) == ((16,), (2,))
            assert isinstance(part.x, np.memmap)  # a copy of the real one would fill 500 MB


def test_every_row_occurs_once_with_its_concentrations_in_ppm(tables):
    domains = gas_mixtures()
    for domain in domains:
        original = tables[domain.name]
        x, y = (
            np.concatenate([getattr(domain.train, name), getattr(domain.test, name)])
            for name in "xy"
        )
        row = y[:, 0].astype(int)
        assert sorted(row) == list(range(N_ROWS))
        assert y == pytest.approx(original[row, 1:3], abs=1e-5)
        # the first sensor, before and after scaling
        slope, shift = np.polyfit(original[row, 3], x[:, 0], 1)
        assert x[:, 0] == pytest.approx(slope * original[row, 3] + shift, abs=1e-4)


def test_inputs_are_scaled_by_the_training_rows_of_both_domains_together(tables):
    methane, carbon_monoxide = gas_mixtures()
    together = np.concatenate([methane.train.x, carbon_monoxide.train.x]).astype(float)
    assert together.mean(axis=0) == pytest.approx(np.zeros(16), abs=1e-4)
    assert together.std(axis=0) == pytest.approx(np.ones(16), abs=1e-4)
    assert abs(np.asarray(methane.train.x).mean(axis=0)).max() > 0.005  # so not each by itself


def test_a_constant_sensor_becomes_0(data_folder):
    for seed, name in enumerate(RECORDINGS.values()):
        rows = table(seed)
        rows[:, 7], rows[:, 9] = 4096.0, 55139.95  # exact in binary, and not
        write(data_folder / name, rows)
    for domain in gas_mixtures():
        assert np.asarray(domain.train.x[:, [4, 6]]) == pytest.approx(0.0, abs=0.01)
        assert np.asarray(domain.train.x[:, 5]).std() > 0.5


@pytest.mark.parametrize(
    "layout",
    [{"end": "\r\n"}, {"form": "%.2f\t"}, {"form": "%.4f "}, {"form": "%+.2f "}, {"form": "%.7e "}],
    ids=["windows", "tabs", "four decimals", "plus signs", "exponents"],
)
def test_other_ways_of_writing_the_same_numbers_read_the_same(tables, data_folder, layout):
    published = gas_mixtures()
    for name, rows in tables.items():
        write(data_folder / RECORDINGS[name], rows, **layout)
    assert same(gas_mixtures(), published)


def test_integers_among_decimals_keep_their_value(tables, data_folder):
    published = gas_mixtures()
    path = data_folder / "ethylene_CO.txt"
    path.write_text(path.read_text().replace(" 20.00 ", " 20 "))
    assert same(gas_mixtures(), published)


def test_blank_lines_are_ignored(tables, data_folder):
    published = gas_mixtures()
    path = data_folder / "ethylene_CO.txt"
    path.write_text(path.read_text().replace("\n1.00 ", "\n\n1.00 ") + "\n \n")
    assert same(gas_mixtures(), published)


def test_the_result_does_not_depend_on_the_block_size(move_house, monkeypatch):
    whole = gas_mixtures()
    move_house()
    monkeypatch.setattr(module, "READ_AT_ONCE", 1000)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 7)
    assert same(gas_mixtures(), whole)


def test_memory_does_not_grow_with_the_files(data_folder, monkeypatch):
    for seed, name in enumerate(RECORDINGS.values()):
        write(data_folder / name, np.tile(table(seed, 500), (24, 1)))  # 12,000 rows, 1.8 MB of text
    monkeypatch.setattr(module, "READ_AT_ONCE", 1 << 14)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 1000)
    tracemalloc.start()
    gas_mixtures()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 900_000


# The split


def test_the_test_part_is_a_fixed_tenth(move_house):
    domains = gas_mixtures()
    for domain in domains:
        assert len(domain.test) == pytest.approx(0.1 * N_ROWS, abs=25)
    move_house()
    assert same(gas_mixtures(), domains)


def test_equal_readings_are_always_in_the_same_part(data_folder):
    readings = table(0)[:, 3:]
    readings[:100, 0] = 0.0
    for seed, name in enumerate(RECORDINGS.values()):
        again = np.concatenate([table(seed)[:, :3], table(seed + 7)[:, :3]])
        write(data_folder / name, np.column_stack([again, np.tile(readings, (2, 1))]))
    path = data_folder / "ethylene_CO.txt"
    path.write_text(path.read_text().replace(" 0.00    ", " -0.0    "))  # an equal number too
    domains = gas_mixtures()
    train = {row.tobytes() for domain in domains for row in domain.train.x}
    test = {row.tobytes() for domain in domains for row in domain.test.x}
    assert len(train) + len(test) == N_ROWS
    assert not train & test


@pytest.mark.parametrize(
    "readings",
    [
        np.random.default_rng(0).normal(3000, 400, (50_000, 16)).round(2),
        # A slow drift: neighbouring rows differ by a little.
        np.add.outer(np.arange(50_000) * 0.01, np.arange(16)),
        # Only the last sensor changes.
        np.concatenate([np.zeros((50_000, 15)), np.arange(50_000)[:, None]], axis=1),
        # Only the first sensor changes.
        np.concatenate([np.arange(50_000)[:, None], np.zeros((50_000, 15))], axis=1),
    ],
    ids=["noise", "drift", "last", "first"],
)
def test_the_split_is_fair_and_independent_of_the_readings(readings):
    is_test = module._is_test(readings.astype(np.float32))
    assert is_test.mean() == pytest.approx(0.1, abs=0.006)
    tenths = np.array_split(is_test[np.argsort(readings.sum(axis=1), kind="stable")], 10)
    assert [tenth.mean() for tenth in tenths] == pytest.approx([0.1] * 10, abs=0.02)
    # nor the row before
    assert (is_test[1:] & is_test[:-1]).mean() == pytest.approx(0.01, abs=0.003)


# Kept for the next time


def test_the_text_is_read_once_and_again_when_it_has_changed(tables, data_folder, monkeypatch):
    first = gas_mixtures()
    with monkeypatch.context() as patch:
        patch.setattr(module, "_read", lambda path: pytest.fail("the text was read again"))
        assert same(gas_mixtures(), first)
    write(data_folder / "ethylene_CO.txt", table(5, n_rows=300))
    assert (
        sum(len(part) for part in (gas_mixtures().domains[1].train, gas_mixtures().domains[1].test))
        == 300
    )


def test_another_version_is_made_again(tables, monkeypatch):
    first = gas_mixtures()
    monkeypatch.setattr(module, "VERSION", 2)
    monkeypatch.setattr(module, "SEED", 1)
    assert not np.array_equal(gas_mixtures().domains[0].test.y, first.domains[0].test.y)


def test_only_the_arrays_are_kept(tables, data_folder):
    gas_mixtures()
    (prepared,) = (data_folder.parent / "prepared").iterdir()
    expected = {SIZES} | {
        f"{name}-{part}-{column}.npy"
        for name in RECORDINGS
        for part in ("train", "test")
        for column in "xy"
    }
    assert {path.name for path in prepared.iterdir()} == expected


def test_a_simulated_file_makes_the_name_say_so(tables, data_folder):
    write(data_folder / "ethylene_CO.txt", tables["CO"], header=f"{HEADER} (simulated)")
    assert gas_mixtures().name == "gas-mixtures (simulated)"
    assert (
        is_simulated(data_folder / "ethylene_CO.txt"),
        is_simulated(data_folder / "ethylene_methane.txt"),
    ) == (True, False)


# Faults


def replace_line(path, number, change):
    lines = path.read_text().split("\n")
    lines[number - 1] = change(lines[number - 1])
    path.write_text("\n".join(lines))


@pytest.mark.parametrize(
    ("number", "change", "fault"),
    [
        (1, lambda line: "", "line 1: the line is empty, but a header was expected"),
        (
            1,
            lambda line: "0.00 0.00 0.00",
            "line 1: it has numbers, but a header was expected",
        ),
        (2, lambda line: line[:-20], "line 2: it has 17 columns, but 19 were expected"),
        (400, lambda line: f"{line} 1.00", "line 400: it has 20 columns, but 19 were expected"),
        (
            400,
            lambda line: line.replace(line.split()[5], "12,34"),
            "line 400: it has '12,34', but a number was expected",
        ),
        (
            400,
            lambda line: line.replace(line.split()[5], "nan"),
            "line 400: it has 'nan', but a number was expected",
        ),
        (
            400,
            lambda line: line.replace(line.split()[5], "-inf"),
            "line 400: it has '-inf', but a number was expected",
        ),
        (
            400,
            lambda line: line.replace(line.split()[5], "1e39"),
            "line 400: it has '1e39', but a number was expected",
        ),
        (
            400,
            lambda line: line.replace(line.split()[5], "1.2.34"),
            "line 400: it has '1.2.34', but a number was expected",
        ),
        (
            400,
            lambda line: line.replace(line.split()[5], "\x00"),
            "line 400: it has '\\x00', but a number was expected",
        ),
        (400, lambda line: f"# {line}", "line 400: it has 20 columns, but 19 were expected"),
    ],
)
@pytest.mark.parametrize("at_once", [1 << 23, 1000], ids=["in one go", "in many"])
def test_an_error_names_file_and_line_and_leaves_nothing_behind(
    tables, data_folder, monkeypatch, number, change, fault, at_once
):
    path = data_folder / "ethylene_CO.txt"
    replace_line(path, number, change)
    monkeypatch.setattr(module, "READ_AT_ONCE", at_once)
    with pytest.raises(DataError) as error:
        gas_mixtures()
    assert str(error.value) == f"'{path}', {fault}; get the file again."
    assert list((data_folder.parent / "prepared").iterdir()) == []


def test_a_missing_and_an_extra_column_do_not_cancel(tables, data_folder):
    path = data_folder / "ethylene_methane.txt"
    replace_line(path, 10, lambda line: line.rsplit(maxsplit=1)[0])
    replace_line(path, 11, lambda line: f"{line} 1.00")
    with pytest.raises(DataError, match="line 10: it has 18 columns, but 19 were expected"):
        gas_mixtures()


def test_a_truncated_file_is_detected_by_its_last_line(tables, data_folder):
    path = data_folder / "ethylene_methane.txt"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(
        DataError,
        match=rf"'{path}', line {N_ROWS + 1}: it has \d+ columns, but 19 were expected; get the "
        rf"file again.",
    ):
        gas_mixtures()


@pytest.mark.parametrize("lost", [1, 3, 5, "blank"])
def test_a_truncated_number_is_detected(tables, data_folder, lost):
    path = data_folder / "ethylene_methane.txt"
    text = path.read_text()
    path.write_text(text.rstrip() if lost == "blank" else text[:-lost])
    with pytest.raises(DataError) as error:
        gas_mixtures()
    assert str(error.value) == (
        f"'{path}', line {N_ROWS + 1}: the last line is incomplete; get the file again."
    )


@pytest.mark.parametrize(
    ("name", "published"), [("ethylene_methane.txt", "4,178,504"), ("ethylene_CO.txt", "4,208,261")]
)
def test_a_recording_truncated_between_lines_is_detected_by_its_rows(
    tables, data_folder, monkeypatch, name, published
):
    monkeypatch.setitem(module.N_ROWS, name, PUBLISHED[name])
    with pytest.raises(DataError) as error:
        gas_mixtures()
    assert (
        str(error.value)
        == f"'{data_folder / name}' has {N_ROWS} rows, but the published file has {published}; get "
        f"the file again."
    )
    write(data_folder / name, tables["CO"], header=f"{HEADER} (simulated)")
    assert gas_mixtures().name == "gas-mixtures (simulated)"


@pytest.mark.parametrize("n_rows", [0, 1])
def test_too_few_rows_to_split(tables, data_folder, n_rows):
    path = data_folder / "ethylene_CO.txt"
    write(path, tables["CO"][:n_rows])
    with pytest.raises(DataError) as error:
        gas_mixtures()
    assert (
        str(error.value)
        == f"'{path}' has too few rows ({n_rows}) for a training part and a test part; get the "
        f"file again."
    )


def test_an_empty_file(tables, data_folder):
    path = data_folder / "ethylene_CO.txt"
    path.write_text("")
    with pytest.raises(
        DataError,
        match=r"line 1: the line is empty, but a header was expected; get the file again\.",
    ):
        gas_mixtures()
