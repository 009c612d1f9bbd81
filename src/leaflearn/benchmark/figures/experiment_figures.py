"""The figures of `leaflearn reproduce`, made from the finished runs of an experiment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from leaflearn.benchmark.experiments import settings
from leaflearn.benchmark.experiments.method_names import display_name
from leaflearn.benchmark.experiments.parts import make_domains
from leaflearn.benchmark.experiments.reproduction import finished_runs
from leaflearn.benchmark.figures.feature_panels import plot_features
from leaflearn.benchmark.figures.function_panels import (
    FunctionPanel,
    Moment,
    TrainingMoments,
    animate,
    choose_moments,
    match_curves,
    plot_functions,
    plot_training,
)
from leaflearn.benchmark.figures.recovery_figures import Rate, plot_rates_compactly
from leaflearn.benchmark.methods import METHODS
from leaflearn.benchmark.recovery.suite import Records
from leaflearn.benchmark.recovery.summary import summarize
from leaflearn.benchmark.recovery.tasks import TASKS
from leaflearn.report.page import to_png

if TYPE_CHECKING:
    from leaflearn.benchmark.experiments.spec import Run, Spec

Result = dict[str, Any]
SHOWN_MOMENTS = 7  # with the boundaries, two rows of four
RULE_NAMES = {"default": "leaflearn", "hard": "LEAF", "sampled": "LEAF-EM", "soft": "EM"}


def draw(spec: Spec, output: Path) -> dict[str, bytes]:
    """The figures of an experiment by file name; empty for tables, and if nothing was run.

    Of several seeds, the one with the median error is drawn; of an even number, the better of the
    two in the middle.

    Examples
    --------
    >>> from leaflearn.benchmark.experiments.spec import load_spec
    >>> draw(load_spec("fig-regression"), Path("nowhere"))
    {}
    """
    if spec.content["show"] == "success":
        return _draw_success(spec, output / "recovery" / "records.jsonl")
    draw_kind = FIGURES_BY_KIND.get(spec.content["show"])
    seeds: dict[tuple[str, str], list[tuple[Run, Result]]] = {}
    for run, record in finished_runs(spec, output / "runs") if draw_kind else ():
        seeds.setdefault((run.setting, run.method), []).append((run, record.result))
    return (
        draw_kind(spec, [_choose_middle(each) for each in seeds.values()])
        if draw_kind and seeds
        else {}
    )


def _choose_middle(seeds: list[tuple[Run, Result]]) -> tuple[Run, Result]:
    """The seed with the median error; errors are means over domains."""
    return sorted(seeds, key=lambda each: float(np.mean(_errors(each[1]))))[(len(seeds) - 1) // 2]


def _errors(result: Result) -> list[float]:
    """The errors in every domain, by the first protocol."""
    return list(next(iter(result["errors"].values())))


def _draw_success(spec: Spec, path: Path) -> dict[str, bytes]:
    """Draw the tasks and rules of the experiment; the file may have records of others."""
    wanted = {**spec.content["recovery"], **spec.at_scale.get("recovery", {})}
    lines = [
        line
        for line in summarize(Records(path).all())
        if line.task in wanted["tasks"] and line.rule in wanted["rules"]
    ]
    rates = [
        Rate(
            line.task,
            RULE_NAMES.get(line.rule, line.rule),
            line.rate,
            line.low,
            line.high,
            None,
            "",
            TASKS[line.task].about,
        )
        for line in lines
    ]
    return {f"{spec.name}-{spec.scale}.png": to_png(plot_rates_compactly(rates))} if rates else {}


def _draw_curves(spec: Spec, finished: list[tuple[Run, Result]]) -> dict[str, bytes]:
    x, functions, names = _functions(finished[0][0])
    panels = []
    for run, result in finished:
        note = "RMSE " + " / ".join(f"{error:.2f}" for error in _errors(result))
        drawn = np.asarray(result["curves"]["x"]), np.asarray(result["curves"]["curves"])
        panels.append(
            FunctionPanel(_title(run), *drawn, note, _idle(result), _adapted_to(run, len(names)))
        )
    return {f"{spec.name}-{spec.scale}.png": to_png(plot_functions(x, functions, names, panels))}


def _functions(run: Run) -> tuple[Any, Any, tuple[str, ...]]:
    """The test inputs (G,), the values of the functions there (D, G), and their names."""
    domains = make_domains(run.settings["dataset"])
    return (
        np.asarray(domains.domains[0].test.x)[:, 0],
        np.stack([np.asarray(domain.test.y).ravel() for domain in domains]),
        tuple(domains.names),
    )


def _title(run: Run) -> str:
    return f"{display_name(run.method)}, {run.setting}" if run.setting else display_name(run.method)


def _adapted_to(run: Run, n_domains: int) -> tuple[int, ...]:
    """The domain of each curve, for a method that adapts; it is unknown for contexts."""
    return (
        tuple(range(n_domains)) if hasattr(METHODS[run.settings["method"]["name"]], "adapt") else ()
    )


def _idle(result: Result) -> tuple[bool, ...]:
    usage = result.get("usage")
    return tuple(share < settings.MEASURES.idle_usage for share in usage) if usage else ()


def _draw_iterations(spec: Spec, finished: list[tuple[Run, Result]]) -> dict[str, bytes]:
    trainings = {run.method: _follow(run, result["snapshots"]) for run, result in finished}
    shown = choose_moments([training.moments for training in trainings.values()], SHOWN_MOMENTS)
    drawn = {}
    for method, training in trainings.items():
        drawn[f"{spec.name}-{method}-{spec.scale}.png"] = to_png(plot_training(training, shown))
        drawn[f"{spec.name}-{method}-{spec.scale}.gif"] = animate(training)
    return drawn


def _follow(run: Run, snapshots: dict[str, Any]) -> TrainingMoments:
    """The training of a run from its snapshots; contexts are matched to functions at the end."""
    x, functions, names = _functions(run)
    moments = [
        Moment(
            f"epoch {epoch}",
            np.asarray(shot["x"]),
            np.asarray(shot["curves"]),
            np.concatenate([np.asarray(p) for p in shot["points"]]),
        )
        for epoch, shot in sorted(snapshots.items(), key=lambda item: int(item[0]))
    ]
    at_curves = np.stack([np.interp(moments[-1].x, x, function) for function in functions])
    return TrainingMoments(
        display_name(run.method), moments, names, match_curves(moments[-1].curves, at_curves)
    )


def _draw_features(spec: Spec, finished: list[tuple[Run, Result]]) -> dict[str, bytes]:
    drawn = {}
    for run, result in finished:
        features = result["features"]
        labels = {domain: features["labels"][domain] for domain in result["domains"]}
        figure = plot_features(
            display_name(run.method),
            [np.asarray(of_model) for of_model in features["points"]],
            labels,
            features["classes"],
            _name_models(features, result["domains"]),
        )
        drawn[f"{spec.name}-{run.method}-{spec.scale}.png"] = to_png(figure)
    return drawn


def _name_models(features: dict[str, Any], domains: list[str]) -> list[str]:
    """Name each local model after the domain that it predicts best, one to one, with its error."""
    names = [f"model {k}" for k in range(len(features["points"]))]
    if "errors" in features:  # earlier versions did not record them
        for k, d in zip(*linear_sum_assignment(features["errors"]), strict=True):
            names[k] = f"model for {domains[d]}\n{100 * features['errors'][k][d]:.1f} % wrong"
    return names


FIGURES_BY_KIND: dict[str, Callable[[Spec, list[tuple[Run, Result]]], dict[str, bytes]]] = {
    "curves": _draw_curves,
    "iterations": _draw_iterations,
    "features": _draw_features,
}
