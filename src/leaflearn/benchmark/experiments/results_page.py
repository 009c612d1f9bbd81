"""One page with all experiments that were run: what the paper says, what came out here, and what was noticed."""

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

Every table and figure of the paper, from the records in [{folder}]({folder}/). Errors by "best" follow the paper: of all local models, the
one that is best on the test labels. In brackets behind them stand those by "identified", which are honest: the model is chosen on ten
labelled rows and tested on the others. Behind a published number stands how far ours is above it. Commands: `leaflearn reproduce NAME
--scale SCALE -o results/reproduction`, then `leaflearn results --folder results/reproduction --page docs/results.md`, which
writes this page.
"""


def write_page(output: Path, link: str) -> str:
    """The page, in Markdown.

    Parameters
    ----------
    output
        The folder that `leaflearn reproduce` wrote into.
    link
        How the page finds that folder.

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
    contents = [
        as_markdown(
            Table(
                "",
                ("name", "what", "runs at paper scale", "at laptop scale", "hours"),
                tuple(overview),
            )
        )
        + "\n"
    ]
    return "\n".join([INTRODUCTION.format(folder=link), *(contents if overview else []), *sections])


def page_specs(output: Path) -> list[Spec]:
    """The experiments that the page shows, each at the scales that it is shown at.

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
    """How a heading is linked to: small letters, digits, hyphens for spaces."""
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


def _progress(scales: Sequence[Spec], output: Path) -> list[str]:
    """How many runs are done of how many, at each scale, and the processor hours behind them."""
    if "recovery" in scales[0].content:  # these runs are those of the recovery suite
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
    """What holds at both scales is said once, under the last."""
    said = {note for table in shown[-1][1] for note in table.notes}
    earlier = [
        (
            spec,
            [
                replace(table, notes=tuple(note for note in table.notes if note not in said))
                for table in tables
            ],
        )
        for spec, tables in shown[:-1]
    ]
    return [*earlier, shown[-1]]


def _shown(spec: Spec, smaller: Spec, output: Path) -> list[Spec]:
    """Both scales, but not the same runs twice."""
    if "recovery" in spec.content:  # one file of records has all scales
        return [smaller]
    return [spec] if _keys(smaller, output) <= _keys(spec, output) else [spec, smaller]


def _keys(spec: Spec, output: Path) -> set[str]:
    return {run.key for run, _ in finished_runs(spec, output / "runs")}


def _section(spec: Spec, tables: Sequence[Table], output: Path, link: str) -> str:
    """The tables and figures of an experiment at one scale."""
    pictures = sorted(
        path.name
        for ending in ("png", "gif")
        for path in output.glob(f"{spec.name}-*{spec.scale}.{ending}")
    )
    shown = "".join(f"![{spec.content['title']}]({link}/{name})\n\n" for name in pictures)
    return f"### {spec.scale} scale\n\n{shown}{join(tables, 'markdown')}"
