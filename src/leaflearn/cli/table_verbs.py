"""What the verbs for tables share: options, warnings in the words of the command, and the summary of a model."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leaflearn.cli.plain_text import printable

if TYPE_CHECKING:
    from leaflearn.tabular.table_model import TableModel

IN_WORDS_OF_THE_COMMAND = {  # what warnings of the library advise in Python
    r"n_contexts=(\d+)": r"--contexts \1",
    r"n_contexts='auto'": "--contexts auto",  # so were older models advised, and they have kept it
    r"(\d+)( contexts explain unseen rows clearly better than \d+); raise n_contexts, or set it to 'auto'": r"\1\2; try --contexts \1",
    r"set init='conflict', or raise n_init": "try another --seed",
    r"; raise max_epochs": "; try another --seed",
    r"give more rows, raise max_epochs, or try another local_model": "give more rows, or try --local-model linear or boosting",
    r"try the local model 'linear'": "try --local-model linear",
    r"name the columns to learn from\.": "name the columns to learn from with --features.",
    r"pass groups?= \(annotator": "pass --group (annotator",
    r" In a pipeline or search, groups arrive only with sklearn\.set_config\(enable_metadata_routing=True\)\.": "",
}

PATH = click.Path(path_type=Path)
with_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
with_local_model = click.option(
    "--local-model", help="module:PATH.py:FACTORY, where the model was fitted with one."
)
with_images = click.option(
    "--images",
    type=PATH,
    help="The folder with the pictures, where the model learnt from pictures.",
)


@contextmanager
def report_warnings(quiet: bool = False) -> Iterator[list[str]]:
    """Collect the warnings of leaflearn in the block and say them on standard error when it ends; those of other libraries say nothing.

    Examples
    --------
    >>> from leaflearn.messages import TableWarning
    >>> with report_warnings(quiet=True) as told:
    ...     warnings.warn(TableWarning("Column 'a' is empty."), stacklevel=1)
    >>> told
    ["Column 'a' is empty."]
    """
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield told
    for warning in caught:
        sentence = translate(str(warning.message))
        if warning.category.__module__.startswith("leaflearn.") and sentence not in told:
            told.append(sentence)
            if not quiet:
                click.echo(printable(f"Warning: {sentence}"), err=True)


def translate(message: object) -> str:
    """A warning of the library in the words of the command.

    Examples
    --------
    >>> translate("There may be no conflict: try n_contexts=1.")
    'There may be no conflict: try --contexts 1.'
    """
    sentence = str(message)
    for pattern, words in IN_WORDS_OF_THE_COMMAND.items():
        sentence = re.sub(pattern, words, sentence)
    return sentence


def say(text: str = "") -> None:
    """Print text whose lines are ours, with names in it that are not.

    Examples
    --------
    >>> say("group \\x1b[2J")
    group \\x1b[2J
    """
    for line in text.split("\n"):
        click.echo(printable(line))


def say_json(content: dict[str, Any]) -> None:
    """Print JSON that any program can read: without NaN, and in plain letters.

    Examples
    --------
    >>> say_json({"margin": float("inf")})
    {
      "margin": null
    }
    """
    click.echo(json.dumps(_plain(content), indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


class Names(click.ParamType):
    """Names of columns with commas between them.

    Examples
    --------
    >>> Names()("dose, day")
    ['dose', 'day']
    """

    name = "names"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str]:
        """The names."""
        names = (
            value
            if isinstance(value, list)
            else [name.strip() for name in value.split(",") if name.strip()]
        )
        return names or self.fail("no column is named.", param, ctx)


def check_model_place(folder: Path) -> None:
    """Refuse, before the work, a place where no model can be written.

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
            f"Cannot save to '{folder}': it is a folder with other things in it; choose another name."
        )
    check_folder(folder.absolute().parent, folder)


def load_model(folder: Path, local_model: str | None) -> TableModel:
    """The model of a folder."""
    from leaflearn.tabular.table_model import TableModel

    return TableModel.load(folder, local_model)


def table_of(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    right: Callable[[int], bool] = lambda column: column > 0,
) -> str:
    """Rows as lines of text with columns of one width; names of strangers are made plain first.

    Examples
    --------
    >>> print(table_of(("group", "context"), [("A", "0")]))
    group  context
    A            0
    """
    from rich.cells import cell_len

    cells = [head, *[tuple(printable(cell) for cell in row) for row in rows]]
    widths = [max(cell_len(row[i]) for row in cells) for i in range(len(head))]
    lines = []
    for row in cells:
        padded = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        pairs = enumerate(zip(row, padded, strict=True))
        lines.append(
            "  ".join(
                space + cell if right(i) else cell + space for i, (cell, space) in pairs
            ).rstrip()
        )
    return "\n".join(lines)
