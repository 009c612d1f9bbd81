"""A table as text: Markdown for the docs, CSV for programs, LaTeX for a paper."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A head and rows of text, with a title and notes.

    Examples
    --------
    >>> print(as_markdown(Table("Errors", ("method", "digit"), (("leaf", "1.70"),), ("one seed",))))
    **Errors**
    <BLANKLINE>
    | method | digit |
    |---|---|
    | leaf | 1.70 |
    <BLANKLINE>
    - one seed
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def as_markdown(table: Table) -> str:
    """Markdown, for the docs.

    Examples
    --------
    >>> "a \\\\| b" in as_markdown(Table("", ("x",), (("a | b",),)))
    True
    """
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (table.head, *table.rows)]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    title = [f"**{table.title}**", ""] if table.title else []
    notes = ["", *(f"- {note}" for note in table.notes)] if table.notes else []
    return "\n".join([*title, lines[0], "|" + "---|" * len(table.head), *lines[1:], *notes])


def as_csv(table: Table) -> str:
    """CSV, for programs: the head and the rows.

    Examples
    --------
    >>> as_csv(Table("", ("method", "error"), (("a, b", "1.0"),)))
    'method,error\\n"a, b",1.0\\n'
    """
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([table.head, *table.rows])
    return buffer.getvalue()


def as_latex(table: Table) -> str:
    """LaTeX with booktabs, for a paper.

    Examples
    --------
    >>> print(as_latex(Table("5 % noise", ("method", "error"), (("ours", "1.0 ± 0.1"),))))
    % 5 % noise
    \\begin{tabular}{lr}
      \\toprule
      method & error \\\\
      \\midrule
      ours & 1.0 $\\pm$ 0.1 \\\\
      \\bottomrule
    \\end{tabular}
    """
    lines = [f"  {' & '.join(map(_escape, row))} \\\\" for row in (table.head, *table.rows)]
    notes = [f"% {note}" for note in table.notes]
    begin = f"\\begin{{tabular}}{{l{'r' * (len(table.head) - 1)}}}"
    return "\n".join(
        [
            f"% {table.title}",
            begin,
            "  \\toprule",
            lines[0],
            "  \\midrule",
            *lines[1:],
            "  \\bottomrule",
            "\\end{tabular}",
            *notes,
        ]
    )


FORMATS: dict[str, Callable[[Table], str]] = {
    "markdown": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
}


def join(tables: Sequence[Table], form: str) -> str:
    """Several tables in one format, separated by empty lines.

    Examples
    --------
    >>> join([Table("", ("a",), ()), Table("", ("b",), ())], "csv")
    'a\\n\\nb\\n'
    """
    return "\n\n".join(FORMATS[form](table).rstrip("\n") for table in tables) + "\n"


def _escape(text: str) -> str:
    for letter in "\\&%$#_{}":
        text = text.replace(letter, "\\textbackslash{}" if letter == "\\" else f"\\{letter}")
    return text.replace("±", "$\\pm$")
