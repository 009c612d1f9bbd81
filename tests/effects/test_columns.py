"""Columns with effects: those that vary within groups and that the likelihood asks for."""

import numpy as np

from leaflearn.effects.columns import add_hats, choose_columns, find_varying
from leaflearn.effects.restricted_likelihood import fit_mixed_model
from leaflearn.moments.features import FeatureMap
from leaflearn.moments.group_moments import GroupMoments


def grouped(slopes, seed=0, m=80, n=12):
    """Rows of m groups; the first two inputs vary within groups, the third does not."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(m), n)
    X = np.c_[rng.normal(size=(m * n, 2)), rng.normal(size=m)[group]]
    y = X.sum(1) + (X * (rng.normal(size=(m, 3)) * slopes)[group]).sum(1)
    return X, y + rng.normal(0, 0.5, m * n), group


def moments_of(X, y, group):
    features = FeatureMap.of(X)
    return features, GroupMoments.of(features(X), y[:, None], group, int(group.max()) + 1)


def test_only_columns_that_vary_within_groups_can_have_slopes():
    X, y, group = grouped([0, 0, 0])
    _, moments = moments_of(X, y, group)
    assert find_varying(moments, 4).tolist() == [1, 2]


def test_columns_are_chosen_that_have_effects():
    is_shrunk = np.zeros(4, dtype=bool)
    chosen = [
        choose_columns(moments_of(*grouped([0.0, 0.7, 0.0], seed))[1], is_shrunk, np.array([1, 2]))
        for seed in range(5)
    ]
    assert all(2 in model.columns for model in chosen)
    assert sum(1 in model.columns for model in chosen) <= 1


def test_groups_that_do_not_differ_have_hardly_any_effects():
    models = [
        choose_columns(
            moments_of(*grouped([0, 0, 0], seed))[1], np.zeros(4, dtype=bool), np.array([1, 2])
        )
        for seed in range(5)
    ]
    shares = [np.trace(model.covariance) / model.noise for model in models]
    assert max(shares) < 0.1, shares


def test_hat_functions_stand_at_quantiles_of_inputs_with_effects():
    X, y, group = grouped([1.0, 0.0, 0.0])
    features, moments = moments_of(X, y, group)
    model = fit_mixed_model(moments, np.array([0, 1]))
    hats = add_hats(features, X, model)
    assert hats.hat_input.tolist() == [0, 0, 0]
    z = features.standardize(X)[:, 0]
    np.testing.assert_allclose(hats.hat_knot, np.quantile(z, [0.25, 0.5, 0.75]))


def test_inputs_with_few_values_get_no_hat_functions():
    X, y, group = grouped([1.0, 0.0, 0.0])
    X[:, 0] = np.sign(X[:, 0])
    features, moments = moments_of(X, y, group)
    model = fit_mixed_model(moments, np.array([0, 1]))
    assert not len(add_hats(features, X, model).hat_input)
