"""The advice of the report in the words of the command line: commands and options."""

from __future__ import annotations

import shlex

from leaflearn.cli._commands import (
    ANSWERS,
    DATA,
    FEW,
    IMAGES,
    MODEL,
    NEW,
    quote_path,
    write_command,
)
from leaflearn.cli.messages import render
from leaflearn.report.advice import Advice, fit_parameters, has_images
from leaflearn.report.origin import Origin
from leaflearn.tabular.table_model import TableModel


def command_line_advice(model: TableModel, origin: Origin) -> Advice:
    """Advice with commands, for a model and a table whose paths are known or not.

    Examples
    --------
    >>> from leaflearn.tabular.table_model import TableModel
    >>> model = TableModel("the effect", group="site", contexts=2)
    >>> model.preparation_, model.local_model_ = None, "mlp"
    >>> advice = command_line_advice(model, Origin("my model"))
    >>> advice.option("random_state", 3)
    '--seed 3'
    >>> print(advice.predict_by_group)
    leaflearn predict 'my model' NEW.csv --by-group -o answers.csv
    >>> print(advice.fit)
    leaflearn fit DATA.csv --target 'the effect' --group site --contexts 2 --seed 0 -o 'my model'
    """
    place = MODEL if origin.model is None else origin.model
    answers = ("-o", ANSWERS)
    images = ((IMAGES, "the folder with the images"),) if has_images(model) else ()
    folder = ((MODEL, "the folder of the model"),) if place == MODEL else ()
    data = ((DATA, "the training table"),) if origin.data is None else ()
    return Advice(
        option=_option,
        message=render,
        predict=write_command(model, "predict", place, NEW, *answers),
        identify=write_command(model, "identify", place, FEW),
        predict_with_labels=write_command(model, "predict", place, NEW, "--support", FEW, *answers),
        predict_by_group=write_command(model, "predict", place, NEW, "--by-group", *answers),
        fit=_write_fit(model, place, DATA if origin.data is None else origin.data),
        new_rows=NEW,
        labelled_rows=FEW,
        fill_in=(*folder, *images),
        fill_in_fit=(*data, *folder, *(images if model.images is None else ())),
    )


def _option(name: str, value: object = None) -> str:
    """The option for a parameter of `TableModel`."""
    option = "--seed" if name == "random_state" else f"--{name.replace('_', '-')}"
    if value is None:
        return option
    text = ",".join(value) if isinstance(value, list) else str(value)
    return f"{option} {shlex.quote(text)}"


def _write_fit(model: TableModel, place: str, data: str) -> str:
    options = [_option(name, value) for name, value in fit_parameters(model).items()]
    if has_images(model) and model.images is None:
        options.append(_option("images", IMAGES))
    return " ".join(["leaflearn fit", quote_path(data), *options, "-o", quote_path(place)])
