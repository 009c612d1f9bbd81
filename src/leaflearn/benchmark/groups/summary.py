"""A summary of the runs on simulated groups: kind or degree, coverage, reliability, and cost.

A run that failed counts as wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from leaflearn.benchmark.groups.scoring import ReliabilityBin, collect_reliability
from leaflearn.benchmark.groups.settings import GROUPS
from leaflearn.benchmark.groups.simulation import SCENARIOS
from leaflearn.benchmark.json_lines import Record
from leaflearn.benchmark.real.run import OK, OWN
from leaflearn.benchmark.real.summary import in_order

PICTURE = "groups.png"
Table = list[tuple[str, ...]]  # the head first
NOTE = (
    "Degree: groups have effects, and there is one context; the share of data sets in which one "
    "is found. Kind: contexts with effects inside, so many standard deviations of the effects "
    "apart. Number right: share of data sets. ARI: mean adjusted Rand index of the contexts; its "
    "ceiling is that of someone who knows the model. Sure and wrong: share of groups whose context "
    f"is stated as at least {100 * GROUPS.sure:.0f} % probable and is wrong, where several "
    "contexts were found. Coverage: share of rows inside their "
    f"{100 * GROUPS.interval:.0f} % interval. "
    "Runs that failed count as wrong."
)


@dataclass(frozen=True)
class ScenarioSummary:
    """One method on one scenario.

    Parameters
    ----------
    scenario, method
        What was run.
    n_runs, n_failed
        Data sets, and those whose fit failed.
    n_number_right
        Data sets in which the number of contexts is right.
    ari, best_ari
        Mean adjusted Rand index of the contexts, 0 for failed fits, and of someone who knows the
        model; None if all fits failed.
    n_groups, n_sure_wrong
        Groups in data sets with several contexts, and those that are confidently wrong.
    coverage
        By known and new groups: rows in their interval, and all rows.
    seconds
        Median processor seconds of a fit.

    Examples
    --------
    >>> name = "kind/offset/4/values"
    >>> line = ScenarioSummary(name, "leaflearn", 4, 0, 3, 0.8, 0.9, 80, 2, {}, 1.0)
    >>> line.number_right, line.sure_wrong
    (0.75, 0.025)
    """

    scenario: str
    method: str
    n_runs: int
    n_failed: int
    n_number_right: int
    ari: float | None
    best_ari: float | None
    n_groups: int
    n_sure_wrong: int
    coverage: dict[str, tuple[int, int]]
    seconds: float

    @property
    def number_right(self) -> float:
        """Share of data sets in which the number of contexts is right."""
        return self.n_number_right / self.n_runs

    @property
    def sure_wrong(self) -> float | None:
        """Share of groups that are confidently wrong; None if no fit has several contexts."""
        return self.n_sure_wrong / self.n_groups if self.n_groups else None


def summarize(records: Iterable[Record]) -> list[ScenarioSummary]:
    """Summarize runs by scenario and method, in their usual order.

    Examples
    --------
    >>> record = {"scenario": "degree/slopes/linear/values", "method": "leaflearn", "seed": 0}
    >>> (line,) = summarize([record | {"outcome": "failed", "seconds": 1.0}])
    >>> line.n_failed, line.number_right, line.ari
    (1, 0.0, None)
    """
    runs: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        runs.setdefault((record["scenario"], record["method"]), []).append(record)
    scenarios = in_order({scenario for scenario, _ in runs}, SCENARIOS)
    methods = in_order({method for _, method in runs}, OWN)
    return [
        _summarize_one(scenario, method, runs[scenario, method])
        for scenario in scenarios
        for method in methods
        if (scenario, method) in runs
    ]


def _summarize_one(scenario: str, method: str, runs: Sequence[Record]) -> ScenarioSummary:
    scored = [run["contexts"] for run in runs if "contexts" in run]
    several = [score for score in scored if score["n_found"] > 1]
    best = [run["best_ari"] for run in runs if "best_ari" in run]
    coverage = {}
    for name in ("known", "new"):
        counts = [run["coverage"][name] for run in runs if name in run.get("coverage", {})]
        if counts:
            inside, total = np.sum(counts, axis=0)
            coverage[name] = int(inside), int(total)
    return ScenarioSummary(
        scenario,
        method,
        len(runs),
        sum(run["outcome"] != OK for run in runs),
        sum(score["n_found"] == score["n_true"] for score in scored),
        float(sum(score["ari"] for score in scored) / len(runs)) if scored else None,
        float(np.mean(best)) if best else None,
        sum(score["n_groups"] for score in several),
        sum(score["n_sure_wrong"] for score in several),
        coverage,
        float(np.median([run["seconds"] for run in runs])),
    )


def reliability_of(records: Iterable[Record]) -> dict[str, list[ReliabilityBin]]:
    """By method: stated probabilities against rightness.

    Examples
    --------
    >>> score = {"n_found": 2, "n_true": 2, "bins": [[2, 1.8, 2]]}
    >>> reliability_of([{"method": "leaflearn", "contexts": score}])
    {'leaflearn': [ReliabilityBin(n_groups=2, stated=0.9, right=1.0)]}
    """
    scores: dict[str, list[Record]] = {}
    for record in records:
        if "contexts" in record:
            scores.setdefault(record["method"], []).append(record["contexts"])
    found = {method: collect_reliability(scores[method]) for method in in_order(scores, OWN)}
    return {method: bins for method, bins in found.items() if bins}


def as_json(records: Sequence[Record]) -> dict[str, Any]:
    """The whole summary as what JSON can hold.

    Examples
    --------
    >>> as_json([])
    {'scenarios': [], 'reliability': {}}
    """
    reliability = reliability_of(records)
    return {
        "scenarios": [asdict(line) for line in summarize(records)],
        "reliability": {m: [asdict(b) for b in bins] for m, bins in reliability.items()},
    }


def make_tables(records: Sequence[Record]) -> dict[str, Table]:
    """The tables of the summary by title; those without a row are left out.

    Examples
    --------
    >>> score = {"n_found": 1, "n_true": 1, "ari": 1.0, "n_groups": 9, "n_sure_wrong": 0}
    >>> score |= {"bins": []}
    >>> record = {"scenario": "degree/slopes/linear/values", "method": "leaflearn", "seed": 0}
    >>> record |= {"outcome": "ok", "seconds": 1.0, "contexts": score}
    >>> make_tables([record])["Degree: one context found"][1:]
    [('degree/slopes/linear/values', '1 of 1'), ('values', '1 of 1 (100 %)')]
    """
    lines = summarize(records)
    tables = {
        "Degree: one context found": _degree_table(lines),
        "Kind: contexts found": _kind_table(lines),
        "Coverage of intervals": _coverage_table(lines),
        "Reliability of stated probabilities": _reliability_table(reliability_of(records)),
        "Cost": _cost_table(lines),
    }
    return {title: table for title, table in tables.items() if len(table) > 1}


def describe(records: Sequence[Record]) -> list[str]:
    """Each method's share of data sets without contexts that have one context, as a sentence.

    Examples
    --------
    >>> record = {"scenario": "degree/slopes/linear/values", "method": "leaflearn", "seed": 0}
    >>> (sentence,) = describe([record | {"outcome": "failed", "seconds": 1.0}])
    >>> sentence[:48], sentence[-27:]
    ('leaflearn: one context in 0 of 1 data sets whose', ' (0 %; bar 95 %; 1 failed).')
    """
    found = []
    lines = [line for line in summarize(records) if line.scenario.startswith("degree")]
    for method in dict.fromkeys(line.method for line in lines):
        own = [line for line in lines if line.method == method]
        right, n = sum(line.n_number_right for line in own), sum(line.n_runs for line in own)
        n_failed = sum(line.n_failed for line in own)
        failed = f"; {n_failed} failed" if n_failed else ""
        found.append(
            f"{method}: one context in {right} of {n} data sets whose groups differ by degree "
            f"({100 * right / n:.0f} %; bar {100 * GROUPS.one_context_bar:.0f} %{failed})."
        )
    return found


def render_markdown(records: Sequence[Record]) -> str:
    """The summary as a Markdown page that shows the figure beside it.

    Examples
    --------
    >>> render_markdown([]).splitlines()[0]
    '# Kind or degree: simulated groups'
    """
    parts = ["# Kind or degree: simulated groups", NOTE, *describe(records)]
    for title, table in make_tables(records).items():
        parts += [f"## {title}", render_table(table)]
    if any(line.ari is not None for line in summarize(records)):
        parts.append(f"![Contexts found, coverage and reliability]({PICTURE})")
    return "\n\n".join(parts) + "\n"


def render_table(table: Table) -> str:
    """A table in Markdown.

    Examples
    --------
    >>> print(render_table([("a", "b"), ("1", "2")]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    lines = [table[0], ("---",) * len(table[0]), *table[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _by_scenario(
    lines: Sequence[ScenarioSummary], study: str
) -> tuple[list[str], dict[str, dict[str, ScenarioSummary]]]:
    """The methods, and by scenario of a study the line of each method."""
    chosen = [line for line in lines if line.scenario.startswith(study)]
    found: dict[str, dict[str, ScenarioSummary]] = {}
    for line in chosen:
        found.setdefault(line.scenario, {})[line.method] = line
    return list(dict.fromkeys(line.method for line in chosen)), found


def _degree_table(lines: Sequence[ScenarioSummary]) -> Table:
    methods, found = _by_scenario(lines, "degree")
    rows: Table = [("scenario", *methods)]
    for scenario, by_method in found.items():
        rows.append((scenario, *(_rate(by_method.get(method)) for method in methods)))
    for answers in dict.fromkeys(scenario.rsplit("/", 1)[1] for scenario in found):
        own = [by for scenario, by in found.items() if scenario.endswith(answers)]
        totals = []
        for method in methods:
            counted = [by[method] for by in own if method in by]
            right, n = (
                sum(line.n_number_right for line in counted),
                sum(line.n_runs for line in counted),
            )
            totals.append(f"{right} of {n} ({100 * right / n:.0f} %)" if n else "")
        rows.append((answers, *totals))
    return rows


def _rate(line: ScenarioSummary | None) -> str:
    return "" if line is None else f"{line.n_number_right} of {line.n_runs}"


def _kind_table(lines: Sequence[ScenarioSummary]) -> Table:
    head = ("scenario", "method", "number right", "ARI", "its ceiling", "sure and wrong", "failed")
    rows: Table = [head]
    for line in lines:
        if line.scenario.startswith("kind"):
            wrong = "" if line.sure_wrong is None else f"{100 * line.sure_wrong:.1f} %"
            ari, best = _number(line.ari), _number(line.best_ari)
            rows.append(
                (line.scenario, line.method, _rate(line), ari, best, wrong, str(line.n_failed))
            )
    return rows


def _coverage_table(lines: Sequence[ScenarioSummary]) -> Table:
    rows: Table = [("study", "method", "known groups", "new groups")]
    is_kind: dict[str, Callable[[str], bool]] = {
        "degree, light tails": lambda s: s.startswith("degree") and not _is_rough(s),
        "degree, heavy tails or unequal noise": lambda s: s.startswith("degree") and _is_rough(s),
        "kind": lambda s: s.startswith("kind"),
    }
    for study, belongs in is_kind.items():
        own = [line for line in lines if belongs(line.scenario) and line.coverage]
        for method in dict.fromkeys(line.method for line in own):
            cells = []
            for name in ("known", "new"):
                counts = [
                    line.coverage[name]
                    for line in own
                    if line.method == method and name in line.coverage
                ]
                inside, total = np.sum(counts, axis=0) if counts else (0, 0)
                cells.append(f"{100 * inside / total:.1f} % of {total}" if total else "")
            rows.append((study, method, *cells))
    return rows


def _is_rough(scenario: str) -> bool:
    return "heavy" in scenario or "unequal" in scenario


def _reliability_table(reliability: dict[str, list[ReliabilityBin]]) -> Table:
    rows: Table = [("method", "groups", "stated", "right")]
    for method, bins in reliability.items():
        rows += [(method, str(b.n_groups), f"{b.stated:.3f}", f"{b.right:.3f}") for b in bins]
    return rows


def _cost_table(lines: Sequence[ScenarioSummary]) -> Table:
    methods, found = _by_scenario(lines, "cost")
    rows: Table = [("processor seconds", *methods)]
    for scenario, by_method in found.items():
        cells = [f"{by_method[m].seconds:.3g}" if m in by_method else "" for m in methods]
        rows.append((scenario, *cells))
    return rows


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
