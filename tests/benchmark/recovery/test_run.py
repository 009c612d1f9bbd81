"""One run of the recovery suite and its record. Fits have one epoch."""

import json
from dataclasses import replace

import pytest

from leaflearn.benchmark.recovery.run import run
from leaflearn.benchmark.recovery.tasks import TASKS
from leaflearn.estimators import LeafRegressor

FIELDS = {
    "task", "rule", "seed", "recovered", "errors", "agreement", "seconds", "converged", "warnings",
    "init", "n_contexts_found",
}  # fmt: skip


def test_a_record_has_the_run_and_its_result():
    record = run(TASKS["tiny"], "hard", 5)
    assert set(record) == FIELDS
    assert (record["task"], record["rule"], record["seed"], record["recovered"]) == (
        "tiny",
        "hard",
        5,
        False,
    )
    assert len(record["errors"]) == 3
    assert json.loads(json.dumps(record)) == record


def test_contexts_are_recorded_on_request():
    contexts = run(TASKS["tiny"], "hard", 0, keep_contexts=True)["contexts"]
    assert len(contexts) == 10
    assert set(contexts) <= set(range(4))


def test_superfluous_contexts_are_pruned_before_measuring(monkeypatch):
    pruned = []

    def prune(self):
        pruned.append(self.n_contexts)
        self.n_contexts_ = 3
        return self

    monkeypatch.setattr(LeafRegressor, "prune", prune, raising=False)
    assert run(TASKS["tiny"], "hard", 0)["n_contexts_found"] == 3
    assert pruned == [4]
    run(TASKS["tiny"], "oracle", 0)  # has one context per domain
    run(replace(TASKS["tiny"], n_contexts=3), "hard", 0)
    assert pruned == [4]


def test_the_number_of_contexts_can_be_left_to_the_estimator(monkeypatch):
    given, original = [], LeafRegressor.fit

    def fit_two(self, *args, **more):  # counting takes seconds
        given.append(self.n_contexts)
        return original(self.set_params(n_contexts=2), *args, **more)

    monkeypatch.setattr(LeafRegressor, "fit", fit_two)
    named = [
        run(TASKS["tiny"], "auto", 0)["rule"],
        run(TASKS["tiny"], "default", 0, n_contexts="auto")["rule"],
    ]
    assert (given, named) == (["auto", "auto"], ["auto", "default-auto"])
    with pytest.raises(
        ValueError, match=r"^n_contexts='many' is not known; choose 'given' or 'auto'\.$"
    ):
        run(TASKS["tiny"], "default", 0, n_contexts="many")
