"""A fit that looks wrong gives a warning, and one that looks right gives none."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

from leaflearn import LeafClassifier, LeafRegressor, RecoveryWarning
from leaflearn.benchmark.datasets import functions
from leaflearn.benchmark.datasets.sampling import sample_groups
from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.benchmark.recovery.tasks import TASKS
from leaflearn.core.allocation import Sampled
from leaflearn.diagnostics import settings
from leaflearn.diagnostics.checks import diagnose, find_surrogate_gaps
from leaflearn.initialization.surrogate import SmoothSurrogate
from leaflearn.messages import (
    Collapsed,
    FitMayBeWrong,
    LabelsDisagree,
    NoBetterThanConstant,
    NoBetterThanPooled,
    OtherAllocationBetter,
    OutlierRowsDecide,
    StillMoving,
    SurrogateGap,
    TryMoreContexts,
)


def losses_of(contexts, n_contexts):
    """Scores that clearly support these contexts, (m, K)."""
    return 1.0 - np.eye(n_contexts)[contexts]


@pytest.fixture(scope="module")
def three():
    sample, truth = sample_groups(functions(), random_state=0)
    return SmoothSurrogate.of(sample.x, sample.y[:, None], sample.groups, 0, seed=0), truth.domain


def check(surrogate, contexts, n_contexts, has_converged=True):
    restarts = [{"error": 0.1, "contexts": contexts}]
    return diagnose(surrogate, losses_of(contexts, n_contexts), restarts, 1.0, has_converged)


def test_the_true_contexts_have_no_problems(three):
    surrogate, truth = three
    found = check(surrogate, truth, 3)
    assert found.problems == ()
    assert found.stability == 1.0


def test_contexts_without_groups_are_no_problem(three):
    surrogate, truth = three
    assert check(surrogate, truth, 6).problems == ()


def test_a_local_optimum_is_found(three):
    surrogate, truth = three
    # two functions in one context, the third split in two
    optimum = np.where(truth == 2, 1 + np.arange(len(truth)) % 2, 0)
    (problem, *_) = check(surrogate, optimum, 3).problems
    assert isinstance(problem, OtherAllocationBetter)
    assert problem.times >= settings.DIAGNOSTICS.min_error_ratio


def test_too_few_contexts_are_found(three):
    surrogate, truth = three
    (problem, *_) = check(surrogate, np.minimum(truth, 1), 2).problems
    assert problem == TryMoreContexts(3, 2)


@pytest.mark.parametrize("n_requested", [2, 3])
def test_a_collapse_into_one_context_is_found(three, n_requested):
    surrogate, truth = three
    (problem,) = check(surrogate, np.zeros_like(truth), n_requested).problems
    assert problem in (Collapsed(2), Collapsed(3))


def test_a_collapse_after_pruning_advises_more_contexts(three):
    surrogate, truth = three
    scores = losses_of(np.zeros_like(truth), 1)
    (problem,) = diagnose(surrogate, scores, [], 1.0, True, n_before=3).problems
    assert problem in (TryMoreContexts(2, 1), TryMoreContexts(3, 1))


def test_one_context_is_no_problem_without_conflict_or_where_one_was_requested(three):
    rng = np.random.default_rng(0)
    x, group = rng.uniform(-2, 2, (400, 1)), np.arange(400) // 4
    same = SmoothSurrogate.of(x, np.sin(x) + 0.1 * rng.normal(size=(400, 1)), group, 0, seed=0)
    assert check(same, np.zeros(100, dtype=int), 2).problems == ()
    surrogate, truth = three
    assert check(surrogate, np.zeros_like(truth), 1).problems == ()


def test_models_that_explain_less_than_a_constant_are_found(three):
    surrogate, truth = three
    restarts, scores = [{"error": 2.0, "contexts": truth}], 2.0 + losses_of(truth, 3)
    (problem,) = diagnose(surrogate, scores, restarts, 1.0, True).problems
    assert isinstance(problem, NoBetterThanConstant)
    assert problem.surrogate_share < 0.5
    assert diagnose(surrogate, scores, restarts, 4.0, True).problems == ()


def test_models_that_are_overconfident_in_a_few_groups_are_no_problem(three):
    surrogate, truth = three
    scores = losses_of(truth, 3)
    scores[:20] += 100.0
    assert scores.min(1).mean() > 1.0
    assert (
        diagnose(surrogate, scores, [{"error": 8.0, "contexts": truth}], 1.0, True).problems == ()
    )


def test_noise_that_no_model_explains_is_no_problem():
    rng = np.random.default_rng(0)
    x, group = rng.uniform(-2, 2, (400, 1)), np.arange(400) // 4
    surrogate = SmoothSurrogate.of(x, rng.normal(size=(400, 1)), group, 0, seed=0)
    assert check(surrogate, np.zeros(100, dtype=int), 1).problems == ()
    assert diagnose(surrogate, np.full((100, 1), 1.1), [], 1.0, True).problems == ()


def line(input_shape, n_outputs):
    return torch.nn.Linear(input_shape[0], n_outputs)


def test_a_fit_that_collapsed_far_from_its_data_warns():
    rng = np.random.default_rng(0)
    X, site = rng.uniform(-1, 1, (600, 1)), np.repeat(np.arange(30), 20)
    y = np.where(site % 3 == 0, -2.0, 1.0) * X[:, 0] + 10
    options = {"allocation": "hard", "n_init": 1, "max_epochs": 60, "learning_rate": 0.03}
    with pytest.warns(
        RecoveryWarning, match="All groups are in one context.*no better than a constant"
    ):
        leaf = LeafRegressor(2, local_model=line, random_state=0, **options).fit(X, y, groups=site)
    assert leaf.usage_.tolist() == [1.0, 0.0]
    assert not leaf.converged_


def test_contexts_that_predict_no_better_than_one_are_found():
    rng = np.random.default_rng(0)
    x, group = rng.uniform(-2, 2, (400, 1)), np.arange(400) // 4
    y = np.sin(x) + 0.1 * rng.normal(size=(400, 1))
    surrogate = SmoothSurrogate.of(x, y, group, 0, seed=0)
    assert NoBetterThanPooled(2) in check(surrogate, surrogate.find(2).contexts, 2).problems


def test_outlier_rows_that_decide_the_contexts_of_their_groups_are_found():
    task = TASKS["functions-mixed"]
    sample, truth = task.sample(0)
    surrogate = SmoothSurrogate.of(sample.x, sample.y[:, None], sample.groups, 0, seed=0)
    assert check(surrogate, truth.domain, 3).problems == ()
    # with squared losses, one row of another context outweighs three of the own one
    misled = surrogate.find(3).contexts
    assert allocation_agreement(misled, truth.domain) < 0.95
    (problem,) = check(surrogate, misled, 3).problems
    assert isinstance(problem, OutlierRowsDecide)
    assert 0 < problem.share < 1
    assert 0.02 < problem.moved < 1


def test_an_allocation_that_had_not_converged_is_reported(three):
    surrogate, truth = three
    assert check(surrogate, truth, 3, has_converged=False).problems == (StillMoving(),)


def test_uncertain_groups_do_not_count_as_disagreement():
    contexts = np.array([0, 1, 0, 1])
    scores = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [0.5, 0.5 - 1e-9]])
    restarts = [
        {"error": 0.1, "contexts": contexts},
        {"error": 0.1, "contexts": np.array([0, 1, 1, 0])},
    ]
    assert diagnose(None, scores, restarts, 1.0, True).stability == pytest.approx(1.0)


def test_starts_with_a_higher_error_are_not_compared():
    restarts = [
        {"error": 0.1, "contexts": np.array([0, 1, 0, 1])},
        {"error": 0.2, "contexts": np.array([0, 0, 1, 1])},
    ]
    assert diagnose(None, losses_of(restarts[0]["contexts"], 2), restarts, 1.0, True).problems == ()


def test_a_fit_with_problems_warns_once_with_advice_and_a_good_one_does_not(conflict):
    unfinished = LeafRegressor(2, allocation="hard", max_epochs=1, n_init=1, random_state=0)
    sentences = (
        r"^The fit may not be right\. Groups were still changing contexts .*; raise max_epochs\."
    )
    with pytest.warns(RecoveryWarning, match=sentences) as warned:
        unfinished.fit(conflict.X, conflict.y, conflict.groups)
    assert not unfinished.converged_
    (warning,) = warned
    (message,) = warning.message.messages
    assert isinstance(message, FitMayBeWrong)
    assert message.problems[0] == StillMoving()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        good = LeafRegressor(local_model=LinearRegression(), random_state=0).fit(
            conflict.X, conflict.y, conflict.groups
        )
    assert good.converged_
    assert good.stability_ == 1.0


@pytest.mark.parametrize("local_model", [None, LinearRegression()])
def test_sampled_allocations_converge_although_draws_vary(conflict, local_model):
    options = {"local_model": local_model, "max_epochs": 60, "n_init": 1, "random_state": 0}
    with warnings.catch_warnings(record=True) as warned:
        leaf = LeafRegressor(2, allocation=Sampled(temperature=5.0), **options).fit(
            conflict.X, conflict.y, conflict.groups
        )
    assert leaf.history_["changed"][-1] == 0
    assert not any(str(StillMoving()) in str(warning.message) for warning in warned)


@pytest.fixture(scope="module")
def sides():
    """Single rows that are labelled left or right, or up or down."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 2))
    names = np.stack(
        [np.where(x[:, 0] > 0, "left", "right"), np.where(x[:, 1] > 0, "up", "down")], 1
    )
    return x, names[np.arange(3000), rng.integers(2, size=3000)]


def test_single_rows_give_no_warning_where_labels_identify_the_contexts(sides):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leaf = LeafClassifier(max_epochs=5, n_init=1, random_state=0).fit(*sides)
    assert leaf.n_contexts_ == 2
    assert leaf.init_.startswith("labels: ")
    assert leaf.selection_["n_blocks"].tolist() == [1, 2, 3, 4]  # of four labels
    variance = leaf.selection_["mass_variance"]
    assert variance[0] == 0.0
    assert variance[1] < 0.25 < variance[2:].min()  # two is the most that sum to a constant
    assert leaf.selection_["held_out"].size == 0


def test_contexts_of_single_rows_are_compared_with_those_of_the_labels(sides):
    random = {"allocation": "hard", "init": "random", "n_init": 1, "refresh": False}
    with pytest.warns(RecoveryWarning) as warned:
        leaf = LeafClassifier(2, max_epochs=3, random_state=0, **random).fit(*sides)
    assert not leaf.converged_
    (warning,) = warned
    (message,) = warning.message.messages
    assert any(isinstance(problem, LabelsDisagree) for problem in message.problems)


def test_every_start_has_a_curve_and_contexts(conflict):
    leaf = LeafRegressor(
        2, init="random", max_epochs=6, n_init=3, refresh=False, random_state=0
    ).fit(conflict.X, conflict.y, conflict.groups)
    assert len(leaf.restarts_) == 3
    for start in leaf.restarts_:
        assert len(start["curve"]) == start["n_iter"]
        assert len(start["contexts"]) == len(leaf.groups_)
    assert leaf.restarts_[leaf.best_restart_]["kept"]


def test_starts_of_the_refresh_stage_are_not_compared(conflict, monkeypatch):
    compared = []

    def spy(surrogate, scores, restarts, *others):
        compared.extend(start["stage"] for start in restarts)
        return diagnose(surrogate, scores, restarts, *others)

    monkeypatch.setattr("leaflearn.estimators.base.diagnose", spy)
    leaf = LeafRegressor(2, init="random", max_epochs=6, n_init=3, random_state=0).fit(
        conflict.X, conflict.y, conflict.groups
    )
    assert compared == ["search"] * 3
    assert [start["stage"] for start in leaf.restarts_] == ["search"] * 3 + ["refresh"] * 3


def test_seeded_starts_find_the_conflict_too(conflict):
    leaf = LeafRegressor(2, init="seeded", local_model=LinearRegression(), random_state=0).fit(
        conflict.X, conflict.y, conflict.groups
    )
    assert leaf.init_.startswith("seeded: ")
    assert leaf.contexts_.tolist() == conflict.truth.tolist()


def test_selection_has_the_criteria(conflict):
    leaf = LeafRegressor(local_model=LinearRegression(), random_state=0).fit(
        conflict.X, conflict.y, conflict.groups
    )
    assert list(leaf.selection_) == [
        "n_contexts",
        "error",
        "held_out",
        "train_error",
        "aic",
        "bic",
        "icl",
    ]
    assert all(
        len(column) == len(leaf.selection_["n_contexts"]) for column in leaf.selection_.values()
    )
    assert leaf.selection_["bic"][1] < leaf.selection_["bic"][0]


class Clipped(LinearRegression):
    """A local model that accepts inputs of any size."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(np.clip(X, -9, 9), y, sample_weight)

    def predict(self, X):
        return super().predict(np.clip(X, -9, 9))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_inputs_that_surrogate_models_cannot_use_can_still_be_fitted():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(200, 1)), np.repeat(np.arange(20), 10)
    y = np.where(groups % 2, 2.0, -2.0) * X[:, 0]
    X[:2] = 1.7e308  # their sum overflows
    leaf = LeafRegressor(2, local_model=Clipped(), random_state=0).fit(X, y, groups=groups)
    assert leaf.init_ == "random"
    assert 0 <= leaf.stability_ <= 1


def outputs_of(surrogate, contexts):
    """Outputs of surrogate models for the rows of the surrogate, in target units, (N', K, D)."""
    n_contexts = int(contexts.max()) + 1
    smooth = surrogate.answer(
        surrogate.judge(contexts, n_contexts, surrogate.find(n_contexts).scale)
    )
    return (smooth * surrogate.y.scale + surrogate.y.mean).transpose(0, 1).numpy()


def test_a_function_that_fits_poorly_between_its_rows_is_found(three):
    surrogate, truth = three
    outputs, restarts = outputs_of(surrogate, truth), [{"error": 0.1, "contexts": truth}]
    assert diagnose(surrogate, losses_of(truth, 3), restarts, 1.0, True, outputs).problems == ()
    is_own = (truth[surrogate.group[surrogate.rows]] == 2)[:, None, None]
    error = np.sin(9 * surrogate.x[surrogate.rows])[:, None]
    outputs[:, 2:] += np.where(is_own, 0.0, error)  # its own rows are memorized
    (problem,) = diagnose(surrogate, losses_of(truth, 3), restarts, 1.0, True, outputs).problems
    assert isinstance(problem, SurrogateGap)
    assert problem.contexts == (2,)
    assert problem.largest > settings.DIAGNOSTICS.min_surrogate_gap


def test_outputs_far_from_the_inputs_of_a_context_are_not_compared():
    rng = np.random.default_rng(0)
    contexts = np.arange(100) % 2
    group = np.repeat(np.arange(100), 4)
    # two sites that measure in different ranges
    x = rng.uniform(0, 1, (400, 1)) + 3 * contexts[group][:, None]
    y = np.where(contexts[group] == 0, 1.0, -1.0)[:, None] * x
    surrogate = SmoothSurrogate.of(x, y, group, 0, seed=0)
    fitted = surrogate.judge(contexts, 2, scale=2)
    outputs = (
        (surrogate.answer(fitted) * surrogate.y.scale + surrogate.y.mean).transpose(0, 1).numpy()
    )
    outputs[:, 0] += np.where(x[surrogate.rows] > 2, 50.0, 0.0)
    assert find_surrogate_gaps(surrogate, fitted, outputs) == {}
