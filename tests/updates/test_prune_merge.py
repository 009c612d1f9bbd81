"""Contexts that leave: what prune and merge keep, and what they leave consistent."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeRegressor

from leaflearn import LeafClassifier, LeafRegressor, RecoveryWarning
from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.core.allocation import Given
from leaflearn.engines import settings
from leaflearn.updates import prune_merge
from leaflearn.updates import settings as update_settings

pytestmark = pytest.mark.filterwarnings(
    "ignore::leaflearn.RecoveryWarning"
)  # the starts are bad on purpose

RANDOM = {"allocation": "hard", "init": "random", "n_init": 1, "random_state": 0}


def many_sites(n_contexts, noise=0.1, n_groups=60, size=5, seed=0):
    """Groups of rows on one of several lines through the origin."""
    rng = np.random.default_rng(seed)
    truth, groups = rng.integers(n_contexts, size=n_groups), np.repeat(np.arange(n_groups), size)
    X = rng.uniform(-1, 1, (n_groups * size, 1))
    y = (2.0 * truth[groups] - n_contexts + 1) * X[:, 0] + rng.normal(0, noise, len(X))
    return X, y, groups, truth


def assert_consistent(leaf):
    """Everything that is said of the contexts is said of the same contexts."""
    n, m = leaf.n_contexts_, len(leaf.groups_)
    assert len(leaf.local_models_) == len(leaf.usage_) == len(leaf.context_order_) == n
    assert leaf.probabilities_.shape == (m, n)
    assert leaf.history_["usage"].shape == (len(leaf.history_["epoch"]), n)
    assert np.all(np.diff(leaf.usage_) <= 0)
    assert leaf.usage_.tolist() == (np.bincount(leaf.contexts_, minlength=n) / m).tolist()
    assert leaf.contexts_.tolist() == leaf.probabilities_.argmax(1).tolist()
    assert leaf.probabilities_.sum(1) == pytest.approx(np.ones(m))
    assert len(set(leaf.context_order_.tolist())) == n


def assert_knows_its_error(leaf, X, y, groups):
    predicted = leaf.predict(X, groups=groups)
    by_group = np.bincount(groups, (predicted - y) ** 2) / np.bincount(groups)
    assert leaf.empirical_error_ == pytest.approx(by_group.mean(), rel=1e-3)


@pytest.mark.parametrize(
    ("n_contexts", "noise", "seed"),
    [(1, 0.5, 0), (1, 0.05, 1), (2, 0.5, 2), (2, 0.05, 3), (3, 0.5, 4)],
)
def test_lines_that_are_there_stay_and_others_go(n_contexts, noise, seed):
    X, y, groups, truth = many_sites(n_contexts, noise, seed=seed)
    leaf = LeafRegressor(
        4,
        local_model=LinearRegression(),
        allocation="hard",
        init="random",
        n_init=3,
        random_state=seed,
    )
    leaf.fit(X, y, groups)
    assert leaf.prune() is leaf
    assert leaf.n_contexts_ == n_contexts
    assert allocation_agreement(leaf.contexts_, truth) > 0.8
    assert_consistent(leaf)
    assert_knows_its_error(leaf, X, y, groups)
    assert leaf.n_contexts == 4, "what was asked for stays"


def test_pieces_of_a_function_become_whole():
    rng = np.random.default_rng(0)
    truth, groups = np.arange(60) % 2, np.repeat(np.arange(60), 4)
    side = rng.permutation(np.arange(60) % 4 > 1)  # each group looks at one side only
    X = rng.uniform(0, 1, (240, 1)) * np.where(side[groups], 1.0, -1.0)[:, None]
    y = np.where(truth[groups], np.sin(3 * X[:, 0]), 1 + X[:, 0] ** 2) + rng.normal(0, 0.02, 240)
    pieces = np.where(truth, 0, np.where(side, 1, 2))  # the parabola is cut in two
    leaf = LeafRegressor(
        3, allocation=Given(torch.as_tensor(pieces)), n_init=1, max_epochs=150, random_state=0
    ).fit(X, y, groups)
    grid = np.linspace(-1, 1, 101)[:, None]

    def worst():
        each = leaf.predict_each(grid)
        return max(
            np.sqrt(np.mean((each - f[:, None]) ** 2, 0)).min()
            for f in (np.sin(3 * grid[:, 0]), 1 + grid[:, 0] ** 2)
        )

    assert worst() > 0.15, "no model covers it"
    leaf.prune()
    assert leaf.n_contexts_ == 2
    assert worst() < 0.1
    assert_consistent(leaf)
    assert_knows_its_error(leaf, X, y, groups)


def test_needed_networks_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(settings, "TRAINING", replace(settings.TRAINING, fine_tuning_steps=60))
    X, y, groups, _ = many_sites(2)
    leaf = LeafRegressor(3, max_epochs=30, random_state=0).fit(X, y, groups)
    before = leaf.predict_each(X)[:, :2]
    leaf.prune()
    assert leaf.n_contexts_ == 2
    assert leaf.predict_each(X).tolist() == before.tolist()
    assert [len(losses) > 0 for losses in leaf.fitted_state_.held_out.losses] == [True, True]


def test_doubts_about_superfluous_contexts_go_with_them():
    X, y, groups, _ = many_sites(2)
    leaf = LeafRegressor(5, local_model=LinearRegression(), **RANDOM)
    with pytest.warns(RecoveryWarning):
        leaf.fit(X, y, groups)
    assert not leaf.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leaf.prune()
    assert leaf.converged_
    assert leaf.stability_ > 0.98


def test_contexts_that_are_too_few_after_a_merge_are_doubted():
    X, y, groups, _ = many_sites(3)
    leaf = LeafRegressor(3, local_model=LinearRegression(), random_state=0).fit(X, y, groups)
    assert leaf.converged_
    with pytest.warns(
        RecoveryWarning,
        match="3 contexts predict held-out rows significantly better than 2; try n_contexts=3",
    ):
        leaf.merge(0, 1)
    assert not leaf.converged_


def test_one_context_that_is_left_of_several_is_doubted_only_where_they_conflict():
    X, y, groups, _ = many_sites(2)
    leaf = LeafRegressor(2, local_model=LinearRegression(), random_state=0).fit(X, y, groups)
    with pytest.warns(
        RecoveryWarning,
        match=r"2 contexts predict held-out rows significantly better than 1; try n_contexts=2\.$",
    ):
        leaf.merge(0, 1)
    assert not leaf.converged_
    X, y, groups, _ = many_sites(1)
    leaf = LeafRegressor(2, local_model=LinearRegression(), **RANDOM)
    with pytest.warns(RecoveryWarning):
        leaf.fit(X, y, groups)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leaf.prune()
    assert leaf.n_contexts_ == 1
    assert leaf.converged_


def test_pruning_twice_is_pruning_once():
    X, y, groups, _ = many_sites(2)
    leaf = LeafRegressor(4, local_model=LinearRegression(), **RANDOM).fit(X, y, groups).prune()
    before = pickle.dumps(leaf.predict_each(X))
    assert pickle.dumps(leaf.prune().predict_each(X)) == before


def test_labels_are_pruned_too():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(400, 2)), np.repeat(np.arange(80), 5)
    y = ((X[:, 0] > 0) == (groups % 2 == 0)).astype(int)
    leaf = LeafClassifier(4, local_model=LogisticRegression(), **RANDOM).fit(X, y, groups).prune()
    assert leaf.n_contexts_ == 2
    assert allocation_agreement(leaf.contexts_, np.arange(80) % 2) > 0.95
    assert_consistent(leaf)


def test_models_that_learn_by_heart_are_judged_on_what_they_have_not_seen():
    X, y, groups, truth = many_sites(2, n_groups=80, size=8)
    leaf = (
        LeafRegressor(3, local_model=DecisionTreeRegressor(min_samples_leaf=2), random_state=0)
        .fit(X, y, groups)
        .prune()
    )
    assert leaf.n_contexts_ == 2
    assert allocation_agreement(leaf.contexts_, truth) > 0.9


def test_a_smallest_share_can_be_asked_for():
    X, y, groups, _ = many_sites(3)
    leaf = LeafRegressor(3, local_model=LinearRegression(), random_state=0).fit(X, y, groups)
    kept = leaf.predict_each(X)
    leaf.prune(min_usage=leaf.usage_[2] + 0.001, redundant=False)
    assert leaf.n_contexts_ == 2
    assert leaf.predict_each(X).tolist() == kept[:, :2].tolist(), "nothing was trained"
    assert_consistent(leaf)
    assert_knows_its_error(leaf, X, y, groups)
    assert leaf.prune(min_usage=1.0).n_contexts_ == 1, "one context always stays"


def test_two_contexts_become_one_where_that_is_asked_for():
    X, y, groups, _ = many_sites(3)
    leaf = LeafRegressor(3, local_model=LinearRegression(), random_state=0).fit(X, y, groups)
    both = np.isin(leaf.contexts_, [0, 2])
    slopes = [model.coef_[0] for model in leaf.local_models_]
    assert leaf.merge(2, 0) is leaf
    assert leaf.n_contexts_ == 2
    assert len(set(leaf.contexts_[both])) == 1
    assert leaf.usage_[0] == np.mean(both)
    merged = leaf.local_models_[0].coef_[0]
    assert min(slopes[0], slopes[2]) < merged < max(slopes[0], slopes[2])
    assert leaf.local_models_[1].coef_[0] == slopes[1], "the third is not touched"
    assert_consistent(leaf)


@pytest.mark.parametrize("seed", range(2))
def test_pairs_without_conflict_are_found(seed):
    X, y, groups, truth = many_sites(2, seed=seed)
    leaf = (
        LeafRegressor(3, local_model=LinearRegression(), **{**RANDOM, "random_state": seed})
        .fit(X, y, groups)
        .merge()
    )
    assert leaf.n_contexts_ == 2
    assert allocation_agreement(leaf.contexts_, truth) > 0.9
    assert_consistent(leaf)


def test_groups_outside_the_memory_follow(monkeypatch):
    small = replace(update_settings.UPDATES, max_rows=150)
    monkeypatch.setattr(update_settings, "UPDATES", small)
    X, y, groups, truth = many_sites(2, n_groups=100)
    leaf = LeafRegressor(4, local_model=LinearRegression(), **RANDOM).fit(X, y, groups)
    assert len(leaf.replay_buffer_.y) == 150
    leaf.prune()
    assert leaf.n_contexts_ == 2
    assert len(leaf.contexts_) == 100
    assert allocation_agreement(leaf.contexts_, truth) > 0.9
    assert_consistent(leaf)


def test_what_fails_changes_nothing(monkeypatch):
    X, y, groups, _ = many_sites(2)
    leaf = LeafRegressor(3, local_model=LinearRegression(), **RANDOM).fit(X, y, groups)
    before = vars(leaf).copy()

    def fail(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(prune_merge, "fine_tune", fail)
    for change in (leaf.prune, leaf.merge):
        with pytest.raises(KeyboardInterrupt):
            change()
    assert all(vars(leaf)[name] is value for name, value in before.items())


@pytest.mark.parametrize("change", ["prune", "merge"])
def test_nothing_is_done_before_a_fit_or_without_rows(change):
    with pytest.raises(NotFittedError):
        getattr(LeafRegressor(), change)()
    X, y, groups, _ = many_sites(2)
    leaf = LeafRegressor(2, local_model=LinearRegression(), random_state=0).fit(X, y, groups)
    leaf.replay_buffer_ = None
    with pytest.raises(
        ValueError,
        match=(
            r"^replay_buffer_ is empty, so there are no rows to update the contexts with; fit"
            r" again\.$"
        ),
    ):
        getattr(leaf, change)()


@pytest.mark.parametrize("local_model", [LinearRegression(), None])
def test_what_trains_nothing_needs_no_rows(local_model):
    X, y, groups, _ = many_sites(2)
    leaf = LeafRegressor(3, local_model=local_model, max_epochs=3, **RANDOM).fit(X, y, groups)
    leaf.replay_buffer_ = None
    leaf.prune(min_usage=1.0, redundant=False)
    assert leaf.n_contexts_ == 1
    assert np.isnan(leaf.empirical_error_), "there are no rows to compute it from"
    assert_consistent(leaf)


@pytest.mark.parametrize("min_usage", [-0.1, 1.5, "some", True, None])
def test_a_share_is_between_nothing_and_all(regressor, min_usage):
    with pytest.raises(
        ValueError,
        match=rf"^min_usage={min_usage!r}, but a share between 0 and 1, or 'auto', was expected\.$",
    ):
        regressor.prune(min_usage)


@pytest.mark.parametrize("pair", [(0, 0), (0, 2), (0, None), (-1, 0), (0.0, 1), (True, 0)])
def test_a_pair_is_two_contexts(regressor, pair):
    text = (
        rf"^merge\({pair[0]!r}, {pair[1]!r}\), but two different contexts of 0 to 1 were expected,"
        r" or none\.$"
    )
    with pytest.raises(ValueError, match=text):
        regressor.merge(*pair)


def test_modules_of_the_users_own_are_pruned():
    X, y, groups, truth = many_sites(2)
    leaf = LeafRegressor(
        3,
        local_model=lambda shape, n: torch.nn.Linear(shape[0], n),
        learning_rate=0.05,
        max_epochs=100,
        random_state=0,
    )
    leaf.fit(X, y, groups).prune()
    assert leaf.n_contexts_ == 2
    assert allocation_agreement(leaf.contexts_, truth) > 0.9
    assert leaf.local_models_[0].weight.dtype == torch.float32
