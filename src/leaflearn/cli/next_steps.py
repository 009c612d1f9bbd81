"""What to do with a model that was just fitted: commands to paste, and below each what it gives and what has to be filled in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from leaflearn.cli.next_commands import ANSWERS, FEW, IMAGES, NEW, quote_path, write_command
from leaflearn.cli.plain_text import shorten
from leaflearn.report.advice import has_images

if TYPE_CHECKING:
    from leaflearn.tabular.table_model import TableModel


def describe_next_steps(model: TableModel, place: Path, data: Path, report: Path | None) -> str:
    """The last lines of a fit.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from leaflearn.tabular.images import ImageFiles
    >>> estimator = SimpleNamespace(n_contexts_=1)
    >>> model = SimpleNamespace(estimator_=estimator, preparation_=ImageFiles("file"), local_model_="convnet", group=None, target="kind")
    >>> print(describe_next_steps(model, Path("my model"), Path("a.csv"), Path("page.html")))
    The model is in 'my model'. From here on:
    <BLANKLINE>
      leaflearn predict 'my model' NEW.csv -o answers.csv --images IMAGES
          its answers. Fill in NEW.csv: a table of new rows; IMAGES: their folder
    <BLANKLINE>
    The report is in 'page.html'. Open it in a browser.
    """
    commands = [_predict(model, place), *_identify(model, place)]
    if report is None:
        write = write_command(
            model, "report", str(place), quote_path(str(data)), "-o", "report.html"
        )
        commands.append((write, "a page about all this, to look at in a browser"))
    lines = [f"  {command}\n      {words}" for command, words in commands]
    end = [] if report is None else ["", f"The report is in '{report}'. Open it in a browser."]
    return "\n".join([f"The model is in '{place}'. From here on:", "", *lines, *end])


def _predict(model: TableModel, place: Path) -> tuple[str, str]:
    several = model.estimator_.n_contexts_ > 1
    command = write_command(model, "predict", str(place), NEW, *["--each"] * several, "-o", ANSWERS)
    which = (
        "a table of new rows"
        if has_images(model)
        else "a table of new rows, with the columns that were learnt from"
    )
    pictures = f"; {IMAGES}: their folder" if has_images(model) else ""
    return (
        command,
        f"{'what every context answers' if several else 'its answers'}. Fill in {NEW}: {which}{pictures}",
    )


def _identify(model: TableModel, place: Path) -> list[tuple[str, str]]:
    if model.estimator_.n_contexts_ == 1:
        return []
    source = "new source" if model.group is None else f"new {shorten(model.group)!r}"
    words = f"the context of a {source}. Fill in {FEW}: a table of a few of its rows, also with {shorten(model.target)!r}"
    return [(write_command(model, "identify", str(place), FEW), words)]
