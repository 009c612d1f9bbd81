"""The recovery suite: what a run records, what is run again, what counts as success. Fits are of a few epochs."""

import json
import multiprocessing
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from leaflearn.benchmark.experiments.processes import _run_in_processes
from leaflearn.benchmark.recovery import suite as recovery_suite
from leaflearn.benchmark.recovery.records import Records
from leaflearn.benchmark.recovery.run import RULES, run
from leaflearn.benchmark.recovery.suite import Job, run_suite
from leaflearn.benchmark.recovery.summary import summarize
from leaflearn.benchmark.recovery.table import HEAD, render_markdown
from leaflearn.benchmark.recovery.tasks import TASKS
from leaflearn.estimators import LeafRegressor

GLANCE = {"max_epochs": 1, "n_init": 1, "init": "random"}
FIELDS = {
    "task", "rule", "seed", "recovered", "errors", "agreement", "seconds", "converged", "warnings", "init", "n_contexts_found",
}  # fmt: skip


def make_record(
    task="functions",
    rule="default",
    seed=0,
    recovered=True,
    errors=(0.1, 0.1),
    seconds=1.0,
    converged=True,
    warnings=0,
    **more,
):
    return {
        "task": task, "rule": rule, "seed": seed, "recovered": recovered, "errors": list(errors), "seconds": seconds,
        "converged": converged, "warnings": warnings, **more,
    }  # fmt: skip


@pytest.fixture(autouse=True)
def glances(monkeypatch):
    """A task of ten groups, and rules that only have a glance at it."""
    monkeypatch.setitem(
        TASKS, "tiny", replace(TASKS["functions"], name="tiny", n_groups=10, n_contexts=4)
    )
    for rule, settings in list(RULES.items()):
        monkeypatch.setitem(RULES, rule, settings | GLANCE)


@pytest.fixture
def records(tmp_path):
    return Records(tmp_path / "records.jsonl")


@pytest.fixture
def fits(monkeypatch):
    """Runs without fits: what was run, and by which rules and on which seeds the contexts are missed."""
    done, missed = [], set()

    def pretend(task, rule, seed, keep_contexts=False):
        done.append((task.name, rule, seed, keep_contexts))
        return make_record(task.name, rule, seed, recovered=(rule, seed) not in missed)

    monkeypatch.setattr(recovery_suite, "run", pretend)
    return done, missed


def go(records, tasks=("tiny",), rules=("default",), seeds=range(2), n_jobs=1):
    run_suite(records, tasks, rules, seeds, n_jobs, lambda title, coming, n: coming)


# One run


def test_a_run_records_what_was_run_and_what_came_out():
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


def test_contexts_are_recorded_where_they_are_asked_for():
    contexts = run(TASKS["tiny"], "hard", 0, keep_contexts=True)["contexts"]
    assert len(contexts) == 10
    assert set(contexts) <= set(range(4))


def test_superfluous_contexts_are_pruned_before_anything_is_measured(monkeypatch):
    pruned = []

    def prune(self):
        pruned.append(self.n_contexts)
        self.n_contexts_ = 3
        return self

    monkeypatch.setattr(LeafRegressor, "prune", prune, raising=False)
    assert run(TASKS["tiny"], "hard", 0)["n_contexts_found"] == 3
    assert pruned == [4]
    run(TASKS["tiny"], "oracle", 0)  # has as many as there are domains
    run(replace(TASKS["tiny"], n_contexts=3), "hard", 0)
    assert pruned == [4]


def test_the_number_of_contexts_can_be_left_to_the_estimator(monkeypatch):
    told, original = [], LeafRegressor.fit

    def fit_two(self, *args, **more):  # counting takes seconds
        told.append(self.n_contexts)
        return original(self.set_params(n_contexts=2), *args, **more)

    monkeypatch.setattr(LeafRegressor, "fit", fit_two)
    named = [
        run(TASKS["tiny"], "auto", 0)["rule"],
        run(TASKS["tiny"], "default", 0, n_contexts="auto")["rule"],
    ]
    assert (told, named) == (["auto", "auto"], ["auto", "default-auto"])
    with pytest.raises(
        ValueError, match=r"^n_contexts='many' is not known; choose 'given' or 'auto'\.$"
    ):
        run(TASKS["tiny"], "default", 0, n_contexts="many")


# The file


def test_what_was_added_is_there_when_the_file_is_opened_again(records):
    for seed in range(3):
        records.add(make_record(seed=seed))
        assert len(records.path.read_text().splitlines()) == seed + 1
    assert (
        Records(records.path).all()
        == records.all()
        == [make_record(seed=seed) for seed in range(3)]
    )


@pytest.mark.parametrize("n_bytes", [1, 10, 60, -2])
def test_a_last_line_that_was_cut_off_is_replaced_by_the_next(records, n_bytes):
    records.add(make_record(seed=0))
    whole = records.path.read_bytes()
    records.path.write_bytes(
        whole + json.dumps(make_record(seed=1, init="é"), ensure_ascii=False).encode()[:n_bytes]
    )
    again = Records(records.path)
    assert ("functions", "default", 1) not in again
    again.add(make_record(seed=2))
    assert records.path.read_bytes() == whole + json.dumps(make_record(seed=2)).encode() + b"\n"


def test_a_whole_last_line_without_its_end_is_kept(records):
    records.path.write_text(json.dumps(make_record(seed=0)))
    again = Records(records.path)
    again.add(make_record(seed=1))
    assert [record["seed"] for record in Records(records.path).all()] == [0, 1]


@pytest.mark.parametrize("behind", [f"{json.dumps({'seed': 1})}\n", ""])
def test_a_whole_line_that_is_no_record_is_an_error_and_stays(records, behind):
    content = f'{json.dumps(make_record())}\n{{"task": "functions"}}\n{behind}'
    records.path.write_text(content)
    sentence = f"Line 2 of '{records.path}' is not a record of a run; mend it, delete it, or choose another folder."
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        Records(records.path)
    assert records.path.read_text() == content


def test_two_commands_may_add_to_one_file(records):
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


def test_what_is_recorded_is_not_run_again(records, fits):
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


def test_contexts_are_kept_for_the_picture_of_the_first_seed_only(records, fits):
    done, _ = fits
    go(records, rules=["default", "hard"], seeds=range(7, 9))
    assert [job[1:3] for job in done if job[3]] == [("default", 7)]


def test_the_oracle_runs_only_where_the_default_missed(records, fits):
    done, missed = fits
    missed |= {("default", 1), ("hard", 0)}
    go(records, rules=["default", "hard"])
    assert [job[:3] for job in done if job[1] == "oracle"] == [("tiny", "oracle", 1)]
    done.clear()
    go(Records(records.path), rules=["default", "hard"])
    assert done == []


def test_an_interruption_leaves_what_was_recorded(records, monkeypatch):
    def stop_at_two(task, rule, seed, keep_contexts=False):
        if seed == 2:
            raise KeyboardInterrupt
        return make_record(task.name, rule, seed)

    monkeypatch.setattr(recovery_suite, "run", stop_at_two)
    with pytest.raises(KeyboardInterrupt):
        go(records, seeds=range(5))
    assert [record["seed"] for record in Records(records.path).all()] == [0, 1]


def test_a_run_that_fails_says_which_one_it_was(records, monkeypatch):
    monkeypatch.setitem(RULES, "hard", {"learning_rate": 0})
    with pytest.raises(RuntimeError) as error:
        go(records, rules=["hard"], seeds=[3])
    assert (
        str(error.value)
        == "task tiny, rule hard, seed 3: learning_rate=0, but a positive number was expected."
    )


@pytest.fixture
def at_work():
    """Records from another process, which goes on for ever after the first; and the processes."""
    before = set(multiprocessing.active_children())
    endless = GLANCE | {"max_epochs": 10**7, "n_iter_no_change": None}
    with closing(
        _run_in_processes(
            [Job("functions-m50", "mine", 0, GLANCE), Job("functions-m50", "endless", 0, endless)],
            n_jobs=1,
        )
    ) as coming:
        assert next(coming)["rule"] == "mine"
        assert "mine" not in RULES  # the settings went with the job
        yield coming, set(multiprocessing.active_children()) - before


def test_processes_end_with_the_caller(at_work):
    coming, processes = at_work
    assert processes
    coming.close()
    assert not any(process.is_alive() for process in processes)


def test_a_process_that_is_killed_is_told_in_a_sentence(at_work):
    coming, processes = at_work
    for process in processes:
        process.kill()
    with pytest.raises(
        OSError,
        match=r"^A process was killed, possibly because memory ran out; .* Run fewer processes at once\.$",
    ):
        next(coming)


# What counts


def rate_of(*records):
    (line,) = (line for line in summarize(records) if line.rule == "default")
    return line.successes


@pytest.mark.parametrize(
    ("errors", "oracle_errors", "oracle_recovered", "successes"),
    [
        ((0.30, 0.06), (0.20, 0.04), False, 1),  # exactly 1.5 times in both
        ((0.31, 0.06), (0.20, 0.04), False, 0),  # more in the worst domain
        ((0.20, 0.07), (0.20, 0.04), False, 0),  # more in a domain that is far below the threshold
        ((0.15, 0.04), (0.14, 0.04), True, 0),  # the oracle shows that it can be done
    ],
)
def test_where_the_oracle_misses_too_its_error_is_the_measure(
    errors, oracle_errors, oracle_recovered, successes
):
    run, oracle = (
        make_record(recovered=False, errors=errors),
        make_record(rule="oracle", recovered=oracle_recovered, errors=oracle_errors),
    )
    assert rate_of(run, oracle) == successes


def test_only_the_oracle_of_the_same_task_and_seed_counts():
    run = make_record(recovered=False, errors=(0.2, 0.2))
    oracle = make_record(rule="oracle", recovered=False, errors=(0.2, 0.2))
    assert rate_of(run, oracle) == 1
    assert (
        rate_of(run)
        == rate_of(run, oracle | {"seed": 1})
        == rate_of(run, oracle | {"task": "rare"})
        == 0
    )
    assert rate_of(run | {"recovered": True, "errors": [9.0, 9.0]}, oracle) == 1


@pytest.mark.parametrize(("successes", "runs"), [(0, 1), (0, 20), (7, 20), (20, 20), (99, 100)])
def test_the_interval_is_wilsons(successes, runs):
    (line,) = summarize(
        [make_record(seed=seed, recovered=seed < successes) for seed in range(runs)]
    )
    interval = binomtest(successes, runs).proportion_ci(method="wilson")
    assert (line.low, line.high) == pytest.approx((interval.low, interval.high))
    z, rate = 1.959964, successes / runs
    center, half = (
        rate + z**2 / (2 * runs),
        z * np.sqrt(rate * (1 - rate) / runs + z**2 / (4 * runs**2)),
    )
    assert (line.low, line.high) == pytest.approx(
        ((center - half) / (1 + z**2 / runs), (center + half) / (1 + z**2 / runs)), abs=1e-6
    )


def test_errors_costs_and_flags_are_counted_where_they_belong():
    default = [
        make_record(seed=0, errors=(0.1, 0.2), seconds=6.0, n_contexts_found=2),
        make_record(seed=1, errors=(0.4, 0.1), seconds=8.0, warnings=1, n_contexts_found=3),
        make_record(seed=2, errors=(0.6, 0.1), recovered=False, converged=False),
        make_record(seed=3, errors=(0.8, 0.1), recovered=False),
    ]
    hard = [make_record(rule="hard", seed=seed, seconds=2.0) for seed in (0, 5)]
    oracle = make_record(rule="oracle", seed=2, errors=(0.3, 0.2))
    line, *others = summarize([*default, *hard, oracle])
    assert [other.rule for other in others] == [
        "hard"
    ]  # the oracle ran on the hardest seed only: no rate of its own
    assert line.worst_error == pytest.approx(0.5)
    assert (line.oracle_ratio, line.oracle_runs) == (pytest.approx(2.0), 1)
    assert line.cost == pytest.approx(4.0 / 2.0)
    assert (line.successes, line.successes_flagged, line.failures_flagged) == (2, 1, 1)
    assert line.counted_right == 0.5


def test_an_oracle_that_ran_everywhere_has_a_line_judged_by_the_threshold_alone():
    oracles = [make_record(rule="oracle", seed=seed, recovered=False) for seed in range(2)]
    lines = summarize([make_record(seed=0), make_record(seed=1), *oracles])
    assert [(line.rule, line.successes) for line in lines] == [("default", 2), ("oracle", 0)]


def test_lines_come_in_the_order_of_the_suite_and_strangers_last():
    records = [
        make_record(task, rule)
        for task in ("zebra", "rare", "functions")
        for rule in ("mine", "hard", "default")
    ]
    lines = [(line.task, line.rule) for line in summarize(records)]
    assert lines == [
        (task, rule)
        for task in ("functions", "rare", "zebra")
        for rule in ("default", "hard", "mine")
    ]


def test_markdown_has_a_row_for_each_line_and_a_cell_for_each_column():
    page = render_markdown(summarize([make_record(), make_record(rule="hard", recovered=False)]))
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("|")
    ]
    assert [len(row) for row in rows] == [len(HEAD)] * 4
    assert rows[2][:5] == ["functions", "default", "1 of 1", "21 to 100 %", "98 %"]
    assert rows[3][:5] == ["functions", "hard", "0 of 1", "0 to 79 %", ""]
