"""One page with all experiments that were run: what the paper says, what came out here, and what was noticed."""

from __future__ import annotations

from pathlib import Path

from leaflearn.experiments.renderings import join
from leaflearn.experiments.reproduction import finished_runs
from leaflearn.experiments.result_tables import tables_of
from leaflearn.experiments.spec import Spec, load_spec, spec_names

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
    parts = [INTRODUCTION.format(folder=link)]
    for name in spec_names():
        spec, smaller = load_spec(name, "paper"), load_spec(name, "laptop")
        of_name = [part for each in _shown(spec, smaller, output) if (part := _section(each, output, link))]
        if of_name:
            remark = str(spec.content.get("remark", "")).strip()
            parts += [f"## {name}: {spec.content['title']}\n\n{spec.content['source']}. {remark}".rstrip() + "\n", *of_name]
    return "\n".join(parts)


def _shown(spec: Spec, smaller: Spec, output: Path) -> list[Spec]:
    """Both scales, but not the same runs twice."""
    if "recovery" in spec.content:  # one file of records has all scales
        return [smaller]
    return [spec] if _keys(smaller, output) <= _keys(spec, output) else [spec, smaller]


def _keys(spec: Spec, output: Path) -> set[str]:
    return {run.key for run, _ in finished_runs(spec, output / "runs")}


def _section(spec: Spec, output: Path, link: str) -> str:
    """The tables and figures of an experiment at one scale; nothing where it was not run."""
    tables = tables_of(spec, output)
    if not tables:
        return ""
    pictures = sorted(path.name for ending in ("png", "gif") for path in output.glob(f"{spec.name}-*{spec.scale}.{ending}"))
    shown = "".join(f"![{spec.content['title']}]({link}/{name})\n\n" for name in pictures)
    return f"### {spec.scale} scale\n\n{shown}{join(tables, 'markdown')}"
