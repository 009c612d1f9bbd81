"""`leaflearn bench`: measure the library on tasks with known contexts, and on real tables.

Four benchmarks: `recovery`, `real`, `altered` (real tables with known contexts) and `groups`
(simulated groups that differ by degree or in kind).

Slow imports are inside the functions, so that `leaflearn bench --help` is fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from leaflearn.benchmark.real.settings import REAL
from leaflearn.cli._tables import with_jobs
from leaflearn.cli._text import say_json
from leaflearn.progress import watch

if TYPE_CHECKING:
    from leaflearn.benchmark.recovery.summary import Summary

QUICK_TASKS, QUICK_SEEDS = "functions,rare", 2
RULES_RUN = "default,hard"
N_SEEDS = 10
METHODS_RUN = "leaflearn,leaflearn smooth,leaflearn linear"
N_ALTERED_SEEDS = 3
F = TypeVar("F", bound=Callable[..., Any])


@click.group(invoke_without_command=True)
@click.pass_context
def bench(context: click.Context) -> None:
    """Measure how often the contexts are recovered, and compare with other methods."""
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


@bench.command()
@click.option(
    "--tables", help="Names of tables, separated by commas.  [default: all but the extra ones]"
)
@click.option("--methods", help="Names of methods, separated by commas.  [default: all]")
@click.option(
    "--splits",
    default=REAL.n_splits,
    show_default=True,
    type=click.IntRange(min=1, max=REAL.n_splits),
    help="Run the first so many splits of each table.",
)
@with_jobs
@click.option(
    "-o",
    "--output",
    default="leaflearn-real",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The folder for the records; a run that is recorded there is not repeated.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the summary as JSON instead of a table."
)
def real(
    tables: str | None,
    methods: str | None,
    splits: int,
    jobs: int,
    output: Path,
    as_json: bool,
) -> None:
    """Compare with other methods on real tables with groups.

    Every method learns from half of the rows of four fifths of the groups. It predicts the other
    rows of these groups, and rows of the new groups, of which it is shown 1, 5, 10 or 20 labelled
    rows. The tables are read from the folder "real" in the data folder, which LEAFLEARN_DATA names,
    and those of the extra registry from "real-extra".

    Each run is recorded in FOLDER/records.jsonl when it ends, and recorded runs are not repeated,
    except those of methods that were not installed. The summary covers all records in the folder;
    it is written there as table.md, with a figure.
    """
    from leaflearn.benchmark.real.run import METHODS
    from leaflearn.benchmark.real.suite import RealRecords, run_real
    from leaflearn.benchmark.real.summary import as_json as summary_as_json
    from leaflearn.benchmark.real.tables import TABLES, all_tables
    from leaflearn.persistence.atomic_files import make_folder

    known = all_tables()
    named_tables = _names(",".join(TABLES) if tables is None else tables, known, "table")
    named_methods = _names(",".join(METHODS) if methods is None else methods, METHODS, "method")
    for name in named_tables:
        known[name].check()
    records = RealRecords(make_folder(output) / "records.jsonl")
    run_real(records, named_tables, named_methods, splits, jobs, watch)
    files = [records.path, *_write_real(output, records.all())]
    if as_json:
        say_json({"files": list(map(str, files)), "summary": summary_as_json(records.all())})
    else:
        _print_real(records.all())
        click.echo(f"Records, summary and figure are in {output}")


def _with_runs(folder: str, n_seeds: int) -> Callable[[F], F]:
    """The options that the benchmarks with known contexts of groups share."""
    options = [
        click.option(
            "--methods",
            default=METHODS_RUN,
            show_default=True,
            help="Names of methods of leaflearn, separated by commas.",
        ),
        click.option(
            "--seeds",
            default=n_seeds,
            show_default=True,
            type=click.IntRange(min=1),
            help="The number of data sets of each kind.",
        ),
        click.option(
            "--first-seed",
            default=0,
            show_default=True,
            type=click.IntRange(min=0),
            help="The seed of the first data set.",
        ),
        with_jobs,
        click.option(
            "-o",
            "--output",
            default=folder,
            show_default=True,
            type=click.Path(path_type=Path),
            help="The folder for the records; a run that is recorded there is not repeated.",
        ),
        click.option(
            "--json", "as_json", is_flag=True, help="Print the summary as JSON instead of a table."
        ),
    ]

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@bench.command()
@click.option("--tasks", help="Names of tasks, separated by commas.  [default: all]")
@_with_runs("leaflearn-altered", N_ALTERED_SEEDS)
def altered(
    tasks: str | None,
    methods: str,
    seeds: int,
    first_seed: int,
    jobs: int,
    output: Path,
    as_json: bool,
) -> None:
    """Count contexts in real tables of which a known part of the groups is altered.

    In a third of the groups two columns are swapped, a unit is changed, answers are reversed, or a
    yes means a higher value; or a recorded column of the groups is hidden. Beside the methods, an
    oracle that knows the model of each context allocates the groups, to show whether a task can be
    solved at all. The tables are those of "leaflearn bench real".

    Each run is recorded in FOLDER/records.jsonl when it ends, and recorded runs are not repeated.
    The summary covers all records in the folder; it is written there with a figure.
    """
    from leaflearn.benchmark.altered.suite import AlteredRecords, run_altered
    from leaflearn.benchmark.altered.summary import (
        PICTURE,
        describe,
        make_table,
        render_markdown,
        summarize,
    )
    from leaflearn.benchmark.altered.summary import as_json as summary_as_json
    from leaflearn.benchmark.altered.tasks import TASKS
    from leaflearn.benchmark.figures.groups_figures import draw_altered
    from leaflearn.benchmark.real.run import OWN
    from leaflearn.persistence.atomic_files import make_folder
    from leaflearn.report.page import to_png

    named_tasks = _names(",".join(TASKS) if tasks is None else tasks, TASKS, "task")
    named_methods = _names(methods, OWN, "method")
    for name in named_tasks:
        TASKS[name].table.check()
    records = AlteredRecords(make_folder(output) / "records.jsonl")
    chosen = range(first_seed, first_seed + seeds)
    run_altered(records, named_tasks, named_methods, chosen, jobs, watch)
    lines = summarize(records.all())
    contents = {
        "summary.md": render_markdown(records.all()).encode(),
        PICTURE: to_png(draw_altered(lines)),
    }
    files = [records.path, *_write_contents(output, contents)]
    if as_json:
        say_json({"files": list(map(str, files)), "summary": summary_as_json(records.all())})
        return
    _print_rows(make_table(lines))
    for sentence in describe(lines):
        click.echo(sentence)
    click.echo(f"Records, summary and figure are in {output}")


@bench.command()
@click.option(
    "--scenarios",
    default="degree,kind",
    show_default=True,
    help="Beginnings of names of scenarios, separated by commas, such as degree, kind/offset/4 or "
    "cost.",
)
@_with_runs("leaflearn-groups", N_SEEDS)
def groups(
    scenarios: str,
    methods: str,
    seeds: int,
    first_seed: int,
    jobs: int,
    output: Path,
    as_json: bool,
) -> None:
    """Tell kind from degree in simulated groups.

    The groups of "degree" have intercepts and slopes of their own and one context. Those of "kind"
    have two or three contexts, 1 to 6 standard deviations of the effects apart. Measured are the
    number of contexts, the agreement with the truth, whether stated probabilities hold, and the
    coverage of 90 % intervals for known and new groups. "cost" measures processor seconds of a fit
    of 6,000, 100,000 and 1,000,000 rows; name the methods for it, since networks take very long.

    Each run is recorded in FOLDER/records.jsonl when it ends, and recorded runs are not repeated.
    The summary covers all records in the folder; it is written there with a figure.
    """
    from leaflearn.benchmark.figures.groups_figures import draw_groups
    from leaflearn.benchmark.groups.suite import GroupsRecords, run_groups, select
    from leaflearn.benchmark.groups.summary import (
        PICTURE,
        describe,
        make_tables,
        render_markdown,
    )
    from leaflearn.benchmark.groups.summary import as_json as summary_as_json
    from leaflearn.benchmark.real.run import OWN
    from leaflearn.persistence.atomic_files import make_folder
    from leaflearn.report.page import to_png

    named_scenarios = select([name.strip() for name in scenarios.split(",")])
    named_methods = _names(methods, OWN, "method")
    records = GroupsRecords(make_folder(output) / "records.jsonl")
    chosen = range(first_seed, first_seed + seeds)
    run_groups(records, named_scenarios, named_methods, chosen, jobs, watch)
    contents = {
        "summary.md": render_markdown(records.all()).encode(),
        PICTURE: to_png(draw_groups(records.all())),
    }
    files = [records.path, *_write_contents(output, contents)]
    if as_json:
        say_json({"files": list(map(str, files)), "summary": summary_as_json(records.all())})
        return
    for title, table in make_tables(records.all()).items():
        click.echo(title)
        _print_rows(table)
    for sentence in describe(records.all()):
        click.echo(sentence)
    click.echo(f"Records, summary and figure are in {output}")


def _print_rows(rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for place, name in enumerate(rows[0]):  # names that are too long are folded, not cut
        justify: Literal["left", "right"] = "right" if place else "left"
        table.add_column(name, justify=justify, vertical="bottom", overflow="fold")
    for row in rows[1:]:
        table.add_row(*row)
    Console().print(table)


def _write_contents(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    from leaflearn.persistence.atomic_files import write_file

    for name, content in contents.items():
        write_file(folder / name, content)
    return [folder / name for name in contents]


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
    from leaflearn.report.page import to_png

    contents = {
        "recovery.png": to_png(draw_rates(summary)),
        "tasks.png": to_png(draw_tasks(records)),
        "summary.md": render_markdown(summary).encode(),
    }
    return _write_contents(folder, contents)


def _print_real(records: Sequence[dict[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from leaflearn.benchmark.real.summary import (
        collect_cells,
        compare_own,
        count_outcomes,
        describe,
        ratio_table,
    )

    console = Console()
    comparisons = compare_own(collect_cells(records))
    for comparison in comparisons:
        head, *rows = ratio_table(comparison)
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for place, name in enumerate(head):
            table.add_column(name, justify="right" if place else "left", vertical="bottom")
        for row in rows:
            table.add_row(*row)
        console.print(table)
        console.print(describe(comparison), highlight=False)
    if comparisons:
        console.print(
            "Ratios of errors, geometric mean over tables (their number is in brackets); below 1 "
            "is better than the peer.",
            highlight=False,
        )
    else:
        console.print(
            "No cell with enough groups has both a method of leaflearn and a peer.",
            highlight=False,
        )
    problems = {"missing": "of methods that are not installed", "failed": "that failed"}
    for outcome, words in problems.items():
        counts = [(line["method"], line[outcome]) for line in count_outcomes(records)]
        names = [f"{method} ({n})" for method, n in counts if n]
        if names:
            console.print(f"Runs {words}: {', '.join(names)}.", highlight=False)


def _write_real(folder: Path, records: Sequence[dict[str, Any]]) -> list[Path]:
    from leaflearn.benchmark.figures.real_figures import draw_ratios
    from leaflearn.benchmark.real.summary import PICTURE, collect_cells, render_markdown
    from leaflearn.report.page import to_png

    contents = {"table.md": render_markdown(records).encode()}
    if cells := collect_cells(records):
        contents[PICTURE] = to_png(draw_ratios(cells))
    return _write_contents(folder, contents)
