"""From the finished runs of an experiment to the tables of its page: one function for each kind of experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leaflearn.benchmark.experiments.error_table import Line, error_lines
from leaflearn.benchmark.experiments.long_table import as_long_table
from leaflearn.benchmark.experiments.method_names import call
from leaflearn.benchmark.experiments.renderings import Table
from leaflearn.benchmark.experiments.reproduction import finished_runs
from leaflearn.benchmark.experiments.run_record import RunRecord
from leaflearn.benchmark.experiments.settings_text import tell_settings
from leaflearn.benchmark.experiments.spec import Run, Spec
from leaflearn.benchmark.recovery.records import Records
from leaflearn.benchmark.recovery.summary import summarize
from leaflearn.benchmark.recovery.table import HEAD, NOTE, as_cells

Finished = Sequence[tuple[Run, RunRecord]]
TIME_UNIT = "erm-top-k"  # the method that times are told in units of


def tables_of(spec: Spec, output: Path) -> list[Table]:
    """The tables of an experiment, from all its runs that are done; none where no run is.

    Examples
    --------
    >>> from leaflearn.benchmark.experiments.spec import load_spec
    >>> tables_of(load_spec("fig-regression"), Path("nowhere"))
    []
    """
    if spec.content["show"] == "success":
        return _success_tables(output)
    finished = list(finished_runs(spec, output / "runs"))
    return SHOWN[spec.content["show"]](spec, finished) if finished else []


def long_table_of(spec: Spec, output: Path) -> list[Table]:
    """The same for programs: where an experiment has errors, one table with a line for each number.

    Examples
    --------
    >>> from leaflearn.benchmark.experiments.spec import load_spec
    >>> long_table_of(load_spec("fig-regression"), Path("nowhere"))
    []
    """
    finished = (
        [] if spec.content["show"] == "success" else list(finished_runs(spec, output / "runs"))
    )
    if finished and spec.content["show"] in ("errors", "curves", "iterations", "features"):
        return [as_long_table(spec, error_lines(spec, finished))]
    return tables_of(spec, output)


def notes_of(spec: Spec, finished: Finished) -> tuple[str, ...]:
    """What a reader must know under a table: scale, seeds, data, assumptions, commits."""
    environments = [folder.environment() for _, folder in finished]
    commits = sorted(
        {
            commit
            for environment in environments
            for commit in str(environment["commit"]).split(", ")
        }
    )
    dates = sorted({environment["date"] for environment in environments})
    data = sorted(
        {
            folder.result["data"]
            + (f" in place of {own}" if (own := spec.stands_in_for(run)) else "")
            for run, folder in finished
        }
    )
    when = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    made = f"Scale: {spec.scale}. Data: {', '.join(data)}. Run {when}, commit {', '.join(commits)}."
    assumed = (
        f"Assumed, {name}: {text}." for name, text in spec.content.get("assumed", {}).items()
    )
    return (made, *tell_settings(run for run, _ in finished), *_tell_starts(finished), *assumed)


def _tell_starts(finished: Finished) -> list[str]:
    """In how many runs leaflearn read contexts off the data, and began with them."""
    trusted = [
        about["is_trusted"]
        for _, folder in finished
        if "is_trusted" in (about := folder.result.get("about", {}))
    ]
    if not trusted:
        return []
    return [
        f"leaflearn began with contexts that were read off the data in {sum(trusted)} of {len(trusted)} runs, else it was annealed."
    ]


def _error_tables(spec: Spec, finished: Finished) -> list[Table]:
    lines = error_lines(spec, finished)
    by = "method" if spec.content.get("by") == "method" else "setting"
    other = "setting" if by == "method" else "method"
    other_data = (
        {run.setting for run, _ in finished if spec.stands_in_for(run)}
        if by == "setting"
        else set()
    )
    tables = []
    for title in dict.fromkeys(getattr(line, by) for line in lines):
        of_title = [line for line in lines if getattr(line, by) == title]
        told = call(title) + (" (a stand-in)" if title in other_data else "")
        for domains in dict.fromkeys(line.domains for line in of_title):
            tables.append(
                _error_table(
                    told, [line for line in of_title if line.domains == domains], other, spec
                )
            )
    return _with_notes(tables, notes_of(spec, finished))


def _error_table(title: str, lines: Sequence[Line], rows_are: str, spec: Spec) -> Table:
    """A mean and a deviation for each domain, in brackets the identified error, beside it the published number and the difference."""
    unit = f" ({spec.content['unit']})" if "unit" in spec.content else ""
    has_paper = any(line.published for line in lines)
    lines = [line.with_mean() for line in lines] if spec.content.get("macro") else list(lines)
    head = [rows_are, "errors by", "seeds"]
    for domain in lines[0].domains:
        head += [f"{domain}{unit}", "paper"] if has_paper else [f"{domain}{unit}"]
    identified = {getattr(line, rows_are): line for line in lines if line.protocol == "identified"}
    rows = []
    for line in lines:
        beside = identified.get(getattr(line, rows_are)) if line.protocol == "best" else None
        if line.protocol != "identified":
            rows.append(_error_row(line, beside, rows_are, has_paper, 2 if unit == " (%)" else 3))
    return Table(title, tuple(head), tuple(rows))


def _error_row(
    line: Line, identified: Line | None, rows_are: str, has_paper: bool, digits: int
) -> tuple[str, ...]:
    cells = [
        call(getattr(line, rows_are)),
        line.protocol + (" (identified)" if identified else ""),
        str(line.n_seeds),
    ]
    for d in range(len(line.domains)):
        deviation = f" ± {line.deviations[d]:.{digits}f}" if line.n_seeds > 1 else ""
        cells.append(
            f"{line.means[d]:.{digits}f}{deviation}"
            + (f" ({identified.means[d]:.{digits}f})" if identified else "")
        )
        if has_paper:
            spread = f" ± {line.published_deviations[d]:g}" if line.published_deviations else ""
            cells.append(
                f"{line.published[d]:g}{spread} ({line.differences[d]:+.2f})"
                if line.published
                else ""
            )
    return tuple(cells)


def _curve_tables(spec: Spec, finished: Finished) -> list[Table]:
    tables = _error_tables(spec, finished)
    off = [
        folder.result["distance to mean"]
        for _, folder in finished
        if "distance to mean" in folder.result
    ]
    if off:
        far = f"{np.mean(off):.3f} (at most {max(off):.3f} in {len(off)} runs)"
        note = f"Is what one model for all (ERM) learns the mean of the functions? Its RMSE to that is {far}."
        tables[-1] = Table(
            tables[-1].title, tables[-1].head, tables[-1].rows, (note, *tables[-1].notes)
        )
    return tables


def _time_tables(spec: Spec, finished: Finished) -> list[Table]:
    """Seconds to learn and to answer, in units of one model's on the same machine in the same run."""
    results: dict[str, list[dict[str, Any]]] = {}
    epochs: dict[str, int] = {}
    for run, folder in finished:
        results.setdefault(run.method, []).append(folder.result)
        epochs[run.method] = run.settings["n_epochs"]
    published = spec.settings[0].get("published", {})
    rows = []
    unit = results.get(TIME_UNIT)
    for method, each in results.items():
        cells = [call(method), str(epochs[method])]
        for key, place in (("seconds", 0), ("answer time", 1)):
            ours = float(np.mean([r[key] for r in each]))
            paper = published.get(method)
            cells.append(f"{ours / float(np.mean([r[key] for r in unit])):.2f}" if unit else "")
            cells.append(f"{paper[place] / published[TIME_UNIT][place]:.2f}" if paper else "")
        rows.append(tuple(cells))
    head = (
        "method",
        "epochs",
        f"training, in units of {call(TIME_UNIT)}",
        "paper",
        "answering",
        "paper",
    )
    return _with_notes([Table("", head, tuple(rows))], notes_of(spec, finished))


def _solution_tables(spec: Spec, finished: Finished) -> list[Table]:
    """How often each reading of two lines was found."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for run, folder in finished:
        counts.setdefault((run.setting, run.method), Counter())[folder.result["solution"]] += 1
    rows = tuple(
        (
            setting,
            call(method),
            str(found.total()),
            *(str(found[name]) for name in ("S1", "S2", "neither")),
        )
        for (setting, method), found in counts.items()
    )
    return _with_notes(
        [Table("", ("groups", "method", "seeds", "S1", "S2", "neither"), rows)],
        notes_of(spec, finished),
    )


def _success_tables(output: Path) -> list[Table]:
    """How often each rule recovered the contexts of each task."""
    path = output / "recovery" / "records.jsonl"
    if not path.exists():
        return []
    rows = tuple(as_cells(line) for line in summarize(Records(path).all()))
    return [Table("", HEAD, rows, (NOTE,))]


def _with_notes(tables: Iterable[Table], notes: tuple[str, ...]) -> list[Table]:
    every = list(tables)
    every[-1] = Table(every[-1].title, every[-1].head, every[-1].rows, notes)
    return every


SHOWN: dict[str, Callable[[Spec, Finished], list[Table]]] = {
    "errors": _error_tables,
    "curves": _curve_tables,
    "iterations": _error_tables,
    "features": _error_tables,
    "time": _time_tables,
    "solutions": _solution_tables,
}
