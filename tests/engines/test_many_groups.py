"""Very many groups: decided on some of them, fitted to all, in little memory."""

from dataclasses import replace

import numpy as np
import pytest

from leaflearn import LeafRegressor
from leaflearn.effects.restricted_likelihood import (
    MixedModel,
    fit_mixed_model,
    fit_with_variances,
    log_likelihood,
)
from leaflearn.engines import settings
from leaflearn.engines.many_groups import fit_to_all, iterate_moments, sample_groups
from leaflearn.moments.features import FeatureMap
from leaflearn.moments.group_moments import GroupMoments

M, N = 150, 8


def rows(n_kinds=1, seed=0):
    rng = np.random.default_rng(seed)
    group, X = rng.permutation(np.repeat(np.arange(M), N)), rng.normal(size=(M * N, 2))
    slope = np.where(group % 3 < n_kinds - 1, -2.0, 1.0)
    y = slope * X[:, 0] + 0.5 * rng.normal(size=M)[group] + rng.normal(0, 0.3, M * N)
    return X, y, group


@pytest.fixture
def few_at_once(monkeypatch):
    limits = replace(settings.CLOSED_FORM, max_groups=60, groups_at_once=40)
    monkeypatch.setattr(settings, "CLOSED_FORM", limits)


def test_whole_groups_are_drawn():
    group = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 3))
    drawn = sample_groups(group, 4, seed=1)
    counts = np.bincount(group[drawn], minlength=10)
    assert sorted(counts) == [0] * 6 + [3] * 4
    assert (np.diff(drawn) > 0).all()


def test_moments_in_blocks_are_those_of_all_groups(few_at_once):
    X, y, group = rows()
    weight = np.random.default_rng(1).uniform(size=len(y))
    features = FeatureMap.of(X)
    blocks = list(iterate_moments(features, X, y[:, None], group, weight))
    whole = GroupMoments.of(features(X), y[:, None], group, M, weight)
    assert [len(block.sizes) for block in blocks] == [40, 40, 40, 30]
    np.testing.assert_allclose(np.concatenate([b.products for b in blocks]), whole.products)
    np.testing.assert_allclose(np.concatenate([b.sizes for b in blocks]), whole.sizes)


@pytest.mark.parametrize("n_kinds", [1, 2])
def test_means_are_those_of_all_groups(few_at_once, n_kinds):
    X, y, group = rows(n_kinds)
    leaf = LeafRegressor(local_model="linear", group_effects="intercept", random_state=0)
    leaf.fit(X, y, groups=group)
    assert leaf.n_contexts_ == n_kinds
    assert leaf.contexts_.shape == (M,)
    assert leaf.group_effects_.shape[0] == M
    if n_kinds == 2:
        assert len(set(leaf.contexts_[::3])) == 1
        assert leaf.contexts_[0] != leaf.contexts_[1]
        assert leaf.priors_ == pytest.approx([2 / 3, 1 / 3])
    # The coefficients are what all rows of a context say, given the variances.
    features = FeatureMap.of(X)
    moments = GroupMoments.of(features(X), y[:, None], group, M)
    own = (leaf.contexts_ == 0).astype(float)
    model = leaf.fitted_state_.local_models.models[0]
    effects = leaf.fitted_state_.effects
    like = MixedModel(effects.columns, np.zeros(3), effects.roots[0, 0], 1.0)
    expected = fit_with_variances(moments, like, weight=own)
    np.testing.assert_allclose(model.coefficients[:, 0], expected.coefficients, atol=1e-3)
    assert leaf.noise_[0, 0] == pytest.approx(expected.noise, rel=1e-2)


def test_scores_are_the_densities_of_the_groups(few_at_once):
    X, y, group = rows()
    features = FeatureMap.of(X)
    moments = GroupMoments.of(features(X), y[:, None], group, M)
    model = fit_mixed_model(moments, np.array([0]))
    found = fit_to_all(
        [[model]],
        np.ones(1),
        iterate_moments(features, X, y[:, None], group, None),
        np.zeros(3, dtype=bool),
        is_hard=False,
    )
    np.testing.assert_allclose(found.scores[:, 0], -log_likelihood(model, moments))
    np.testing.assert_allclose(found.models[0][0].coefficients, model.coefficients)
    assert found.priors == 1.0


def test_a_model_of_all_groups_predicts_as_one_of_few(few_at_once, monkeypatch):
    X, y, group = rows()
    sampled = LeafRegressor(1, local_model="smooth", random_state=0).fit(X, y, groups=group)
    monkeypatch.undo()
    whole = LeafRegressor(1, local_model="smooth", random_state=0).fit(X, y, groups=group)
    difference = sampled.predict(X, groups=group) - whole.predict(X, groups=group)
    assert np.sqrt(np.mean(difference**2)) < 0.05


def test_groups_that_were_not_compared_count_too():
    # Numbers of contexts are compared on 300 groups, which depend on the seed.
    rng = np.random.default_rng(0)
    group, X = np.repeat(np.arange(400), 4), rng.normal(size=(1600, 1))
    y = X[:, 0] + rng.normal(size=400)[group] + rng.normal(0, 0.5, 1600)
    found = [
        LeafRegressor(local_model="linear", group_effects="intercept", random_state=seed)
        .fit(X, y, groups=group)
        .noise_
        for seed in (0, 1)
    ]
    np.testing.assert_allclose(*found)
