"""Contexts that share one mean stay apart in kind; degree belongs to the effects within them."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.engines.closed_form import Rows, SharedMean, fit_one_context

M, N = 60, 12


def shifted_groups(seed, distance=3.0, deviation=0.5, m=M, n=N):
    """Two contexts with offsets some distance apart; groups deviate from theirs."""
    rng = np.random.default_rng(seed)
    kind = (np.arange(m) % 5 < 2).astype(int)
    group, X = np.repeat(np.arange(m), n), rng.normal(size=(m * n, 2))
    offset = distance * kind + rng.normal(0, deviation, m)
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + offset[group]
    return X, y + rng.normal(0, 0.5, m * n), group, kind


@pytest.mark.parametrize("local_model", ["linear", "smooth", None])
@pytest.mark.parametrize("seed", range(3))
def test_contexts_do_not_turn_into_narrow_and_wide_ones(local_model, seed):
    X, y, group, kind = shifted_groups(seed)
    leaf = LeafRegressor(2, local_model=local_model, random_state=0).fit(X, y, groups=group)
    assert adjusted_rand_score(kind, leaf.contexts_) > 0.85
    np.testing.assert_allclose(leaf.effect_variances_[:, 0, 0], 0.25, atol=0.15)


def test_contexts_with_a_shared_mean_differ_in_the_columns_with_effects():
    X, y, group, kind = shifted_groups(0)
    rows = Rows(X, (y - y.mean())[:, None], group, None)
    one = fit_one_context(rows, "smooth", "intercept")
    weights = np.eye(2)[kind].T
    first, second = SharedMean.of(one.targets[0], one, weights).fit(None, one.is_full)
    difference = second.coefficients - first.coefficients
    assert 2.6 < difference[0] < 3.4
    np.testing.assert_array_equal(difference[1:], 0.0)
    assert second.root is first.root
    assert first.covariance[0, 0] < one.models[0].covariance[0, 0] / 4


def test_a_shared_mean_of_sure_contexts_equals_least_squares_with_indicators():
    X, y, group, kind = shifted_groups(1, deviation=0.0)
    rows = Rows(X, y[:, None], group, None)
    one = fit_one_context(rows, "linear", "intercept")
    like = one.models[0].__class__(one.columns, np.zeros(3), np.zeros((1, 1)), 1.0)
    models = SharedMean.of(one.targets[0], one, np.eye(2)[kind].T).fit_with_variances(like)
    design = np.column_stack([one.features(X), kind[group]])
    expected = np.linalg.lstsq(design, y)[0]
    np.testing.assert_allclose(models[0].coefficients, expected[:3], rtol=1e-6)
    assert models[1].coefficients[0] == pytest.approx(expected[0] + expected[3], rel=1e-6)


def test_contexts_keep_variances_of_their_own_where_groups_show_them():
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1], 60)
    group, X = np.repeat(np.arange(120), 15), rng.normal(size=(1800, 1))
    offset = np.where(kind == 1, 20.0, 0.0) + np.where(kind == 1, 2.0, 0.3) * rng.normal(size=120)
    y = X[:, 0] + offset[group] + rng.normal(0, 0.3, 1800)
    leaf = LeafRegressor(2, local_model="linear", random_state=0).fit(X, y, groups=group)
    deviations = leaf.effect_variances_[leaf.contexts_[[0, -1]], 0, 0] ** 0.5
    assert 0.2 < deviations[0] < 0.45
    assert 1.5 < deviations[1] < 2.6


def test_contexts_of_labels_without_effects_differ_in_their_whole_mean():
    rng = np.random.default_rng(0)
    kind, group, X = np.arange(40) % 2, np.repeat(np.arange(40), 25), rng.normal(size=(1000, 2))
    slope = np.where(kind == 1, 3.0, -3.0)[group]
    labels = (rng.logistic(size=1000) < slope * X[:, 0]).astype(int)
    leaf = LeafClassifier(2, local_model="linear", group_effects=None, random_state=0)
    leaf.fit(X, labels, groups=group)
    assert adjusted_rand_score(kind, leaf.contexts_) == 1.0
    each = leaf.predict_proba_each(np.array([[1.0, 0.0]]))[0, :, 1]
    assert sorted(each.round()) == [0.0, 1.0]
