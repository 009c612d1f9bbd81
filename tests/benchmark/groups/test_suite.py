"""Runs on simulated groups: what is recorded, what is repeated."""

import re
from types import SimpleNamespace

import pytest

from leaflearn.benchmark.groups import run as groups_run
from leaflearn.benchmark.groups import suite as groups_suite
from leaflearn.benchmark.groups.run import run
from leaflearn.benchmark.groups.simulation import SCENARIOS
from leaflearn.benchmark.groups.suite import GroupsRecords, run_groups, select

NAME = "degree/intercepts/linear/values"


def go(records, seeds=(0, 1), n_jobs=1, method="leaflearn linear"):
    run_groups(records, [NAME], [method], seeds, n_jobs, lambda title, coming, n: coming)


def test_a_record_has_contexts_coverage_and_seconds():
    record = run(SCENARIOS["kind/offset/6/values"], "leaflearn linear", seed=0, commit="abc")
    assert (record["outcome"], record["n_groups"], record["commit"]) == ("ok", 40, "abc")
    assert record["contexts"]["n_true"] == 2
    assert record["contexts"]["n_found"] == record["n_contexts"]
    assert record["coverage"]["known"][1] == 400
    assert record["coverage"]["new"][1] == 200
    assert record["seconds"] > 0


def test_costs_have_no_truth():
    def fit(rows):
        return SimpleNamespace(estimator=SimpleNamespace(init_="one context", n_contexts_=1))

    record = run(SCENARIOS["cost/6000-rows"], "instant", seed=0, fit=fit)
    assert (record["outcome"], record["n_rows"], "contexts" in record) == ("ok", 6000, False)


def test_a_fit_that_fails_is_recorded_with_its_reason(monkeypatch):
    def fail(rows):
        raise ValueError("too hard")

    monkeypatch.setitem(groups_run.OWN, "broken", fail)
    record = run(SCENARIOS[NAME], "broken", seed=0)
    assert (record["outcome"], record["reason"]) == ("failed", "ValueError: too hard")
    assert "contexts" not in record


def test_recorded_runs_are_not_repeated(tmp_path, monkeypatch, make_record):
    done = []

    def mock_run(scenario, method, seed, commit=None, fit=None):
        done.append(seed)
        return make_record(scenario.name, method=method, seed=seed)

    monkeypatch.setattr(groups_suite, "run", mock_run)
    go(GroupsRecords(tmp_path / "records.jsonl"))
    go(GroupsRecords(tmp_path / "records.jsonl"), seeds=(1, 2))
    assert done == [0, 1, 2]


def test_scenarios_are_chosen_by_how_they_begin():
    assert select(["kind/slope/6"]) == ["kind/slope/6/values", "kind/slope/6/yes-no"]
    assert "kind/offset-of-3/4/values" not in select(["kind/offset"])
    assert select(["cost/100000-rows"]) == ["cost/100000-rows"]
    assert len(select(["degree", "kind", "cost"])) == len(SCENARIOS)
    sentence = "No scenario begins with 'kinds'; they begin with degree, kind, cost."
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        select(["degree", "kinds"])
