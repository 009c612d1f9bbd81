"""One run and many: what is recorded, what is repeated, and what an interruption keeps."""

import re
from dataclasses import replace

import numpy as np
import pytest

from leaflearn.benchmark.datasets.store import MissingDataError
from leaflearn.benchmark.real import run as real_run
from leaflearn.benchmark.real import suite as real_suite
from leaflearn.benchmark.real.contract import MissingProgramError, NotApplicableError
from leaflearn.benchmark.real.run import METHODS, OWN, run
from leaflearn.benchmark.real.splits import make_splits
from leaflearn.benchmark.real.suite import RealRecords, run_real


@pytest.fixture
def records(tmp_path):
    return RealRecords(tmp_path / "records.jsonl")


def go(records, methods=("constant",), n_splits=2, n_jobs=1):
    run_real(records, ["pets"], methods, n_splits, n_jobs, lambda title, coming, n: coming)


def raising(error):
    def fit(rows):
        raise error

    return fit


# One run


def test_a_record_has_the_loss_of_every_cell(pets):
    record = run(pets, "constant", split=1, commit="abc")
    data = pets.load()
    split = list(make_splits(data.group))[1]
    labelled, rest = split.new[5]
    known = np.sum((data.y[split.known] - data.y[split.train].mean()) ** 2)
    new = np.sum((data.y[rest] - data.y[labelled].mean()) ** 2)
    assert record == {
        "table": "pets",
        "method": "constant",
        "split": 1,
        "outcome": "ok",
        "reason": None,
        "measure": "rmse",
        "cells": {
            "known": {"loss": pytest.approx(known), "rows": 48, "groups": 8},
            "new 1": {
                "loss": pytest.approx(record["cells"]["new 1"]["loss"]),
                "rows": 22,
                "groups": 2,
            },
            "new 5": {"loss": pytest.approx(new), "rows": 14, "groups": 2},
        },
        "seconds": pytest.approx(0, abs=1),
        "commit": "abc",
    }


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (NotApplicableError("it predicts values"), "not applicable", "it predicts values"),
        (MissingProgramError("Rscript is not installed"), "missing", "Rscript is not installed"),
        (RuntimeError("R failed"), "failed", "RuntimeError: R failed"),
    ],
)
def test_three_ways_to_have_no_result_are_told_apart(pets, monkeypatch, error, outcome, reason):
    monkeypatch.setitem(METHODS, "constant", raising(error))
    record = run(pets, "constant", split=0)
    assert (record["outcome"], record["reason"], record["cells"]) == (outcome, reason, {})


def test_predictions_that_are_not_finite_fail(pets, monkeypatch):
    class Bad(METHODS["constant"]):
        def known(self, X, group):
            return np.full(len(X), np.nan)

    monkeypatch.setitem(METHODS, "constant", Bad)
    record = run(pets, "constant", split=0)
    assert (record["outcome"], record["reason"]) == (
        "failed",
        "ValueError: some predictions are not finite",
    )


@pytest.mark.parametrize("as_probabilities", [True, False])
def test_wrong_classes_are_counted(pets, monkeypatch, as_probabilities):
    class First:
        def __init__(self, rows):
            assert rows.n_classes == 3

        def known(self, X, group):
            return np.eye(3)[np.zeros(len(X), int)] if as_probabilities else np.zeros(len(X), int)

        def new(self, labelled, X, group):
            return self.known(X, group)

    monkeypatch.setitem(METHODS, "constant", First)
    table = replace(pets, target="kind")
    record, data = run(table, "constant", split=0), table.load()
    known = next(make_splits(data.group)).known
    assert record["measure"] == "error rate"
    assert record["cells"]["known"]["loss"] == (data.y[known] != 0).sum()


def test_own_methods_predict_known_and_new_groups(pets):
    record = run(pets, "leaflearn linear", split=0)
    assert (record["outcome"], record["reason"]) == ("ok", None)
    assert set(record["cells"]) == {"known", "new 1", "new 5"}
    constant = run(pets, "constant", split=0)["cells"]
    assert record["cells"]["known"]["loss"] < 0.5 * constant["known"]["loss"]


@pytest.mark.parametrize("kind", ["linear", "smooth"])
def test_models_in_closed_form_are_classifiers_where_targets_are_classes(pets, monkeypatch, kind):
    class First:
        def __init__(self, **parameters):
            assert parameters == {"local_model": kind, "random_state": 0}

        def fit(self, X, y, groups):
            return self

        def identify(self, X, y, groups):
            return None

        def predict(self, X, context=None, groups=None):
            return np.zeros(len(X), int)

    monkeypatch.setattr(real_run, "LeafClassifier", First)
    record = run(replace(pets, target="kind"), f"leaflearn {kind}", split=0)
    assert (record["outcome"], record["measure"]) == ("ok", "error rate")


def test_own_methods_come_first():
    own = ["leaflearn", "leaflearn linear", "leaflearn smooth", "leaflearn boosting"]
    assert list(OWN) == list(METHODS)[:4] == own


# Many runs


def test_recorded_runs_are_not_repeated(pets, records, monkeypatch):
    done = []

    def pretend(table, method, split, commit=None):
        done.append((table.name, method, split))
        return run(table, method, split, commit)

    monkeypatch.setattr(real_suite, "run", pretend)
    go(records)
    assert done == [("pets", "constant", 0), ("pets", "constant", 1)]
    go(RealRecords(records.path), n_splits=3)
    assert done[2:] == [("pets", "constant", 2)]
    assert list(map(records.key_of, RealRecords(records.path).all())) == done


def test_what_was_missing_is_tried_again_and_failures_are_not(pets, records, monkeypatch):
    constant = METHODS["constant"]
    monkeypatch.setitem(METHODS, "constant", raising(MissingProgramError("no R")))
    monkeypatch.setitem(METHODS, "broken", raising(ValueError("no")))
    go(records, methods=["constant", "broken"], n_splits=1)
    monkeypatch.setitem(METHODS, "constant", constant)
    monkeypatch.setitem(METHODS, "broken", constant)
    again = RealRecords(records.path)
    go(again, methods=["constant", "broken"], n_splits=1)
    assert [(r["method"], r["outcome"]) for r in again.all()] == [
        ("constant", "ok"),
        ("broken", "failed"),
    ]


def test_splits_are_the_outer_loop(pets, records, monkeypatch):
    monkeypatch.setitem(METHODS, "other", METHODS["constant"])
    go(records, methods=["constant", "other"])
    assert [(r["method"], r["split"]) for r in records.all()] == [
        ("constant", 0),
        ("other", 0),
        ("constant", 1),
        ("other", 1),
    ]


def test_an_interruption_keeps_recorded_runs(pets, records, monkeypatch):
    def stop_at_one(table, method, split, commit=None):
        if split == 1:
            raise KeyboardInterrupt
        return run(table, method, split, commit)

    monkeypatch.setattr(real_suite, "run", stop_at_one)
    with pytest.raises(KeyboardInterrupt):
        go(records, n_splits=3)
    assert [record["split"] for record in RealRecords(records.path).all()] == [0]


def test_processes_give_the_same_records(pets, records, tmp_path):
    other = RealRecords(tmp_path / "other.jsonl")
    go(records, methods=["pooled linear"])
    go(other, methods=["pooled linear"], n_jobs=2)

    def cells(found):
        return sorted((record["split"], str(record["cells"])) for record in found.all())

    assert cells(records) == cells(other)


def test_a_missing_file_is_reported_before_the_work(pets, records):
    pets.path.unlink()
    with pytest.raises(MissingDataError, match=re.escape("get it from its public source")):
        go(records)
    assert not records.path.exists()
