"""What verbs share: options, checks, loading, and how they print warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leaflearn.cli._text import printable
from leaflearn.cli.messages import render
from leaflearn.messages import LeafWarning

if TYPE_CHECKING:
    from leaflearn.tabular.table_model import TableModel

PATH = click.Path(path_type=Path)
with_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
with_jobs = click.option(
    "--jobs",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="The number of processes, with one thread each.",
)
with_local_model = click.option(
    "--local-model", help="module:PATH.py:FACTORY, if the model was fitted with one."
)
with_images = click.option(
    "--images", type=PATH, help="The folder of the images, if the model was fitted to images."
)


class Names(click.ParamType):
    """Names of columns, separated by commas.

    Examples
    --------
    >>> Names()("dose, day")
    ['dose', 'day']
    """

    name = "names"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str]:
        """The names as a list."""
        names = (
            value
            if isinstance(value, list)
            else [name.strip() for name in value.split(",") if name.strip()]
        )
        return names or self.fail("no column is named.", param, ctx)


@contextmanager
def report_warnings(quiet: bool = False) -> Iterator[list[str]]:
    """Collect the warnings of leaflearn in the block and print them on standard error at its end.

    Each sentence is printed once. Warnings of other libraries are dropped, and nothing is printed
    if the block raises an error.

    Examples
    --------
    >>> from leaflearn.messages import RecoveryWarning, TryMoreContexts
    >>> with report_warnings(quiet=True) as sentences:
    ...     warnings.warn(RecoveryWarning(TryMoreContexts(3, n_fitted=2)), stacklevel=1)
    >>> sentences
    ['3 contexts predict held-out rows significantly better than 2; try --contexts 3.']
    """
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield sentences
    for warning in caught:
        for sentence in _sentences_of(warning.message):
            if sentence not in sentences:
                sentences.append(sentence)
                if not quiet:
                    click.echo(printable(f"Warning: {sentence}"), err=True)


def check_model_place(folder: Path) -> None:
    """Raise an error, before the work starts, if no model can be written to the folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     check_model_place(Path(parent) / "model")
    """
    from leaflearn.tabular.writing import check_folder

    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(
            f"Cannot save to '{folder}': it is a file, and a folder is needed."
        )
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "model.json").is_file():
        raise ValueError(
            f"Cannot save to '{folder}': the folder holds other files; choose another name."
        )
    check_folder(folder.absolute().parent, folder)


def load_model(folder: Path, local_model: str | None) -> TableModel:
    """Load the model of a folder."""
    from leaflearn.tabular.table_model import TableModel

    return TableModel.load(folder, local_model)


def _sentences_of(warning: Warning | str) -> list[str]:
    if isinstance(warning, LeafWarning):
        return [render(message) for message in warning.messages]
    return [str(warning)] if type(warning).__module__.startswith("leaflearn.") else []
