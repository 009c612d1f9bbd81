"""Runs on altered tables: what is recorded, beside the oracle, and what is repeated."""

import re

import pytest

from leaflearn.benchmark.altered import run as altered_run
from leaflearn.benchmark.altered.run import run
from leaflearn.benchmark.altered.suite import AlteredRecords, run_altered
from leaflearn.benchmark.altered.tasks import TASKS
from leaflearn.benchmark.datasets.store import MissingDataError


@pytest.fixture
def records(tmp_path):
    return AlteredRecords(tmp_path / "records.jsonl")


def go(records, tasks=("pets-reversed",), seeds=(0,)):
    watch = lambda title, coming, n: coming  # noqa: E731
    run_altered(records, tasks, ["leaflearn linear"], seeds, 1, watch)


def test_the_oracle_runs_beside_every_method(pets, records):
    go(records)
    oracle, own = records.all()
    assert (oracle["method"], own["method"]) == ("oracle", "leaflearn linear")
    assert oracle["contexts"]["ari"] == 1.0
    assert own["contexts"]["n_groups"] == 12
    n_lines = len(records.path.read_text().splitlines())
    go(AlteredRecords(records.path))
    assert len(records.path.read_text().splitlines()) == n_lines


def test_a_hidden_column_is_run_once(pets, records):
    go(records, tasks=["pets-country"], seeds=(4, 5))
    assert {record["seed"] for record in records.all()} == {4}


def test_a_fit_that_fails_is_recorded_with_its_reason(pets, monkeypatch):
    def fail(rows):
        raise ValueError("too hard")

    monkeypatch.setitem(altered_run.OWN, "broken", fail)
    record = run(TASKS["pets-reversed"], "broken", seed=0)
    assert (record["outcome"], record["reason"]) == ("failed", "ValueError: too hard")


def test_a_missing_file_is_reported_before_the_work(pets, records):
    pets.path.unlink()
    with pytest.raises(MissingDataError, match=re.escape("get it from its public source")):
        go(records)
    assert not records.path.exists()
