"""Mixtures of contexts: densities as written down, starts and folds independent of each other."""

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from leaflearn.effects import mixture, settings
from leaflearn.effects.mixture import fit_mixture
from leaflearn.moments.group_moments import GroupMoments


def lines(seed=0, m=30, n=6):
    """Two contexts with opposite slopes, and random intercepts."""
    rng = np.random.default_rng(seed)
    group, x = np.repeat(np.arange(m), n), rng.normal(size=m * n)
    y = np.where(group % 2, 1.0, -1.0) * x + rng.normal(0, 0.3, m)[group]
    y = y + rng.normal(0, 0.2, m * n)
    features = np.c_[np.ones(m * n), x]
    return features, y, group, GroupMoments.of(features, y[:, None], group, m)


def starts(moments, n_starts, seed=0):
    draws = np.random.default_rng(seed).dirichlet([1, 1], size=(n_starts, len(moments.sizes)))
    return np.swapaxes(draws, 1, 2)


def test_the_density_of_a_group_is_that_of_its_rows(monkeypatch):
    features, y, group, moments = lines()
    found = fit_mixture(moments, np.array([0]), np.full(2, 1e-6), starts(moments, 4)).best()
    scales = np.array(settings.MIXTURE.tail_scales)
    # The shares of the tails are not returned; with one factor there are none to know.
    plain = settings.MixtureSettings(tail_scales=(1.0,), tail_shares=(1.0,), tail_prior=0.0)
    monkeypatch.setattr(settings, "MIXTURE", plain)
    found = fit_mixture(moments, np.array([0]), np.full(2, 1e-6), found.posterior, n_rounds=300)
    assert len(scales) == 3
    noise, deviation = found.noise[0, 0], found.deviations[0, 0, 0]
    for g in range(3):
        own = group == g
        n = int(own.sum())
        covariance = noise * (np.eye(n) + deviation**2 * np.ones((n, n)))
        each = [
            np.log(found.priors[0, k])
            + multivariate_normal(features[own] @ found.coefficients[0, k, 0], covariance).logpdf(
                y[own]
            )
            for k in range(2)
        ]
        assert np.isclose(found.log_density[0, g], logsumexp(each), atol=1e-2)


def test_contexts_of_kind_are_found_beside_effects():
    for seed in range(5):
        *_, moments = lines(seed)
        found = fit_mixture(moments, np.array([0]), np.full(2, 1e-6), starts(moments, 6)).best()
        context = found.posterior[0].argmax(0)
        assert len(set(context[::2])) == len(set(context[1::2])) == 1
        assert context[0] != context[1]
        slopes = np.sort(found.coefficients[0, :, 0, 1])
        np.testing.assert_allclose(slopes, [-1, 1], atol=0.1)


def test_fits_side_by_side_are_those_one_by_one():
    *_, moments = lines()
    both = starts(moments, 2)
    together = fit_mixture(moments, np.array([0]), np.full(2, 1e-6), both, n_rounds=20)
    for b in range(2):
        alone = fit_mixture(moments, np.array([0]), np.full(2, 1e-6), both[b : b + 1], n_rounds=20)
        np.testing.assert_allclose(together.objective[b], alone.objective[0])
        np.testing.assert_allclose(together.posterior[b], alone.posterior[0])


def test_a_fold_does_not_learn_from_the_groups_that_are_held_out():
    features, y, group, moments = lines()
    is_learned = np.arange(30) < 20
    other = y.copy()
    other[group >= 20] += 5.0
    changed = GroupMoments.of(features, other[:, None], group, 30)
    found = [
        fit_mixture(
            each, np.array([0]), np.full(2, 1e-6), starts(moments, 1), is_learned[None], n_rounds=20
        )
        for each in (moments, changed)
    ]
    np.testing.assert_allclose(found[0].coefficients, found[1].coefficients)
    assert (found[1].log_density[0, 20:] < found[0].log_density[0, 20:]).all()


def test_two_equal_targets_count_twice():
    features, y, group, moments = lines()
    twice = GroupMoments.of(features, np.c_[y, y], group, 30)
    start = np.ones((1, 1, 30))
    none = np.empty(0, dtype=int)
    one = fit_mixture(moments, none, np.full(2, 1e-6), start)
    two = fit_mixture(twice, none, np.full(2, 1e-6), start)
    np.testing.assert_allclose(two.objective, 2 * one.objective)


def test_a_fit_that_has_settled_does_not_wait_for_the_others():
    *_, moments = lines()
    truth = np.eye(2)[np.arange(30) % 2].T[None]  # settles at once
    both = np.concatenate([truth, starts(moments, 3)])
    together = fit_mixture(moments, np.array([0]), np.full(2, 1e-6), both)
    for b in range(4):
        alone = fit_mixture(moments, np.array([0]), np.full(2, 1e-6), both[b : b + 1])
        for name in ("objective", "posterior", "coefficients", "deviations", "effects"):
            found, expected = getattr(together, name)[b], getattr(alone, name)[0]
            np.testing.assert_allclose(found, expected, atol=1e-8, err_msg=name)


def test_effects_are_integrated_out_as_written_down():
    rng = np.random.default_rng(0)
    m, B, K, q = 5, 2, 3, 3
    z = rng.normal(size=(m, 6, q))
    zz = np.swapaxes(z, 1, 2) @ z
    squares, products = rng.uniform(50, 60, (B, K, m)), rng.normal(size=(B, K, m, q))
    root = rng.uniform(0.1, 2.0, (q, B, 2))
    found = mixture._integrate(
        np.moveaxis(zz, 0, 2), squares[:, :, None], np.moveaxis(products, 3, 0), root
    )
    for b, k, j, g in np.ndindex(B, K, 2, m):
        t = root[:, b, j]
        inner = np.eye(q) + t[:, None] * zz[g] * t
        solved = np.linalg.solve(inner, t * products[b, k, g])
        left = squares[b, k, g] - (t * products[b, k, g]) @ solved
        assert np.isclose(found.left[b, k, j, g], left)
        assert np.isclose(found.log_determinant[b, j, g], np.linalg.slogdet(inner)[1])
        np.testing.assert_allclose(found.solved[:, b, k, j, g], solved)
        np.testing.assert_allclose(found.spread[:, b, j, g], np.diag(np.linalg.inv(inner)))
