"""Tables show the protocol, the number of runs, and the difference from the paper."""

import csv
import io

import pytest

from leaflearn.benchmark.experiments.error_table import error_lines
from leaflearn.benchmark.experiments.renderings import FORMATS, Table, join
from leaflearn.benchmark.experiments.result_tables import tables_of
from leaflearn.benchmark.experiments.run_record import RunRecord
from leaflearn.benchmark.experiments.spec import Spec

CONTENT = {
    "title": "Mine", "source": "nowhere", "show": "errors", "unit": "%",
    "methods": ["erm-top-k", "leaf"], "n_seeds": 2,
    "run": {"dataset": {"name": "functions"}}, "assumed": {"epochs": "three"},
    "setting": [{"name": "digits", "published": {"leaf": [1.5, 2.0]}}],
}  # fmt: skip
ERRORS = {
    "leaf": {"best": [0.02, 0.01], "identified": [0.03, 0.02]},
    "erm-top-k": {"label set": [0.5, 0.4]},
}


def finished(output, content, results):
    """Finished runs with these results by method; each seed adds 0.01 to the errors."""
    spec = Spec("mine", "paper", content)
    for run in spec.runs():
        record = RunRecord(output / "runs", run)
        record.begin()
        errors = results[run.method].get("errors", {})
        result = {
            name: [error + 0.01 * run.seed for error in of_name] for name, of_name in errors.items()
        }
        record.finish(
            {
                "domains": ["digit", "color"],
                "data": "made up",
                "seconds": 2.0,
                **results[run.method],
                "errors": result,
            }
        )
    return spec


def test_errors_are_shown_with_published_numbers(tmp_path):
    spec = finished(
        tmp_path, CONTENT, {method: {"errors": errors} for method, errors in ERRORS.items()}
    )
    (table,) = tables_of(spec, tmp_path)
    assert table.head == (
        "method",
        "errors by",
        "seeds",
        "digit (%)",
        "paper",
        "color (%)",
        "paper",
    )
    assert table.rows == (
        ("ERM-top k", "label set", "2", "50.50 ± 0.71", "", "40.50 ± 0.71", ""),
        (
            "LEAF",
            "best (identified)",
            "2",
            "2.50 ± 0.71 (3.50)",
            "1.5 (+1.00)",
            "1.50 ± 0.71 (2.50)",
            "2 (-0.50)",
        ),
    )
    assert table.notes[0].startswith("Scale: paper. Data: made up. Run ")
    assert table.notes[1] == "Assumed, epochs: three."


def test_published_numbers_have_their_deviations(tmp_path):
    settings = [{**CONTENT["setting"][0], "published_deviations": {"leaf": [0.2, 0.3]}}]
    spec = finished(
        tmp_path,
        {**CONTENT, "setting": settings},
        {method: {"errors": errors} for method, errors in ERRORS.items()},
    )
    (table,) = tables_of(spec, tmp_path)
    assert table.rows[1][4::2] == ("1.5 ± 0.2 (+1.00)", "2 ± 0.3 (-0.50)")


def test_a_single_seed_has_no_deviation(tmp_path):
    spec = finished(
        tmp_path,
        {**CONTENT, "n_seeds": 1},
        {method: {"errors": errors} for method, errors in ERRORS.items()},
    )
    assert tables_of(spec, tmp_path)[0].rows[0][3] == "50.00"


def test_rows_can_be_settings(tmp_path):
    settings = [{"name": "clean"}, {"name": "noisy", "run": {"sampler": {"mixing": 0.1}}}]
    spec = finished(
        tmp_path,
        {**CONTENT, "by": "method", "setting": settings},
        {method: {"errors": errors} for method, errors in ERRORS.items()},
    )
    tables = tables_of(spec, tmp_path)
    assert [table.title for table in tables] == ["ERM-top k", "LEAF"]
    assert [row[0] for row in tables[1].rows] == ["clean", "noisy"]


def test_errors_after_pruning_have_a_separate_line(tmp_path):
    results = {
        "leaf": {"errors": ERRORS["leaf"], "pruned": {"best": [0.2, 0.1], "dropped": 1}},
        "erm-top-k": {"errors": ERRORS["erm-top-k"]},
    }
    spec = finished(tmp_path, CONTENT, results)
    lines = error_lines(spec, [(run, RunRecord(tmp_path / "runs", run)) for run in spec.runs()])
    assert [(line.method, line.protocol) for line in lines] == [
        ("erm-top-k", "label set"), ("leaf", "best"), ("leaf", "identified"), ("leaf", "pruned"),
    ]  # fmt: skip
    assert [line.published for line in lines] == [None, (1.5, 2.0), None, None], (
        "the paper prunes nothing"
    )


def test_simulated_data_have_no_published_numbers(tmp_path):
    results = {
        method: {"errors": errors, "data": "gas-simulated (simulated)"}
        for method, errors in ERRORS.items()
    }
    (table,) = tables_of(finished(tmp_path, CONTENT, results), tmp_path)
    assert "paper" not in table.head


def test_the_mean_of_the_domains_can_have_a_column(tmp_path):
    spec = finished(
        tmp_path,
        {**CONTENT, "macro": True},
        {method: {"errors": errors} for method, errors in ERRORS.items()},
    )
    (table,) = tables_of(spec, tmp_path)
    assert table.head[-2:] == ("mean (%)", "paper")
    assert table.rows[1][-2:] == ("2.00 ± 0.71 (3.00)", "1.75 (+0.25)")


def test_notes_describe_settings_and_starts(tmp_path):
    content = {
        **CONTENT,
        "run": {**CONTENT["run"], "n_epochs": 7},
        "method": {"leaf": {"n_epochs": 9}},
    }
    results = {method: {"errors": errors} for method, errors in ERRORS.items()}
    results["leaf"]["about"] = {"start": "labels", "is_trusted": True}
    (table,) = tables_of(finished(tmp_path, content, results), tmp_path)
    assert table.notes[1:3] == (
        "Run: 7 epochs. LEAF: 9 epochs.",
        "leaflearn started from contexts found before training in 2 of 2 runs, "
        "otherwise from random models with annealing.",
    )


def test_unfinished_runs_are_left_out(tmp_path):
    spec = finished(
        tmp_path, CONTENT, {method: {"errors": errors} for method, errors in ERRORS.items()}
    )
    first = next(run for run in spec.runs() if run.method == "leaf" and run.seed == 0)
    record = RunRecord(tmp_path / "runs", first)
    lines = record.file.read_text().splitlines(keepends=True)
    record.file.write_text("".join(line for line in lines if record.name not in line))
    assert [row[2] for row in tables_of(spec, tmp_path)[0].rows] == ["2", "1"]


def test_times_are_ratios(tmp_path):
    content = {
        **CONTENT,
        "show": "time",
        "setting": [{"name": "", "published": {"erm-top-k": [400, 0.5], "leaf": [600, 0.75]}}],
    }
    content["run"] = {**content["run"], "n_epochs": 5}
    results = {
        "erm-top-k": {"answer time": 2.0, "seconds": 4.0},
        "leaf": {"answer time": 3.0, "seconds": 10.0},
    }
    (table,) = tables_of(finished(tmp_path, content, results), tmp_path)
    assert table.rows == (
        ("ERM-top k", "5", "1.00", "1.00", "1.00", "1.00"),
        ("LEAF", "5", "2.50", "1.50", "1.50", "1.50"),
    )


def test_solutions_are_counted(tmp_path):
    content = {
        **CONTENT,
        "show": "solutions",
        "methods": ["leaf"],
        "setting": [{"name": "groups of 1"}],
    }
    (table,) = tables_of(finished(tmp_path, content, {"leaf": {"solution": "S2"}}), tmp_path)
    assert table.rows == (("groups of 1", "LEAF", "2", "0", "2", "0"),)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_every_cell(form):
    table = Table("Errors", ("method", "error"), (("a & b", "1.0 ± 0.1"), ('say "x", y', "50 %")))
    text = join([table], form)
    assert all(word in text for word in ("method", "error", "1.0", "50"))
    if form == "csv":
        assert list(csv.reader(io.StringIO(text)))[1:] == [list(row) for row in table.rows]
    if form == "latex":
        assert r"a \& b & 1.0 $\pm$ 0.1 \\" in text
        assert r"50 \%" in text
