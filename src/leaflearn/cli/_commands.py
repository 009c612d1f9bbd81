"""Commands to paste into a shell, with quoted names, and words in capitals to fill in."""

from __future__ import annotations

import shlex

from leaflearn.report.advice import has_images
from leaflearn.tabular.local_model_names import FROM_FILE
from leaflearn.tabular.table_model import TableModel

MODEL, DATA = "MODEL", "DATA.csv"  # the folder and the table, where their names are unknown
NEW, FEW, IMAGES = "NEW.csv", "FEW.csv", "IMAGES"  # new rows, labelled rows, and their images
ANSWERS = "answers.csv"


def write_command(model: TableModel, verb: str, place: str, *words: str) -> str:
    """A command for a model in a folder, with the options that it requires.

    Parameters
    ----------
    model
        A fitted `TableModel`.
    verb
        `"predict"`, `"identify"` or `"report"`.
    place
        The path of its folder, as the reader would type it.
    words
        What follows; `quote_path` quotes a path.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from leaflearn.tabular.images import ImageFiles
    >>> factory = "module:my net.py:make"
    >>> model = SimpleNamespace(preparation_=ImageFiles("file"), local_model_=factory)
    >>> print(write_command(model, "identify", "my model", FEW))
    leaflearn identify 'my model' FEW.csv --images IMAGES --local-model 'module:my net.py:make'
    """
    images = ["--images", IMAGES] if has_images(model) and verb != "report" else []
    name = model.local_model_
    local_model = ["--local-model", shlex.quote(name)] if name.startswith(FROM_FILE) else []
    return " ".join(["leaflearn", verb, quote_path(place), *words, *images, *local_model])


def quote_path(path: str) -> str:
    """A path as a word of a shell command, which cannot be mistaken for an option.

    Examples
    --------
    >>> print(quote_path("my model"), quote_path("-o"), quote_path("model"))
    'my model' ./-o model
    """
    return shlex.quote(f"./{path}" if path.startswith("-") else path)
