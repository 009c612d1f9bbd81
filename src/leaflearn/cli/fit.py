"""`leaflearn fit`: find the contexts in a table and save a model for each.

Slow imports are inside the functions, so that `leaflearn fit --help` is fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leaflearn.cli._tables import PATH, Names, check_model_place, report_warnings, with_json
from leaflearn.cli._text import printable, say, say_json
from leaflearn.cli.report import check_page_place

if TYPE_CHECKING:
    from leaflearn.tabular.table_model import TableModel


class NumberOfContexts(click.ParamType):
    """A whole number of at least 1, or auto.

    Examples
    --------
    >>> NumberOfContexts()("3"), NumberOfContexts()("auto")
    (3, 'auto')
    """

    name = "auto|K"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """The number, or "auto"."""
        if value == "auto":
            return "auto"
        if str(value).isascii() and str(value).isdigit() and 1 <= int(value) <= 1000:
            return int(value)
        return self.fail(
            f"{value!r} is neither a whole number from 1 to 1000 nor auto.", param, ctx
        )


@click.command()
@click.argument("data", type=PATH)
@click.option("--target", required=True, help="The column to predict.")
@click.option(
    "--group",
    help="The column of the groups, whose rows share a context: annotator, site, session, ...",
)
@click.option(
    "--contexts",
    default="auto",
    show_default=True,
    type=NumberOfContexts(),
    help="The number of contexts.",
)
@click.option(
    "--task",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "regression", "classification"]),
    help="Whether the target is a quantity or a label; ratings such as 1 to 5 are quantities.",
)
@click.option(
    "--local-model",
    help="auto, linear, smooth, boosting, mlp, or module:PATH.py:FACTORY, which runs that file.  "
    "[default: auto]",
)
@click.option(
    "--features", type=Names(), help="Learn from these columns only, separated by commas."
)
@click.option("--drop", type=Names(), help="Do not learn from these columns, separated by commas.")
@click.option(
    "--images", type=PATH, help="A folder of images, to learn from instead of the columns."
)
@click.option(
    "--image-column",
    help="The column with the names of the images.  [default: the first that names files there]",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(0, 2**31 - 1),
    help="The seed of all random numbers.",
)
@click.option("--report", type=PATH, help="Also write a page about the model to this .html file.")
@with_json
@click.option("-o", "--output", "model", required=True, type=PATH, help="The folder for the model.")
def fit(
    data: Path,
    model: Path,
    report: Path | None,
    as_json: bool,
    drop: list[str] | None,
    seed: int,
    **options: Any,
) -> None:
    """Find the contexts in a table and save a model for each.

    DATA is a CSV or Parquet file, compressed or not. The rows of one group are known to share a
    context, but not which one: fit allocates the groups to contexts and fits a model to each.
    Afterwards `leaflearn identify` finds the context of a new source from a few labelled rows, and
    `leaflearn predict` predicts.
    """
    check_model_place(model)
    if report is not None:
        check_page_place(report, model, data)
    with report_warnings() as sentences:
        found, frame = _fit(data, drop=drop or [], random_state=seed, **options)
    found.save(model)
    if report is not None:
        _write_report(found, frame, report, model, data)
    from leaflearn.cli._fit_summary import describe, describe_next_steps, summarize

    if as_json:
        say_json(
            {
                "model": str(model),
                "report": None if report is None else str(report),
                **describe(found),
                "warnings": sentences,
            }
        )
        return
    say(summarize(found))
    say(f"\n{describe_next_steps(found, model, data, report)}")


def _fit(data: Path, **options: Any) -> tuple[TableModel, Any]:
    """The fitted model, and the table it was fitted to."""
    from leaflearn.core.threads import one_thread
    from leaflearn.engines.progress import ProgressBar
    from leaflearn.tabular.reading import read_table
    from leaflearn.tabular.table_model import TableModel
    from leaflearn.tabular.warning_log import log_warnings

    with ProgressBar(shows="elapsed") as bar, one_thread():
        bar.begin(f"reading {printable(data.name)}")
        with log_warnings() as of_reading:
            frame = read_table(data)
        found = TableModel(**options).fit(frame, f"'{data.name}'", bar.begin, [bar])
        found.add_earlier_warnings(of_reading)
        return found, frame


def _write_report(found: TableModel, frame: Any, report: Path, model: Path, data: Path) -> None:
    from leaflearn.cli._report_advice import command_line_advice
    from leaflearn.core.threads import one_thread
    from leaflearn.engines.progress import ProgressBar
    from leaflearn.persistence import read_model
    from leaflearn.report.model_report import write_report
    from leaflearn.report.origin import Origin

    # The fit has printed its warnings already.
    with ProgressBar(shows="elapsed") as bar, one_thread(), report_warnings(quiet=True):
        origin = Origin(str(model), str(data), read_model(model).library)
        advice = command_line_advice(found, origin)
        write_report(found, frame, report, origin=origin, advice=advice, on_stage=bar.begin)
