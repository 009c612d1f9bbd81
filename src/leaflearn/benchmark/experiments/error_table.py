"""The errors of an experiment beside the published ones.

One line for each method in each setting, over all seeds that are done. Two protocols are never mixed: a line says by which its errors are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leaflearn.benchmark.datasets.gas_mixtures import SIMULATED
from leaflearn.benchmark.experiments.run_record import RunRecord
from leaflearn.benchmark.experiments.spec import Run, Spec

AS_PUBLISHED = ("best", "label set", "adapted")  # protocols that the paper has too
PROTOCOLS = (*AS_PUBLISHED[:1], "identified", *AS_PUBLISHED[1:], "pruned")


@dataclass(frozen=True)
class Line:
    """A method in a setting by one protocol.

    Examples
    --------
    >>> line = Line("Colored MNIST", "leaf", "best", ("digit", "color"), ((0.0175, 0.0185), (0.0003, 0.0003)), (1.70, 0.03), scale=100)
    >>> [round(mean, 2) for mean in line.means], line.n_seeds, [round(gap, 2) for gap in line.differences]
    ([1.8, 0.03], 2, [0.1, 0.0])
    """

    setting: str
    method: str
    protocol: str
    domains: tuple[str, ...]
    errors: tuple[tuple[float, ...], ...]  # of each domain, on each seed
    published: tuple[float, ...] | None = None
    published_deviations: tuple[float, ...] | None = None
    scale: float = 1.0  # 100 where errors are told in percent

    def with_mean(self) -> Line:
        """The same with one column more: the mean of all domains, each of which counts as much (macro-average)."""
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
        """How many runs this is of."""
        return len(self.errors[0])

    @property
    def means(self) -> list[float]:
        """Mean error of each domain."""
        return [self.scale * float(np.mean(each)) for each in self.errors]

    @property
    def deviations(self) -> list[float]:
        """Standard deviation over seeds; 0 for one."""
        return [
            self.scale * float(np.std(each, ddof=1)) if len(each) > 1 else 0.0
            for each in self.errors
        ]

    @property
    def differences(self) -> list[float]:
        """How far above the published error."""
        return [mean - paper for mean, paper in zip(self.means, self.published or (), strict=False)]


def error_lines(spec: Spec, finished: Iterable[tuple[Run, RunRecord]]) -> list[Line]:
    """The lines of an experiment, settings and methods in the order of the spec."""
    results: dict[tuple[str, str], list[dict[str, Any]]] = {}
    elsewhere: set[tuple[str, str]] = (
        set()
    )  # rows on other data than the paper's: published numbers do not compare
    for run, folder in finished:
        result = folder.result
        results.setdefault((run.setting, run.method), []).append(result)
        if spec.stands_in_for(run) or SIMULATED in result["data"]:
            elsewhere.add((run.setting, run.method))
    by_name = {setting["name"]: setting for setting in spec.settings}
    scale = 100.0 if spec.content.get("unit") == "%" else 1.0
    lines = []
    for (setting, method), each in results.items():
        for protocol in PROTOCOLS:
            told = [
                errors for result in each if (errors := errors_by(result, protocol)) is not None
            ]
            if told:
                compares = protocol in AS_PUBLISHED and (setting, method) not in elsewhere
                published, deviations = (
                    tuple(numbers)
                    if compares and (numbers := by_name[setting].get(key, {}).get(method))
                    else None
                    for key in ("published", "published_deviations")
                )
                domains = tuple(each[0]["domains"])
                by_domain = tuple(tuple(errors[d] for errors in told) for d in range(len(domains)))
                lines.append(
                    Line(
                        setting, method, protocol, domains, by_domain, published, deviations, scale
                    )
                )
    return lines


def errors_by(result: dict[str, Any], protocol: str) -> list[float] | None:
    """The errors of one run by this protocol, where it was measured.

    Examples
    --------
    >>> result = {"errors": {"best": [0.1, 0.2]}, "pruned": {"dropped": 2, "best": [0.1, 0.3]}}
    >>> errors_by(result, "best"), errors_by(result, "pruned"), errors_by(result, "adapted")
    ([0.1, 0.2], [0.1, 0.3], None)
    """
    told = (
        result.get("pruned", {}).get("best")
        if protocol == "pruned"
        else result.get("errors", {}).get(protocol)
    )
    return list(told) if told is not None else None
