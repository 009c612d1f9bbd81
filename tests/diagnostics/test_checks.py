"""A fit that looks wrong says so, and one that looks right keeps quiet."""

import re
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
from leaflearn.diagnostics.checks import diagnose
from leaflearn.diagnostics.surrogate_gap import find_surrogate_gaps
from leaflearn.initialization.surrogate import SmoothSurrogate


def losses_of(contexts, n_contexts):
    """Scores that speak clearly for these contexts, (m, K)."""
    return 1.0 - np.eye(n_contexts)[contexts]


@pytest.fixture(scope="module")
def three():
    sample, truth = sample_groups(functions(), random_state=0)
    return SmoothSurrogate.of(sample.x, sample.y[:, None], sample.groups, 0, seed=0), truth.domain


def problems(reading, contexts, n_contexts, has_converged=True):
    restarts = [{"error": 0.1, "contexts": contexts}]
    return diagnose(reading, losses_of(contexts, n_contexts), restarts, 1.0, has_converged)


def test_the_truth_raises_no_doubt(three):
    reading, truth = three
    found = problems(reading, truth, 3)
    assert found.problems == []
    assert found.stability == 1.0


def test_contexts_without_groups_raise_no_doubt(three):
    reading, truth = three
    assert problems(reading, truth, 6).problems == []


def test_a_dead_end_is_seen(three):
    reading, truth = three
    dead_end = np.where(
        truth == 2, 1 + np.arange(len(truth)) % 2, 0
    )  # two functions in one context, the third cut in two
    (doubt, *_) = problems(reading, dead_end, 3).problems
    assert doubt.startswith("Another allocation explains unseen groups ")
    assert doubt.endswith(" times better; set init='conflict', or raise n_init.")


def test_too_few_contexts_are_seen(three):
    reading, truth = three
    (doubt, *_) = problems(reading, np.minimum(truth, 1), 2).problems
    assert doubt == "3 contexts explain unseen rows clearly better than 2; try n_contexts=3."


@pytest.mark.parametrize("n_asked", [2, 3])
def test_groups_that_are_all_in_one_of_several_contexts_are_seen(three, n_asked):
    reading, truth = three
    (doubt,) = problems(reading, np.zeros_like(truth), n_asked).problems
    assert re.fullmatch(
        r"All groups are in one context, but [23] contexts explain unseen rows clearly better than 1; "
        r"set init='conflict', or raise n_init\.",
        doubt,
    )


def test_one_context_raises_no_doubt_where_nothing_conflicts_or_it_was_asked_for(three):
    rng = np.random.default_rng(0)
    x, group, everybody = (
        rng.uniform(-2, 2, (400, 1)),
        np.arange(400) // 4,
        np.zeros(100, dtype=int),
    )
    alike = SmoothSurrogate.of(x, np.sin(x) + 0.1 * rng.normal(size=(400, 1)), group, 0, seed=0)
    assert problems(alike, everybody, 2).problems == []
    reading, truth = three
    assert problems(reading, np.zeros_like(truth), 1).problems == []


def test_models_that_explain_less_than_a_constant_are_seen(three):
    reading, truth = three
    restarts, scores = [{"error": 2.0, "contexts": truth}], 2.0 + losses_of(truth, 3)
    (doubt,) = diagnose(reading, scores, restarts, 1.0, True).problems
    assert doubt.startswith(
        "The local models explain the groups no better than a constant does, and smooth models leave "
    )
    assert doubt.endswith(
        " % of that; give more rows, raise max_epochs, or try another local_model."
    )
    assert diagnose(reading, scores, restarts, 4.0, True).problems == []


def test_models_that_are_sure_and_wrong_in_a_few_groups_are_no_failure(three):
    reading, truth = three
    scores = losses_of(truth, 3)
    scores[:20] += 100.0
    assert scores.min(1).mean() > 1.0
    assert diagnose(reading, scores, [{"error": 8.0, "contexts": truth}], 1.0, True).problems == []


def test_noise_that_nothing_explains_is_no_failure_of_the_models():
    rng = np.random.default_rng(0)
    x, group = rng.uniform(-2, 2, (400, 1)), np.arange(400) // 4
    reading = SmoothSurrogate.of(x, rng.normal(size=(400, 1)), group, 0, seed=0)
    assert (
        problems(reading, np.zeros(100, dtype=int), 1).problems
        == diagnose(reading, np.full((100, 1), 1.1), [], 1.0, True).problems
        == []
    )


def line(input_shape, n_outputs):
    return torch.nn.Linear(input_shape[0], n_outputs)


def test_a_fit_that_collapsed_far_from_its_data_warns():
    rng = np.random.default_rng(0)
    X, site = rng.uniform(-1, 1, (600, 1)), np.repeat(np.arange(30), 20)
    y = np.where(site % 3 == 0, -2.0, 1.0) * X[:, 0] + 10
    settings = {"allocation": "hard", "n_init": 1, "max_epochs": 60, "learning_rate": 0.03}
    with pytest.warns(
        RecoveryWarning, match="All groups are in one context.*no better than a constant"
    ):
        leaf = LeafRegressor(2, local_model=line, random_state=0, **settings).fit(X, y, groups=site)
    assert leaf.usage_.tolist() == [1.0, 0.0]
    assert not leaf.converged_


def test_contexts_that_foretell_nothing_are_seen():
    rng = np.random.default_rng(0)
    x, group = rng.uniform(-2, 2, (400, 1)), np.arange(400) // 4
    y = np.sin(x) + 0.1 * rng.normal(size=(400, 1))
    reading = SmoothSurrogate.of(x, y, group, 0, seed=0)
    found = problems(reading, reading.find(2).contexts, 2)
    assert (
        "2 contexts foretell unseen rows no better than one does; there may be no conflict: try n_contexts=1."
        in found.problems
    )


def test_rows_that_drew_their_groups_into_wrong_contexts_are_seen():
    task = TASKS["functions-mixed"]
    sample, truth = task.sample(0)
    reading = SmoothSurrogate.of(sample.x, sample.y[:, None], sample.groups, 0, seed=0)
    assert problems(reading, truth.domain, 3).problems == []
    misled = reading.find(3).contexts  # squared losses: one row of another context outvotes three
    assert allocation_agreement(misled, truth.domain) < 0.95
    (doubt,) = problems(reading, misled, 3).problems
    assert re.fullmatch(
        r"\d+ % of the rows seem to belong to another context than their group's, and without them \d+ % of the groups would change "
        r"theirs; set init='conflict', which sets such rows aside, or raise trim\.",
        doubt,
    )


def test_an_allocation_that_still_moves_is_told(three):
    reading, truth = three
    assert problems(reading, truth, 3, has_converged=False).problems == [
        "Groups were still moving between contexts when the fit ended; raise max_epochs."
    ]


def test_groups_that_cannot_tell_do_not_count_as_disagreement():
    contexts = np.array([0, 1, 0, 1])
    scores = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [0.5, 0.5 - 1e-9]])
    restarts = [
        {"error": 0.1, "contexts": contexts},
        {"error": 0.1, "contexts": np.array([0, 1, 1, 0])},
    ]
    assert diagnose(None, scores, restarts, 1.0, True).stability == pytest.approx(1.0)


def test_starts_that_explain_less_have_no_say():
    restarts = [
        {"error": 0.1, "contexts": np.array([0, 1, 0, 1])},
        {"error": 0.2, "contexts": np.array([0, 0, 1, 1])},
    ]
    assert diagnose(None, losses_of(restarts[0]["contexts"], 2), restarts, 1.0, True).problems == []


def test_a_doubtful_fit_warns_once_with_advice_and_a_good_one_does_not(conflict):
    with pytest.warns(
        RecoveryWarning,
        match=r"^The fit may not be right\. Groups were still moving .*; raise max_epochs\.",
    ):
        doubtful = LeafRegressor(2, allocation="hard", max_epochs=1, n_init=1, random_state=0).fit(
            conflict.X, conflict.y, conflict.groups
        )
    assert not doubtful.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        good = LeafRegressor(local_model=LinearRegression(), random_state=0).fit(
            conflict.X, conflict.y, conflict.groups
        )
    assert good.converged_
    assert good.stability_ == 1.0


@pytest.mark.parametrize("local_model", [None, LinearRegression()])
def test_draws_that_go_on_are_no_groups_that_move(conflict, local_model):
    settings = {"local_model": local_model, "max_epochs": 60, "n_init": 1, "random_state": 0}
    with warnings.catch_warnings(record=True) as warned:
        leaf = LeafRegressor(2, allocation=Sampled(temperature=5.0), **settings).fit(
            conflict.X, conflict.y, conflict.groups
        )
    assert leaf.history_["changed"][-1] == 0
    assert not any("still moving" in str(warning.message) for warning in warned)


@pytest.fixture(scope="module")
def sides():
    """Single rows that are called left or right, or up or down."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 2))
    names = np.stack(
        [np.where(x[:, 0] > 0, "left", "right"), np.where(x[:, 1] > 0, "up", "down")], 1
    )
    return x, names[np.arange(3000), rng.integers(2, size=3000)]


def test_single_rows_are_not_warned_about_where_labels_told(sides):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leaf = LeafClassifier(max_epochs=5, n_init=1, random_state=0).fit(*sides)
    assert leaf.n_contexts_ == 2
    assert leaf.init_.startswith("labels: ")
    told = dict(
        zip(
            leaf.selection_["n_blocks"].tolist(),
            leaf.selection_["mass_variance"].tolist(),
            strict=True,
        )
    )
    assert list(told) == [1, 2, 3, 4]  # of four labels
    assert told[1] == 0.0
    assert told[2] < 0.25 < min(told[3], told[4])  # two are the most that sum to a constant
    assert leaf.selection_["held_out"].size == 0


def test_contexts_of_single_rows_are_held_against_what_labels_tell(sides):
    random = {"allocation": "hard", "init": "random", "n_init": 1, "refresh": False}
    with pytest.warns(RecoveryWarning) as warned:
        leaf = LeafClassifier(2, max_epochs=3, random_state=0, **random).fit(*sides)
    assert not leaf.converged_
    (message,) = [str(warning.message) for warning in warned]
    assert re.search(
        r"Labels alone tell another context for \d+ % of the rows; set init='conflict', which begins with these\.",
        message,
    )


def test_every_start_has_a_curve_and_contexts(conflict):
    leaf = LeafRegressor(
        2, init="random", max_epochs=6, n_init=3, refresh=False, random_state=0
    ).fit(conflict.X, conflict.y, conflict.groups)
    assert len(leaf.restarts_) == 3
    for start in leaf.restarts_:
        assert len(start["curve"]) == start["n_iter"]
        assert len(start["contexts"]) == len(leaf.groups_)
    assert leaf.restarts_[leaf.best_restart_]["kept"]


def test_starts_that_learnt_what_others_had_found_are_not_asked_whether_they_agree(
    conflict, monkeypatch
):
    asked = []

    def spy(reading, scores, restarts, *others):
        asked.extend(start["stage"] for start in restarts)
        return diagnose(reading, scores, restarts, *others)

    monkeypatch.setattr("leaflearn.estimators.base.diagnose", spy)
    leaf = LeafRegressor(2, init="random", max_epochs=6, n_init=3, random_state=0).fit(
        conflict.X, conflict.y, conflict.groups
    )
    assert asked == ["search"] * 3
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
    """A local model that can do with inputs of any size."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(np.clip(X, -9, 9), y, sample_weight)

    def predict(self, X):
        return super().predict(np.clip(X, -9, 9))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_inputs_that_smooth_models_cannot_read_can_still_be_fitted():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(200, 1)), np.repeat(np.arange(20), 10)
    y = np.where(groups % 2, 2.0, -2.0) * X[:, 0]
    X[:2] = 1.7e308  # their mean is beyond all numbers
    leaf = LeafRegressor(2, local_model=Clipped(), random_state=0).fit(X, y, groups=groups)
    assert leaf.init_ == "random"
    assert 0 <= leaf.stability_ <= 1


def answers_of(reading, contexts):
    """What smooth models of these contexts answer to the rows of the reading, in the units of the targets, (N', K, D)."""
    n_contexts = int(contexts.max()) + 1
    smooth = reading.answer(reading.judge(contexts, n_contexts, reading.find(n_contexts).scale))
    return (smooth * reading.y.scale + reading.y.mean).transpose(0, 1).numpy()


def test_a_function_that_is_badly_drawn_is_seen(three):
    reading, truth = three
    outputs, restarts = answers_of(reading, truth), [{"error": 0.1, "contexts": truth}]
    assert diagnose(reading, losses_of(truth, 3), restarts, 1.0, True, outputs).problems == []
    astray = np.sin(9 * reading.x[reading.rows])[:, None]
    outputs[:, 2:] += np.where(
        (truth[reading.group[reading.rows]] == 2)[:, None, None], 0.0, astray
    )  # its own rows it knows by heart
    (doubt,) = diagnose(reading, losses_of(truth, 3), restarts, 1.0, True, outputs).problems
    assert doubt.startswith("What was learnt in context 2 is up to ")
    assert doubt.endswith(
        "badly drawn between the rows; give more rows, raise max_epochs, or try another local_model."
    )


def test_answers_to_inputs_that_a_context_never_saw_are_not_held_against_it():
    rng = np.random.default_rng(0)
    contexts = np.arange(100) % 2
    group = np.repeat(np.arange(100), 4)
    x = (
        rng.uniform(0, 1, (400, 1)) + 3 * contexts[group][:, None]
    )  # two sites that measure in different ranges
    y = np.where(contexts[group] == 0, 1.0, -1.0)[:, None] * x
    reading = SmoothSurrogate.of(x, y, group, 0, seed=0)
    fitted = reading.judge(contexts, 2, scale=2)
    outputs = (reading.answer(fitted) * reading.y.scale + reading.y.mean).transpose(0, 1).numpy()
    outputs[:, 0] += np.where(x[reading.rows] > 2, 50.0, 0.0)
    assert find_surrogate_gaps(reading, fitted, outputs) == {}
