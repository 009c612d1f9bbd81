"""`leaflearn bench`: measure the library on tasks with known contexts.

Slow imports are inside the functions, so that `leaflearn bench --help` is fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leaflearn.cli._tables import with_jobs
from leaflearn.cli._text import say_json
from leaflearn.progress import watch

if TYPE_CHECKING:
    from leaflearn.benchmark.recovery.summary import Summary

QUICK_TASKS, QUICK_SEEDS = "functions,rare", 2
RULES_RUN = "default,hard"
N_SEEDS = 10


@click.group(invoke_without_command=True)
@click.pass_context
def bench(context: click.Context) -> None:
    """Measure how often the contexts are recovered."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@bench.command()
@click.option("--tasks", help="Names of tasks, separated by commas.  [default: all]")
@click.option(
    "--rules",
    default=RULES_RUN,
    show_default=True,
    help="Names of rules, separated by commas.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    help=f"The number of data sets per task.  [default: {N_SEEDS}]",
)
@click.option(
    "--first-seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="The seed of the first data set.",
)
@click.option(
    "--quick",
    is_flag=True,
    help=f"Run for about a minute: by default the tasks {QUICK_TASKS} with {QUICK_SEEDS} seeds.",
)
@with_jobs
@click.option(
    "-o",
    "--output",
    default="leaflearn-recovery",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The folder for the records; a run that is recorded there is not repeated.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the summary as JSON instead of a table."
)
def recovery(
    tasks: str | None,
    rules: str,
    seeds: int | None,
    first_seed: int,
    quick: bool,
    jobs: int,
    output: Path,
    as_json: bool,
) -> None:
    """Count how often the contexts are recovered.

    Every task is fitted by every rule on new data for each seed. Each run is recorded in
    FOLDER/records.jsonl when it ends, and recorded runs are not repeated. Where the default rule
    fails, an oracle that sees the true contexts is run as well, to check whether the task can be
    solved at all. The summary covers all records in the folder; it is written there with two
    figures.
    """
    from leaflearn.benchmark.recovery.run import RULES
    from leaflearn.benchmark.recovery.suite import Records, run_suite
    from leaflearn.benchmark.recovery.summary import summarize
    from leaflearn.benchmark.recovery.tasks import TASKS
    from leaflearn.persistence.atomic_files import make_folder

    named_tasks = _names(tasks or (QUICK_TASKS if quick else ",".join(TASKS)), TASKS, "task")
    named_rules = _names(rules, RULES, "rule")
    n_seeds = seeds or (QUICK_SEEDS if quick else N_SEEDS)
    records = Records(make_folder(output) / "records.jsonl")
    run_suite(
        records, named_tasks, named_rules, range(first_seed, first_seed + n_seeds), jobs, watch
    )
    summary = summarize(records.all())
    files = [records.path, *_write(output, summary, records.all())]
    if as_json:
        say_json({"files": list(map(str, files)), "summary": [_as_json(line) for line in summary]})
    else:
        _print_table(summary)
        click.echo(f"Records, summary and figures are in {output}")


def _names(given: str, known: Iterable[str], what: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    unknown = [name for name in names if name not in set(known)]
    if unknown or not names:
        problem = (
            f"There is no {what} called '{unknown[0]}'."
            if unknown
            else f"No {what} is named in --{what}s '{given}'."
        )
        raise click.ClickException(f"{problem} There are: {', '.join(known)}.")
    return names


def _as_json(line: Summary) -> dict[str, Any]:
    return {**asdict(line), "rate": line.rate}


def _print_table(summary: Sequence[Summary]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from leaflearn.benchmark.recovery.summary import HEAD, NOTE, as_cells

    console, rows = Console(), [as_cells(line) for line in summary]
    widths = [
        max(*(len(word) for word in name.split()), *(len(row[i]) for row in rows))
        for i, name in enumerate(HEAD)
    ]
    n_columns = _count_fitting(widths, console.width)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for place, (name, width) in enumerate(zip(HEAD[:n_columns], widths, strict=False)):
        table.add_column(
            name, justify="left" if place < 2 else "right", width=width, vertical="bottom"
        )
    for row, next_row in zip(rows, [*rows[1:], ("",)], strict=True):
        table.add_row(*row[:n_columns], end_section=row[0] != next_row[0])
    console.print(table)
    hidden = (
        f" The terminal is too narrow for {', '.join(HEAD[n_columns:])}; see summary.md."
        if n_columns < len(HEAD)
        else ""
    )
    console.print(NOTE + hidden, highlight=False)


def _count_fitting(widths: Sequence[int], room: int) -> int:
    """The number of columns that fit, each with two spaces; the first three always stay."""
    return max(3, sum(sum(widths[:n]) + 2 * n + 1 <= room for n in range(1, len(widths) + 1)))


def _write(
    folder: Path, summary: Sequence[Summary], records: Sequence[dict[str, Any]]
) -> list[Path]:
    from leaflearn.benchmark.figures.recovery_figures import draw_rates, draw_tasks
    from leaflearn.benchmark.recovery.summary import render_markdown
    from leaflearn.persistence.atomic_files import write_file
    from leaflearn.report.page import to_png

    contents = {
        "recovery.png": to_png(draw_rates(summary)),
        "tasks.png": to_png(draw_tasks(records)),
        "summary.md": render_markdown(summary).encode(),
    }
    for name, content in contents.items():
        write_file(folder / name, content)
    return [folder / name for name in contents]
