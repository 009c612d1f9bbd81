"""docs/results.md agrees with the committed records."""

import re
from pathlib import Path

from leaflearn.benchmark.experiments.result_tables import table_files
from leaflearn.benchmark.experiments.results_page import page_specs, write_page

ROOT = Path(__file__).parents[3]


def test_the_results_page_is_current():
    made = write_page(ROOT / "results" / "reproduction", "../results/reproduction")
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == made, (
        "run `leaflearn results --folder results/reproduction --page docs/results.md`"
    )


def test_the_tables_beside_the_records_are_current():
    folder = ROOT / "results" / "reproduction"
    for spec in page_specs(folder):
        for name, text in table_files(spec, folder).items():
            assert (folder / name).read_text(encoding="utf-8") == text, name


def test_the_page_shows_tables_and_figures():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert "| LEAF | best (identified) |" in page
    assert "](../results/reproduction/fig-regression-paper.png)" in page


def test_notes_of_both_scales_are_shown_once():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for section in page.split("\n## ")[1:]:
        assumed = [line for line in section.splitlines() if line.startswith("- Assumed")]
        assert len(assumed) == len(set(assumed)), section.splitlines()[0]


def test_the_overview_links_every_experiment():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    headings = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    links = re.findall(r"^\| \[[^]]+\]\(#([^)]+)\)", page, flags=re.MULTILINE)
    assert links == [
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    ]
