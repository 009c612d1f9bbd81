"""Finished runs are lines of one file per data set, and none of them is lost or half-written."""

import json

import pytest

from leaflearn.benchmark.experiments import reproduction, run_record
from leaflearn.benchmark.experiments.run_record import RunRecord, pack_folders
from leaflearn.benchmark.experiments.spec import Run

RUN = Run("leaf", "", {"dataset": {"name": "functions"}, "seed": 3})
RESULT = {"seconds": 0.1, "errors": {"best": [0.1 + 0.2, 1e-17]}, "about": {"start": "é"}}


def started(root, run=RUN):
    record = RunRecord(root, run)
    record.begin()
    record.add({"epoch": 0, "loss": 0.30000000000000004})
    return record


def with_seed(seed):
    return Run("leaf", "", {**RUN.settings, "seed": seed})


def old_folder(root, run=RUN):
    """The folder of a finished run as version 0.1.0 left it."""
    record = started(root, run)
    (record.folder / "result.json").write_text(json.dumps(RESULT, indent=1, sort_keys=True) + "\n")
    return record


def finish_some(root, seeds):
    for seed in seeds:
        started(root, with_seed(seed)).finish(RESULT)


def test_a_finished_run_keeps_all_four_parts(tmp_path):
    record = started(tmp_path)
    environment = record.environment()
    assert not record.is_done
    record.finish(RESULT)
    assert record.is_done
    assert record.result == RESULT
    assert record.environment() == environment
    assert record.records() == [{"epoch": 0, "loss": 0.30000000000000004}]
    (line,) = record.file.read_text().splitlines()
    assert list(json.loads(line)) == ["name", "settings", "environment", "records", "result"]
    assert json.loads(line)["settings"] == RUN.settings
    assert not record.folder.exists()


def test_a_cut_off_line_of_the_learning_curve_is_not_read(tmp_path):
    record = started(tmp_path)
    with open(record.folder / "records.jsonl", "a") as file:
        file.write('{"epo')
    assert [line["epoch"] for line in record.records()] == [0]


def test_a_run_whose_line_was_cut_off_is_not_done(tmp_path):
    finish_some(tmp_path, [0, 1])
    record, last = (RunRecord(tmp_path, with_seed(seed)) for seed in (0, 1))
    content = record.file.read_bytes()
    for n_lost in (2, 100, len(content.splitlines(keepends=True)[1])):
        record.file.write_bytes(content[:-n_lost])
        assert (record.is_done, last.is_done) == (True, False)
    record.file.write_bytes(content[:-100])
    finish_some(tmp_path, [2])
    assert [json.loads(line)["settings"]["seed"] for line in record.file.open()] == [0, 2]


def test_a_broken_line_before_the_last_is_reported(tmp_path):
    finish_some(tmp_path, [0, 1])
    record = RunRecord(tmp_path, with_seed(1))
    record.file.write_bytes(record.file.read_bytes()[10:])
    with pytest.raises(ValueError, match=r"^Line 1 of '.*functions\.jsonl' is not a record of a"):
        _ = record.is_done


def test_changing_a_result_does_not_change_the_record(tmp_path):
    record = started(tmp_path)
    record.finish(RESULT)
    record.result.pop("seconds")
    assert record.result == RESULT


def test_there_is_no_result_before_the_end(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no result of this run"):
        _ = started(tmp_path).result


def test_folders_of_finished_runs_are_read_and_packed(tmp_path):
    record, in_progress = old_folder(tmp_path), started(tmp_path, with_seed(4))
    environment = record.environment()
    assert (record.is_done, in_progress.is_done) == (True, False)
    assert record.result == RESULT
    assert pack_folders(tmp_path) == 1
    assert not record.folder.exists()
    assert in_progress.folder.exists()
    assert (record.result, record.environment()) == (RESULT, environment)
    assert [line["epoch"] for line in record.records()] == [0]
    assert pack_folders(tmp_path) == 0


def test_packing_that_was_interrupted_adds_no_run_twice(tmp_path, monkeypatch):
    record = old_folder(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(run_record, "_remove", lambda folder: None)
        pack_folders(tmp_path)
    assert record.folder.exists()
    pack_folders(tmp_path)
    assert not record.folder.exists()
    assert len(record.file.read_text().splitlines()) == 1


def test_leftover_folders_of_finished_runs_are_removed(tmp_path, monkeypatch):
    record = started(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(run_record, "_remove", lambda folder: None)
        record.finish(RESULT)
    assert record.folder.exists()
    assert record.is_done
    assert pack_folders(tmp_path) == 0
    assert not record.folder.exists()


def test_reproducing_packs_the_folders_first(tmp_path):
    record = old_folder(tmp_path)
    reproduction.reproduce([], tmp_path, None, 1, lambda coming, n: coming)
    assert not record.folder.exists()
    assert record.result == RESULT
