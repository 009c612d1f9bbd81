"""Boosted columns: jumps are learned, groups are not memorized, weights count."""

import numpy as np
import pytest
from scipy.special import expit

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.engines import settings
from leaflearn.engines.boosting import BoostedColumns

M, N = 30, 20


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    quick = settings.BoostingSettings(max_trees=60, learning_rate=0.2, n_folds=3)
    monkeypatch.setattr(settings, "BOOSTING", quick)


def steps(seed=0):
    """A mean with jumps in two columns, and an offset of each group."""
    rng = np.random.default_rng(seed)
    group, X = np.repeat(np.arange(M), N), rng.uniform(-1, 1, size=(M * N, 2))
    mean = 2.0 * ((X[:, 0] > 0) ^ (X[:, 1] > 0)) - 1
    return X, mean, rng.normal(size=M)[group], group, rng


def test_training_rows_are_predicted_without_their_group():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(M), N)
    number = group[:, None].astype(float)  # a column that names the group
    noise = rng.normal(size=M)[group][:, None]
    columns, training = BoostedColumns.fit(number, noise, group, None, seed=0)
    assert np.corrcoef(training[:, 0], noise[:, 0])[0, 1] < 0.6
    assert columns(number).shape == training.shape == (M * N, 1)


def test_rows_of_weight_zero_do_not_count():
    X, mean, _, group, _ = steps()
    y = np.c_[mean, -mean]
    wrong = np.arange(len(y)) % 4 == 0
    spoiled = np.where(wrong[:, None], 50.0, y)
    columns, _ = BoostedColumns.fit(X, spoiled, group, (~wrong).astype(float), seed=0)
    assert np.abs(columns(X) - y).mean() < 0.5
    by_target = np.stack([(~wrong).astype(float), np.ones(len(y))], 1)
    columns, _ = BoostedColumns.fit(X, spoiled, group, by_target, seed=0)
    assert np.abs(columns(X)[:, 0] - y[:, 0]).mean() < 0.5 < np.abs(columns(X)[:, 1]).mean()


@pytest.mark.parametrize("is_label", [False, True])
def test_jumps_and_effects_are_learned_together(is_label):
    X, mean, offset, group, rng = steps()
    eta = 2 * mean + offset
    train = np.arange(len(eta)) % 4 > 0
    if is_label:
        y = (rng.random(len(eta)) < expit(eta)).astype(int)
        leaf = LeafClassifier(1, local_model="boosting", random_state=0)
        leaf.fit(X[train], y[train], groups=group[train])
        found = leaf.predict_proba(X[~train], groups=group[~train])[:, 1]
        assert np.abs(found - expit(eta[~train])).mean() < 0.18
        assert np.abs(0.5 - expit(eta[~train])).mean() > 0.3
    else:
        y = eta + rng.normal(0, 0.3, len(eta))
        leaf = LeafRegressor(1, local_model="boosting", random_state=0)
        leaf.fit(X[train], y[train], groups=group[train])
        found = leaf.predict(X[~train], groups=group[~train])
        assert np.std(found - eta[~train]) < 1.0
        assert np.std(eta[~train]) > 2.0
    assert leaf.effect_variances_[0, 0].max() > 0.1
