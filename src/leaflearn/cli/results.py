"""`leaflearn results`: the tables of experiments that were run."""

from __future__ import annotations

from pathlib import Path

import click

from leaflearn.cli.reproduce import FOLDER


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--scale",
    type=click.Choice(["smoke", "laptop", "paper"]),
    help="Show this scale only.  [default: all]",
)
@click.option(
    "--format",
    "form",
    default="markdown",
    show_default=True,
    type=click.Choice(["markdown", "csv", "latex"]),
    help="The format of the tables.",
)
@click.option(
    "--folder",
    default=FOLDER,
    show_default=True,
    type=click.Path(path_type=Path),
    help="The folder of the results.",
)
@click.option(
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write all tables to this Markdown page, and the files that it links to.",
)
def results(
    names: tuple[str, ...], scale: str | None, form: str, folder: Path, page: Path | None
) -> None:
    """Show the tables of experiments that were run.

    Without a NAME, all of them are shown.
    """
    from leaflearn.benchmark.experiments.renderings import join
    from leaflearn.benchmark.experiments.result_tables import (
        long_table_of,
        tables_of,
        write_result_files,
    )
    from leaflearn.benchmark.experiments.results_page import page_specs, write_page
    from leaflearn.benchmark.experiments.spec import SCALES, load_spec, spec_names
    from leaflearn.persistence.atomic_files import write_file

    if not folder.is_dir():
        raise click.ClickException(
            f"There is no folder '{folder}'; pass one written by `leaflearn reproduce` as --folder."
        )
    if page is not None:
        for spec in page_specs(folder):
            write_result_files(spec, folder)
        link = Path(
            *[".."] * len(page.parent.resolve().relative_to(Path.cwd()).parts), folder
        ).as_posix()
        write_file(page, write_page(folder, link).encode())
        click.echo(f"Written to {page}")
        return
    found = False
    for name in names or spec_names():
        for each in [scale] if scale else SCALES:
            spec = load_spec(name, each)
            tables = long_table_of(spec, folder) if form == "csv" else tables_of(spec, folder)
            if tables:
                found = True
                click.echo(
                    join(tables, form)
                    if form != "markdown"
                    else f"## {name}, {each} scale\n\n{join(tables, form)}"
                )
    if not found:
        raise click.ClickException(
            f"There are no results of this in '{folder}'; run it with `leaflearn reproduce`."
        )
