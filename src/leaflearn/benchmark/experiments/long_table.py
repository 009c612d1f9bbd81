"""The errors of an experiment for programs: one line for each number, with everything that tells what it is."""

from __future__ import annotations

from collections.abc import Iterable

from leaflearn.benchmark.experiments.error_table import Line
from leaflearn.benchmark.experiments.renderings import Table
from leaflearn.benchmark.experiments.spec import Spec

HEAD = (
    "experiment", "scale", "setting", "method", "errors by", "domain", "unit", "seeds", "mean", "deviation",
    "published", "published deviation", "difference",
)  # fmt: skip


def as_long_table(spec: Spec, lines: Iterable[Line]) -> Table:
    """Errors, deviations over seeds and published numbers, a row for each domain.

    Examples
    --------
    >>> spec = Spec("table1", "paper", {"unit": "%"})
    >>> line = Line("Colored MNIST", "leaf", "best", ("digit", "color"), ((0.0175,), (0.0003,)), (1.70, 0.03), scale=100)
    >>> as_long_table(spec, [line]).rows[0]
    ('table1', 'paper', 'Colored MNIST', 'leaf', 'best', 'digit', '%', '1', '1.75', '', '1.7', '', '0.05')
    """
    rows = []
    for line in lines:
        for d, domain in enumerate(line.domains):
            told = (
                spec.name,
                spec.scale,
                line.setting,
                line.method,
                line.protocol,
                domain,
                str(spec.content.get("unit", "")),
            )
            deviation = _number(line.deviations[d]) if line.n_seeds > 1 else ""
            published = (_number(line.published[d]) if line.published else "", _deviation(line, d))
            difference = _number(line.differences[d]) if line.published else ""
            rows.append(
                (
                    *told,
                    str(line.n_seeds),
                    _number(line.means[d]),
                    deviation,
                    *published,
                    difference,
                )
            )
    return Table("", HEAD, tuple(rows))


def _deviation(line: Line, d: int) -> str:
    return _number(line.published_deviations[d]) if line.published_deviations else ""


def _number(value: float) -> str:
    return f"{round(value, 4):g}"
