"""The files of an experiment beside its records: tables in every format, and figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leaflearn.benchmark.experiments.spec import Spec


def table_files(spec: Spec, output: Path) -> dict[str, str]:
    """The tables of all runs that are done, by the names of their files; nothing where no run is.

    Examples
    --------
    >>> from leaflearn.benchmark.experiments.spec import load_spec
    >>> table_files(load_spec("fig-regression"), Path("nowhere"))
    {}
    """
    from leaflearn.benchmark.experiments.renderings import join
    from leaflearn.benchmark.experiments.result_tables import long_table_of, tables_of

    tables = tables_of(spec, output)
    if not tables:
        return {}
    stem = f"{spec.name}-{spec.scale}"
    return {
        f"{stem}.md": join(tables, "markdown"),
        f"{stem}.csv": join(long_table_of(spec, output), "csv"),
        f"{stem}.tex": join(tables, "latex"),
    }


def write_result_files(spec: Spec, output: Path) -> None:
    """Write the tables and the figures."""
    from leaflearn.benchmark.figures.experiment_figures import draw
    from leaflearn.persistence.atomic_files import write_file

    tables = table_files(spec, output)
    for name, text in tables.items():
        write_file(output / name, text.encode())
    for name, content in draw(spec, output).items() if tables else ():
        write_file(output / name, content)
