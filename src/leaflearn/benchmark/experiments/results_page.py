"""One page with all experiments that were run: published results, our results, and remarks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from leaflearn.benchmark.experiments.renderings import Table, as_markdown, join
from leaflearn.benchmark.experiments.reproduction import finished_runs, learning_hours, missing_runs
from leaflearn.benchmark.experiments.result_tables import tables_of
from leaflearn.benchmark.experiments.spec import Spec, load_spec, spec_names

INTRODUCTION = """# Results

Every table and figure of the paper, from the records in [{folder}]({folder}/). Errors by "best"
follow the paper: for each domain, the local model with the smallest error on the test labels. The
errors by "identified" in brackets are realistic: the model is chosen on ten labelled rows and
tested on the others. A published number is followed by the difference of our result from it. To
make this page, run `leaflearn reproduce NAME --scale SCALE -o results/reproduction`, then
`leaflearn results --folder results/reproduction --page docs/results.md`.
"""


def write_page(output: Path, link: str) -> str:
    """The page, in Markdown.

    Parameters
    ----------
    output
        The folder that `leaflearn reproduce` wrote into.
    link
        The link from the page to that folder.

    Examples
    --------
    >>> write_page(Path("nowhere"), "../results").splitlines()[0]
    '# Results'
    """
    overview, sections = [], []
    for name in spec_names():
        spec, smaller = load_spec(name, "paper"), load_spec(name, "laptop")
        shown = [
            (each, tables)
            for each in _shown(spec, smaller, output)
            if (tables := tables_of(each, output))
        ]
        if shown:
            heading = f"{name}: {spec.content['title']}"
            overview.append(
                (
                    f"[{name}](#{_anchor(heading)})",
                    spec.content["source"],
                    *_progress([spec, smaller], output),
                )
            )
            remark = str(spec.content.get("remark", "")).strip()
            sections.append(f"## {heading}\n\n{spec.content['source']}. {remark}".rstrip() + "\n")
            sections += [
                _section(each, tables, output, link)
                for each, tables in _without_repeated_notes(shown)
            ]
    head = ("name", "what", "runs at paper scale", "at laptop scale", "hours")
    contents = [as_markdown(Table("", head, tuple(overview))) + "\n"] if overview else []
    return "\n".join([INTRODUCTION.format(folder=link), *contents, *sections])


def page_specs(output: Path) -> list[Spec]:
    """The experiments of the page, each at the scales that are shown.

    Examples
    --------
    >>> [spec.name for spec in page_specs(Path("nowhere"))][:2]
    ['fig-features', 'fig-iterations']
    """
    return [
        spec
        for name in spec_names()
        for spec in _shown(load_spec(name, "paper"), load_spec(name, "laptop"), output)
    ]


def _anchor(heading: str) -> str:
    """The anchor of a heading: lower-case letters, digits, and hyphens for spaces."""
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


def _progress(scales: Sequence[Spec], output: Path) -> list[str]:
    """How many of the runs are done at each scale, and their processor hours."""
    if "recovery" in scales[0].content:  # its runs are those of the recovery suite
        return ["", "", ""]
    root = output / "runs"
    planned = [len(list(spec.runs())) for spec in scales]
    counts = [
        f"{n - len(missing_runs([spec], root))} of {n}"
        for spec, n in zip(scales, planned, strict=True)
    ]
    return [*counts, f"{learning_hours(scales, root):.1f}"]


def _without_repeated_notes(
    shown: Sequence[tuple[Spec, list[Table]]],
) -> list[tuple[Spec, list[Table]]]:
    """Notes that hold at both scales are shown once, below the last table."""
    last = {note for table in shown[-1][1] for note in table.notes}

    def shorten(table: Table) -> Table:
        return replace(table, notes=tuple(note for note in table.notes if note not in last))

    return [*((spec, list(map(shorten, tables))) for spec, tables in shown[:-1]), shown[-1]]


def _shown(spec: Spec, smaller: Spec, output: Path) -> list[Spec]:
    """Both scales, unless they have the same runs."""
    if "recovery" in spec.content:  # one records file has all scales
        return [smaller]
    return [spec] if _keys(smaller, output) <= _keys(spec, output) else [spec, smaller]


def _keys(spec: Spec, output: Path) -> set[str]:
    return {run.key for run, _ in finished_runs(spec, output / "runs")}


def _section(spec: Spec, tables: Sequence[Table], output: Path, link: str) -> str:
    """The tables and figures of an experiment at one scale."""
    images = sorted(
        path.name
        for ending in ("png", "gif")
        for path in output.glob(f"{spec.name}-*{spec.scale}.{ending}")
    )
    shown = "".join(f"![{spec.content['title']}]({link}/{name})\n\n" for name in images)
    return f"### {spec.scale} scale\n\n{shown}{join(tables, 'markdown')}"
