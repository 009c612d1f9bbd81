"""Classes with group effects: contexts, probabilities, and what must not change them."""

import numpy as np
import pytest
from scipy.special import expit

from leaflearn import LeafClassifier

M, N = 31, 14  # an odd number, so that one context has more groups


def voters(seed=0, m=M, n=N, slopes=(2.5, -2.5), deviation=0.7):
    """Yes-or-no answers of groups in contexts of different slopes, with an offset of their own."""
    rng = np.random.default_rng(seed)
    group, X = np.repeat(np.arange(m), n), rng.normal(size=(m * n, 1))
    eta = np.asarray(slopes)[group % len(slopes)] * X[:, 0] + rng.normal(0, deviation, m)[group]
    return X, (rng.random(m * n) < expit(eta)).astype(int), group


def parties(seed=0, m=M, n=N):
    """Three classes, whose order depends on the context."""
    rng = np.random.default_rng(seed)
    group, X = np.repeat(np.arange(m), n), rng.normal(size=(m * n, 1))
    score = np.where(group % 2, 3.0, -3.0) * X[:, 0] + rng.normal(0, 0.7, m)[group]
    return X, np.digitize(score + rng.logistic(size=m * n), [-1.0, 1.0]), group


def fit(X, y, group, n_contexts=2, **options):
    options = {"local_model": "linear", "group_effects": "intercept", **options}
    weight = options.pop("sample_weight", None)
    leaf = LeafClassifier(n_contexts, random_state=0, **options)
    return leaf.fit(X, y, groups=group, sample_weight=weight)


@pytest.fixture(scope="module")
def two():
    rows = voters()
    return fit(*rows), *rows


@pytest.fixture(scope="module")
def three():
    rows = parties()
    return fit(*rows), *rows


def test_groups_of_opposite_slopes_are_separated(two):
    leaf = two[0]
    is_odd = leaf.contexts_ == leaf.contexts_[1]
    assert (is_odd == np.arange(M) % 2).mean() > 0.9
    slope = leaf.predict_proba_each([[1.0]])[0, :, 1] - leaf.predict_proba_each([[-1.0]])[0, :, 1]
    assert slope[leaf.contexts_[0]] > 0.4
    assert slope[leaf.contexts_[1]] < -0.4


def test_groups_that_differ_by_degree_are_one_context():
    leaf = fit(*voters(1, slopes=(1.0,), deviation=1.5), n_contexts="auto")
    assert leaf.n_contexts_ == 1
    assert 0.8 < leaf.effect_variances_[0, 0, 0] < 5
    assert leaf.init_ == "groups differ by degree: more contexts do not explain them better"


def test_probabilities_of_three_classes_sum_to_one(three):
    leaf, X, y, group = three
    for values in (leaf.predict_proba(X, groups=group), leaf.predict_proba_each(X)):
        assert values.shape[-1] == 3
        assert (values > 0).all()
        np.testing.assert_allclose(values.sum(-1), 1)
    assert np.mean(leaf.predict(X, groups=group) == y) > 0.6


@pytest.mark.parametrize("name", ["two", "three"])
def test_the_names_of_the_classes_do_not_matter(name, request):
    leaf, X, y, group = request.getfixturevalue(name)
    renamed = np.array([2, 0, 1] if name == "three" else [1, 0])
    other = fit(X, renamed[y], group)
    np.testing.assert_array_equal(other.contexts_, leaf.contexts_)
    expected = leaf.predict_proba(X, groups=group)
    found = other.predict_proba(X, groups=group)[:, renamed]
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_neither_the_order_of_rows_nor_the_unit_of_weights_matters(two):
    leaf, X, y, group = two
    expected = leaf.predict_proba(X, groups=group)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = fit(X[order], y[order], group[order])
    np.testing.assert_allclose(shuffled.predict_proba(X, groups=group), expected, atol=0.01)
    weighted = fit(X, y, group, sample_weight=np.full(len(y), 3.0))
    np.testing.assert_allclose(weighted.predict_proba(X, groups=group), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["two", "three"])
def test_unknown_labels_are_no_evidence(name, request):
    leaf, X, y, group = request.getfixturevalue(name)
    rows = group == 0
    known = leaf.identify(X[rows], y[rows])
    both = leaf.identify(np.r_[X[rows], [[9.0]]], np.r_[y[rows], 77])
    np.testing.assert_allclose(both.probability, known.probability)
    np.testing.assert_allclose(both.effects, known.effects)
    nothing = leaf.identify([[9.0]], [77])
    np.testing.assert_allclose(nothing.probability[0], leaf.priors_)
    assert not nothing.effects.any()
    assert nothing.is_new.all()


def test_a_few_labels_of_a_new_group_help(two):
    leaf = two[0]
    X, y, group = voters(5, m=40)
    few = np.tile(np.arange(N), 40) < 7
    found = leaf.identify(X[few], y[few], group[few])
    with_labels = leaf.predict_proba(X[~few], context=found, groups=group[~few])
    right = np.mean((with_labels[:, 1] > 0.5) == y[~few])
    assert right > np.mean(y[~few] == 1) + 0.1
    assert right > 0.65


def test_answers_that_all_agree_give_finite_models():
    X, y, group = voters(0, m=8, n=4)
    leaf = fit(X, np.where(group == 7, y, 1), group, n_contexts=1)
    probability = leaf.predict_proba(X, groups=group)
    assert np.isfinite(probability).all()
    assert probability[group < 7, 1].min() > 0.5
