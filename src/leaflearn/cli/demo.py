"""`leaflearn demo`: in a minute, what the library is for, on two data sets whose truth is known."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from leaflearn.benchmark.comparison import Comparison, compare
from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.stories import STORIES, describe_errors, tell
from leaflearn.core.threads import one_thread
from leaflearn.engines.progress import ProgressBar
from leaflearn.persistence.atomic_files import make_folder, write_file
from leaflearn.report.page import Section, render_page

QUICK: dict[str, Any] = {
    "n_groups": 60,
    "max_epochs": 3,
    "n_init": 1,
}  # to see that everything runs; it learns nothing
INTRODUCTION = (
    "Sometimes the labels of one data set contradict each other, because whoever gave them followed a context that nobody wrote down. "
    "LEAF takes rows in groups that share their context, and finds at once which group belongs to which context and a model for each. "
    "On the data sets below the truth is known, so it can be checked what came apart. The learner never sees it."
)


@click.command()
@click.option(
    "-o",
    "--output",
    default="leaflearn-demo",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder for the page.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Seed of the samples and of the starts.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the figures as JSON instead of tables."
)
@click.option(
    "--quick",
    is_flag=True,
    hidden=True,
    help="A few epochs only: everything runs, nothing is learnt.",
)
def demo(output: Path, seed: int, as_json: bool, quick: bool) -> None:
    """See in a minute how conflicting labels come apart.

    Fits one model for all (ERM), LEAF, and an oracle that is told the truth, to three functions in one cloud of points and to digits
    labelled now by their shape and now by their colour. Writes pictures and a page to look at.
    """
    began = time.perf_counter()
    make_folder(output)  # before a minute of work, not after it
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
            sections.append(tell(story, result))
            answers[name] = _as_json(result)
            _show(console, sections[-1])
    files = _write(output, sections, seed)
    seconds = time.perf_counter() - began
    console.print(
        f"All of this took {seconds:.0f} seconds. For the pictures, open in a browser: {escape(str(files[-1]))}",
        soft_wrap=True,
    )
    if as_json:
        click.echo(
            json.dumps(
                {
                    "seed": seed,
                    "seconds": round(seconds, 1),
                    "files": list(map(str, files)),
                    "data_sets": answers,
                },
                indent=2,
            )
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
    return {
        "error": "rmse" if result.data.classes is None else "error rate",
        "errors": {learner: describe_errors(result, learner) for learner in result.learnt},
        "allocation_agreement": result.agreement,
    }


def _write(folder: Path, sections: list[Section], seed: int) -> list[Path]:
    """The pictures first, the page that shows them last."""
    page = render_page(
        "leaflearn: how conflicting labels come apart",
        INTRODUCTION,
        sections,
        f"Made by: leaflearn demo --seed {seed}",
    )
    contents = {
        image.name: image.png for section in sections for image in section.images
    } | {"index.html": page.encode()}
    for name, content in contents.items():
        write_file(folder / name, content)
    return [folder / name for name in contents]
