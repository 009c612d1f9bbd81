"""`leaflearn data`: list, download, verify and draw the data sets.

Slow imports are inside the functions, so that `leaflearn data --help` is fast.
"""

from __future__ import annotations

import inspect
import os
from difflib import get_close_matches
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leaflearn.cli._tables import with_json
from leaflearn.cli._text import say_json

if TYPE_CHECKING:
    from leaflearn.benchmark.datasets.domains import DomainSet
    from leaflearn.benchmark.datasets.registry import DataSet
    from leaflearn.benchmark.datasets.store import Files

SIMULATED = "gas-mixtures"  # the one data set that can be simulated
NEEDS_TEX = {"pgf"}  # a format that matplotlib can write only if TeX is installed


@click.group(invoke_without_command=True)
@click.pass_context
def data(context: click.Context) -> None:
    """List the data sets, download them, and look at them."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@data.command("list")
@with_json
def list_(as_json: bool) -> None:
    """List the data sets and the state of their files."""
    from leaflearn.benchmark.datasets import DATASETS
    from leaflearn.benchmark.datasets.store import data_folder

    rows = [_describe(data_set) for data_set in DATASETS.values()]
    if as_json:
        say_json({"folder": str(data_folder()), "data_sets": rows})
    else:
        _print_table(rows)
        click.echo(f"The data folder is {data_folder()}")


@data.command()
@click.argument("name")
@click.option(
    "--simulated",
    is_flag=True,
    help=f"Write simulated files instead of the publisher's; only for {SIMULATED}.",
)
def get(name: str, simulated: bool) -> None:
    """Download the files of the data set NAME from their publisher."""
    data_set = _find(name)
    if simulated and name != SIMULATED:
        raise click.ClickException(
            f"Only {SIMULATED} can be simulated, not {name}; leave out --simulated."
        )
    if data_set.files is None:
        click.echo(f"{name} is built in: there is nothing to get.")
    elif simulated:
        click.echo(f"The simulated files of {name} are in {_simulate(data_set.files)}")
    elif _simulated_files(data_set):
        raise click.ClickException(
            f"The files in '{_folder(data_set.files)}' are simulated; delete them first, then get "
            "the publisher's."
        )
    else:
        from leaflearn.benchmark.datasets import fetching

        click.echo(f"The files of {name} are in {fetching.get(data_set.files)}")


@data.command()
@click.argument("name")
@with_json
def verify(name: str, as_json: bool) -> None:
    """Check that the files of the data set NAME are the publisher's.

    Prints the state of every file: right, there (no checksum is published), simulated, wrong or
    missing. Fails if a file is wrong or missing.
    """
    from leaflearn.benchmark.datasets import store

    data_set = _find(name)
    files = data_set.files
    found = (
        {}
        if files is None
        else store.verify(files) | dict.fromkeys(_simulated_files(data_set), "simulated")
    )
    if as_json:
        folder = None if files is None else str(_folder(files))
        say_json({"name": name, "folder": folder, "files": found})
    elif files is None:
        click.echo(f"{name} is built in: there is nothing to verify.")
    else:
        for file, state in found.items():
            click.echo(f"{state:<9} {file}")
    if files is not None and not {"wrong", "missing"}.isdisjoint(found.values()):
        raise store.DataError(_advise(name, files, found))


@data.command()
@click.argument("name", required=False)
@with_json
def where(name: str | None, as_json: bool) -> None:
    """Print the data folder, or the folder of the data set NAME."""
    from leaflearn.benchmark.datasets.store import data_folder

    folder = data_folder()
    if name is not None:
        files = _find(name).files
        if files is None:
            raise click.ClickException(f"{name} is built in: it has no folder.")
        folder = _folder(files)
    if as_json:
        say_json({"folder": str(folder)})
    else:
        click.echo(str(folder))


@data.command()
@click.argument("name")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to draw into.  [default: NAME.png]",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="The seed of the choice of examples.",
)
def show(name: str, output: Path | None, seed: int) -> None:
    """Draw examples of the data set NAME with the labels of its domains."""
    from leaflearn.benchmark.figures.sheet import draw_sheet
    from leaflearn.persistence.atomic_files import make_folder, write_file

    data_set, path = _find(name), output or Path(f"{name}.png")
    kind = _image_format(path)
    if not os.access(make_folder(path.parent), os.W_OK):  # fail before the work, not after it
        raise click.ClickException(
            f"Cannot write '{path}': its folder is read-only; choose another one with --output."
        )
    image = BytesIO()
    draw_sheet(_load(data_set), seed).savefig(image, format=kind)
    write_file(path, image.getvalue())
    click.echo(f"The examples of {name} are drawn in {path}")


def _find(name: str) -> DataSet:
    from leaflearn.benchmark.datasets import DATASETS

    if name not in DATASETS:
        near = get_close_matches(name, DATASETS, n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise click.ClickException(
            f"There is no data set called '{name}'{hint} There are: {', '.join(sorted(DATASETS))}."
        )
    return DATASETS[name]


def _folder(files: Files) -> Path:
    from leaflearn.benchmark.datasets.store import data_folder, find_layout

    return data_folder() / find_layout(files).folder


def _describe(data_set: DataSet) -> dict[str, str | None]:
    files = data_set.files
    if files is None:
        return {
            "name": data_set.name,
            "summary": data_set.summary,
            "title": None,
            "terms": None,
            "folder": None,
            "files": "built in",
        }
    state, folder = _state(data_set, files), str(_folder(files))
    return {
        "name": data_set.name,
        "summary": data_set.summary,
        "title": files.title,
        "terms": files.terms,
        "folder": folder,
        "files": state,
    }


def _state(data_set: DataSet, files: Files) -> str:
    from leaflearn.benchmark.datasets.store import missing

    try:
        return (
            "missing" if missing(files) else "simulated" if _simulated_files(data_set) else "ready"
        )
    except OSError:  # list the other data sets anyway
        return "unreadable"


def _print_table(rows: list[dict[str, str | None]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("name", "files", "what it is", "source and terms", show_lines=True)
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for row in rows:
        origin = f"{row['title']}\nTerms: {row['terms']}" if row["title"] else ""
        cells = (row["name"], row["files"], row["summary"], origin)
        table.add_row(*(Text(str(cell)) for cell in cells))  # plain text, not markup
    Console().print(table)


def _simulated_files(data_set: DataSet) -> list[str]:
    """The names of its files that are simulated."""
    if data_set.files is None or data_set.name != SIMULATED:
        return []
    from leaflearn.benchmark.datasets.gas_mixtures import is_simulated

    folder = _folder(data_set.files)
    return [
        name
        for name in data_set.files.contents
        if (folder / name).is_file() and is_simulated(folder / name)
    ]


def _simulate(files: Files) -> Path:
    from leaflearn.benchmark.datasets.gas_simulator import simulate_gas_mixtures

    simulate_gas_mixtures(_folder(files))
    return _folder(files)


def _advise(name: str, files: Files, found: dict[str, str]) -> str:
    """What is wrong with the files, and what to do about it."""
    wrong = [f"'{file}'" for file, state in found.items() if state == "wrong"]
    missing = [f"'{file}'" for file, state in found.items() if state == "missing"]
    faults = [f"not the publisher's: {', '.join(wrong)}"] * bool(wrong) + [
        f"missing: {', '.join(missing)}"
    ] * bool(missing)
    cure = "Delete the wrong files, then get them again with" if wrong else "Get them with"
    return f"In '{_folder(files)}', {'; '.join(faults)}. {cure}: leaflearn data get {name}"


def _image_format(path: Path) -> str:
    from matplotlib.figure import Figure

    kinds = sorted({*Figure().canvas.get_supported_filetypes()} - NEEDS_TEX)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in kinds:
        raise click.ClickException(
            f"Cannot draw into '{path}': its name must end in one of "
            f"{', '.join(f'.{kind}' for kind in kinds)}."
        )
    return kind


def _load(data_set: DataSet) -> DomainSet:
    """Load the domain set, with images as inputs where there is a choice."""
    from leaflearn.benchmark.datasets.store import MissingDataError

    options = (
        {"inputs": "images"} if "inputs" in inspect.signature(data_set.factory).parameters else {}
    )
    try:
        return data_set(**options)
    except MissingDataError as error:
        cure = f"leaflearn data get {data_set.name}"
        raise MissingDataError(
            str(error) if cure in str(error) else f"{error} Try: {cure}"
        ) from None
