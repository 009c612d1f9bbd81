"""A run is done once, and resumes after an interruption with the same result."""

import json

import pytest

from leaflearn.benchmark.experiments import learning_run, run_record
from leaflearn.benchmark.experiments.learning_run import LearningRun
from leaflearn.benchmark.experiments.reproduction import finished_runs, missing_runs, reproduce
from leaflearn.benchmark.experiments.run_record import RunRecord
from leaflearn.benchmark.experiments.spec import Run, Spec
from leaflearn.benchmark.methods.leaf_annealed import LeafAnnealed

SETTINGS = {
    "n_epochs": 4, "dataset": {"name": "functions"}, "seed": 3,
    "sampler": {"group_size": 2, "groups_per_epoch": 40}, "network": {"name": "mlp", "hidden": [8]},
    "optimizer": {"name": "sgd"}, "method": {"name": "leaf"}, "slows_down": True,
    "measures": ["errors", "curves"], "snapshots": [0, 2, 4],
}  # fmt: skip


class Killed(BaseException):
    """The end of the process."""


def kill_in_epoch(monkeypatch, number):
    learn = learning_run._learn_epoch

    def die(method, sampler, epoch):
        if epoch == number:
            raise Killed
        return learn(method, sampler, epoch)

    monkeypatch.setattr(learning_run, "_learn_epoch", die)


def killed_run(root, run, monkeypatch):
    """The record of a run that was killed in its third epoch; it has a checkpoint."""
    monkeypatch.setattr(learning_run, "CHECKPOINT_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        kill_in_epoch(patch, 2)
        with pytest.raises(Killed):
            LearningRun(root, run).run()
    return RunRecord(root, run)


def lines_of(record):
    return [
        {key: value for key, value in line.items() if key != "seconds"} for line in record.records()
    ]


@pytest.mark.parametrize("method", ["leaf", "erm", "leaf-em"])
def test_a_killed_run_resumes_with_the_same_result(tmp_path, monkeypatch, method):
    run = Run(
        method,
        "",
        {**SETTINGS, "method": {"name": method}, "snapshots": [] if method == "erm" else [0, 2, 4]},
    )
    whole = LearningRun(tmp_path / "whole", run).run()
    record = killed_run(tmp_path / "killed", run, monkeypatch)
    assert not record.is_done
    assert len(record.records()) == 2
    resumed = LearningRun(tmp_path / "killed", run).run()
    for result in (whole, resumed):
        result.pop("seconds")
    assert resumed == whole
    assert lines_of(record) == lines_of(RunRecord(tmp_path / "whole", run))
    assert not record.folder.exists()


def test_a_run_resumed_under_another_commit_names_both(tmp_path, monkeypatch):
    run = Run("leaf", "", SETTINGS)
    monkeypatch.setattr(run_record, "_commit", lambda: "aaa")
    record = killed_run(tmp_path, run, monkeypatch)
    monkeypatch.setattr(run_record, "_commit", lambda: "bbb")
    LearningRun(tmp_path, run).run()
    assert record.environment()["commit"] == "aaa, bbb"


def test_epochs_after_the_last_checkpoint_are_repeated(tmp_path, monkeypatch):
    run = Run("leaf", "", SETTINGS)
    kill_in_epoch(monkeypatch, 3)
    with pytest.raises(Killed):
        LearningRun(tmp_path, run).run()
    monkeypatch.undo()
    record = RunRecord(tmp_path, run)
    assert len(record.records()) == 3
    LearningRun(tmp_path, run).run()
    assert [line["epoch"] for line in record.records()] == [0, 1, 2, 3]


def test_a_finished_run_is_not_repeated(tmp_path, monkeypatch):
    run = Run("leaf", "", SETTINGS)
    first = LearningRun(tmp_path, run).run()
    monkeypatch.setattr(learning_run, "_learn", lambda *_: pytest.fail("it was run again"))
    assert LearningRun(tmp_path, run).run() == first


def test_the_preparation_is_timed_and_done_once(tmp_path, monkeypatch):
    prepared, prepare = [], LeafAnnealed.prepare

    def prepare_slowly(self, problem):
        prepared.append(prepare(self, problem))
        clock[0] += 100.0

    clock = [0.0]
    monkeypatch.setattr(LeafAnnealed, "prepare", prepare_slowly)
    monkeypatch.setattr(learning_run.time, "process_time", lambda: clock[0])
    result = LearningRun(
        tmp_path, Run("leaf-annealed", "", {**SETTINGS, "method": {"name": "leaf-annealed"}})
    ).run()
    assert len(prepared) == 1
    assert result["seconds"] == 100.0
    assert result["about"]["start"] == "conflict"
    assert sorted(result["about"]) == ["is_trusted", "reason", "start"]


def test_a_failure_names_the_run(tmp_path):
    run = Run("label-prop", "", {**SETTINGS, "method": {"name": "label-prop"}})
    name = "functions-label-prop-3-[0-9a-f]{12}"
    with pytest.raises(
        ValueError, match=f"^{name}: label-prop stores the labels of every training input"
    ):
        LearningRun(tmp_path, run).run()


def test_a_finished_run_is_one_line_with_its_settings_and_environment(tmp_path):
    run = Run("leaf", "", SETTINGS)
    LearningRun(tmp_path, run).run()
    (line,) = (tmp_path / "functions.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert record["settings"] == SETTINGS
    assert set(record["environment"]) >= {"commit", "date", "torch", "leaflearn"}
    assert [path.name for path in tmp_path.iterdir()] == ["functions.jsonl"]


def test_several_processes_give_the_same_results_as_one(tmp_path):
    content = {
        "show": "errors",
        "methods": ["erm", "leaf"],
        "n_seeds": 1,
        "run": {k: v for k, v in SETTINGS.items() if k not in ("seed", "method", "snapshots")},
    }
    spec = Spec("mine", "paper", content)
    for folder, n_jobs in (("one", 1), ("two", 2)):
        reproduce([spec], tmp_path / folder, None, n_jobs, lambda coming, n: coming)
        assert missing_runs([spec], tmp_path / folder) == []
    results = [
        {run.key: record.result["errors"] for run, record in finished_runs(spec, tmp_path / name)}
        for name in ("one", "two")
    ]
    assert results[0] == results[1]
    assert len(results[0]) == 2


def test_long_runs_keep_their_records_short(tmp_path, monkeypatch):
    monkeypatch.setattr(learning_run, "MAX_RECORDS", 2)
    run = Run("leaf", "", {**SETTINGS, "n_epochs": 5, "snapshots": []})
    LearningRun(tmp_path, run).run()
    assert [line["epoch"] for line in RunRecord(tmp_path, run).records()] == [0, 3, 4]


def test_a_checkpoint_that_does_not_fit_is_discarded(tmp_path, monkeypatch):
    run = Run("leaf", "", SETTINGS)
    whole = LearningRun(tmp_path / "whole", run).run()
    record = killed_run(tmp_path / "killed", run, monkeypatch)
    state = record.resume()
    state["method"]["parts"] = {}
    record.save(state)
    assert LearningRun(tmp_path / "killed", run).run()["errors"] == whole["errors"]
    assert [line["epoch"] for line in record.records()] == [0, 1, 2, 3]
