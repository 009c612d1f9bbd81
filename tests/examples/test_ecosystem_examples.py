"""Examples with tables and loaders of other libraries are short and find their contexts."""

import runpy
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from leaflearn.initialization import settings

EXAMPLES = Path(__file__).parents[2] / "examples"
MOST_LINES = 60


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run an example in an empty folder; gives back its names and the lines that it printed."""

    def run_example(name):
        one_scale = replace(settings.SEARCH, scales=(1.2,))  # one search instead of several
        monkeypatch.setattr(settings, "SEARCH", one_scale)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [name])
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # a reader should not have to wonder
            names = runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        assert not list(tmp_path.iterdir()), "these examples leave nothing behind"
        return names, capsys.readouterr().out.splitlines()

    return run_example


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("with_*.py")))
def test_it_is_short(name):
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) < MOST_LINES


def test_pandas(run):
    names, lines = run("with_pandas.py")
    assert names["found"].index.name == "critic"
    assert (
        names["table"]["context"] == names["table"]["critic"].map(names["found"]["context"])
    ).all()
    slopes = {round(slope) for slope in names["slope"].values()}
    assert slopes == {-4, 4}  # the slopes that the table was made with
    assert lines[-1] == "100% of the critics are with those who share their taste"


def test_polars(run):
    names, lines = run("with_polars.py")
    parcels = names["parcels"]
    assert parcels.columns == ["scale", "volume", "kind", "weight", "context"]
    assert parcels["context"].null_count() == 0
    expected = [0.2 * 4 + 1 + 0.5 * 4, 0.6 * 12 + 1 + 0.5 * 12]  # with the tray
    assert names["answers"]["prediction"].tolist() == pytest.approx(expected, abs=1.5)
    assert lines[-1] == "100% of the scales are with those that weigh as they do"


def test_hugging_face(run, monkeypatch):
    # Importing it fails, as if it were not installed.
    monkeypatch.setitem(sys.modules, "datasets", None)
    _, lines = run("with_hugging_face_dataset.py")
    assert lines[1:3] == [
        "dislike: The soup was delicious and the bill expensive.",
        "like: The fish was tasteless and the bill cheap.",
    ]
    assert lines[-1] == "100% of the readers are with those who judge as they do"


def test_data_loader(run):
    names, lines = run("with_data_loader.py")
    # A pooled model is wrong on about every fourth row.
    assert names["wrong"] < 0.15 * len(names["later"])
    assert lines[-1] == "100% of the annotators are with those who sort as they do"
