"""`leaflearn reproduce`: run the experiments of the paper, and write their tables and figures."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leaflearn.cli._tables import with_jobs
from leaflearn.progress import watch

if TYPE_CHECKING:
    from leaflearn.benchmark.experiments.spec import Spec

FOLDER = "leaflearn-results"


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--scale",
    default="laptop",
    show_default=True,
    type=click.Choice(["smoke", "laptop", "paper"]),
    help="The size of the experiments.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    help="The number of runs of each.  [default: set by the experiment]",
)
@click.option(
    "--methods",
    default="",
    help="Names of methods, separated by commas: run only these rows.  [default: all]",
)
@click.option(
    "--settings",
    default="",
    help="Names of settings, separated by semicolons: run only these columns.  [default: all]",
)
@with_jobs
@click.option(
    "-o",
    "--output",
    default=FOLDER,
    show_default=True,
    type=click.Path(path_type=Path),
    help="The folder for the results; runs that are done there are not repeated.",
)
@click.option(
    "--also",
    type=click.Path(path_type=Path),
    help="A Python file that registers methods of your own, which become rows.",
)
@click.option(
    "--list",
    "only_list",
    is_flag=True,
    help="List the experiments and the number of runs that are left.",
)
def reproduce(
    names: tuple[str, ...],
    scale: str,
    seeds: int | None,
    methods: str,
    settings: str,
    jobs: int,
    output: Path,
    also: Path | None,
    only_list: bool,
) -> None:
    """Run the experiments of the paper, and write their tables and figures.

    Without a NAME, all of them are run.

    Each run has its own folder, named by the settings that determine its result. Finished runs are
    not repeated, and interrupted runs are resumed. `smoke` takes minutes and needs no data files,
    `laptop` takes hours, and `paper` has the sizes of the paper.
    """
    from leaflearn.benchmark.experiments.own_methods import register_from
    from leaflearn.benchmark.experiments.reproduction import learning_hours, missing_runs
    from leaflearn.benchmark.experiments.reproduction import reproduce as run_all
    from leaflearn.benchmark.experiments.spec import load_spec, spec_names
    from leaflearn.persistence.atomic_files import make_folder

    added = register_from(also) if also else []
    specs = [load_spec(name, scale).with_methods(added) for name in names or spec_names()]
    wanted = _choose(specs, methods, settings)
    if only_list:
        for spec in wanted:
            left = len(missing_runs([spec], output / "runs", seeds))
            click.echo(
                f"{spec.name:24s} {left:4d} runs left   "
                f"{spec.content['source']}: {spec.content['title']}"
            )
        return
    began = time.monotonic()
    root = make_folder(output) / "runs"
    complaints = run_all(
        [spec for spec in wanted if "recovery" not in spec.content],
        root,
        seeds,
        jobs,
        partial(watch, "runs"),
        also,
    )
    for spec in wanted:
        if "recovery" in spec.content:  # takes longest, so it is run last
            _run_recovery(spec, output, seeds, jobs)
    for spec in specs:
        _show(spec, output)
    took = (time.monotonic() - began) / 3600
    training = learning_hours([spec for spec in specs if "recovery" not in spec.content], root)
    click.echo(
        f"Tables, figures and records are in {output}; this took {took:.2f} hours. "
        f"All runs in them trained for {training:.2f} hours."
    )
    for spec in wanted:
        for run in {run.setting: run for run in spec.runs(1) if spec.lacks_data(run)}.values():
            data = run.settings["dataset"]["name"]
            click.echo(
                f"Left out: '{run.setting}' of {spec.name}, because the files of {data} are "
                f"missing; get them with `leaflearn data get {data}`."
            )
    if complaints:
        number = f"{len(complaints)} runs" if len(complaints) > 1 else "One run"
        raise click.ClickException(
            f"{number} failed and will be repeated next time. {complaints[0]}"
        )


def _choose(specs: list[Spec], methods: str, settings: str) -> list[Spec]:
    """The experiments, reduced to the rows and columns that were requested."""
    rows, columns = (
        [name.strip() for name in names if name.strip()]
        for names in (methods.split(","), settings.split(";"))
    )
    if not rows and not columns:
        return specs
    specs = [spec for spec in specs if "recovery" not in spec.content]
    known_rows = list(dict.fromkeys(name for spec in specs for name in spec.methods))
    known_columns = list(
        dict.fromkeys(setting["name"] for spec in specs for setting in spec.settings)
    )
    for what, asked, known, comma in (
        ("method", rows, known_rows, ", "),
        ("setting", columns, known_columns, "; "),
    ):
        for name in asked:
            if name not in known:
                raise ValueError(
                    f"There is no {what} called '{name}' in these experiments; there are "
                    f"{comma.join(filter(None, known))}."
                )
    return [spec.only(rows, columns) for spec in specs]


def _run_recovery(spec: Spec, output: Path, seeds: int | None, jobs: int) -> None:
    from leaflearn.benchmark.recovery.suite import Records, run_suite
    from leaflearn.persistence.atomic_files import make_folder

    asked = {**spec.content["recovery"], **spec.at_scale.get("recovery", {})}
    records = Records(make_folder(output / "recovery") / "records.jsonl")
    first = asked["first_seed"]
    run_suite(
        records,
        asked["tasks"],
        asked["rules"],
        range(first, first + (seeds or asked["n_seeds"])),
        jobs,
        watch,
    )


def _show(spec: Spec, output: Path) -> None:
    """Print the tables, and write them in every format beside the figures."""
    from leaflearn.benchmark.experiments.renderings import join
    from leaflearn.benchmark.experiments.result_tables import tables_of, write_result_files

    if tables := tables_of(spec, output):
        click.echo(f"\n{spec.content['source']}: {spec.content['title']}\n")
        click.echo(join(tables, "markdown"))
        write_result_files(spec, output)
