"""The figures of `leaflearn reproduce`: from the finished runs of an experiment to pictures, by name of file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leaflearn.cli.bench_pictures import draw_rates
from leaflearn.experiments.method_names import call
from leaflearn.experiments.parts import make_domains
from leaflearn.experiments.recovery_records import Records
from leaflearn.experiments.recovery_summary import summarize
from leaflearn.experiments.reproduction import finished_runs
from leaflearn.report.feature_panels import plot_features
from leaflearn.report.function_panels import FunctionPanel, plot_functions
from leaflearn.report.iteration_panels import Moment, film, plot_moments
from leaflearn.report.page import to_png

if TYPE_CHECKING:
    from leaflearn.experiments.spec import Run, Spec

SHOWN_MOMENTS = 7  # and the boundaries: two rows of four
SELDOM = 0.02  # share of the groups: a local model that serves fewer is idle


def draw(spec: Spec, output: Path) -> dict[str, bytes]:
    """The figures of an experiment; none for tables, and where nothing was run.

    Examples
    --------
    >>> from leaflearn.experiments.spec import load_spec
    >>> draw(load_spec("fig-regression"), Path("nowhere"))
    {}
    """
    if spec.content["show"] == "success":
        path = output / "recovery" / "records.jsonl"
        return {f"{spec.name}-{spec.scale}.png": to_png(draw_rates(summarize(Records(path).all())))} if path.exists() else {}
    drawn_by = DRAWN.get(spec.content["show"])
    first: dict[tuple[str, str], tuple[Run, dict[str, Any]]] = {}
    for run, folder in finished_runs(spec, output / "runs"):
        first.setdefault((run.setting, run.method), (run, folder.result))  # figures are of the first seed
    return drawn_by(spec, list(first.values())) if drawn_by and first else {}


def _draw_curves(spec: Spec, finished: list[tuple[Run, dict[str, Any]]]) -> dict[str, bytes]:
    domains = make_domains(finished[0][0].settings["dataset"])
    x = np.asarray(domains.domains[0].test.x)[:, 0]
    functions = np.stack([np.asarray(domain.test.y).ravel() for domain in domains])
    panels = []
    for run, result in finished:
        title = run.setting or call(run.method)
        errors = next(iter(result["errors"].values()))
        panels.append(
            FunctionPanel(
                title, np.asarray(result["curves"]["x"]), np.asarray(result["curves"]["curves"]),
                "RMSE " + " / ".join(f"{error:.2f}" for error in errors), _idle(result),
            )
        )  # fmt: skip
    return {f"{spec.name}-{spec.scale}.png": to_png(plot_functions(x, functions, domains.names, panels))}


def _idle(result: dict[str, Any]) -> tuple[bool, ...]:
    usage = result.get("usage")
    return tuple(share < SELDOM for share in usage) if usage else ()


def _draw_iterations(spec: Spec, finished: list[tuple[Run, dict[str, Any]]]) -> dict[str, bytes]:
    drawn = {}
    for run, result in finished:
        moments = [
            Moment(
                f"epoch {epoch}", np.asarray(shot["x"]), np.asarray(shot["curves"]), np.concatenate([np.asarray(p) for p in shot["points"]])
            )
            for epoch, shot in sorted(result["snapshots"].items(), key=lambda item: int(item[0]))
        ]
        shown = [moments[i] for i in np.unique(np.linspace(0, len(moments) - 1, SHOWN_MOMENTS).round().astype(int))]
        drawn[f"{spec.name}-{run.method}-{spec.scale}.png"] = to_png(plot_moments(shown))
        drawn[f"{spec.name}-{run.method}-{spec.scale}.gif"] = film(moments)
    return drawn


def _draw_features(spec: Spec, finished: list[tuple[Run, dict[str, Any]]]) -> dict[str, bytes]:
    drawn = {}
    for run, result in finished:
        told = result["features"]
        labels = {domain: told["labels"][domain] for domain in result["domains"]}
        titles = [f"context {k}" for k in range(len(told["points"]))]
        figure = plot_features([np.asarray(points) for points in told["points"]], labels, told["classes"], titles)
        drawn[f"{spec.name}-{run.method}-{spec.scale}.png"] = to_png(figure)
    return drawn


DRAWN: dict[str, Callable[[Spec, list[tuple[Run, dict[str, Any]]]], dict[str, bytes]]] = {
    "curves": _draw_curves,
    "iterations": _draw_iterations,
    "features": _draw_features,
}
