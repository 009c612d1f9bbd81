"""The worked example runs, and its page shows its commands in their order and what it finds."""

import io
import re
import runpy
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer

from leaflearn.engines import settings as engine_settings
from leaflearn.initialization import settings as search_settings

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "worked_example.py"
PAGE = (ROOT / "docs" / "how-to" / "worked-example.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"^\$ leaflearn (.*)$", re.M)


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Run it once, in a hurry, in a folder of its own; what it prints, and the folder."""
    folder = tmp_path_factory.mktemp("worked")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", [EXAMPLE.name])
        patch.setattr(engine_settings, "TRAINING", replace(engine_settings.TRAINING, n_steps=300))
        patch.setattr(search_settings, "SEARCH", replace(search_settings.SEARCH, scales=(1.2,)))
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
            runpy.run_path(str(EXAMPLE), run_name="__main__")
    return out.getvalue(), folder


def test_it_is_short():
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 80


def test_the_page_shows_its_commands_in_their_order(printed):
    ran, shown = COMMAND.findall(printed[0]), COMMAND.findall(PAGE)
    # The text describes the command with as-usual in a sentence and does not show it.
    assert shown == [command for command in ran if "as-usual" not in command]


def test_the_page_shows_the_contexts_that_are_found(printed):
    tables = [re.findall(r"^context \d .*$", text, re.M) for text in (printed[0], PAGE)]
    assert tables[0][:2] == tables[1]
    assert tables[1][1].endswith("7 of 7  C, F, H, K, O, Q, S")


def test_the_page_says_how_the_new_clinics_are_identified(printed):
    found = [
        re.findall(r"^([UV]) +(\d) .*  (determined|rows like .*)$", text, re.M)
        for text in (printed[0], PAGE)
    ]
    assert found[0][-2:] == found[1][-2:] == [("U", "1", "determined"), ("V", "0", "determined")]


def test_the_raw_table_is_the_one_on_the_page(printed):
    head = "\n".join((printed[1] / "visits.csv").read_text().splitlines()[:3])
    assert f"```\n{head}\n```" in PAGE


def test_the_page_describes_how_the_table_is_made():
    names = runpy.run_path(str(EXAMPLE))
    visits, by_texture = names["make_visits"](), names["BY_TEXTURE"]
    patients = load_breast_cancer(as_frame=True).frame
    patients = patients.sample(frac=1, random_state=0, ignore_index=True)
    is_malignant = patients["target"] == 0
    is_coarse, is_called = visits["texture"] > 19, visits["call_back"] == "yes"
    other = visits["clinic"].isin(by_texture)
    assert (is_called == is_coarse.where(other, is_malignant)).all()
    assert len(set(by_texture) - set(names["NEW"])) == 7
    assert f"differ for {(is_coarse != is_malignant).sum()} of the {len(visits)} patients" in PAGE
    assert (
        f"leaves out {(is_malignant & ~is_coarse).sum()} of the {is_malignant.sum()} patients"
        in PAGE
    )
