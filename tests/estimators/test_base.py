"""What a fitted estimator knows, and how its contexts are asked."""

import io
import pickle
import re
import warnings
from contextlib import redirect_stderr

import numpy as np
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from leaflearn import LeafClassifier, LeafRegressor, RecoveryWarning, WithinGroupKFold
from leaflearn.core.allocation import Given, Hard
from leaflearn.core.grouped_data import GroupedData
from leaflearn.core.training import Callback, NonFiniteLossError
from leaflearn.initialization.start import Start
from leaflearn.messages import LeafWarning

QUICK = {"max_epochs": 3, "n_init": 2, "random_state": 0}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("allocation", ["annealed", "hard", "sampled", "soft"])
def test_linear_conflict_comes_apart_under_every_rule(conflict, allocation, seed):
    leaf = LeafRegressor(
        2, local_model=LinearRegression(), allocation=allocation, random_state=seed
    ).fit(conflict.X, conflict.y, conflict.groups)
    assert leaf.contexts_.tolist() == conflict.truth.tolist()  # the second context is the rarer one
    np.testing.assert_allclose(leaf.predict_each([[1.0, 0.0]]), [[2.0, -2.0]], atol=0.05)


def test_networks_find_the_conflict_too(conflict):
    found = 0
    for seed in range(3):
        leaf = LeafRegressor(max_epochs=150, random_state=seed).fit(
            conflict.X, conflict.y, conflict.groups
        )
        found += leaf.contexts_.tolist() == conflict.truth.tolist()
    assert found >= 2


@pytest.mark.parametrize("local_model", [None, LinearRegression()])
def test_fitted_attributes_fit_together(conflict, local_model):
    leaf = LeafRegressor(3, local_model=local_model, **QUICK).fit(
        conflict.X, conflict.y, conflict.groups
    )
    assert leaf.n_contexts_ == len(leaf.local_models_) == 3
    assert leaf.groups_.tolist() == list(range(12))
    assert leaf.usage_.tolist() == [np.mean(leaf.contexts_ == k) for k in range(3)]
    assert (np.diff(leaf.usage_) <= 0).all()
    np.testing.assert_allclose(leaf.probabilities_.sum(1), 1.0)
    assert leaf.probabilities_.argmax(1).tolist() == leaf.contexts_.tolist()
    assert len({len(column) for column in leaf.history_.values()}) == 1
    assert leaf.history_["usage"].shape[1] == 3
    assert leaf.init_.split(":")[0] in ("conflict", "random")


def test_empirical_error_is_the_mean_over_groups_in_the_units_of_y(conflict):
    leaf = LeafRegressor(**QUICK).fit(conflict.X, conflict.y, conflict.groups)
    rows = np.square(leaf.predict(conflict.X, groups=conflict.groups) - conflict.y)
    assert leaf.empirical_error_ == pytest.approx(rows.reshape(12, 10).mean(1).mean(), rel=1e-4)


@pytest.mark.parametrize("local_model", [None, LinearRegression()])
def test_same_seed_same_fit_and_the_global_generators_stay_untouched(conflict, local_model):
    np.random.seed(7)  # noqa: NPY002
    torch.manual_seed(7)
    expected = np.random.random(), torch.rand(1).item()  # noqa: NPY002
    np.random.seed(7)  # noqa: NPY002
    torch.manual_seed(7)
    one, two = (
        LeafRegressor(local_model=local_model, **QUICK).fit(conflict.X, conflict.y, conflict.groups)
        for _ in range(2)
    )
    assert (np.random.random(), torch.rand(1).item()) == expected  # noqa: NPY002
    np.testing.assert_array_equal(one.predict_each(conflict.X), two.predict_each(conflict.X))
    other = LeafRegressor(local_model=local_model, **QUICK | {"random_state": 1}).fit(
        conflict.X, conflict.y, conflict.groups
    )
    assert local_model is not None or not np.array_equal(
        one.predict_each(conflict.X), other.predict_each(conflict.X)
    )


@pytest.mark.parametrize("local_model", [None, LinearRegression()])
def test_a_pickled_estimator_answers_the_same(conflict, local_model):
    leaf = LeafRegressor(local_model=local_model, **QUICK).fit(
        conflict.X, conflict.y, conflict.groups
    )
    copy = pickle.loads(pickle.dumps(leaf))
    np.testing.assert_array_equal(copy.predict_each(conflict.X), leaf.predict_each(conflict.X))
    assert clone(leaf).get_params()["random_state"] == 0


# ---- predict -------------------------------------------------------------------------------------


CONTEXT_NOT_GIVEN = (
    "Neither context nor groups were given, so all rows are predicted in context 0, the most used "
    "of 2. Pass groups= for training groups, context=identify(...) for new ones, or context=0 if "
    "this is intended. score takes groups= as well; pipelines, searches and cross-validation of "
    "scikit-learn pass groups on with sklearn.set_config(enable_metadata_routing=True)."
)


def test_predictions_in_the_most_used_of_several_contexts_are_announced(recwarn):
    X, groups = np.arange(40.0)[:, None], np.repeat(np.arange(10), 4)
    y = np.where(groups % 2 == 0, 1.0, -1.0) * X[:, 0]
    two = LeafRegressor(2, local_model=LinearRegression(), random_state=0).fit(X, y, groups)
    one = LeafRegressor(1, local_model=LinearRegression()).fit(X, y, groups)
    recwarn.clear()
    for call in (lambda: two.predict(X), lambda: two.score(X, y)):
        call()
        assert str(recwarn.pop(LeafWarning).message) == CONTEXT_NOT_GIVEN
    for leaf, arguments in [(two, {"context": 0}), (two, {"groups": groups}), (one, {})]:
        leaf.predict(X, **arguments)
    two.score(X, y, groups=groups)
    assert not [w for w in recwarn if issubclass(w.category, LeafWarning)]


def test_scikit_learn_announces_it_once_a_call():
    X, groups = np.arange(80.0)[:, None] % 7, np.repeat(np.arange(20), 4)
    y = np.where(groups % 2 == 0, 1.0, -1.0) * X[:, 0]
    leaf = LeafRegressor(2, local_model="linear", random_state=0)
    pipeline = make_pipeline(StandardScaler(), leaf)
    folds = {"cv": WithinGroupKFold(2), "params": {"groups": groups}, "groups": groups}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(X, y, leafregressor__groups=groups)
    calls = {
        "predict": (1, lambda: pipeline.predict(X)),
        "score": (1, lambda: pipeline.score(X, y)),
        "cross-validation": (2, lambda: cross_val_score(leaf, X, y, **folds)),
    }
    for name, (n_scores, call) in calls.items():
        assert announced(call) == [CONTEXT_NOT_GIVEN] * n_scores, name


def test_with_metadata_routing_groups_reach_every_score():
    X, groups = np.arange(80.0)[:, None] % 7, np.repeat(np.arange(20), 4)
    y = np.where(groups % 2 == 0, 1.0, -1.0) * X[:, 0]
    leaf = LeafRegressor(2, local_model="linear", random_state=0)
    pipeline, cv = make_pipeline(StandardScaler(), leaf), WithinGroupKFold(2)
    search = GridSearchCV(pipeline, {"leafregressor__n_contexts": [1, 2]}, cv=cv)
    with sklearn.config_context(enable_metadata_routing=True):
        assert announced(lambda: search.fit(X, y, groups=groups)) == []
        assert announced(lambda: search.score(X, y, groups=groups)) == []


def announced(call):
    """Warnings that no context was given."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    texts = [str(warning.message) for warning in caught]
    return [text for text in texts if text.startswith("Neither context nor groups")]


def test_predict_takes_a_context_in_every_form(regressor, conflict):
    each = regressor.predict_each(conflict.X)
    np.testing.assert_array_equal(regressor.predict(conflict.X), each[:, 0])
    np.testing.assert_array_equal(regressor.predict(conflict.X, context=1), each[:, 1])
    row_contexts = np.arange(120) % 2
    np.testing.assert_array_equal(
        regressor.predict(conflict.X, row_contexts), each[np.arange(120), row_contexts]
    )
    by_group = each[np.arange(120), regressor.contexts_[conflict.groups]]
    np.testing.assert_array_equal(regressor.predict(conflict.X, groups=conflict.groups), by_group)
    found = regressor.identify(conflict.X, conflict.y, groups=conflict.groups)
    np.testing.assert_array_equal(
        regressor.predict(conflict.X, found, groups=conflict.groups), by_group
    )
    one = regressor.identify(conflict.X[:3], conflict.y[:3])
    np.testing.assert_array_equal(regressor.predict(conflict.X[:10], one), by_group[:10])


REFUSED = {
    "out of range": (
        {"context": 2},
        "context=2 is out of range; this model has 2 contexts, numbered from 0.",
    ),
    "negative": (
        {"context": -1},
        "context=-1 is out of range; this model has 2 contexts, numbered from 0.",
    ),
    "not a number": (
        {"context": "first"},
        (
            "context has type <U5 and shape (), but an integer, one for each of the 2 rows, or an"
            " Identification was expected."
        ),
    ),
    "wrong length": (
        {"context": [0, 1, 0]},
        (
            "context has type int64 and shape (3,), but an integer, one for each of the 2 rows, or"
            " an Identification was expected."
        ),
    ),
    "context and groups": (
        {"context": 0, "groups": [0, 1]},
        "both context and groups are given, and they may disagree; give one of them.",
    ),
    "unknown group": (
        {"groups": [0, 99]},
        "group 99 is not known; identify it from a few labelled rows first.",
    ),
    "groups too short": (
        {"groups": [0]},
        "groups has 1 entries, but X has 2 rows; give one group label for every row.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_context_that_makes_no_sense_gets_one_sentence(regressor, case):
    arguments, message = REFUSED[case]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        regressor.predict(np.zeros((2, 2)), **arguments)


def test_contexts_left_open_by_identify_cannot_predict(regressor, conflict):
    found = regressor.identify(
        np.zeros((1, 2)), [0.0], abstain=True
    )  # both contexts answer 0 there
    assert found.context.tolist() == [-1]
    with pytest.raises(
        ValueError,
        match=r"^identify abstained from the context of 2 rows; choose one, or do not abstain\.$",
    ):
        regressor.predict(np.zeros((2, 2)), found)


def test_several_identified_groups_need_the_group_of_each_row(regressor, conflict):
    found = regressor.identify(conflict.X[:20], conflict.y[:20], conflict.groups[:20])
    message = (
        "context holds 2 groups, but groups is None; pass groups= to say which row belongs to"
        " which."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        regressor.predict(conflict.X[:20], found)


def test_classifier_answers_fit_together(classifier, conflict):
    proba = classifier.predict_proba_each(conflict.X)
    assert proba.shape == (120, 2, 2)
    np.testing.assert_allclose(proba.sum(-1), 1.0)
    assert (classifier.predict_each(conflict.X) == classifier.classes_[proba.argmax(-1)]).all()
    np.testing.assert_array_equal(
        classifier.predict_proba(conflict.X, groups=conflict.groups),
        proba[np.arange(120), classifier.contexts_[conflict.groups]],
    )
    assert classifier.contexts_.tolist() == conflict.truth.tolist()


def test_classifiers_without_probabilities_count_errors(conflict):
    leaf = LeafClassifier(local_model=LinearSVC(), random_state=0).fit(
        conflict.X, conflict.labels, conflict.groups
    )
    assert leaf.contexts_.tolist() == conflict.truth.tolist()
    assert not hasattr(leaf, "predict_proba")
    assert leaf.score(conflict.X, conflict.labels, conflict.groups) > 0.9


# ---- identify ------------------------------------------------------------------------------------


def test_identify_names_the_context_of_new_sources(regressor):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(8, 2))
    sign = np.repeat([1.0, -1.0], 4)
    found = regressor.identify(
        X, sign * (X @ [2.0, 1.0]), groups=np.repeat(["new plus", "new minus"], 4)
    )
    assert dict(zip(found.groups.tolist(), found.context.tolist(), strict=True)) == {
        "new plus": 0,
        "new minus": 1,
    }
    assert (found.margin > 10).all()
    np.testing.assert_allclose(found.probability.max(1), 1.0)
    assert not found.is_new.any()


def test_a_source_unlike_all_contexts_is_new(regressor):
    X = np.random.default_rng(5).normal(size=(10, 2))
    known, new = regressor.identify(X, X @ [2.0, 1.0]), regressor.identify(X, X @ [-1.0, 9.0])
    assert new.novelty[0] > known.novelty[0]
    assert new.is_new[0]
    assert regressor.identify(X, X @ [-1.0, 9.0], abstain=True).context[0] == -1


def test_one_context_has_an_infinite_margin(conflict):
    leaf = LeafRegressor(1, local_model=LinearRegression()).fit(
        conflict.X, conflict.y, conflict.groups
    )
    assert leaf.identify(conflict.X, conflict.y).margin.tolist() == [np.inf]


def test_posterior_is_the_gaussian_likelihood_of_the_residuals(conflict):
    rng = np.random.default_rng(0)
    y = conflict.y + rng.normal(0, 2.0, 120)
    leaf = LeafRegressor(local_model=LinearRegression(), out_of_fold=False, random_state=0).fit(
        conflict.X, y, conflict.groups
    )
    chosen = leaf.predict(conflict.X, groups=conflict.groups)
    variance = np.square(chosen - y).mean()
    residuals = np.square(leaf.predict_each(conflict.X[:3]) - y[:3, None]).sum(0)
    expected = np.exp(-residuals / (2 * variance))
    np.testing.assert_allclose(
        leaf.identify(conflict.X[:3], y[:3]).probability[0], expected / expected.sum(), rtol=1e-6
    )


# ---- score, searches, routing --------------------------------------------------------------------


def test_score_with_groups_chooses_the_context_on_one_half_and_scores_the_other(
    regressor, conflict
):
    assert regressor.score(conflict.X, conflict.y, conflict.groups) > 0.999
    assert regressor.score(conflict.X, conflict.y) < 0.5  # one context cannot explain both signs
    broken = conflict.y.copy()
    broken[1::2] *= -1.0  # only the scored half
    assert regressor.score(conflict.X, broken, conflict.groups) < 0.0
    lonely = np.arange(120)  # groups of one row have nothing to choose by: the most used context
    assert regressor.score(conflict.X, conflict.y, lonely) == pytest.approx(
        regressor.score(conflict.X, conflict.y)
    )


class RecordGroups(LeafRegressor):
    seen: list = []

    def fit(self, X, y, groups=None, sample_weight=None):
        RecordGroups.seen.append(set(groups))
        return super().fit(X, y, groups, sample_weight)


def test_groups_travel_through_a_search_over_a_pipeline_and_stay_whole(conflict):
    RecordGroups.seen.clear()
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            StandardScaler(), RecordGroups(max_epochs=2, n_init=1, random_state=0)
        )
        search = GridSearchCV(
            pipeline, {"recordgroups__learning_rate": [0.001, 0.01]}, cv=GroupKFold(2)
        )
        search.fit(conflict.X, conflict.y, groups=conflict.groups)
    *folds, refitted = RecordGroups.seen
    assert [len(groups) for groups in folds] == [6] * 4  # 12 groups, half of them held out whole
    assert refitted == set(range(12))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_weights_travel_when_they_are_asked_for(conflict):
    with sklearn.config_context(enable_metadata_routing=True):
        leaf = LeafRegressor(local_model=LinearRegression(), random_state=0).set_fit_request(
            sample_weight=True
        )
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), leaf)
        pipeline.fit(conflict.X, conflict.y, groups=conflict.groups, sample_weight=np.ones(120))
    assert pipeline[-1].contexts_.tolist() == conflict.truth.tolist()


def test_rows_held_out_within_groups_can_be_scored(conflict):
    with sklearn.config_context(enable_metadata_routing=True):
        leaf = LeafRegressor(local_model=LinearRegression(), random_state=0)
        scores = cross_validate(
            leaf, conflict.X, conflict.y, params={"groups": conflict.groups}, cv=WithinGroupKFold(2)
        )
    assert scores["test_score"].min() > 0.99


# ---- warnings, progress, callbacks ---------------------------------------------------------------


def test_single_rows_are_warned_about(conflict):
    with pytest.warns(
        RecoveryWarning,
        match=r"^Every group has a single row, and contexts cannot be identified from single rows; "
        r"pass groups= ",
    ):
        LeafRegressor(**QUICK).fit(conflict.X, conflict.y)
    with pytest.warns(
        RecoveryWarning, match="rows, unless every context has labels of its own; pass groups= "
    ):
        LeafClassifier(**QUICK).fit(conflict.X, conflict.labels)


@pytest.mark.filterwarnings("error")
def test_nothing_is_warned_about_in_an_ordinary_fit(conflict):
    LeafRegressor(1, **QUICK).fit(conflict.X, conflict.y)  # one context has no conflict
    LeafRegressor(max_epochs=50, random_state=0).fit(conflict.X, conflict.y, conflict.groups)


def test_networks_that_have_learnt_too_little_are_told_of(conflict):
    with pytest.warns(
        RecoveryWarning,
        match=r"^The fit may not be right\. The local models of contexts 0, 1 are up to .* raise "
        r"max_epochs",
    ):
        leaf = LeafRegressor(**QUICK).fit(conflict.X, conflict.y, conflict.groups)
    assert not leaf.converged_


@pytest.mark.parametrize(
    ("local_model", "stages"),
    [(None, ["search", "refresh"]), (LinearRegression(), ["start 1", "start 2"])],
)
def test_verbose_shows_progress_with_loss_and_usage(conflict, local_model, stages):
    with redirect_stderr(io.StringIO()) as screen:
        LeafRegressor(local_model=local_model, init="random", verbose=1, **QUICK).fit(
            conflict.X, conflict.y, conflict.groups
        )
    lines = screen.getvalue().splitlines()
    for stage in stages:
        (line,) = [line for line in lines if f"LeafRegressor {stage}" in line]
        assert re.search(r"100 % .* loss [\d.e+-]+ +usage \d+/\d+ %", line)
    with redirect_stderr(io.StringIO()) as screen:
        LeafRegressor(local_model=local_model, **QUICK).fit(conflict.X, conflict.y, conflict.groups)
    assert screen.getvalue() == ""


def test_callbacks_hear_of_the_training(conflict):
    class Listen(Callback):
        def __init__(self):
            self.stages = []

        def on_epoch(self, training):
            self.stages.append(training.stage)

    for rule, expected in (
        ("annealed", ["search"] * 3 + ["refresh"] * 3),
        (Hard(), ["training"] * 3),
    ):
        listener = Listen()
        LeafRegressor(2, allocation=rule, init="random", callbacks=[listener], **QUICK).fit(
            conflict.X, conflict.y, conflict.groups
        )
        assert listener.stages == expected


def test_a_given_allocation_makes_the_oracle(conflict):
    oracle = Given(torch.as_tensor(conflict.truth))
    leaf = LeafRegressor(allocation=oracle, max_epochs=60, n_init=1, random_state=0).fit(
        conflict.X, conflict.y, conflict.groups
    )
    assert leaf.contexts_.tolist() == conflict.truth.tolist()


def test_a_fit_that_explodes_says_why(conflict):
    with pytest.raises(
        NonFiniteLossError,
        match=(
            r"^The loss became non-finite at step \d+ .* learning rate that is too large \(it is"
            r" 1e\+30\)"
        ),
    ):
        LeafRegressor(optimizer="sgd", learning_rate=1e30, max_epochs=20, random_state=0).fit(
            conflict.X, conflict.y, conflict.groups
        )


@pytest.mark.parametrize(
    "optimizer",
    [
        "sgd",
        "adam",
        torch.optim.RMSprop,
        lambda parameters, lr: torch.optim.NAdam(parameters, lr=lr),
    ],
)
def test_any_torch_optimizer_will_do(conflict, optimizer):
    leaf = LeafRegressor(optimizer=optimizer, **QUICK).fit(conflict.X, conflict.y, conflict.groups)
    assert np.isfinite(leaf.empirical_error_)


# ---- faults --------------------------------------------------------------------------------------


def test_a_fit_that_fails_leaves_the_estimator_as_it_was(regressor, conflict):
    before = regressor.predict(conflict.X, groups=conflict.groups)
    with pytest.raises(ValueError, match="fewer groups"):
        regressor.set_params(n_contexts=2).fit(conflict.X[:, :1], conflict.y, np.zeros(120))
    np.testing.assert_array_equal(regressor.predict(conflict.X, groups=conflict.groups), before)


def test_a_first_fit_that_fails_leaves_it_unfitted(conflict):
    leaf = LeafRegressor(2)
    with pytest.raises(ValueError, match="fewer groups"):
        leaf.fit(conflict.X, conflict.y, np.zeros(120))
    with pytest.raises(NotFittedError):
        leaf.predict(conflict.X)


def test_a_fit_that_explodes_in_its_last_step_is_noticed(conflict):
    leaf = LeafRegressor(
        optimizer="sgd", learning_rate=1e30, max_epochs=1, n_init=1, refresh=False, random_state=0
    )
    with pytest.raises(
        NonFiniteLossError,
        match=r"^The loss became non-finite in the last step; the likely cause is a learning rate",
    ):
        leaf.fit(conflict.X, conflict.y, conflict.groups)


def test_weights_reach_networks():
    X, y, groups = np.zeros((40, 1)), np.tile([0.0, 1.0], 20), np.repeat(np.arange(20), 2)
    leaf = LeafRegressor(1, random_state=0, max_epochs=300, learning_rate=0.01).fit(
        X, y, groups, sample_weight=np.tile([1.0, 9.0], 20)
    )
    assert leaf.predict([[0.0]])[0] == pytest.approx(0.9, abs=0.02)
    tiny = LeafRegressor(1, random_state=0, max_epochs=300, learning_rate=0.01).fit(
        X, y, groups, sample_weight=np.tile([1e-46, 9e-46], 20)
    )
    assert tiny.predict([[0.0]])[0] == pytest.approx(leaf.predict([[0.0]])[0])


def test_one_context_of_a_scikit_learn_model_is_that_model(conflict):
    made = []

    class Count(LinearRegression):
        def fit(self, X, y, sample_weight=None):
            made.append(len(X))
            return super().fit(X, y, sample_weight)

    leaf = LeafRegressor(1, local_model=Count()).fit(conflict.X, conflict.y, conflict.groups)
    np.testing.assert_allclose(
        leaf.predict(conflict.X), LinearRegression().fit(conflict.X, conflict.y).predict(conflict.X)
    )
    assert [n_rows for n_rows in made if n_rows == 120] == [
        120,
        120,
    ]  # the others learn without the rows that calibrate novelty
    assert leaf.converged_


def test_empirical_error_is_that_of_the_fitted_models(conflict):
    """Nearest neighbours memorize their rows, though out of fold they do not."""
    for y in (conflict.y, np.c_[conflict.y, conflict.y]):
        leaf = LeafRegressor(
            local_model=KNeighborsRegressor(1), out_of_fold=True, random_state=0
        ).fit(conflict.X, y, conflict.groups)
        assert leaf.empirical_error_ == pytest.approx(0.0)


def test_a_loss_of_the_users_own_is_reported_in_its_own_units(conflict):
    class AbsoluteError:
        def __call__(self, prediction, y):
            return (prediction - y).abs().mean(-1)

        def of_best_constant(self, y):
            return float((y - y.median()).abs().mean())

    leaf = LeafRegressor(loss=AbsoluteError(), max_epochs=30, n_init=1, random_state=0).fit(
        conflict.X, 100 * conflict.y, conflict.groups
    )
    rows = (
        np.abs(leaf.predict(conflict.X, groups=conflict.groups) - 100 * conflict.y)
        / (100 * conflict.y).std()
    )
    assert leaf.empirical_error_ == pytest.approx(rows.mean(), rel=1e-3)


def test_scoring_survives_a_label_that_was_not_there_in_training(classifier, conflict):
    labels = conflict.labels.astype(object)
    labels[[0, 1]] = "ugly"
    right = classifier.score(conflict.X, labels, conflict.groups)
    assert classifier.score(conflict.X, conflict.labels, conflict.groups) - 3 / 60 < right < 1.0


def test_a_constant_context_is_measured_like_the_others():
    """One context always says 0, the other the sign of x.

    Models without probabilities count errors in both.
    """
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 10)
    X = rng.normal(size=(200, 1))
    y = np.where(groups % 2 == 0, 0, (X[:, 0] > 0).astype(int))
    leaf = LeafClassifier(
        local_model=LinearSVC(), allocation=Given(torch.arange(20) % 2), random_state=0
    ).fit(X, y, groups)
    constant = leaf.contexts_[0]
    mostly_zero = (np.arange(10) == 0).astype(
        int
    )  # wrong once for the constant, four times for the sign
    found = leaf.identify(np.array([-1.0] * 7 + [1.0] * 3)[:, None], mostly_zero)
    assert found.context[0] == constant


def test_predicting_many_rows_gives_the_same_as_predicting_few(regressor, conflict, monkeypatch):
    whole = regressor.predict(conflict.X, groups=conflict.groups)
    monkeypatch.setattr("leaflearn.engines.local_models.ROWS_AT_ONCE", 7)
    np.testing.assert_array_equal(regressor.predict(conflict.X, groups=conflict.groups), whole)


def test_a_group_that_keeps_its_rows_has_no_outliers():
    """A group that would lose all its rows keeps them, so none of them is an outlier."""
    leaf = LeafRegressor()
    leaf.outliers_ = np.zeros(5, dtype=bool)
    examples = GroupedData(
        np.zeros((4, 1)),
        np.zeros((4, 1)),
        np.array([0, 0, 1, 1]),
        np.array([0, 2, 3, 4]),
        None,
        1,
        False,
    )
    start = Start(
        "conflict",
        np.zeros(2, dtype=int),
        0.1,
        True,
        "",
        is_outlier=np.array([True, True, False, True]),
    )
    assert leaf._exclude_outliers(examples, start).row.tolist() == [0, 2, 3]
    assert np.flatnonzero(leaf.outliers_).tolist() == [4]
