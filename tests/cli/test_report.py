"""`leaflearn report`: a page from a model folder, and one sentence for each error."""

import pandas
import pytest

from leaflearn.cli.main import run
from report_models import fit_quantity


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    model, table = fit_quantity(tame=True)
    model.save(folder / "model")
    table.to_csv(folder / "trial.csv", index=False)
    table.drop(columns="dose").to_csv(folder / "other.csv", index=False)
    return folder


def test_a_page_with_the_table(place, capsys):
    output = place / "new" / "report.html"
    assert run(["report", str(place / "model"), str(place / "trial.csv"), "-o", str(output)]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"The report is in '{output}'. Open it in a browser.\n"
    assert captured.err == ""
    page = output.read_text(encoding="utf-8")
    assert "Rows on which the contexts disagree" in page
    assert f"leaflearn fit {place / 'trial.csv'} --target effect --group site" in page
    assert "The table of this page has the same fingerprint." in page


def test_a_page_without_the_table(place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    assert run(["report", "model"]) == 0
    assert capsys.readouterr().out == "The report is in 'report.html'. Open it in a browser.\n"
    assert "Rows on which the contexts disagree" not in (place / "report.html").read_text(
        encoding="utf-8"
    )


def test_a_page_written_later_equals_the_page_of_the_fit(place, capsys, monkeypatch, tmp_path):
    """Including the warnings of reading the table and of the fit."""
    monkeypatch.chdir(tmp_path)
    table = pandas.read_csv(place / "trial.csv").assign(unit="mg")
    table.loc[3, "effect"] = None
    table.to_csv("trial.csv")  # with row numbers in a column without a name
    fit = [
        "fit",
        "trial.csv",
        "--target",
        "effect",
        "--group",
        "site",
        "--contexts",
        "2",
        "--local-model",
        "linear",
        "-o",
        "model",
    ]
    assert run([*fit, "--report", "now.html"]) == 0
    assert run(["report", "model", "trial.csv", "-o", "later.html"]) == 0
    assert run(["report", "model", "-o", "bare.html"]) == 0
    assert (tmp_path / "now.html").read_bytes() == (tmp_path / "later.html").read_bytes()
    bare = (tmp_path / "bare.html").read_text(encoding="utf-8")
    assert "Column 1 has no name and was left out." in bare
    assert "The target &#39;effect&#39; is missing in 1 of 120 rows, which were left out." in bare
    assert bare.count("(the same everywhere)") == 1
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "'nowhere' does not exist; give the folder of a model that was saved."),
        (["model", "-o", "report.pdf"], "Cannot write 'report.pdf': its name must end in .html."),
        (
            ["model", "-o", "model/report.html"],
            "Cannot write 'model/report.html': the model folder may hold nothing but "
            "the model; choose "
            "a path outside of it.",
        ),
        (["model", "-o", "folder.html"], "Cannot write 'folder.html': it is a folder."),
        (["model", "trail.csv"], "There is no file 'trail.csv'; did you mean 'trial.csv'?"),
        (
            ["model", "other.csv"],
            "There is no column 'dose' in 'other.csv'. There are: 'site', 'kind', 'day', 'effect'.",
        ),
        (
            ["model", "--local-model", "module:net.py:make"],
            "The folder holds the local models of the model; leave out --local-model.",
        ),
    ],
)
def test_errors_are_one_sentence_and_leave_no_files(
    place, capsys, monkeypatch, arguments, sentence
):
    monkeypatch.chdir(place)
    (place / "folder.html").mkdir(exist_ok=True)
    (place / "report.html").unlink(missing_ok=True)
    before = sorted(file.name for file in (*place.iterdir(), *(place / "model").iterdir()))
    assert run(["report", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err == f"leaflearn: {sentence}\n"
    assert captured.out == ""
    assert sorted(file.name for file in (*place.iterdir(), *(place / "model").iterdir())) == before


def test_help(capsys):
    assert run(["report", "--help"]) == 0
    assert "Where to write the page." in capsys.readouterr().out
