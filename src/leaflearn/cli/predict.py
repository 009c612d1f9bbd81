"""`leaflearn predict`: predictions for the rows of a table, in one context or in each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leaflearn.cli._tables import PATH, load_model, report_warnings, with_images, with_local_model
from leaflearn.cli._text import say
from leaflearn.cli.messages import WAYS_TO_PREDICT
from leaflearn.messages import ContextNotChosen, MessageError
from leaflearn.progress import progress_bar

if TYPE_CHECKING:
    from leaflearn.tabular.table_model import TableModel


@click.command()
@click.argument("model", type=PATH)
@click.argument("new", type=PATH)
@click.option("--context", type=click.IntRange(min=0), help="Predict in this context.")
@click.option(
    "--support",
    type=PATH,
    help="A table with a few labelled rows per source, which identify its context and its effects.",
)
@click.option(
    "--each", is_flag=True, help="Predict in every context: prediction_0, prediction_1, ..."
)
@click.option(
    "--by-group",
    is_flag=True,
    help="Predict for each group in the context, and with the effects, it had in training.",
)
@click.option("--proba", is_flag=True, help="Add the probability of every label.")
@with_images
@with_local_model
@click.option(
    "-o",
    "--output",
    required=True,
    type=PATH,
    help="The .csv or .parquet file to write.",
)
def predict(
    model: Path, new: Path, output: Path, support: Path | None, local_model: str | None, **how: Any
) -> None:
    """Predict the target of new rows with a fitted model.

    NEW has the columns that MODEL was fitted to. The output has all columns of NEW, then the
    context, its probability and the prediction; with --each, the predictions of all contexts.
    Quantities of models with group effects also get the standard deviation of a new row around
    its prediction. A model of one context needs no option: if NEW has the column of the groups,
    known groups are predicted with their effects.
    """
    from leaflearn.tabular.reading import read_table
    from leaflearn.tabular.writing import check_place, write_table

    ways = [how["context"] is not None, support is not None, how["each"], how["by_group"]]
    if sum(ways) > 1:
        raise click.ClickException(f"Give only one of {WAYS_TO_PREDICT}.")
    check_place(output, tuple(given for given in (new, support) if given is not None))
    with report_warnings():
        found = load_model(model, local_model)
        if not any(ways) and found.estimator_.n_contexts_ > 1:
            raise MessageError(ContextNotChosen(found.estimator_.n_contexts_))
        frame = read_table(new)
        few = None if support is None else read_table(support)
        with progress_bar("predicting", total=len(frame)) as advance:
            few_name = f"'{support.name}'" if support else ""
            answer = found.predict(
                frame, f"'{new.name}'", support=few, support_what=few_name, on_row=advance, **how
            )
        as_written = read_table(new, as_text=True) if output.suffix.lower() == ".csv" else frame
    write_table(_beside(as_written, answer), output)
    say(f"The predictions for {len(answer):,} rows are in '{output}'{_count(answer, found)}.")


def _count(answer: Any, model: TableModel) -> str:
    """The rows per context, or those on which the contexts predict different labels."""
    n_contexts = model.estimator_.n_contexts_
    if n_contexts == 1:
        return ""
    if "context" in answer:
        counts = answer["context"].value_counts().sort_index()
        return ": " + ", ".join(f"{count:,} in context {k}" for k, count in counts.items())
    if not model.target_.is_label:
        return ""
    differ = int((answer[[f"prediction_{k}" for k in range(n_contexts)]].nunique(axis=1) > 1).sum())
    return f"; the contexts disagree on {differ:,} of them"


def _beside(frame: Any, answer: Any) -> Any:
    """The table, then the columns of the answer; a name that is taken gets a prefix."""
    import pandas  # type: ignore[import-untyped]

    taken = set(frame.columns)
    names = {name: f"leaflearn_{name}" for name in answer.columns if name in taken}
    return pandas.concat([frame.reset_index(drop=True), answer.rename(columns=names)], axis=1)
