"""The package as a whole: cost of the import, public names, links and examples."""

import re
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

import leaflearn
from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.methods import METHODS
from leaflearn.engines import settings

ROOT = Path(__file__).parents[1]


def test_importing_the_package_is_cheap():
    code = (
        "import sys, leaflearn; "
        "print(*sorted({'torch', 'sklearn', 'matplotlib', 'pandas'} & set(sys.modules)))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == ""
    )


def test_every_public_name_can_be_imported():
    assert all(getattr(leaflearn, name) is not None for name in leaflearn.__all__)
    with pytest.raises(
        AttributeError, match=r"^module 'leaflearn' has no attribute 'LeafTransformer'$"
    ):
        leaflearn.LeafTransformer  # noqa: B018


@pytest.mark.parametrize(
    "page",
    [
        path.relative_to(ROOT).as_posix()
        for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    ],
)
def test_links_between_pages_have_a_target(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    missing = [target for target in targets if not ((ROOT / page).parent / target).exists()]
    assert missing == []


EXAMPLES = [path.name for path in (ROOT / "examples").glob("*.py")]
OWN_TESTS = ("with_", "worked_")  # these have tests of their results in tests/examples


@pytest.mark.parametrize(
    "example", sorted(name for name in EXAMPLES if not name.startswith(OWN_TESTS))
)
def test_examples_are_short_and_run(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [example])
    short = replace(settings.TRAINING, n_steps=100)  # only check that it runs
    monkeypatch.setattr(settings, "TRAINING", short)
    path = ROOT / "examples" / example
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 80
    with patch.dict(DATASETS), patch.dict(METHODS):  # remove what an example registers
        runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
    assert list(tmp_path.iterdir()) or not example.startswith("plot_"), (
        "a plot_ example writes an image"
    )
