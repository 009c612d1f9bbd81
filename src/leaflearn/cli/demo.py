"""`leaflearn demo`: what the library does, shown on two data sets with known contexts.

Slow imports are inside the functions, so that `leaflearn demo --help` is fast.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from leaflearn.cli._text import say_json

if TYPE_CHECKING:
    from leaflearn.benchmark.comparison import Comparison
    from leaflearn.report.page import Section

QUICK: dict[str, Any] = {"n_groups": 60, "max_epochs": 3, "n_init": 1}  # runs, but learns nothing
INTRODUCTION = (
    "Sometimes the labels of a data set contradict each other because they depend on a context "
    "that was not recorded. LEAF takes rows in groups that share a context. It finds the context "
    "of each group and, at the same time, a model for each context. On the data sets below the "
    "true contexts are known, so the result can be checked. The learner never sees them."
)


@click.command()
@click.option(
    "-o",
    "--output",
    default="leaflearn-demo",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The folder for the page.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="The seed of the samples and of the starts.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the errors as JSON instead of tables.")
@click.option(
    "--quick",
    is_flag=True,
    hidden=True,
    help="Train for a few epochs only, to check that everything runs.",
)
def demo(output: Path, seed: int, as_json: bool, quick: bool) -> None:
    """Show in a minute how conflicting labels are separated.

    Fits a pooled model (ERM), LEAF, and an oracle that sees the true contexts, to three functions
    in one cloud of points and to digits that are labelled sometimes by shape and sometimes by
    colour. Writes images and a page that shows them.
    """
    from leaflearn.benchmark.comparison import compare
    from leaflearn.benchmark.datasets import DATASETS
    from leaflearn.benchmark.stories import STORIES, make_section
    from leaflearn.core.threads import one_thread
    from leaflearn.engines.progress import ProgressBar
    from leaflearn.persistence.atomic_files import make_folder

    began = time.perf_counter()
    make_folder(output)  # fail before the work, not after it
    console, progress = Console(quiet=as_json), Console(stderr=True)
    sections: list[Section] = []
    answers: dict[str, Any] = {}
    with one_thread():
        for name, story in STORIES.items():
            progress.print(f"[bold]{story.heading}[/]")
            result = compare(
                DATASETS[name](),
                seed,
                lambda learner: ProgressBar(f"{learner:<6}", progress),
                **(QUICK if quick else {}),
            )
            sections.append(make_section(story, result))
            answers[name] = _as_json(result)
            _show(console, sections[-1])
    files = _write(output, sections, seed)
    seconds = time.perf_counter() - began
    console.print(
        f"This took {seconds:.0f} seconds. To see the images, open in a browser: "
        f"{escape(str(files[-1]))}",
        soft_wrap=True,
    )
    if as_json:
        say_json(
            {
                "seed": seed,
                "seconds": round(seconds, 1),
                "files": list(map(str, files)),
                "data_sets": answers,
            }
        )


def _show(console: Console, section: Section) -> None:
    head, *rows = section.table
    table = Table(
        *head[:1],
        title=section.heading,
        caption=section.table_note,
        title_justify="left",
        caption_justify="left",
    )
    for name in head[1:]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print(section.finding, end="\n\n")


def _as_json(result: Comparison) -> dict[str, Any]:
    from leaflearn.benchmark.stories import describe_errors

    return {
        "error": "rmse" if result.data.classes is None else "error rate",
        "errors": {learner: describe_errors(result, learner) for learner in result.learners},
        "allocation_agreement": result.agreement,
    }


def _write(folder: Path, sections: list[Section], seed: int) -> list[Path]:
    """Write the images, then the page that shows them."""
    from leaflearn.persistence.atomic_files import write_file
    from leaflearn.report.page import render_page

    page = render_page(
        "leaflearn: how conflicting labels are separated",
        INTRODUCTION,
        sections,
        f"Made by: leaflearn demo --seed {seed}",
    )
    images = {image.name: image.png for section in sections for image in section.images}
    contents = images | {"index.html": page.encode()}
    for name, content in contents.items():
        write_file(folder / name, content)
    return [folder / name for name in contents]
