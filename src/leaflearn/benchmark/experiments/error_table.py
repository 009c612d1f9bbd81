"""The errors of an experiment beside the published ones.

One line for each method in each setting, over all finished seeds. Each line has the errors by one
protocol; protocols are never mixed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leaflearn.benchmark.datasets.gas_mixtures import SIMULATED
from leaflearn.benchmark.experiments.renderings import Table
from leaflearn.benchmark.experiments.run_record import RunRecord
from leaflearn.benchmark.experiments.spec import Run, Spec

AS_PUBLISHED = ("best", "label set", "adapted")  # protocols of the paper
PROTOCOLS = (*AS_PUBLISHED[:1], "identified", *AS_PUBLISHED[1:], "pruned")
HEAD = (
    "experiment", "scale", "setting", "method", "errors by", "domain", "unit", "seeds", "mean",
    "deviation", "published", "published deviation", "difference",
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A method in a setting by one protocol.

    Examples
    --------
    >>> domains, errors = ("digit", "color"), ((0.0175, 0.0185), (0.0003, 0.0003))
    >>> line = Line("Colored MNIST", "leaf", "best", domains, errors, (1.70, 0.03), scale=100)
    >>> line.n_seeds, [round(mean, 2) for mean in line.means]
    (2, [1.8, 0.03])
    >>> [round(difference, 2) for difference in line.differences]
    [0.1, 0.0]
    """

    setting: str
    method: str
    protocol: str
    domains: tuple[str, ...]
    errors: tuple[tuple[float, ...], ...]  # of each domain, on each seed
    published: tuple[float, ...] | None = None
    published_deviations: tuple[float, ...] | None = None
    scale: float = 1.0  # 100 for errors in percent

    def with_mean(self) -> Line:
        """The same with one more column: the unweighted mean of all domains (macro-average)."""
        mean = tuple(float(np.mean(of_seed)) for of_seed in zip(*self.errors, strict=True))
        published = (*self.published, float(np.mean(self.published))) if self.published else None
        return replace(
            self,
            domains=(*self.domains, "mean"),
            errors=(*self.errors, mean),
            published=published,
            published_deviations=None,
        )

    @property
    def n_seeds(self) -> int:
        """Number of runs."""
        return len(self.errors[0])

    @property
    def means(self) -> list[float]:
        """Mean error of each domain."""
        return [self.scale * float(np.mean(each)) for each in self.errors]

    @property
    def deviations(self) -> list[float]:
        """Standard deviation over seeds; 0 for one seed."""
        return [
            self.scale * float(np.std(each, ddof=1)) if len(each) > 1 else 0.0
            for each in self.errors
        ]

    @property
    def differences(self) -> list[float]:
        """How far each mean is above the published error."""
        return [mean - paper for mean, paper in zip(self.means, self.published or (), strict=False)]


def error_lines(spec: Spec, finished: Iterable[tuple[Run, RunRecord]]) -> list[Line]:
    """The lines of an experiment, settings and methods in the order of the spec."""
    results: dict[tuple[str, str], list[dict[str, Any]]] = {}
    on_other_data: set[tuple[str, str]] = set()  # published numbers are not comparable
    for run, record in finished:
        result = record.result
        results.setdefault((run.setting, run.method), []).append(result)
        if spec.stands_in_for(run) or SIMULATED in result["data"]:
            on_other_data.add((run.setting, run.method))
    by_name = {setting["name"]: setting for setting in spec.settings}
    scale = 100.0 if spec.content.get("unit") == "%" else 1.0
    lines = []
    for (setting, method), each in results.items():
        for protocol in PROTOCOLS:
            measured = [errors_by(result, protocol) for result in each]
            found = [errors for errors in measured if errors is not None]
            if found:
                compares = protocol in AS_PUBLISHED and (setting, method) not in on_other_data
                published, deviations = (
                    tuple(numbers)
                    if compares and (numbers := by_name[setting].get(key, {}).get(method))
                    else None
                    for key in ("published", "published_deviations")
                )
                domains = tuple(each[0]["domains"])
                errors = tuple(tuple(of_run[d] for of_run in found) for d in range(len(domains)))
                line = Line(setting, method, protocol, domains, errors, published, deviations)
                lines.append(replace(line, scale=scale))
    return lines


def errors_by(result: dict[str, Any], protocol: str) -> list[float] | None:
    """The errors of one run by this protocol; None if they were not measured.

    Examples
    --------
    >>> result = {"errors": {"best": [0.1, 0.2]}, "pruned": {"dropped": 2, "best": [0.1, 0.3]}}
    >>> errors_by(result, "best"), errors_by(result, "pruned"), errors_by(result, "adapted")
    ([0.1, 0.2], [0.1, 0.3], None)
    """
    section, name = ("pruned", "best") if protocol == "pruned" else ("errors", protocol)
    errors = result.get(section, {}).get(name)
    return list(errors) if errors is not None else None


def as_long_table(spec: Spec, lines: Iterable[Line]) -> Table:
    """Errors, deviations over seeds and published numbers for programs: one row per domain.

    Examples
    --------
    >>> spec, domains = Spec("table1", "paper", {"unit": "%"}), ("digit", "color")
    >>> errors = ((0.0175,), (0.0003,))
    >>> line = Line("Colored MNIST", "leaf", "best", domains, errors, (1.70, 0.03), scale=100)
    >>> as_long_table(spec, [line]).rows[0][:7]
    ('table1', 'paper', 'Colored MNIST', 'leaf', 'best', 'digit', '%')
    >>> as_long_table(spec, [line]).rows[0][7:]
    ('1', '1.75', '', '1.7', '', '0.05')
    """
    unit = str(spec.content.get("unit", ""))
    rows = []
    for line in lines:
        for d, domain in enumerate(line.domains):
            cells = (line.setting, line.method, line.protocol, domain, unit, str(line.n_seeds))
            numbers = (
                line.means[d],
                line.deviations[d] if line.n_seeds > 1 else None,
                line.published[d] if line.published else None,
                line.published_deviations[d] if line.published_deviations else None,
                line.differences[d] if line.published else None,
            )
            rows.append((spec.name, spec.scale, *cells, *map(_number, numbers)))
    return Table("", HEAD, tuple(rows))


def _number(value: float | None) -> str:
    return "" if value is None else f"{round(value, 4):g}"
