"""The gas simulator: files in the publisher's layout, marked as simulated, that conflict."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from leaflearn.benchmark.datasets import gas_simulator as module
from leaflearn.benchmark.datasets.gas_mixtures import GAS, RECORDINGS, gas_mixtures
from leaflearn.benchmark.datasets.gas_simulator import (
    CO_EQUIVALENT,
    MAX_CONCENTRATION,
    simulate_gas_mixtures,
)
from leaflearn.benchmark.datasets.store import DataError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gas") / GAS.folder
    simulate_gas_mixtures(folder, n_rows=80_000)
    return folder


@pytest.fixture(scope="module")
def tables(folder):
    return {name: np.loadtxt(folder / file, skiprows=1) for name, file in RECORDINGS.items()}


@pytest.fixture
def still_air(monkeypatch):
    """Nothing that is drawn at random, but for the set points."""
    for name in ("FLOW_DEVIATION", "AMBIENT_DEVIATION", "NOISE"):
        monkeypatch.setattr(module, name, 0.0)


def record(gas, n_rows, seed=0):
    return np.concatenate(list(module.record(gas, n_rows, np.random.default_rng(seed))))


# The files


def test_the_layout_is_the_publishers_with_a_mark(folder):
    lines = (folder / "ethylene_CO.txt").read_text().split("\n")
    assert (
        lines[0]
        == "Time (seconds), CO conc (ppm), Ethylene conc (ppm), sensor readings (16 channels) "
        "(simulated)"
    )
    assert lines[1].startswith("0.00    ")
    # columns of 7 characters and a blank
    assert (len(lines[1].split()), len(lines[1])) == (19, 152)
    assert lines[-1] == ""
    assert (
        (folder / "ethylene_methane.txt")
        .read_text()
        .startswith("Time (seconds), Methane conc (ppm), Ethylene conc (ppm), ")
    )
    assert sorted(path.name for path in folder.iterdir()) == [
        "ethylene_CO.txt",
        "ethylene_methane.txt",
    ]


def test_a_hundred_rows_per_second_of_plausible_readings(tables):
    for rows in tables.values():
        assert rows.shape == (80_000, 19)
        assert rows[:, 0] == pytest.approx(np.arange(80_000) / 100)
        assert rows[:, 3:].min() > 300
        assert rows[:, 3:].max() < 20_000
        assert (rows[:, 3:].std(axis=0) / rows[:, 3:].mean(axis=0)).min() > 0.1


def test_set_points_stay_for_seconds_jump_at_random_and_use_the_whole_range(tables):
    for name, rows in tables.items():
        jumps = np.flatnonzero(np.diff(rows[:, 1:3], axis=0).any(axis=1)) + 1
        assert 65 <= len(jumps) <= 200
        assert np.diff(jumps).min() >= 399  # 4 seconds, less the rounding
        for column, highest in ((1, MAX_CONCENTRATION[name]), (2, MAX_CONCENTRATION["ethylene"])):
            assert rows[:, column].min() == 0.0
            assert 0.9 * highest < rows[:, column].max() <= highest
            assert (rows[:, column] == 0.0).mean() == pytest.approx(0.2, abs=0.1)


def test_the_same_seed_writes_the_same_files_and_another_one_others(tmp_path):
    for name, seed in (("one", 3), ("same", 3), ("other", 4)):
        simulate_gas_mixtures(tmp_path / name, n_rows=1000, random_state=seed)
    one, same, other = (
        [(tmp_path / name / file).read_bytes() for file in RECORDINGS.values()]
        for name in ("one", "same", "other")
    )
    assert one == same
    assert one[0] != other[0]
    assert one[1] != other[1]


@pytest.mark.parametrize("n_rows", [1, 50_000, 50_001])
def test_the_number_of_rows_is_as_requested(n_rows, still_air):
    assert len(record("CO", n_rows)) == n_rows


def test_no_rows_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^`n_rows` must be at least 1; it is 0\.$"):
        simulate_gas_mixtures(tmp_path, n_rows=0)


# What is there already


def test_real_files_are_never_replaced(tmp_path):
    real = tmp_path / "ethylene_CO.txt"
    real.write_text(
        "Time (seconds), CO conc (ppm), Ethylene conc (ppm), sensor readings (16 channels)\n0.00\n"
    )
    with pytest.raises(DataError) as error:
        simulate_gas_mixtures(tmp_path, n_rows=10)
    assert (
        str(error.value)
        == f"'{real}' is not a simulated recording and will not be replaced; move it, or choose "
        f"another folder."
    )
    assert real.read_text().endswith("0.00\n")
    assert list(tmp_path.iterdir()) == [real]  # nor is the other one written


def test_simulated_files_are_replaced(tmp_path):
    simulate_gas_mixtures(tmp_path, n_rows=10)
    simulate_gas_mixtures(tmp_path, n_rows=20)
    assert [len((tmp_path / file).read_text().splitlines()) for file in RECORDINGS.values()] == [
        21,
        21,
    ]


def test_a_failure_keeps_the_existing_files(tmp_path, monkeypatch):
    simulate_gas_mixtures(tmp_path, n_rows=10)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    going_well = module.record

    def full_disk(gas, n_rows, generator):
        if gas == "CO":  # the second one
            raise OSError("No space left on device")
        return going_well(gas, n_rows, generator)

    monkeypatch.setattr(module, "record", full_disk)
    with pytest.raises(OSError, match="No space left"):
        simulate_gas_mixtures(tmp_path, n_rows=20)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# The physics


def test_readings_are_continuous_across_blocks(still_air, monkeypatch):
    whole = record("CO", 3000)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 137)
    assert record("CO", 3000) == pytest.approx(whole)


def test_sensors_start_in_air_lag_and_converge(still_air):
    rows = record("methane", 400, seed=1)  # one set point
    assert rows[0, 1:3].min() > 0
    readings = rows[:, 3:]
    assert (np.diff(readings, axis=0) > 0).all()  # gas lowers the resistance, and readings rise
    assert (readings[100] < 0.99 * readings[-1]).any()
    assert readings[399] == pytest.approx(readings[350], rel=0.005)


def test_readings_are_a_power_law_of_the_concentrations(still_air):
    sensors = module._Sensors("methane", np.random.default_rng(0))
    settled = [
        sensors.read(np.tile([[concentration, 0.0]], (3000, 1)))[-1]
        for concentration in (100.0, 250.0)
    ]
    expected = [
        sensors.air * (1.0 + concentration * sensors.sensitivity[0]) ** sensors.exponent
        for concentration in (100.0, 250.0)
    ]
    assert settled == [pytest.approx(values) for values in expected]


def test_the_same_readings_come_from_different_concentrations(still_air):
    methane, carbon_monoxide = (
        module._Sensors(gas, np.random.default_rng(0)) for gas in ("methane", "CO")
    )
    concentrations = np.tile([[200.0, 5.0]], (1000, 1))
    assert carbon_monoxide.read(concentrations) == pytest.approx(
        methane.read(concentrations * [CO_EQUIVALENT, 1.0])
    )


def test_drift_has_the_right_deviation_from_the_start(monkeypatch):
    starts = np.array(
        [
            module._AutoregressiveNoise(0.05, 2.0, 1, np.random.default_rng(seed)).draw(1)[0, 0]
            for seed in range(400)
        ]
    )
    later = module._AutoregressiveNoise(0.05, 0.2, 1, np.random.default_rng(0)).draw(100_000)
    assert starts.std() == pytest.approx(0.05, rel=0.15)
    assert later.std() == pytest.approx(0.05, rel=0.05)


def test_a_pooled_model_is_much_worse_than_one_per_mixture(folder, monkeypatch):
    monkeypatch.setenv("LEAFLEARN_DATA", str(folder.parent))
    domains = gas_mixtures()
    assert domains.name == "gas-mixtures (simulated)"
    generator = np.random.default_rng(0)
    train = [domain.train.draw(8000, generator) for domain in domains]
    shared = fit(
        np.concatenate([part.x for part in train]), np.concatenate([part.y for part in train])
    )
    for domain, part in zip(domains, train, strict=True):
        own_error = rmse(fit(part.x, part.y), domain.test)
        assert own_error < 0.35 * domain.test.y[:, 0].std()
        assert rmse(shared, domain.test) > 1.5 * own_error


def fit(x, y):
    # the first gas, which is the one in conflict
    return HistGradientBoostingRegressor(max_iter=50, random_state=0).fit(x, y[:, 0])


def rmse(model, test):
    return np.sqrt(np.square(model.predict(test.x) - test.y[:, 0]).mean())
