"""`leaflearn identify`: the context of a new source, from a few labelled rows of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from leaflearn.cli._tables import (
    PATH,
    load_model,
    report_warnings,
    with_images,
    with_json,
    with_local_model,
)
from leaflearn.cli._text import say, say_json, table_of


@click.command()
@click.argument("model", type=PATH)
@click.argument("few", type=PATH)
@click.option("-o", "--output", type=PATH, help="Write the contexts to this CSV or Parquet file.")
@with_images
@with_local_model
@with_json
def identify(
    model: Path,
    few: Path,
    output: Path | None,
    images: Path | None,
    local_model: str | None,
    as_json: bool,
) -> None:
    """Find the context of new sources from a few labelled rows.

    FEW is a table like the one that MODEL was fitted to, including the target. The rows of one
    group are identified together; without the column of the groups, all rows are one source.
    """
    from leaflearn.tabular.reading import read_table
    from leaflearn.tabular.writing import check_place, write_table

    if output is not None:
        check_place(output, (few,))
    with report_warnings() as sentences:
        answer = load_model(model, local_model).identify(read_table(few), f"'{few.name}'", images)
    if output is not None:
        write_table(answer, output)
    if as_json:
        say_json(
            {
                "sources": answer.astype(object).where(answer.notna(), None).to_dict("records"),
                "warnings": sentences,
            }
        )
    elif output is None:
        say(
            table_of(
                ("group", "context", "probability", "margin", "what to do"),
                [_row_of(row) for row in answer.to_dict("records")],
                _is_right,
            )
        )
    else:
        say(f"The contexts of {len(answer):,} sources are in '{output}'.")


def _row_of(row: dict[str, Any]) -> tuple[str, ...]:
    margin = f"{row['margin']:.2f}" if math.isfinite(row["margin"]) else "-"
    return row["group"], str(row["context"]), f"{row['probability']:.3f}", margin, _advise(row)


def _is_right(column: int) -> bool:
    return 0 < column < 4


def _advise(row: dict[str, Any]) -> str:
    """What to do about this source, in a few words."""
    import pandas  # type: ignore[import-untyped]

    if row["is_new"]:
        return "fits no known context; collect more of its rows and fit again with them"
    if not math.isfinite(row["margin"]):
        return "the model has only one context"
    if pandas.isna(row["more_rows"]):
        return (
            "rows like these do not distinguish the contexts; "
            "label rows on which the contexts of `leaflearn predict --each` disagree"
        )
    if row["more_rows"] == 0:
        return "determined"
    rows = "row" if row["more_rows"] == 1 else "rows"
    return f"about {row['more_rows']:,} more labelled {rows} would determine it"
