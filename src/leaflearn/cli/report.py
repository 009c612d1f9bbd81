"""`leaflearn report`: a page about a fitted model, as one self-contained HTML file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from leaflearn.cli._tables import PATH, load_model, report_warnings, with_local_model
from leaflearn.cli._text import printable, say

ENDINGS = (".html", ".htm")


@click.command()
@click.argument("model", type=PATH)
@click.argument("data", type=PATH, required=False)
@with_local_model
@click.option(
    "-o",
    "--output",
    default=Path("report.html"),
    show_default=True,
    type=PATH,
    help="Where to write the page.",
)
def report(model: Path, data: Path | None, output: Path, local_model: str | None) -> None:
    """Write a page about a model: what was found and where the contexts disagree.

    DATA is the table that MODEL was fitted to. Without it, the page shows what the model folder
    holds, without example rows. The page is one file that needs no network; it contains the names
    of groups and columns, and with DATA some rows.
    """
    check_page_place(output, model, data)
    _write(model, data, output, local_model)
    say(f"The report is in '{output}'. Open it in a browser.")


def check_page_place(output: Path, model: Path, data: Path | None) -> None:
    """Raise an error, before the work starts, if the page cannot be written there.

    Examples
    --------
    >>> check_page_place(Path("report.pdf"), Path("model"), None)
    Traceback (most recent call last):
    ...
    ValueError: Cannot write 'report.pdf': its name must end in .html.
    """
    from leaflearn.tabular.writing import check_folder

    if output.suffix.lower() not in ENDINGS:
        raise ValueError(f"Cannot write '{output}': its name must end in .html.")
    if output.is_dir():
        raise IsADirectoryError(f"Cannot write '{output}': it is a folder.")
    if model.is_dir() and output.resolve().is_relative_to(model.resolve()):
        raise ValueError(
            f"Cannot write '{output}': the model folder may hold nothing but the model; choose a "
            "path outside of it."
        )
    if data is not None and output.exists() and data.exists() and os.path.samefile(output, data):
        raise ValueError(
            f"Cannot write '{output}': it is the table that is read; choose another name."
        )
    check_folder(output.absolute().parent, output)


def _write(model: Path, data: Path | None, output: Path, local_model: str | None) -> None:
    from leaflearn.cli._report_advice import command_line_advice
    from leaflearn.core.threads import one_thread
    from leaflearn.engines.progress import ProgressBar
    from leaflearn.persistence import read_model
    from leaflearn.report.model_report import write_report
    from leaflearn.report.origin import Origin
    from leaflearn.tabular.reading import read_table

    with ProgressBar(shows="elapsed") as bar, one_thread(), report_warnings():
        bar.begin("loading the model")
        found: Any = load_model(model, local_model)
        origin = Origin(str(model), None if data is None else str(data), read_model(model).library)
        if data is not None:
            bar.begin(f"reading {printable(data.name)}")
        frame = None if data is None else read_table(data)
        advice = command_line_advice(found, origin)
        write_report(found, frame, output, origin=origin, advice=advice, on_stage=bar.begin)
