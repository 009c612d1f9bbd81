"""Wrong labels, values and rows: what the defaults find, and what the robust options change."""

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.initialization import settings
from leaflearn.initialization.outliers import find_wrong_labels

QUICK = {"max_epochs": 100, "n_init": 1, "random_state": 0}


class Disagreement:
    """Two annotators with opposite labels, 100 groups of 6 rows, a curved border, wrong labels."""

    def __init__(self, seed, share_wrong):
        rng = np.random.default_rng(seed)
        self.groups = np.repeat(np.arange(100), 6)
        self.truth = rng.integers(2, size=100)
        self.X = rng.normal(size=(600, 2))
        self.side = (np.sin(1.5 * self.X[:, 0]) > self.X[:, 1]).astype(int)
        right = np.where(self.truth[self.groups] == 0, self.side, 1 - self.side)
        self.wrong = rng.random(600) < share_wrong
        self.y = np.where(self.wrong, 1 - right, right)


@pytest.mark.parametrize("seed", range(2))
def test_wrong_labels_are_excluded_and_reported(seed):
    data = Disagreement(seed, share_wrong=0.06)
    leaf = LeafClassifier(2, local_model=LogisticRegression(), random_state=0).fit(
        data.X, data.y, data.groups
    )
    assert leaf.outliers_[data.wrong].mean() > 0.5
    assert data.wrong[leaf.outliers_].mean() > 0.6


@pytest.mark.parametrize("seed", range(3))
def test_correct_labels_are_all_kept(seed):
    data = Disagreement(seed, share_wrong=0.0)
    assert not find_wrong_labels(data.X, data.y, data.groups, data.truth, seed=0).any()


def test_overlapping_classes_have_no_wrong_labels():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=1000)
    # The best possible classifier is wrong on 16 % of the rows.
    X = rng.normal(size=(1000, 2)) + 2.0 * y[:, None] * [1.0, 0.0]
    assert not find_wrong_labels(X, y, np.arange(1000) // 4, np.zeros(250, dtype=int), seed=0).any()


def test_a_rare_class_that_inputs_hardly_predict_has_no_wrong_labels():
    rng = np.random.default_rng(0)
    y = (rng.random(1000) < 0.04).astype(int)
    X = rng.normal(size=(1000, 2)) + y[:, None] * [1.0, 0.0]
    assert not find_wrong_labels(X, y, np.arange(1000) // 4, np.zeros(250, dtype=int), seed=0).any()


def test_a_group_in_the_wrong_context_keeps_its_rows_so_that_it_can_move():
    data = Disagreement(0, share_wrong=0.0)
    mistaken = data.truth.copy()
    mistaken[:8] = 1 - mistaken[:8]
    found = find_wrong_labels(data.X, data.y, data.groups, mistaken, seed=0)
    assert not found[data.groups < 8].any()


def test_a_copied_wrong_label_does_not_confirm_itself():
    data = Disagreement(0, share_wrong=0.06)
    twice = [np.concatenate([values, values]) for values in (data.X, data.y)]
    groups = np.concatenate([data.groups, 100 + data.groups])
    found = find_wrong_labels(*twice, groups, np.tile(data.truth, 2), seed=0)
    wrong = np.tile(data.wrong, 2)
    assert found[wrong].mean() > 0.5


def test_wrong_labels_are_found_in_all_parts_of_a_large_context(monkeypatch):
    own = replace(settings.SEARCH.wrong_labels, max_rows=200)
    monkeypatch.setattr(settings, "SEARCH", replace(settings.SEARCH, wrong_labels=own))
    X = np.random.default_rng(0).normal(size=(1000, 1))
    wrong = (np.arange(1000) % 15 == 0) & (np.abs(X[:, 0]) > 0.5)
    y = np.where(wrong, X[:, 0] <= 0, X[:, 0] > 0).astype(int)
    found = find_wrong_labels(X, y, np.arange(1000) // 4, np.zeros(250, dtype=int), seed=0)
    assert found[wrong].mean() > 0.8  # each of the five parts has a fifth of them
    assert wrong[found].mean() > 0.8


def test_constant_inputs_and_single_row_groups_have_no_wrong_labels():
    y = np.arange(200) % 20 == 0
    assert not find_wrong_labels(
        np.zeros((200, 1)), y.astype(int), np.arange(200) // 4, np.zeros(50, dtype=int), seed=0
    ).any()
    data = Disagreement(0, share_wrong=0.06)
    assert not find_wrong_labels(
        data.X, data.y, np.arange(600), data.truth[data.groups], seed=0
    ).any()


def test_the_robust_loss_predicts_the_value_of_most_rows():
    y = np.where(np.arange(100) % 10 == 0, 101.0, 1.0)  # the mean is 11
    X, groups = np.zeros((100, 1)), np.arange(100) // 5
    robust, squared = (
        LeafRegressor(1, loss=loss, **QUICK).fit(X, y, groups) for loss in ("robust", "squared")
    )
    assert abs(robust.predict([[0.0]])[0] - 1.0) < 3.0
    assert abs(squared.predict([[0.0]])[0] - 11.0) < 3.0


def test_networks_separate_contexts_by_generalized_cross_entropy(conflict):
    leaf = LeafClassifier(loss="gce", init="random", **QUICK).fit(
        conflict.X, conflict.labels, conflict.groups
    )
    assert leaf.score(conflict.X, conflict.labels, conflict.groups) > 0.9


@pytest.mark.parametrize(
    ("estimator", "loss"), [(LeafClassifier, "robust"), (LeafRegressor, "gce")]
)
def test_a_loss_for_other_targets_is_rejected(conflict, estimator, loss):
    target = conflict.labels if estimator is LeafClassifier else conflict.y
    with pytest.raises(ValueError, match=f"^loss='{loss}' exists, but not for "):
        estimator(loss=loss).fit(conflict.X, target, conflict.groups)


@pytest.mark.parametrize("trim", [-0.1, 0.5, True, "a lot", float("nan")])
def test_an_invalid_share_to_trim_is_rejected(conflict, trim):
    with pytest.raises(
        ValueError,
        match=re.escape(
            f"trim={trim!r}, but a number of at least 0 and less than 0.5 was expected."
        ),
    ):
        LeafRegressor(trim=trim).fit(conflict.X, conflict.y, conflict.groups)


def test_with_trim_one_extreme_row_does_not_determine_the_context_of_a_new_source(conflict):
    plain, trimmed = (
        LeafRegressor(local_model=LinearRegression(), trim=trim, random_state=0).fit(
            conflict.X, conflict.y, conflict.groups
        )
        for trim in (0.0, 0.2)
    )
    X, y = conflict.X[:5], conflict.y[:5].copy()  # a source of the training data
    home = trimmed.identify(X, y).context[0]
    # One of the two extreme values favours the other context.
    extreme = [np.where(np.arange(5) == 2, value, y) for value in (-1e3, 1e3)]
    assert {int(trimmed.identify(X, values).context[0]) for values in extreme} == {home}
    assert len({int(plain.identify(X, values).context[0]) for values in extreme}) == 2
