"""A summary of the comparison on real tables: errors, and their ratios to those of the peers.

A cell is a table with one kind of rows to predict: "known" (groups that were learnt from) or
"new s" (new groups with s labelled rows). Its error is the RMSE or the error rate of all predicted
rows over splits. The methods of a table are compared on the splits that all of them finished, apart
from methods that finished none. A cell counts if it has at least 20 groups over these splits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from leaflearn.benchmark.json_lines import Record
from leaflearn.benchmark.real.peers import PEERS
from leaflearn.benchmark.real.run import (
    ERROR_RATE,
    FAILED,
    KNOWN,
    METHODS,
    MISSING,
    NOT_APPLICABLE,
    OK,
    OWN,
)
from leaflearn.benchmark.real.settings import REAL
from leaflearn.benchmark.real.tables import all_tables

CELLS = (KNOWN, *(f"new {s}" for s in REAL.n_labels))
OUTCOMES = (OK, NOT_APPLICABLE, MISSING, FAILED)
PICTURE = "ratios.png"
NOTE = (
    "Errors: RMSE of values, error rates of classes, over all predicted rows of the splits that "
    "all methods of a table finished; the smallest of a row is bold. Known: other rows of groups "
    "that were learnt from. New s: rows of new groups with s labelled rows each. Ratios: the error "
    "divided by the peer's, geometric mean over tables, whose number is in brackets; below 1 is "
    "better than the peer. The best peer is chosen for each cell, after the fact. A cell counts if "
    f"it has at least {REAL.min_groups} groups over splits."
)


@dataclass(frozen=True)
class Cell:
    """The errors of all methods in one cell.

    Parameters
    ----------
    table, name, measure
        The table, "known" or "new s", and "rmse" or "error rate".
    n_groups, n_splits
        Of the predicted rows, over the splits that count.
    errors
        The error of each method over all splits.
    split_errors
        The error of each method in each split.

    Examples
    --------
    >>> errors = {"leaflearn": 1.0, "lme4": 1.25, "merf": 2.0}
    >>> cell = Cell("wages", "known", "rmse", 90, 1, errors, {m: [e] for m, e in errors.items()})
    >>> cell.best_peer("leaflearn"), cell.ratio("leaflearn", "lme4"), cell.best_peer("lme4")
    ('lme4', 0.8, 'merf')
    """

    table: str
    name: str
    measure: str
    n_groups: int
    n_splits: int
    errors: dict[str, float]
    split_errors: dict[str, list[float]]

    def best_peer(self, method: str) -> str | None:
        """The peer other than `method` with the smallest error; None if there is none."""
        peers = [name for name in self.errors if name in PEERS and name != method]
        return min(peers, key=self.errors.__getitem__, default=None)

    def ratio(self, method: str, peer: str) -> float:
        """The error of a method divided by that of another."""
        return self.errors[method] / self.errors[peer]

    def ratio_error(self, method: str, peer: str) -> float | None:
        """Standard error of the ratio over splits; None with a single split."""
        if self.n_splits < 2:
            return None
        ratios = np.divide(self.split_errors[method], self.split_errors[peer])
        return float(np.std(ratios, ddof=1) / np.sqrt(len(ratios)))


@dataclass(frozen=True)
class MeanRatio:
    """The geometric mean of ratios over tables, and their number.

    Examples
    --------
    >>> MeanRatio(0.9, n_tables=3).ratio
    0.9
    """

    ratio: float
    n_tables: int


@dataclass(frozen=True)
class NotableCell:
    """A cell in which the error of a method is much larger than that of the best peer.

    Examples
    --------
    >>> NotableCell("wages", "known", 1.2, standard_error=0.05, best_peer="lme4").ratio
    1.2
    """

    table: str
    cell: str
    ratio: float
    standard_error: float | None
    best_peer: str


@dataclass(frozen=True)
class Comparison:
    """One method beside the peers.

    Parameters
    ----------
    method
        The method.
    to_peers
        By peer and kind of cell: the ratio of its error to the peer's.
    to_best
        By kind of cell: the ratio of its error to that of the best peer of each cell.
    n_cells, n_best, n_tied
        Cells that count; those in which its error is the smallest; those in which it is the
        smallest or within 2 % of the best peer's.
    notable
        Cells in which its error is more than 1.1 times that of the best peer, the largest ratio
        first.

    Examples
    --------
    >>> Comparison("lme4", {}, {}, n_cells=4, n_best=1, n_tied=3, notable=()).share_tied
    0.75
    """

    method: str
    to_peers: dict[str, dict[str, MeanRatio]]
    to_best: dict[str, MeanRatio]
    n_cells: int
    n_best: int
    n_tied: int
    notable: tuple[NotableCell, ...]

    @property
    def share_tied(self) -> float | None:
        """Share of cells in which the method is best or within 2 % of the best peer."""
        return self.n_tied / self.n_cells if self.n_cells else None


def collect_cells(records: Iterable[Record]) -> list[Cell]:
    """The cells that count, in the order of the registries; other tables come last.

    Examples
    --------
    >>> record = {"table": "wages", "split": 0, "outcome": "ok", "measure": "rmse"}
    >>> cells = {"known": {"loss": 400.0, "rows": 100, "groups": 30}}
    >>> (cell,) = collect_cells([{**record, "method": "lme4", "cells": cells}])
    >>> cell.name, cell.errors, cell.n_groups
    ('known', {'lme4': 2.0}, 30)
    """
    by_table: dict[str, dict[str, dict[int, Record]]] = {}
    for record in records:
        if record["outcome"] == OK:
            runs = by_table.setdefault(record["table"], {})
            runs.setdefault(record["method"], {})[record["split"]] = record
    found = []
    for table in in_order(by_table, all_tables()):
        runs = {method: by_table[table][method] for method in in_order(by_table[table], METHODS)}
        splits = sorted(set.intersection(*(set(by_split) for by_split in runs.values())))
        found += [cell for name in CELLS if (cell := _make_cell(table, name, runs, splits))]
    return [cell for cell in found if cell.n_groups >= REAL.min_groups]


def _make_cell(
    table: str, name: str, runs: dict[str, dict[int, Record]], splits: Sequence[int]
) -> Cell | None:
    first = next(iter(runs.values()))
    splits = [split for split in splits if name in first[split]["cells"]]
    if not splits:
        return None
    measure = first[splits[0]]["measure"]
    parts = {m: [by_split[s]["cells"][name] for s in splits] for m, by_split in runs.items()}
    n_groups = sum(first[split]["cells"][name]["groups"] for split in splits)
    return Cell(
        table,
        name,
        measure,
        n_groups,
        len(splits),
        {method: _error(measure, each) for method, each in parts.items()},
        {method: [_error(measure, [part]) for part in each] for method, each in parts.items()},
    )


def _error(measure: str, parts: Sequence[dict[str, float]]) -> float:
    loss, n_rows = sum(part["loss"] for part in parts), sum(part["rows"] for part in parts)
    if measure == ERROR_RATE:
        return max(loss, 0.5) / n_rows  # no error counts as half of one, so that ratios exist
    return float(np.sqrt(max(loss, 1e-300) / n_rows))


def compare(cells: Iterable[Cell], method: str) -> Comparison:
    """Compare a method with the peers in all cells in which it has an error.

    Examples
    --------
    >>> def cell(table, own):
    ...     errors = {"leaflearn": own, "lme4": 1.0, "merf": 2.0}
    ...     return Cell(table, "known", "rmse", 90, 1, errors, {m: [e] for m, e in errors.items()})
    >>> found = compare([cell("wages", 0.5), cell("males", 2.0)], "leaflearn")
    >>> found.to_peers["lme4"]["known"], round(found.to_peers["merf"]["known"].ratio, 3)
    (MeanRatio(ratio=1.0, n_tables=2), 0.5)
    >>> found.n_tied, [(cell.table, cell.best_peer) for cell in found.notable]
    (1, [('males', 'lme4')])
    """
    own = [
        (cell, best)
        for cell in cells
        if method in cell.errors and (best := cell.best_peer(method)) is not None
    ]
    peers = in_order({m for cell, _ in own for m in cell.errors if m != method}, PEERS, only=True)
    to_peers = {
        peer: _mean_ratios([(c.name, c.ratio(method, peer)) for c, _ in own if peer in c.errors])
        for peer in peers
    }
    ratios = [cell.ratio(method, best) for cell, best in own]
    notable = [
        NotableCell(cell.table, cell.name, ratio, cell.ratio_error(method, best), best)
        for (cell, best), ratio in zip(own, ratios, strict=True)
        if ratio > REAL.notable
    ]
    return Comparison(
        method,
        to_peers,
        _mean_ratios([(cell.name, ratio) for (cell, _), ratio in zip(own, ratios, strict=True)]),
        len(own),
        sum(ratio < 1 for ratio in ratios),
        sum(ratio <= REAL.tie for ratio in ratios),
        tuple(sorted(notable, key=lambda cell: -cell.ratio)),
    )


def _mean_ratios(ratios: Sequence[tuple[str, float]]) -> dict[str, MeanRatio]:
    found = {}
    for name in CELLS:
        logs = [np.log(ratio) for cell, ratio in ratios if cell == name]
        if logs:
            found[name] = MeanRatio(float(np.exp(np.mean(logs))), len(logs))
    return found


def in_order(names: Iterable[str], known: Iterable[str], only: bool = False) -> list[str]:
    """Names in the order of known ones; others come last in the order of the alphabet, or not.

    Examples
    --------
    >>> in_order(["z", "b", "a", "c"], known=["c", "b"]), in_order(["z", "b"], ["b"], only=True)
    (['c', 'b', 'a', 'z'], ['b'])
    """
    given, first = set(names), list(known)
    listed = [name for name in first if name in given]
    return listed if only else listed + sorted(given.difference(first))


def compare_own(cells: Sequence[Cell]) -> list[Comparison]:
    """Compare every method of leaflearn that has errors in some cells beside peers.

    Examples
    --------
    >>> compare_own([Cell("wages", "known", "rmse", 90, 1, {"lme4": 1.0}, {"lme4": [1.0]})])
    []
    """
    measured = {method for cell in cells for method in cell.errors}
    found = [compare(cells, method) for method in in_order(measured, OWN, only=True)]
    return [comparison for comparison in found if comparison.n_cells]


def count_outcomes(records: Iterable[Record]) -> list[dict[str, Any]]:
    """By method: how many runs had each outcome, and the median seconds of the fits.

    Examples
    --------
    >>> record = {"table": "wages", "method": "lme4", "split": 0, "outcome": "ok", "seconds": 2.0}
    >>> count_outcomes([record, record | {"split": 1, "outcome": "failed"}])
    [{'method': 'lme4', 'ok': 1, 'not applicable': 0, 'missing': 0, 'failed': 1, 'seconds': 2.0}]
    """
    runs: dict[str, list[Record]] = {}
    for record in records:
        runs.setdefault(record["method"], []).append(record)
    found = []
    for method in in_order(runs, METHODS):
        counts = Counter(record["outcome"] for record in runs[method])
        seconds = [record["seconds"] for record in runs[method] if record["outcome"] == OK]
        median = float(np.median(seconds)) if seconds else None
        found.append(
            {"method": method, **{name: counts[name] for name in OUTCOMES}, "seconds": median}
        )
    return found


def as_json(records: Sequence[Record]) -> dict[str, Any]:
    """The whole summary as what JSON can hold.

    Examples
    --------
    >>> sorted(as_json([]))
    ['cells', 'comparisons', 'runs']
    """
    cells = collect_cells(records)
    return {
        "runs": count_outcomes(records),
        "comparisons": [
            {**asdict(comparison), "share_tied": comparison.share_tied}
            for comparison in compare_own(cells)
        ],
        "cells": [asdict(cell) for cell in cells],
    }


def ratio_table(comparison: Comparison) -> list[tuple[str, ...]]:
    """The ratios of a comparison as rows of text, the head first and the best peer last.

    Examples
    --------
    >>> ratios = {"known": MeanRatio(0.9, 3)}
    >>> ratio_table(Comparison("leaflearn", {"lme4": ratios}, ratios, 3, 3, 3, ()))[1]
    ('lme4', '0.900 (3)', '', '', '', '')
    """
    rows = [*comparison.to_peers.items(), ("the best peer", comparison.to_best)]
    return [
        (f"{comparison.method} to", *CELLS),
        *((name, *(_ratio_text(ratios.get(cell)) for cell in CELLS)) for name, ratios in rows),
    ]


def describe(comparison: Comparison) -> str:
    """In how many cells the method is best, as a sentence.

    Examples
    --------
    >>> describe(Comparison("leaflearn", {}, {}, n_cells=4, n_best=1, n_tied=3, notable=()))
    'leaflearn is best in 1 of 4 cells, and best or within 2 % of the best peer in 3 (75 %).'
    """
    percent = 100 * (comparison.share_tied or 0.0)
    return (
        f"{comparison.method} is best in {comparison.n_best} of {comparison.n_cells} cells, and "
        f"best or within {100 * (REAL.tie - 1):.0f} % of the best peer in {comparison.n_tied} "
        f"({percent:.0f} %)."
    )


def render_markdown(records: Sequence[Record]) -> str:
    """The summary as a Markdown page that shows the figure beside it.

    Examples
    --------
    >>> render_markdown([]).splitlines()[0]
    '# leaflearn beside its peers on real tables'
    """
    cells = collect_cells(records)
    parts = ["# leaflearn beside its peers on real tables", NOTE]
    for comparison in compare_own(cells):
        parts += [f"## {comparison.method}", describe(comparison), _table(ratio_table(comparison))]
        if comparison.notable:
            parts += [
                f"Cells with an error of more than {REAL.notable:g} times the best peer's, with "
                "the standard error of the ratio over splits:",
                _table([("table", "cell", "ratio", "best peer"), *_notable_rows(comparison)]),
            ]
    if cells:
        parts += ["## Errors", _table(_error_rows(cells)), f"![Ratios to the best peer]({PICTURE})"]
    return "\n\n".join([*parts, "## Runs", _table(_outcome_rows(records))]) + "\n"


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _ratio_text(found: MeanRatio | None) -> str:
    return "" if found is None else f"{found.ratio:.3f} ({found.n_tables})"


def _notable_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    return [
        (
            cell.table,
            cell.cell,
            f"{cell.ratio:.2f}"
            + ("" if cell.standard_error is None else f" ± {cell.standard_error:.2f}"),
            cell.best_peer,
        )
        for cell in comparison.notable
    ]


def _error_rows(cells: Sequence[Cell]) -> list[tuple[str, ...]]:
    methods = in_order({method for cell in cells for method in cell.errors}, METHODS)
    rows: list[tuple[str, ...]] = [("table", "measure", "cell", "groups", "splits", *methods)]
    for cell in cells:
        least = min(cell.errors.values())
        errors = [
            "" if m not in cell.errors else _error_text(cell.errors[m], cell.errors[m] == least)
            for m in methods
        ]
        counts = (str(cell.n_groups), str(cell.n_splits))
        rows.append((cell.table, cell.measure, cell.name, *counts, *errors))
    return rows


def _error_text(error: float, is_best: bool) -> str:
    return f"**{error:.4g}**" if is_best else f"{error:.4g}"


def _outcome_rows(records: Sequence[Record]) -> list[tuple[str, ...]]:
    return [
        ("method", *OUTCOMES, "seconds per fit, median"),
        *(
            (
                line["method"],
                *(str(line[name]) for name in OUTCOMES),
                "" if line["seconds"] is None else f"{line['seconds']:.3g}",
            )
            for line in count_outcomes(records)
        ),
    ]
