"""The programs and commands of docs/how-to/from-a-table.md run, with the output on the page."""

import re
import warnings
from dataclasses import replace
from pathlib import Path

import pandas
import pytest

from leaflearn.cli.main import run
from leaflearn.engines import settings as engine_settings
from leaflearn.initialization import settings as search_settings

PAGE = (Path(__file__).parents[1] / "docs" / "how-to" / "from-a-table.md").read_text(
    encoding="utf-8"
)


def without_numbers(lines):
    """Lines, without the numbers that networks predict."""
    return [
        re.sub(r"-?\d+\.\d+", "#", line) if line.startswith("They are furthest apart") else line
        for line in lines
    ]


@pytest.fixture(autouse=True)
def _train_briefly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engine_settings, "TRAINING", replace(engine_settings.TRAINING, n_steps=100))
    monkeypatch.setattr(search_settings, "SEARCH", replace(search_settings.SEARCH, scales=(1.2,)))


def test_all_code_on_the_page_runs(capsys):
    make_tables, in_python = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(make_tables, {})
    commands = [
        line.partition("#")[0].split()
        for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S)
        for line in block.splitlines()
    ]
    assert len(commands) == 6
    printed = []
    for leaflearn, *arguments in commands:
        assert leaflearn == "leaflearn"
        assert run(arguments) == 0
        printed.append(capsys.readouterr().out)
    shown = re.search(r"```\n(\d+ rows, .*?)```", PAGE, re.S).group(1).splitlines()
    *found, _, _, intervals = shown  # two lines are errors, which need longer training
    assert without_numbers(printed[0].splitlines()[: len(found)]) == without_numbers(found)
    assert intervals in printed[0].splitlines()
    assert "determined" in printed[1]
    answers = pandas.read_parquet("answers.parquet")
    assert (answers["context"] == (answers["site"] % 3 == 0)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(in_python, {})
