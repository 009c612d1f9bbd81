"""`leaflearn bench`: what it runs, prints and writes; the runs are mocked or short."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from leaflearn.benchmark.altered import tasks as altered_tasks
from leaflearn.benchmark.groups import suite as groups_suite
from leaflearn.benchmark.real import suite as real_suite
from leaflearn.benchmark.real.run import METHODS
from leaflearn.benchmark.real.tables import EXTRA_TABLES, TABLES, RealTable
from leaflearn.benchmark.recovery import suite as recovery_suite
from leaflearn.benchmark.recovery.run import RULES
from leaflearn.benchmark.recovery.tasks import TASKS
from leaflearn.cli.main import run

FILES = {"records.jsonl", "recovery.png", "tasks.png", "summary.md"}
RULE_NAMES = "default, auto, hard, sampled, soft, annealed, oracle"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("LEAFLEARN_DEBUG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def two_tasks(monkeypatch):
    """Two tasks and nothing else, the second of ten groups."""
    functions = TASKS["functions"]
    for name in list(TASKS):
        monkeypatch.delitem(TASKS, name)
    monkeypatch.setitem(TASKS, "functions", functions)
    monkeypatch.setitem(TASKS, "tiny", replace(functions, name="tiny", n_groups=10, bar=None))


@pytest.fixture
def fits(monkeypatch):
    """Mocked runs: what was run, and what each raises or whether it recovers."""
    done, outcome = [], {}

    def mock_run(task, rule, seed, keep_contexts=False):
        done.append((task.name, rule, seed))
        if isinstance(outcome.get(seed), BaseException):
            raise outcome[seed]
        return {
            "task": task.name,
            "rule": rule,
            "seed": seed,
            "recovered": outcome.get((rule, seed), True),
            "errors": [0.1, 0.1, 0.1],
            "agreement": 1.0,
            "seconds": 1.0,
            "converged": True,
            "warnings": 0,
            "init": "random",
            "n_contexts_found": 3,
        }

    monkeypatch.setattr(recovery_suite, "run", mock_run)
    return done, outcome


@pytest.fixture
def leaflearn(capsys):
    """Run the command; its exit code, what it printed, and its error."""

    def call(*arguments):
        code = run(["bench", "recovery", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.mark.parametrize(
    "arguments",
    [
        ["bench"],
        ["bench", "--help"],
        ["bench", "recovery", "--help"],
        ["bench", "real", "--help"],
    ],
)
def test_help_imports_no_heavy_package(arguments):
    heavy = "{'torch', 'sklearn', 'matplotlib', 'numpy'}"
    program = (
        f"import sys; from leaflearn.cli.main import run; code = run({arguments}); "
        f"sys.exit(code or bool({heavy} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "record" in done.stdout or "recover" in done.stdout


@pytest.mark.usefixtures("two_tasks")
def test_it_fits_records_and_draws(leaflearn, place, monkeypatch):
    for rule in ("default", "hard"):
        monkeypatch.setitem(RULES, rule, {"max_epochs": 1, "n_init": 1, "init": "random"})
    code, out, err = leaflearn(
        "--tasks", "tiny", "--seeds", 1, "--first-seed", 4, "-o", "new/folder"
    )
    assert (code, err) == (0, "")
    assert set(os.listdir(place / "new" / "folder")) == FILES
    recorded = [
        json.loads(line)
        for line in (place / "new" / "folder" / "records.jsonl").read_text().splitlines()
    ]
    assert [(r["rule"], r["seed"], "contexts" in r) for r in recorded] == [
        ("default", 4, True),
        ("hard", 4, False),
        ("oracle", 4, False),
    ]
    assert all(
        (place / "new" / "folder" / name).read_bytes().startswith(b"\x89PNG")
        for name in ("recovery.png", "tasks.png")
    )
    assert "0 of 1" in out
    assert out.endswith("Records, summary and figures are in new/folder\n")


@pytest.mark.usefixtures("two_tasks")
def test_all_tasks_and_two_rules_are_run_by_default(leaflearn, fits):
    done, _ = fits
    assert leaflearn()[0] == 0
    assert done == [
        (task, rule, seed)
        for seed in range(10)
        for task in ("functions", "tiny")
        for rule in ("default", "hard")
    ]


def test_quick_runs_few_tasks_on_two_seeds_by_default(leaflearn, fits):
    done, _ = fits
    assert leaflearn("--quick")[0] == 0
    assert {seed for *_, seed in done} == {0, 1}
    assert {(task, rule) for task, rule, _ in done} == {
        (task, rule) for task in ("functions", "rare") for rule in ("default", "hard")
    }
    done.clear()
    assert leaflearn("--quick", "--tasks", "opposites", "--seeds", 1, "-o", "other")[0] == 0
    assert done == [("opposites", "default", 0), ("opposites", "hard", 0)]


@pytest.mark.usefixtures("two_tasks")
def test_json_is_the_only_output(leaflearn, fits):
    _, outcome = fits
    outcome["hard", 1] = False
    code, out, err = leaflearn("--tasks", "tiny,functions", "--seeds", 2, "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (
        {os.path.basename(file) for file in answer["files"]}
        == set(os.listdir("leaflearn-recovery"))
        == FILES
    )
    rates = {
        (line["task"], line["rule"]): (line["rate"], line["runs"], line["bar"])
        for line in answer["summary"]
    }
    assert rates["tiny", "hard"] == (0.5, 2, None)
    assert rates["functions", "default"] == (1.0, 2, 0.98)


@pytest.mark.usefixtures("two_tasks")
@pytest.mark.parametrize(("width", "n_columns"), [(120, 11), (80, 8), (40, 3)])
def test_a_narrow_terminal_shows_fewer_columns(leaflearn, fits, monkeypatch, width, n_columns):
    monkeypatch.setenv("COLUMNS", str(width))
    _, out, _ = leaflearn("--tasks", "functions", "--rules", "default", "--seeds", 1)
    # The last line names a folder, which is not wrapped.
    assert max(map(len, out.splitlines()[:-1])) <= width
    cells = [
        "functions",
        "default",
        "1 of 1",
        "21 to 100 %",
        "98 %",
        "0.100",
        "",
        "",
        "",
        "0 of 1",
        "100 %",
    ]
    (row,) = (line for line in out.splitlines() if "1 of 1" in line and "functions" in line)
    assert row.split() == " ".join(cells[:n_columns]).split()
    assert ("too narrow" in " ".join(out.split())) == (n_columns < 11)


@pytest.mark.usefixtures("two_tasks")
def test_unknown_names_are_answered_with_the_known_ones(leaflearn, fits, place):
    done, _ = fits
    assert leaflearn("--tasks", "functions,juggling") == (
        2,
        "",
        "leaflearn: There is no task called 'juggling'. There are: functions, tiny.\n",
    )
    assert leaflearn("--rules", "golden") == (
        2,
        "",
        f"leaflearn: There is no rule called 'golden'. There are: {RULE_NAMES}.\n",
    )
    assert leaflearn("--tasks", " , ") == (
        2,
        "",
        "leaflearn: No task is named in --tasks ' , '. There are: functions, tiny.\n",
    )
    assert done == []
    assert os.listdir(place) == []


@pytest.mark.parametrize("option", ["--seeds", "--jobs"])
def test_counts_below_one_are_refused(leaflearn, option):
    sentence = (
        f"leaflearn: Invalid value for '{option}': 0 is not in the range x>=1. See "
        "'leaflearn bench recovery --help'.\n"
    )
    assert leaflearn(option, 0) == (2, "", sentence)


def test_an_output_that_is_a_file_is_rejected_before_the_work(leaflearn, fits, place):
    (place / "file").write_text("mine")
    assert leaflearn("-o", "file") == (
        2,
        "",
        "leaflearn: Cannot write into 'file': it is a file, and a folder is needed.\n",
    )
    assert fits[0] == []


@pytest.mark.usefixtures("two_tasks")
def test_an_interrupted_benchmark_is_resumed(leaflearn, fits, place):
    done, outcome = fits
    outcome[2] = KeyboardInterrupt()
    arguments = ("--tasks", "tiny", "--rules", "hard", "--seeds", 4, "-o", "here")
    assert leaflearn(*arguments) == (130, "", "\nleaflearn: Interrupted.\n")
    assert os.listdir(place / "here") == ["records.jsonl"]
    assert len((place / "here" / "records.jsonl").read_text().splitlines()) == 2
    done.clear()
    outcome.clear()
    assert leaflearn(*arguments)[0] == 0
    assert done == [("tiny", "hard", 2), ("tiny", "hard", 3)]


# Real tables


@pytest.fixture
def real_table(place, monkeypatch):
    """One table and nothing else, whose file is in the data folder."""
    monkeypatch.setenv("LEAFLEARN_DATA", str(place / "data"))
    table = RealTable("pets", "pets.csv", "weight", "owner", (), "a friend")
    for registry in (TABLES, EXTRA_TABLES):
        for name in list(registry):
            monkeypatch.delitem(registry, name)
    monkeypatch.setitem(TABLES, "pets", table)
    table.path.parent.mkdir(parents=True)
    lines = [f"{(7 * i) % 10},{i // 10},{i % 10}" for i in range(300)]
    table.path.write_text("\n".join(["weight,owner,age", *lines]))
    return table


@pytest.fixture
def real_runs(real_table, monkeypatch):
    """Mocked runs: what was run, and what each raises or its outcome."""
    done, outcome = [], {}

    def mock_run(table, method, split, commit=None):
        done.append((table.name, method, split))
        if isinstance(outcome.get(split), BaseException):
            raise outcome[split]
        found = outcome.get(method, "ok")
        loss = 81.0 if method.startswith("leaflearn") else 100.0
        return {
            "table": table.name,
            "method": method,
            "split": split,
            "outcome": found,
            "reason": None,
            "measure": "rmse",
            "cells": {"known": {"loss": loss, "rows": 100, "groups": 30}} if found == "ok" else {},
            "seconds": 1.0,
            "commit": commit,
        }

    monkeypatch.setattr(real_suite, "run", mock_run)
    return done, outcome


@pytest.fixture
def bench_real(capsys):
    """Run `leaflearn bench real`; its exit code, what it printed, and its error."""

    def call(*arguments):
        code = run(["bench", "real", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_real_tables_are_fitted_recorded_and_drawn(bench_real, real_table, place):
    code, out, err = bench_real("--methods", "pooled linear", "--splits", 1, "-o", "new/folder")
    assert (code, err) == (0, "")
    folder = place / "new" / "folder"
    assert set(os.listdir(folder)) == {"records.jsonl", "table.md", "ratios.png"}
    (record,) = map(json.loads, (folder / "records.jsonl").read_text().splitlines())
    assert (record["outcome"], record["cells"]["known"]["groups"]) == ("ok", 24)
    assert (folder / "ratios.png").read_bytes().startswith(b"\x89PNG")
    assert "No cell with enough groups has both a method of leaflearn and a peer.\n" in out
    assert out.endswith("Records, summary and figure are in new/folder\n")


def test_all_methods_and_splits_are_run_by_default(bench_real, real_runs):
    done, _ = real_runs
    assert bench_real()[0] == 0
    assert done == [("pets", method, split) for split in range(5) for method in METHODS]


def test_ratios_and_missing_programs_are_printed(bench_real, real_runs):
    real_runs[1].update({"lme4": "missing", "merf": "not applicable", "flexmix": "failed"})
    arguments = ("--methods", "leaflearn,lme4,merf,flexmix,gpboost", "--splits", 1)
    code, out, err = bench_real(*arguments)
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert ["gpboost", "0.900", "(1)"] in rows
    assert ["the", "best", "peer", "0.900", "(1)"] in rows
    assert (
        "leaflearn is best in 1 of 1 cells, and best or within 2 % of the best peer in 1 (100 %).\n"
        in out
    )
    assert "Runs of methods that are not installed: lme4 (1).\n" in out
    assert "Runs that failed: flexmix (1).\n" in out


def test_the_json_of_real_tables_is_the_only_output(bench_real, real_runs):
    code, out, err = bench_real("--methods", "leaflearn,lme4", "--splits", 2, "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert {os.path.basename(file) for file in answer["files"]} == set(os.listdir("leaflearn-real"))
    (comparison,) = answer["summary"]["comparisons"]
    assert comparison["to_peers"]["lme4"]["known"] == {"ratio": 0.9, "n_tables": 1}
    assert comparison["share_tied"] == 1.0


def test_unknown_tables_and_methods_are_answered_with_the_known_ones(bench_real, real_runs, place):
    assert bench_real("--tables", "pets,plants") == (
        2,
        "",
        "leaflearn: There is no table called 'plants'. There are: pets.\n",
    )
    assert bench_real("--methods", "oracle") == (
        2,
        "",
        f"leaflearn: There is no method called 'oracle'. There are: {', '.join(METHODS)}.\n",
    )
    assert bench_real("--methods", "") == (
        2,
        "",
        f"leaflearn: No method is named in --methods ''. There are: {', '.join(METHODS)}.\n",
    )
    assert real_runs[0] == []
    assert os.listdir(place) == ["data"]


@pytest.mark.parametrize("n_splits", [0, 6])
def test_there_are_one_to_five_splits(bench_real, n_splits):
    sentence = (
        f"leaflearn: Invalid value for '--splits': {n_splits} is not in the range 1<=x<=5. See "
        "'leaflearn bench real --help'.\n"
    )
    assert bench_real("--splits", n_splits) == (2, "", sentence)


def test_a_missing_table_is_one_sentence_before_the_work(bench_real, real_table, place):
    real_table.path.unlink()
    assert bench_real() == (
        2,
        "",
        f"leaflearn: The table 'pets' needs '{real_table.path}', which does not exist; "
        "get it from its public source (a friend) or set LEAFLEARN_DATA.\n",
    )
    assert os.listdir(place) == ["data"]


def test_an_interrupted_comparison_is_resumed(bench_real, real_runs, place):
    done, outcome = real_runs
    outcome[2] = KeyboardInterrupt()
    arguments = ("--methods", "lme4", "-o", "here")
    assert bench_real(*arguments) == (130, "", "\nleaflearn: Interrupted.\n")
    assert len((place / "here" / "records.jsonl").read_text().splitlines()) == 2
    done.clear()
    outcome.clear()
    assert bench_real(*arguments)[0] == 0
    assert [split for *_, split in done] == [2, 3, 4]


def test_extra_tables_are_run_if_they_are_named(bench_real, real_runs, real_table, monkeypatch):
    extra = replace(real_table, name="plants", folder="real-extra")
    monkeypatch.setitem(EXTRA_TABLES, "plants", extra)
    extra.path.parent.mkdir()
    extra.path.write_text(real_table.path.read_text())
    assert bench_real("--methods", "lme4", "--splits", 1)[0] == 0
    assert bench_real("--methods", "lme4", "--splits", 1, "--tables", "plants")[0] == 0
    assert real_runs[0] == [("pets", "lme4", 0), ("plants", "lme4", 0)]


# Known contexts of groups


def call(capsys, *arguments):
    code = run(["bench", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_altered_tables_are_fitted_recorded_and_drawn(capsys, real_table, place, monkeypatch):
    task = altered_tasks.AlteredTask("pets-reversed", real_table, altered_tasks.reverse)
    monkeypatch.setitem(altered_tasks.TASKS, "pets-reversed", task)
    arguments = ("altered", "--tasks", "pets-reversed", "--methods", "leaflearn linear")
    code, out, err = call(capsys, *arguments, "--seeds", 1)
    assert (code, err) == (0, "")
    folder = place / "leaflearn-altered"
    assert set(os.listdir(folder)) == {"records.jsonl", "summary.md", "altered.png"}
    lines = (folder / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["method"] for line in lines] == ["oracle", "leaflearn linear"]
    assert "pets-reversed" in out
    assert out.endswith("Records, summary and figure are in leaflearn-altered\n")
    code, out, err = call(capsys, *arguments, "--seeds", 1, "--json")
    assert [line["task"] for line in json.loads(out)["summary"]["tasks"]] == ["pets-reversed"]
    assert len((folder / "records.jsonl").read_text().splitlines()) == 2


def test_a_missing_table_of_a_task_is_one_sentence(capsys, real_table, place):
    code, out, err = call(capsys, "altered", "--tasks", "cigar-unit", "-o", "here")
    assert (code, out) == (2, "")
    assert err.startswith("leaflearn: The table 'cigar' needs '")
    assert not (place / "here").exists()


@pytest.fixture
def group_runs(monkeypatch):
    """Mocked runs on simulated groups: which were made."""
    done = []

    def mock_run(scenario, method, seed, commit=None, fit=None):
        done.append((scenario.name, method, seed))
        score = {"n_found": 1, "n_true": 1, "ari": 1.0, "n_groups": 9, "n_sure_wrong": 0}
        record = {"scenario": scenario.name, "method": method, "seed": seed, "outcome": "ok"}
        return record | {"contexts": score | {"bins": []}, "best_ari": 1.0, "seconds": 1.0}

    monkeypatch.setattr(groups_suite, "run", mock_run)
    return done


def test_simulated_groups_are_run_by_scenario_method_and_seed(capsys, group_runs, place):
    name = "degree/slopes/linear/values"
    arguments = ("groups", "--scenarios", name, "--methods", "leaflearn linear,leaflearn smooth")
    code, out, err = call(capsys, *arguments, "--seeds", 2, "--first-seed", 7, "-o", "here")
    assert (code, err) == (0, "")
    methods = ("leaflearn linear", "leaflearn smooth")
    assert group_runs == [(name, method, seed) for seed in (7, 8) for method in methods]
    assert set(os.listdir(place / "here")) == {"records.jsonl", "summary.md", "groups.png"}
    sentence = "one context in 2 of 2 data sets whose groups differ by degree (100 %; bar 95 %)."
    assert f"leaflearn linear: {sentence}\n" in out


def test_costs_are_measured_only_if_they_are_named(capsys, group_runs):
    code, out, _ = call(capsys, "groups", "--methods", "leaflearn linear", "--seeds", 1, "--json")
    assert code == 0
    assert {name.split("/")[0] for name, _, _ in group_runs} == {"degree", "kind"}
    assert len(json.loads(out)["summary"]["scenarios"]) == len(group_runs)


def test_unknown_scenarios_and_peers_are_one_sentence(capsys, group_runs, place):
    assert call(capsys, "groups", "--scenarios", "weather") == (
        2,
        "",
        "leaflearn: No scenario begins with 'weather'; they begin with degree, kind, cost.\n",
    )
    assert call(capsys, "groups", "--methods", "lme4") == (
        2,
        "",
        "leaflearn: There is no method called 'lme4'. There are: leaflearn, leaflearn linear, "
        "leaflearn smooth, leaflearn boosting.\n",
    )
    assert (group_runs, os.listdir(place)) == ([], [])
