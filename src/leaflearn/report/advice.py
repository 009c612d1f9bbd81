"""What the report advises, in the words of Python or of another interface.

The page shows code to fit, use and reproduce a model, and advises options. `python_advice` writes
both for Python. The command line passes an `Advice` of its own, with commands and their options.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leaflearn.messages import Message
from leaflearn.tabular.images import ImageFiles
from leaflearn.tabular.table_model import TableModel


@dataclass(frozen=True)
class Advice:
    """Code and options that the page shows.

    Parameters
    ----------
    option
        From a parameter of `TableModel`, and a value or None, to how a user passes it.
    message
        The text of a warning.
    predict, identify, predict_with_labels, predict_by_group
        Code to use the model.
    fit
        Code to fit the model again.
    new_rows, labelled_rows
        What stands in this code for tables of the reader.
    fill_in, fill_in_fit
        What else has to be replaced in the code to use and to fit the model, with its meaning.

    Examples
    --------
    >>> from leaflearn.tabular.table_model import TableModel
    >>> model = TableModel("effect")
    >>> model.preparation_ = None
    >>> python_advice(model).option("contexts", 1)
    'contexts=1'
    """

    option: Callable[[str, object], str]
    message: Callable[[Message], str]
    predict: str
    identify: str
    predict_with_labels: str
    predict_by_group: str
    fit: str
    new_rows: str
    labelled_rows: str
    fill_in: tuple[tuple[str, str], ...] = ()
    fill_in_fit: tuple[tuple[str, str], ...] = ()


def python_advice(model: TableModel) -> Advice:
    """Advice for users of the Python interface.

    Examples
    --------
    >>> from leaflearn.tabular.table_model import TableModel
    >>> model = TableModel("effect", group="site", contexts=2)
    >>> model.preparation_ = None
    >>> python_advice(model).fit
    "TableModel(target='effect', group='site', contexts=2, random_state=0).fit(table)"
    >>> python_advice(model).predict_with_labels
    'model.predict(new, support=labelled)'
    """
    has_folder = has_images(model)
    images = ", images=folder" if has_folder else ""
    folder = (("folder", "the folder with the images"),) if has_folder else ()
    given = fit_parameters(model)
    parameters = [_python_option(name, value) for name, value in given.items()]
    is_folder_unknown = has_folder and "images" not in given
    parameters += ["images=folder"] if is_folder_unknown else []
    return Advice(
        option=_python_option,
        message=str,
        predict=f"model.predict(new{images})",
        identify=f"model.identify(labelled{images})",
        predict_with_labels=f"model.predict(new, support=labelled{images})",
        predict_by_group=f"model.predict(new, by_group=True{images})",
        fit=f"TableModel({', '.join(parameters)}).fit(table)",
        new_rows="new",
        labelled_rows="labelled",
        fill_in=(("model", "this model"), *folder),
        fill_in_fit=(("table", "the training table"), *(folder if is_folder_unknown else ())),
    )


def fit_parameters(model: TableModel) -> dict[str, Any]:
    """The parameters with which a model was fitted, without defaults that say nothing.

    Examples
    --------
    >>> from leaflearn.tabular.table_model import TableModel
    >>> fit_parameters(TableModel("effect", contexts=2))
    {'target': 'effect', 'contexts': 2, 'random_state': 0}
    """
    parameters = {
        "target": model.target,
        "group": model.group,
        "contexts": None if model.contexts == "auto" else model.contexts,
        "task": None if model.task == "auto" else model.task,
        "local_model": model.local_model,
        "features": list(model.features) if model.features else None,
        "drop": list(model.drop) if model.drop else None,
        "images": None if model.images is None else str(model.images),
        "image_column": model.image_column,
        "random_state": model.random_state,
    }
    return {name: value for name, value in parameters.items() if value is not None}


def has_images(model: TableModel) -> bool:
    """Whether the model was fitted to images, so that predictions need their folder.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> has_images(SimpleNamespace(preparation_=ImageFiles("file")))
    True
    """
    return isinstance(model.preparation_, ImageFiles)


def _python_option(name: str, value: object = None) -> str:
    return f"{name}=" if value is None else f"{name}={value!r}"
