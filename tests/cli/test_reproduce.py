"""`leaflearn reproduce` and `results`: tables and figures, without repeated runs."""

import io
import json
import re
import sys
from pathlib import Path

import pytest
from PIL import Image

from leaflearn.benchmark.experiments import learning_run
from leaflearn.benchmark.experiments.spec import spec_names
from leaflearn.benchmark.methods import METHODS
from leaflearn.cli.main import run

OF_EACH_KIND = {  # the quickest spec of each kind, and what it draws
    "table2": [],
    "fig-parameters": ["fig-parameters-smoke.png"],
    "fig-iterations": [
        f"fig-iterations-{m}-smoke.{e}" for m in ("leaf", "leaf-annealed") for e in ("gif", "png")
    ],
    "fig-features": ["fig-features-leaf-annealed-smoke.png"],
    "table-time": [],
    "table-identifiability": [],
    "fig-success": ["fig-success-smoke.png"],
}


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    """A machine without any data files."""
    monkeypatch.setenv("LEAFLEARN_DATA", str(tmp_path / "no-data"))
    return tmp_path


def finished(folder):
    """The records of all finished runs."""
    files = sorted((folder / "runs").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_one_experiment_of_each_kind_runs(no_data, capsys, name):
    folder = no_data / "results"
    assert run(["reproduce", name, "--scale", "smoke", "-o", str(folder)]) == 0
    output = capsys.readouterr().out
    assert "; this took 0." in output
    assert re.search(r"All runs in them trained for 0\.\d\d hours\.", output)
    written = {path.name for path in folder.iterdir()}
    assert written >= {f"{name}-smoke.{ending}" for ending in ("md", "csv", "tex")}
    assert {path for path in written if path.endswith(("png", "gif"))} == set(OF_EACH_KIND[name])
    for image in OF_EACH_KIND[name]:
        assert Image.open(io.BytesIO((folder / image).read_bytes())).size[0] > 300
    assert run(["results", name, "--folder", str(folder)]) == 0
    assert (folder / f"{name}-smoke.md").read_text() in capsys.readouterr().out


@pytest.mark.slow
def test_every_experiment_runs_without_data_files(no_data):
    folder = no_data / "results"
    assert run(["reproduce", "--scale", "smoke", "-o", str(folder), "--jobs", "2"]) == 0
    assert {name for name in spec_names() if not (folder / f"{name}-smoke.md").exists()} == set()


def test_finished_runs_are_not_repeated_and_the_list_counts_the_rest(no_data, capsys, monkeypatch):
    arguments = [
        "reproduce",
        "table-identifiability",
        "--scale",
        "smoke",
        "-o",
        str(no_data / "results"),
    ]
    assert run([*arguments, "--list"]) == 0
    assert "table-identifiability       8 runs left" in capsys.readouterr().out
    assert run(arguments) == 0
    monkeypatch.setattr(learning_run, "_learn", lambda *_: pytest.fail("it was run again"))
    assert run(arguments) == 0
    capsys.readouterr()
    assert run([*arguments, "--list"]) == 0
    assert "table-identifiability       0 runs left" in capsys.readouterr().out


def test_selected_rows_and_columns_can_be_run(no_data, capsys):
    arguments = [
        "reproduce",
        "table-identifiability",
        "--scale",
        "smoke",
        "-o",
        str(no_data / "results"),
    ]
    assert run([*arguments, "--methods", "leaf, leaf-em", "--settings", "groups of 2"]) == 0
    capsys.readouterr()
    assert run([*arguments, "--list"]) == 0
    assert "table-identifiability       6 runs left" in capsys.readouterr().out
    done = [record["settings"] for record in finished(no_data / "results")]
    assert sorted(
        (settings["method"]["name"], settings["sampler"]["group_size"]) for settings in done
    ) == [("leaf", 2), ("leaf-em", 2)]


def test_a_page_is_written_from_the_runs(no_data, capsys, monkeypatch):
    monkeypatch.chdir(no_data)
    assert run(["reproduce", "table-identifiability", "--scale", "smoke", "-o", "results"]) == 0
    for record in finished(no_data / "results"):  # as if it had been run at another scale
        assert record["settings"]["n_epochs"] == 2
    (no_data / "docs").mkdir()
    assert run(["results", "--folder", "results", "--page", "docs/results.md"]) == 0
    assert (no_data / "docs" / "results.md").read_text().startswith("# Results\n")
    assert "(../results/)" in (no_data / "docs" / "results.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["reproduce", "table9"],
            "leaflearn: There is no experiment called 'table9'; there are fig-",
        ),
        (
            ["reproduce", "table-gas", "--methods", "leaf,maml"],
            "leaflearn: There is no method called 'maml' in these experiments; there "
            "are erm, leaf, leaf-annealed, mtl-oracle.",
        ),
        (
            ["reproduce", "table-gas", "--settings", "gas"],
            "leaflearn: There is no setting called 'gas' in these experiments; there "
            "are gas mixtures; gas mixtures, simulated.",
        ),
        (
            ["results", "--folder", "nowhere"],
            "leaflearn: There is no folder 'nowhere'; pass one written by `leaflearn "
            "reproduce` as --folder.",
        ),
        (
            ["results", "table1", "--folder", "."],
            "leaflearn: There are no results of this in '.'; run it with `leaflearn reproduce`.",
        ),
    ],
)
def test_errors_are_one_sentence(no_data, capsys, monkeypatch, arguments, sentence):
    monkeypatch.chdir(no_data)
    assert run(arguments) == 2
    assert capsys.readouterr().err.startswith(sentence)


def test_missing_data_is_one_sentence_and_leaves_no_result(no_data, capsys):
    assert run(["reproduce", "table2", "--scale", "laptop", "-o", str(no_data / "results")]) == 2
    assert "fashion" in capsys.readouterr().err
    assert finished(no_data / "results") == []


def test_a_failed_run_does_not_stop_the_others(no_data, capsys, monkeypatch):
    learn = learning_run._learn

    def fail(folder, settings):
        if settings["method"]["name"] == "leaf":
            raise OSError("The cable is out.")
        return learn(folder, settings)

    monkeypatch.setattr(learning_run, "_learn", fail)
    assert (
        run(
            [
                "reproduce",
                "table-identifiability",
                "--scale",
                "smoke",
                "-o",
                str(no_data / "results"),
            ]
        )
        == 2
    )
    output = capsys.readouterr()
    assert output.err.startswith(
        "leaflearn: 2 runs failed and will be repeated next time. two-lines-leaf-0-"
    )
    assert output.err.endswith(": The cable is out.\n")
    assert "| groups of 1 | LEAF-EM | 1 |" in output.out
    assert len(finished(no_data / "results")) == 6


def test_settings_without_their_data_are_left_out(no_data, capsys):
    arguments = [
        "reproduce",
        "table-gas",
        "--scale",
        "laptop",
        "--settings",
        "gas mixtures",
        "-o",
        str(no_data / "results"),
    ]
    assert run(arguments) == 0
    output = (
        "Left out: 'gas mixtures' of table-gas, because the files of gas-mixtures are "
        "missing; get them with `leaflearn data get gas-mixtures`.\n"
    )
    assert capsys.readouterr().out.endswith(output)


def test_stand_ins_are_named_and_shown_without_published_numbers(no_data, capsys):
    folder = no_data / "results"
    assert (
        run(
            ["reproduce", "table1", "--scale", "smoke", "--methods", "erm-top-k", "-o", str(folder)]
        )
        == 0
    )
    output = capsys.readouterr().out
    assert "**Colored MNIST (a stand-in)**" in output
    assert "colored-digits in place of colored-mnist" in output
    assert "| paper |" not in output
    lines = (folder / "table1-smoke.csv").read_text().splitlines()
    assert lines[0].startswith(
        "experiment,scale,setting,method,errors by,domain,unit,seeds,mean,deviation,published,"
    )
    assert lines[1].startswith("table1,smoke,Colored MNIST,erm-top-k,label set,digit,%,1,")
    assert all(len(line.split(",")) == len(lines[0].split(",")) for line in lines)


@pytest.fixture
def own_method():
    """The example; the registered methods are restored after the test."""
    before = dict(METHODS)
    yield Path(__file__).parents[2] / "examples" / "own_method.py"
    for name in set(METHODS) - set(before):
        del METHODS[name]
    for name in [name for name in sys.modules if name.startswith("leaflearn_own_")]:
        del sys.modules[name]


@pytest.mark.parametrize("n_jobs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_user_method_is_in_the_tables(no_data, capsys, own_method, n_jobs):
    arguments = [
        "reproduce",
        "fig-parameters",
        "--scale",
        "smoke",
        "--also",
        str(own_method),
        "-o",
        str(no_data / "results"),
    ]
    assert run([*arguments, "--jobs", n_jobs]) == 0
    assert "**leaf-careless**\n\n| setting | errors by | seeds |" in capsys.readouterr().out


def test_a_file_without_a_method_is_rejected(no_data, capsys):
    empty = no_data / "empty.py"
    empty.write_text("")
    assert run(["reproduce", "table2", "--also", str(empty)]) == 2
    output = (
        f"leaflearn: '{empty}' registers no method; decorate a class with "
        "`@register(NAME)` from leaflearn.benchmark.methods.\n"
    )
    assert capsys.readouterr().err == output
    assert run(["reproduce", "table2", "--also", str(no_data / "missing.py")]) == 2
    assert (
        capsys.readouterr().err
        == f"leaflearn: Cannot use '{no_data / 'missing.py'}': There is no such file.\n"
    )
