"""The figures of `leaflearn reproduce`: which runs they show, and under which names."""

import json

import numpy as np
import pytest

from leaflearn.benchmark.experiments.run_record import RunRecord
from leaflearn.benchmark.experiments.spec import Run, load_spec
from leaflearn.benchmark.figures import experiment_figures

X = np.linspace(-2, 2, 9)


@pytest.fixture
def calls(monkeypatch):
    """The arguments of the plot functions, in the order of the calls."""
    calls = []
    for name in (
        "plot_functions",
        "plot_training",
        "plot_features",
        "plot_rates_compactly",
        "animate",
    ):
        monkeypatch.setattr(experiment_figures, name, lambda *arguments: calls.append(arguments))
    monkeypatch.setattr(experiment_figures, "to_png", lambda _: b"")
    return calls


def finish(root, run, seed=0, errors=(0.1, 0.2, 0.3), **more):
    """Record a run as finished."""
    record = RunRecord(root / "runs", Run(run.method, run.setting, {**run.settings, "seed": seed}))
    record.begin()
    curves = {"x": X.tolist(), "curves": [[float(seed)] * len(X)] * 3}
    record.finish(
        {"errors": {"best": list(errors)}, "curves": curves, "domains": ["a", "b", "c"], **more}
    )


def test_the_seed_with_the_median_error_is_drawn(tmp_path, calls):
    spec = load_spec("fig-regression", "paper").only(["leaf"], [])
    run = next(spec.runs(1))
    for seed, error in enumerate((0.9, 0.1, 0.5, 0.0, 0.6)):
        finish(tmp_path, run, seed, (error, error, error))
    experiment_figures.draw(spec, tmp_path)
    ((_, _, names, (panel,)),) = calls
    assert (panel.title, panel.note) == ("LEAF", "RMSE 0.50 / 0.50 / 0.50")
    assert set(panel.curves.ravel()) == {2.0}
    assert names == ("absolute", "sine", "logarithm")


def test_only_curves_of_methods_that_adapt_have_known_domains(tmp_path, calls):
    spec = load_spec("fig-regression", "paper").only(["maml", "modular", "leaf"], [])
    for run in spec.runs(1):
        finish(tmp_path, run)
    experiment_figures.draw(spec, tmp_path)
    assert {panel.title: panel.domains for panel in calls[0][3]} == {
        "MAML": (0, 1, 2),
        "Modular": (0, 1, 2),
        "LEAF": (),
    }


def test_methods_in_one_setting_have_different_titles(tmp_path, calls):
    spec = load_spec("fig-parameters", "paper").with_methods(["leaf-em"]).only([], ["K=2", "K=3"])
    for run in spec.runs(1):
        finish(tmp_path, run)
    experiment_figures.draw(spec, tmp_path)
    assert [panel.title for panel in calls[0][3]] == [
        "LEAF, K=2",
        "LEAF-EM, K=2",
        "LEAF, K=3",
        "LEAF-EM, K=3",
    ]


def test_a_function_has_the_same_colour_for_any_order_of_contexts(tmp_path, calls):
    spec = load_spec("fig-iterations", "paper")
    absolute, sine, logarithm = 2 * np.abs(X) - 2, 2 * np.cos(3 * X), -0.7 * X
    orders = {"leaf": (logarithm, sine, absolute), "leaf-annealed": (absolute, logarithm, sine)}
    for run in spec.runs(1):
        end = [curve.tolist() for curve in orders[run.method]]
        shots = {
            epoch: {"x": X.tolist(), "curves": end, "points": [[[0.0, 1.0, 2.0]]]}
            for epoch in ("0", "10", "9")
        }
        finish(tmp_path, run, snapshots=shots)
    assert len(experiment_figures.draw(spec, tmp_path)) == 4
    drawn = {arguments[0].method: arguments[0] for arguments in calls}
    assert {name: list(training.domains) for name, training in drawn.items()} == {
        "LEAF": [2, 1, 0],
        "leaflearn": [0, 2, 1],
    }
    assert [moment.title for moment in drawn["LEAF"].moments] == ["epoch 0", "epoch 9", "epoch 10"]


def test_local_models_are_named_after_the_domain_they_predict_best(tmp_path, calls):
    spec = load_spec("fig-features", "paper").only(["leaf-annealed"], [])
    features = {
        "points": [[[0, 0]]] * 3,
        "labels": {"a": [0], "b": [0], "c": [0]},
        "classes": ["x"],
    }
    # The second model is good in two domains, and needed for the first of them.
    errors = [[0.5, 0.04, 0.9], [0.02, 0.03, 0.8], [0.3, 0.4, 0.5]]
    finish(tmp_path, next(spec.runs(1)), features={**features, "errors": errors})
    experiment_figures.draw(spec, tmp_path)
    ((method, *_, titles),) = calls
    assert method == "leaflearn"
    assert titles == [
        "model for b\n4.0 % wrong",
        "model for a\n2.0 % wrong",
        "model for c\n50.0 % wrong",
    ]


def test_features_recorded_without_errors_can_be_drawn(tmp_path, calls):
    spec = load_spec("fig-features", "paper").only(["leaf-annealed"], [])
    features = {
        "points": [[[0, 0]]] * 2,
        "labels": {"a": [0], "b": [0], "c": [0]},
        "classes": ["x"],
    }
    finish(tmp_path, next(spec.runs(1)), features=features)
    experiment_figures.draw(spec, tmp_path)
    assert calls[0][-1] == ["model 0", "model 1"]


def test_success_shows_the_rules_of_the_experiment_by_the_names_of_the_paper(tmp_path, calls):
    record = {
        "seed": 0,
        "recovered": True,
        "errors": [0.1],
        "seconds": 1.0,
        "converged": True,
        "warnings": 0,
    }
    named = [("functions", rule) for rule in ("default", "hard", "sampled", "soft", "annealed")]
    others = [("functions", "auto"), ("functions", "oracle"), ("no-conflict", "hard")]
    (tmp_path / "recovery").mkdir()
    lines = [
        json.dumps({**record, "task": task, "rule": rule}) + "\n"
        for task, rule in [*others, *named]
    ]
    (tmp_path / "recovery" / "records.jsonl").write_text("".join(lines))
    assert list(experiment_figures.draw(load_spec("fig-success", "laptop"), tmp_path)) == [
        "fig-success-laptop.png"
    ]
    ((rates,),) = calls
    assert [rate.rule for rate in rates] == ["leaflearn", "LEAF", "LEAF-EM", "EM", "annealed"]
    assert {(rate.task, rate.about) for rate in rates} == {
        ("functions", "three functions, 250 pairs")
    }


def test_without_records_there_is_no_figure_of_success(tmp_path):
    assert experiment_figures.draw(load_spec("fig-success", "laptop"), tmp_path) == {}
