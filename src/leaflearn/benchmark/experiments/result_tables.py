"""The tables of an experiment, from its finished runs: one function for each kind of experiment.

The notes below a table describe how the runs were done. They are made from the settings of the runs
themselves, so they hold at every scale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from leaflearn.benchmark.experiments.error_table import Line, as_long_table, error_lines
from leaflearn.benchmark.experiments.method_names import display_name
from leaflearn.benchmark.experiments.parts import Settings
from leaflearn.benchmark.experiments.renderings import Table, join
from leaflearn.benchmark.experiments.reproduction import finished_runs
from leaflearn.benchmark.experiments.run_record import RunRecord
from leaflearn.benchmark.experiments.spec import Run, Spec
from leaflearn.benchmark.recovery.suite import Records
from leaflearn.benchmark.recovery.summary import HEAD, NOTE, as_cells, summarize

Finished = Sequence[tuple[Run, RunRecord]]
TIME_UNIT = "erm-top-k"  # times are ratios to those of this method
NOUNS = {"hidden": "hidden layers of", "channels": "convolutions of"}


def tables_of(spec: Spec, output: Path) -> list[Table]:
    """The tables of an experiment, from all its finished runs; empty if there are none.

    Examples
    --------
    >>> from leaflearn.benchmark.experiments.spec import load_spec
    >>> tables_of(load_spec("fig-regression"), Path("nowhere"))
    []
    """
    if spec.content["show"] == "success":
        return _success_tables(output)
    finished = list(finished_runs(spec, output / "runs"))
    return TABLES_BY_KIND[spec.content["show"]](spec, finished) if finished else []


def long_table_of(spec: Spec, output: Path) -> list[Table]:
    """The same for programs: if an experiment has errors, one table with a row for each number.

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


def table_files(spec: Spec, output: Path) -> dict[str, str]:
    """The tables of all finished runs in every format, by file name; empty if there are none.

    Examples
    --------
    >>> from leaflearn.benchmark.experiments.spec import load_spec
    >>> table_files(load_spec("fig-regression"), Path("nowhere"))
    {}
    """
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
    """Write the tables and the figures of an experiment beside its records."""
    from leaflearn.benchmark.figures.experiment_figures import draw
    from leaflearn.persistence.atomic_files import write_file

    tables = table_files(spec, output)
    for name, text in tables.items():
        write_file(output / name, text.encode())
    for name, content in draw(spec, output).items() if tables else ():
        write_file(output / name, content)


def notes_of(spec: Spec, finished: Finished) -> tuple[str, ...]:
    """The notes below a table: scale, data, dates, commits, settings and assumptions."""
    environments = [record.environment() for _, record in finished]
    commits = {commit for each in environments for commit in str(each["commit"]).split(", ")}
    dates = sorted({environment["date"] for environment in environments})
    data = {
        record.result["data"] + (f" in place of {own}" if (own := spec.stands_in_for(run)) else "")
        for run, record in finished
    }
    when = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    made = (
        f"Scale: {spec.scale}. Data: {', '.join(sorted(data))}. "
        f"Run {when}, commit {', '.join(sorted(commits))}."
    )
    assumed = (
        f"Assumed, {name}: {text}." for name, text in spec.content.get("assumed", {}).items()
    )
    runs = (run for run, _ in finished)
    return (made, *describe_settings(runs), *_describe_starts(finished), *assumed)


def describe_settings(runs: Iterable[Run]) -> list[str]:
    """A sentence for each way in which runs were done, with what differs for single methods.

    Examples
    --------
    >>> shared = {"n_epochs": 3, "dataset": {"name": "functions"}}
    >>> shared |= {"network": {"name": "mlp", "hidden": [4, 4]}}
    >>> shared |= {"optimizer": {"name": "sgd", "learning_rate": 0.1}}
    >>> runs = [Run("leaf", "", shared), Run("leaf-em", "", shared)]
    >>> print(*describe_settings([*runs, Run("maml", "", {**shared, "n_epochs": 9})]))
    Run: 3 epochs; hidden layers of 4, 4; sgd, learning rate 0.1. MAML: 9 epochs.
    """
    columns: dict[str, dict[str, list[str]]] = {}  # column -> row -> phrases
    for run in runs:
        columns.setdefault(run.setting, {})[run.method] = _phrases(run.settings)
    sentences: dict[str, list[str]] = {}  # sentence -> the columns that it holds for
    for setting, methods in columns.items():
        sentences.setdefault(_sentence(methods), []).append(setting)
    sentences.pop("", None)  # runs with nothing to describe
    if len(sentences) == 1:
        return [f"Run: {sentence}" for sentence in sentences]
    return [f"Run, {' / '.join(names)}: {sentence}" for sentence, names in sentences.items()]


def _sentence(methods: dict[str, list[str]]) -> str:
    usual = list(Counter(tuple(phrases) for phrases in methods.values()).most_common(1)[0][0])
    others: dict[str, list[str]] = {}
    for method, phrases in methods.items():
        different = "; ".join(phrase for phrase in phrases if phrase not in usual)
        if different:
            others.setdefault(different, []).append(display_name(method))
    exceptions = (f" {', '.join(names)}: {different}." for different, names in others.items())
    return "; ".join(usual) + "." * bool(usual) + "".join(exceptions)


def _phrases(settings: Settings) -> list[str]:
    """How long a run trains, and with what; defaults that a spec does not set are left out."""
    sampler, network, optimizer = (
        settings.get(part, {}) for part in ("sampler", "network", "optimizer")
    )
    phrases = [_count(settings["n_epochs"], "epoch")] if "n_epochs" in settings else []
    if "groups_per_step" in sampler and "group_size" in sampler:
        groups = _count(sampler["groups_per_step"], "group")
        phrases.append(f"steps of {groups} of {sampler['group_size']}")
    if not sampler.get("redraw", True):
        phrases.append("groups drawn once")
    phrases += [
        f"{noun} {', '.join(map(str, network[key]))}"
        for key, noun in NOUNS.items()
        if key in network
    ]
    if "height" in settings["dataset"]:
        phrases.append(f"images {settings['dataset']['height']} pixels high")
    if "learning_rate" in optimizer:
        decay = ", decayed linearly to 0" if settings.get("slows_down") else ""
        phrases.append(f"{optimizer['name']}, learning rate {optimizer['learning_rate']:g}{decay}")
    return phrases


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _describe_starts(finished: Finished) -> list[str]:
    """In how many runs leaflearn started with contexts that it found in the data."""
    trusted = [
        about["is_trusted"]
        for _, record in finished
        if "is_trusted" in (about := record.result.get("about", {}))
    ]
    if not trusted:
        return []
    return [
        f"leaflearn started from contexts found before training in {sum(trusted)} of "
        f"{len(trusted)} runs, otherwise from random models with annealing."
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
        shown = display_name(title) + (" (a stand-in)" if title in other_data else "")
        for domains in dict.fromkeys(line.domains for line in of_title):
            of_domains = [line for line in of_title if line.domains == domains]
            tables.append(_error_table(shown, of_domains, other, spec))
    return _with_notes(tables, notes_of(spec, finished))


def _error_table(title: str, lines: Sequence[Line], rows_are: str, spec: Spec) -> Table:
    """A column for each domain, and one for its published number.

    A cell has the mean, the deviation and, in brackets, the identified error; the published number
    is followed by the difference.
    """
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
        display_name(getattr(line, rows_are)),
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
    results = [record.result for _, record in finished]
    distances = [result["distance to mean"] for result in results if "distance to mean" in result]
    if distances:
        note = (
            "Does the pooled model (ERM) learn the mean of the functions? Its RMSE to the mean is "
            f"{np.mean(distances):.3f} (at most {max(distances):.3f} in {len(distances)} runs)."
        )
        tables[-1] = replace(tables[-1], notes=(note, *tables[-1].notes))
    return tables


def _time_tables(spec: Spec, finished: Finished) -> list[Table]:
    """Seconds to train and to predict, as ratios to those of one method on the same machine."""
    results: dict[str, list[dict[str, Any]]] = {}
    epochs: dict[str, int] = {}
    for run, record in finished:
        results.setdefault(run.method, []).append(record.result)
        epochs[run.method] = run.settings["n_epochs"]
    published = spec.settings[0].get("published", {})
    rows = []
    unit = results.get(TIME_UNIT)
    for method, each in results.items():
        cells = [display_name(method), str(epochs[method])]
        for key, place in (("seconds", 0), ("answer time", 1)):
            ours = float(np.mean([r[key] for r in each]))
            paper = published.get(method)
            cells.append(f"{ours / float(np.mean([r[key] for r in unit])):.2f}" if unit else "")
            cells.append(f"{paper[place] / published[TIME_UNIT][place]:.2f}" if paper else "")
        rows.append(tuple(cells))
    head = (
        "method",
        "epochs",
        f"training, in units of {display_name(TIME_UNIT)}",
        "paper",
        "answering",
        "paper",
    )
    return _with_notes([Table("", head, tuple(rows))], notes_of(spec, finished))


def _solution_tables(spec: Spec, finished: Finished) -> list[Table]:
    """How often each solution of two crossing lines was found."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for run, record in finished:
        counts.setdefault((run.setting, run.method), Counter())[record.result["solution"]] += 1
    rows = tuple(
        (
            setting,
            display_name(method),
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
    """How often each rule recovers the contexts of each task."""
    path = output / "recovery" / "records.jsonl"
    if not path.exists():
        return []
    rows = tuple(as_cells(line) for line in summarize(Records(path).all()))
    return [Table("", HEAD, rows, (NOTE,))]


def _with_notes(tables: Iterable[Table], notes: tuple[str, ...]) -> list[Table]:
    every = list(tables)
    every[-1] = replace(every[-1], notes=notes)
    return every


TABLES_BY_KIND: dict[str, Callable[[Spec, Finished], list[Table]]] = {
    "errors": _error_tables,
    "curves": _curve_tables,
    "iterations": _error_tables,
    "features": _error_tables,
    "time": _time_tables,
    "solutions": _solution_tables,
}
