"""Restricted likelihood: lme4's results, the literal density, and its gradient."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from leaflearn.effects.restricted_likelihood import (
    MixedModel,
    RestrictedLikelihood,
    fit_from_products,
    fit_mixed_model,
    fit_with_variances,
    log_likelihood,
    marginal_products,
    shrunk_effects,
)
from leaflearn.moments.group_moments import GroupMoments

LME4 = {
    "fixed": [1.87178118524, 0.8073110821941925, -0.5686892369444312],
    "variances": [0.79279494, 0.26583795],
    "noise": 0.426414379219,
    "effects": [
        [0.15030902, -0.05248731],
        [0.22312929, 0.35506109],
        [-0.25737032, -0.68488681],
    ],
}


def table():
    """30 groups of 8 rows with random intercepts and slopes of the first column."""
    rng = np.random.default_rng(7)
    group, x = np.repeat(np.arange(30), 8), rng.normal(size=(240, 2))
    x = (x - x.mean(0)) / x.std(0)
    u = rng.normal(size=(30, 2)) * [1.0, 0.5]
    y = 2 + x @ [1.0, -0.5] + u[group, 0] + u[group, 1] * x[:, 0] + rng.normal(0, 0.7, 240)
    features = np.c_[np.ones(240), x]
    return features, y, group, GroupMoments.of(features, y[:, None], group, 30)


def test_the_model_is_that_of_lme4():
    # lmer(y ~ x1 + x2 + (1 | g) + (0 + x1 | g), REML = TRUE), lme4 1.1-31
    *_, moments = table()
    model = fit_mixed_model(moments, np.array([0, 1]))
    np.testing.assert_allclose(model.coefficients, LME4["fixed"], rtol=1e-3)
    np.testing.assert_allclose(np.diag(model.covariance), LME4["variances"], rtol=1e-3)
    assert model.noise == pytest.approx(LME4["noise"], rel=1e-3)
    effects = shrunk_effects(model, moments)
    np.testing.assert_allclose(effects[[0, 1, 29]], LME4["effects"], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("full", [False, True])
def test_the_density_of_a_group_is_that_of_its_rows(full):
    features, y, group, moments = table()
    model = fit_mixed_model(moments, np.array([0, 1]), full=full)
    found = log_likelihood(model, moments)
    for g in (0, 7, 29):
        own = group == g
        z = features[own][:, :2]
        covariance = z @ model.covariance @ z.T + model.noise * np.eye(own.sum())
        mean = features[own] @ model.coefficients
        literal = multivariate_normal(mean, covariance).logpdf(y[own])
        assert found[g] == pytest.approx(literal)


@pytest.mark.parametrize("full", [False, True])
def test_the_gradient_is_the_slope_of_the_criterion(full):
    rng = np.random.default_rng(0)
    features, y, group, _ = table()
    features = np.hstack([features, np.cos(features[:, 1:2] * [1.0, 2.0] + 1)])
    moments = GroupMoments.of(features, y[:, None], group, 30)
    is_shrunk = np.array([False, False, False, True, True])
    weight = rng.uniform(0.2, 1, size=30)
    criterion = RestrictedLikelihood(moments, np.array([0, 1]), is_shrunk, weight, full)
    point = np.array([0.7, 0.2, 0.4, -1.0] if full else [0.7, 0.4, -1.0])
    slopes = []
    for step in 1e-6 * np.eye(len(point)):
        above, below = (criterion.evaluate(point + sign * step)[0] for sign in (1, -1))
        slopes.append((above - below) / 2e-6)
    np.testing.assert_allclose(criterion.evaluate(point)[1], slopes, rtol=1e-4, atol=1e-7)


def test_a_group_weight_of_two_is_the_group_twice():
    *_, moments = table()
    twice = moments.take(np.r_[np.arange(30), 3])
    weight = np.ones(30)
    weight[3] = 2.0
    for_twice = fit_mixed_model(twice, np.array([0]))
    weighted = fit_mixed_model(moments, np.array([0]), weight=weight)
    np.testing.assert_allclose(weighted.coefficients, for_twice.coefficients, rtol=1e-5)
    assert weighted.noise == pytest.approx(for_twice.noise, rel=1e-5)


def test_effects_that_are_not_there_have_no_variance():
    rng = np.random.default_rng(1)
    group, x = np.repeat(np.arange(40), 10), rng.normal(size=400)
    y = x + rng.normal(size=400)
    y -= (np.bincount(group, y) / 10)[group] - y.mean()  # the means of all groups are equal
    moments = GroupMoments.of(np.c_[np.ones(400), x], y[:, None], group, 40)
    assert fit_mixed_model(moments, np.array([0])).covariance[0, 0] < 1e-6


def test_a_column_that_others_determine_changes_nothing():
    features, y, group, moments = table()
    twice = GroupMoments.of(np.c_[features, features[:, 1]], y[:, None], group, 30)
    once, more = (fit_mixed_model(each, np.array([0, 1])) for each in (moments, twice))
    assert more.noise == pytest.approx(once.noise, rel=1e-4)
    np.testing.assert_allclose(more.covariance, once.covariance, rtol=1e-3, atol=1e-5)


def test_more_rows_shrink_effects_less():
    model = MixedModel(np.array([0]), np.zeros(1), np.ones((1, 1)), 1.0)
    effects = [
        shrunk_effects(
            model, GroupMoments.of(np.ones((n, 1)), np.ones((n, 1)), np.zeros(n, dtype=int), 1)
        ).item()
        for n in (1, 2, 9)
    ]
    np.testing.assert_allclose(effects, [1 / 2, 2 / 3, 9 / 10])


@pytest.mark.parametrize("full", [False, True])
def test_rows_without_noise_have_finite_effects(full):
    rng = np.random.default_rng(0)
    group, x = np.repeat(np.arange(20), 5), rng.normal(size=100)
    u = rng.normal(size=(20, 2))
    y = u[group, 0] + u[group, 1] * x
    moments = GroupMoments.of(np.c_[np.ones(100), x], y[:, None], group, 20)
    model = fit_mixed_model(moments, np.array([0, 1]), full=full)
    effects = shrunk_effects(model, moments) + model.coefficients
    np.testing.assert_allclose(effects, u, atol=1e-3)
    assert np.isfinite(log_likelihood(model, moments)).all()


@pytest.mark.parametrize("noise", [None, 0.4])
def test_newton_steps_end_where_the_gradient_is_zero(noise):
    features, y, group, _ = table()
    waves = np.cos(np.outer(features[:, 1], np.arange(1, 8)) + np.arange(7))
    moments = GroupMoments.of(np.hstack([features, waves]), y[:, None], group, 30)
    is_shrunk = np.arange(10) >= 3
    criterion = RestrictedLikelihood(moments, np.array([0, 1]), is_shrunk, noise=noise)
    model = criterion.minimize()
    point = np.append(np.diag(model.root), np.log(model.smoothness))
    assert np.abs(criterion.evaluate(point)[1]).max() < 1e-7
    for start in (0.05, 3.0):  # from below and from far above
        far = MixedModel(np.array([0, 1]), np.zeros(10), np.eye(2) * start, 1.0, start)
        assert criterion.minimize(far).criterion == pytest.approx(model.criterion, abs=1e-6)


def test_a_smooth_part_that_is_not_there_is_shrunk_to_the_end_of_its_range():
    features, y, group, _ = table()
    rng = np.random.default_rng(0)
    noise = np.hstack([features, rng.normal(size=(240, 4))])
    moments = GroupMoments.of(noise, (y - y.mean())[:, None], group, 30)
    found = fit_mixed_model(moments, np.array([0]), np.arange(7) >= 3)
    plain = fit_mixed_model(GroupMoments.of(features, y[:, None], group, 30), np.array([0]))
    assert found.smoothness < 0.05
    assert found.noise == pytest.approx(plain.noise, rel=0.05)


def test_a_column_of_zeros_has_a_coefficient_of_zero():
    features, y, group, moments = table()
    with_zeros = np.c_[features, np.zeros(240)]
    found = fit_mixed_model(GroupMoments.of(with_zeros, y[:, None], group, 30), np.array([0, 1]))
    expected = fit_mixed_model(moments, np.array([0, 1]))
    np.testing.assert_allclose(found.coefficients, np.append(expected.coefficients, 0.0))
    assert found.noise == pytest.approx(expected.noise)


def test_scores_of_columns_are_slopes_of_the_likelihood():
    *_, moments = table()
    model = fit_mixed_model(moments, np.array([0]))
    both = RestrictedLikelihood(moments, np.array([0, 1]))
    point = np.append(np.diag(model.root), np.sqrt(1e-6))
    rise = both.model_at(np.append(np.diag(model.root), 0.0)).criterion
    slope = (both.model_at(point).criterion - rise) / 1e-6
    score = both.score_columns(model)[1]
    assert score > 1
    assert np.sign(score) == -np.sign(slope)
    own = both.score_columns(model)[0]  # at its maximum there is no slope
    assert abs(own) < 1e-4


def test_a_mean_from_sums_over_parts_is_that_of_all_groups():
    *_, moments = table()
    weight = np.random.default_rng(0).uniform(0.1, 1.0, 30)
    like = fit_mixed_model(moments, np.array([0, 1]))
    parts = [np.arange(12), np.arange(12, 30)]
    sums = sum(marginal_products(moments.take(part), like, weight[part]) for part in parts)
    is_shrunk = np.zeros(3, dtype=bool)
    found = fit_from_products(sums, float(weight @ moments.sizes), like, is_shrunk)
    expected = fit_with_variances(moments, like, weight=weight)
    np.testing.assert_allclose(found.coefficients, expected.coefficients)
    assert found.noise == pytest.approx(expected.noise)
