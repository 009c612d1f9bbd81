"""The records file of the recovery suite, and many runs. Fits have one epoch, or are replaced."""

import json
import multiprocessing
import re
from contextlib import closing
from pathlib import Path

import pytest

from leaflearn.benchmark.experiments.processes import _run_in_processes
from leaflearn.benchmark.recovery import suite as recovery_suite
from leaflearn.benchmark.recovery.run import RULES
from leaflearn.benchmark.recovery.suite import Records, RecoveryJob, run_suite
from leaflearn.benchmark.recovery.summary import summarize

QUICK = {"max_epochs": 1, "n_init": 1, "init": "random"}


@pytest.fixture
def records(tmp_path):
    return Records(tmp_path / "records.jsonl")


@pytest.fixture
def fits(monkeypatch, make_record):
    """Runs without fits: the list of runs, and the set of (rule, seed) that fail."""
    done, failing = [], set()

    def pretend(task, rule, seed, keep_contexts=False):
        done.append((task.name, rule, seed, keep_contexts))
        return make_record(task.name, rule, seed, recovered=(rule, seed) not in failing)

    monkeypatch.setattr(recovery_suite, "run", pretend)
    return done, failing


def go(records, tasks=("tiny",), rules=("default",), seeds=range(2), n_jobs=1):
    run_suite(records, tasks, rules, seeds, n_jobs, lambda title, coming, n: coming)


# The file


def test_added_records_are_in_the_file(records, make_record):
    for seed in range(3):
        records.add(make_record(seed=seed))
        assert len(records.path.read_text().splitlines()) == seed + 1
    assert (
        Records(records.path).all()
        == records.all()
        == [make_record(seed=seed) for seed in range(3)]
    )


@pytest.mark.parametrize("n_bytes", [1, 10, 60, -2])
def test_an_incomplete_last_line_is_replaced_by_the_next(records, n_bytes, make_record):
    records.add(make_record(seed=0))
    complete = records.path.read_bytes()
    records.path.write_bytes(
        complete + json.dumps(make_record(seed=1, init="é"), ensure_ascii=False).encode()[:n_bytes]
    )
    again = Records(records.path)
    assert ("functions", "default", 1) not in again
    again.add(make_record(seed=2))
    assert records.path.read_bytes() == complete + json.dumps(make_record(seed=2)).encode() + b"\n"


def test_a_complete_last_line_without_a_line_end_is_kept(records, make_record):
    records.path.write_text(json.dumps(make_record(seed=0)))
    again = Records(records.path)
    again.add(make_record(seed=1))
    assert [record["seed"] for record in Records(records.path).all()] == [0, 1]


@pytest.mark.parametrize("behind", [f"{json.dumps({'seed': 1})}\n", ""])
def test_a_complete_line_that_is_no_record_is_an_error_and_stays(records, behind, make_record):
    content = f'{json.dumps(make_record())}\n{{"task": "functions"}}\n{behind}'
    records.path.write_text(content)
    sentence = (
        f"Line 2 of '{records.path}' is not a record of a run; "
        "repair it, delete it, or choose another folder."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        Records(records.path)
    assert records.path.read_text() == content


def test_two_commands_may_add_to_one_file(records, make_record):
    other = Records(records.path)
    records.add(make_record(seed=0))
    other.add(make_record(seed=1))
    records.add(make_record(seed=2))
    assert [record["seed"] for record in Records(records.path).all()] == [0, 1, 2]


def test_the_records_of_november_can_be_read():
    folder = Path(__file__).parents[3] / "results" / "2026-11-16-recovery"
    lines = {
        (line.task, line.rule): line for line in summarize(Records(folder / "records.jsonl").all())
    }
    assert (lines["rare", "hard"].successes, lines["rare", "hard"].runs) == (7, 20)
    assert lines["rare", "hard"].counted_right is None


# Many runs


def test_recorded_runs_are_not_repeated(records, fits):
    done, _ = fits
    go(records, rules=["default", "hard"])
    assert [job[:3] for job in done] == [
        ("tiny", "default", 0),
        ("tiny", "hard", 0),
        ("tiny", "default", 1),
        ("tiny", "hard", 1),
    ]
    done.clear()
    go(Records(records.path), rules=["default", "hard"], seeds=range(3))
    assert [job[:3] for job in done] == [("tiny", "default", 2), ("tiny", "hard", 2)]


def test_contexts_are_recorded_for_the_first_seed_only(records, fits):
    done, _ = fits
    go(records, rules=["default", "hard"], seeds=range(7, 9))
    assert [job[1:3] for job in done if job[3]] == [("default", 7)]


def test_the_oracle_runs_only_where_the_default_failed(records, fits):
    done, failing = fits
    failing |= {("default", 1), ("hard", 0)}
    go(records, rules=["default", "hard"])
    assert [job[:3] for job in done if job[1] == "oracle"] == [("tiny", "oracle", 1)]
    done.clear()
    go(Records(records.path), rules=["default", "hard"])
    assert done == []


def test_an_interruption_keeps_recorded_runs(records, monkeypatch, make_record):
    def stop_at_two(task, rule, seed, keep_contexts=False):
        if seed == 2:
            raise KeyboardInterrupt
        return make_record(task.name, rule, seed)

    monkeypatch.setattr(recovery_suite, "run", stop_at_two)
    with pytest.raises(KeyboardInterrupt):
        go(records, seeds=range(5))
    assert [record["seed"] for record in Records(records.path).all()] == [0, 1]


def test_an_error_names_the_run(records, monkeypatch):
    monkeypatch.setitem(RULES, "hard", {"learning_rate": 0})
    with pytest.raises(RuntimeError) as error:
        go(records, rules=["hard"], seeds=[3])
    assert (
        str(error.value)
        == "task tiny, rule hard, seed 3: learning_rate=0, but a positive number was expected."
    )


@pytest.fixture
def at_work():
    """Records from another process, which does not end after the first; and the processes."""
    before = set(multiprocessing.active_children())
    endless = QUICK | {"max_epochs": 10**7, "n_iter_no_change": None}
    with closing(
        _run_in_processes(
            [
                RecoveryJob("functions-m50", "mine", 0, QUICK),
                RecoveryJob("functions-m50", "endless", 0, endless),
            ],
            n_jobs=1,
        )
    ) as coming:
        assert next(coming)["rule"] == "mine"
        assert "mine" not in RULES  # the job carries the settings
        yield coming, set(multiprocessing.active_children()) - before


def test_processes_end_with_the_caller(at_work):
    coming, processes = at_work
    assert processes
    coming.close()
    assert not any(process.is_alive() for process in processes)


def test_a_killed_process_is_reported_in_one_sentence(at_work):
    coming, processes = at_work
    for process in processes:
        process.kill()
    with pytest.raises(
        OSError,
        match=r"^A process was killed, possibly because .* Run fewer processes at once\.$",
    ):
        next(coming)
