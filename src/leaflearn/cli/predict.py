"""`leaflearn predict`: answers for the rows of a table, in a context, in the contexts that a few labelled rows tell, or in each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from leaflearn.cli.table_verbs import (
    PATH,
    load_model,
    report_warnings,
    say,
    with_images,
    with_local_model,
)
from leaflearn.progress import progress_bar

WAYS = "--context K, --support FEW, --each or --by-group"


@click.command()
@click.argument("model", type=PATH)
@click.argument("new", type=PATH)
@click.option("--context", type=click.IntRange(min=0), help="Answer in this context.")
@click.option(
    "--support",
    type=PATH,
    help="A table with a few labelled rows of the same sources, which tell their contexts.",
)
@click.option(
    "--each", is_flag=True, help="Give the answer of every context: prediction_0, prediction_1, ..."
)
@click.option(
    "--by-group", is_flag=True, help="Answer each group in the context that it had in training."
)
@click.option("--proba", is_flag=True, help="Give the probability of every label, too.")
@with_images
@with_local_model
@click.option(
    "-o",
    "--output",
    required=True,
    type=PATH,
    help="Where to write: its name ends in .csv or .parquet.",
)
def predict(
    model: Path, new: Path, output: Path, support: Path | None, local_model: str | None, **how: Any
) -> None:
    """Answer the rows of a table with a fitted model.

    NEW has the columns that MODEL learnt from. All of its columns are written, and beside them context, probability (of the context) and
    prediction; with --each the answers of all contexts.
    """
    from leaflearn.tabular.reading import read_table
    from leaflearn.tabular.writing import check_place, write_table

    ways = [how["context"] is not None, support is not None, how["each"], how["by_group"]]
    if sum(ways) > 1:
        raise click.ClickException(f"Give only one of {WAYS}.")
    check_place(output, tuple(given for given in (new, support) if given is not None))
    with report_warnings():
        found = load_model(model, local_model)
        if not any(ways) and found.estimator_.n_contexts_ > 1:
            raise click.ClickException(
                f"The model has {found.estimator_.n_contexts_} contexts; say in which to answer: {WAYS}."
            )
        frame = read_table(new)
        few = None if support is None else read_table(support)
        with progress_bar("answering", total=len(frame)) as advance:
            few_name = f"'{support.name}'" if support else ""
            answer = found.predict(
                frame, f"'{new.name}'", support=few, support_what=few_name, on_row=advance, **how
            )
        as_written = read_table(new, as_text=True) if output.suffix.lower() == ".csv" else frame
    write_table(_beside(as_written, answer), output)
    say(f"The answers to {len(answer):,} rows are in '{output}'{_tell(answer, found)}.")


def _tell(answer: Any, model: Any) -> str:
    """In which contexts rows were answered, or on how many of them the contexts give different labels, where there is more than one."""
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
    """The table with the answers after its own columns; where it has such a column already, ours gets another name."""
    import pandas  # type: ignore[import-untyped]

    taken = set(frame.columns)
    names = {name: f"leaflearn_{name}" for name in answer.columns if name in taken}
    return pandas.concat([frame.reset_index(drop=True), answer.rename(columns=names)], axis=1)
