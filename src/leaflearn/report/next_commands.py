"""Commands that can be pasted into a shell: real names, quoted where that is needed, and one word in capitals for each thing to fill in."""

from __future__ import annotations

import shlex
from typing import Any

from leaflearn.tabular.images import ImageFiles
from leaflearn.tabular.local_model_names import FROM_FILE

MODEL, DATA = "MODEL", "DATA.csv"  # where the names of the folder and the table are not known
NEW, FEW, PICTURES = "NEW.csv", "FEW.csv", "PICTURES"  # what only the reader has
ANSWERS = "answers.csv"


def write_command(model: Any, verb: str, place: str, *words: str) -> str:
    """A command about a model in a folder, with the options that it cannot do without.

    Parameters
    ----------
    model
        A fitted `TableModel`.
    verb
        `"predict"`, `"identify"` or `"report"`.
    place
        The path of its folder, as the reader would type it.
    words
        What comes after it; `quote_path` makes a word of a path.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(preparation_=ImageFiles("file"), local_model_="module:my net.py:make")
    >>> print(write_command(model, "identify", "my model", FEW))
    leaflearn identify 'my model' FEW.csv --images PICTURES --local-model 'module:my net.py:make'
    """
    images = ["--images", PICTURES] if has_pictures(model) and verb != "report" else []
    local_model = (
        ["--local-model", shlex.quote(model.local_model_)]
        if model.local_model_.startswith(FROM_FILE)
        else []
    )
    return " ".join(["leaflearn", verb, quote_path(place), *words, *images, *local_model])


def has_pictures(model: Any) -> bool:
    """Did it learn from pictures? Then commands need to know where the new ones are.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> has_pictures(SimpleNamespace(preparation_=ImageFiles("file")))
    True
    """
    return isinstance(model.preparation_, ImageFiles)


def quote_path(path: str) -> str:
    """A path as a word of a shell; one that begins like an option is led by the folder that it is in.

    Examples
    --------
    >>> print(quote_path("my model"), quote_path("-o"), quote_path("model"))
    'my model' ./-o model
    """
    return shlex.quote(f"./{path}" if path.startswith("-") else path)
