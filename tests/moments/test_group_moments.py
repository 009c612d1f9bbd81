"""Moments of groups: the same as sums over their rows."""

import numpy as np
import pytest

from leaflearn.moments import group_moments
from leaflearn.moments.group_moments import GroupMoments


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)), rng.normal(size=(40, 2)), rng.integers(5, size=40)


def test_products_are_sums_over_the_rows_of_a_group(rows):
    features, y, group = rows
    weight = np.random.default_rng(1).uniform(size=40)
    moments = GroupMoments.of(features, y, group, 6, weight)
    for g in range(6):
        both = np.hstack([features, y])[group == g]
        np.testing.assert_allclose(moments.products[g], (both.T * weight[group == g]) @ both)
    np.testing.assert_allclose(moments.sizes, np.bincount(group, weight, minlength=6))
    assert not moments.products[5].any()  # a group without rows


def test_moments_of_parts_add_up(rows):
    features, y, group = rows
    parts = [
        GroupMoments.of(features[part], y[part], group[part], 5)
        for part in (slice(0, 13), slice(13, 40))
    ]
    both = parts[0] + parts[1]
    whole = GroupMoments.of(features, y, group, 5)
    np.testing.assert_allclose(both.products, whole.products)
    np.testing.assert_allclose(both.sizes, whole.sizes)


def test_one_target_has_the_moments_of_that_target_alone(rows):
    features, y, group = rows
    alone = GroupMoments.of(features, y[:, 1:], group, 5)
    np.testing.assert_allclose(
        GroupMoments.of(features, y, group, 5).target(1).products, alone.products
    )


def test_residuals_are_those_of_the_rows(rows):
    features, y, group = rows
    coefficients = np.array([0.5, -1.0, 2.0])
    found = GroupMoments.of(features, y[:, :1], group, 5).residual(coefficients)
    residual = y[:, 0] - features @ coefficients
    for g in range(5):
        own = group == g
        np.testing.assert_allclose(found[g, :3], features[own].T @ residual[own])
        np.testing.assert_allclose(found[g, 3], residual[own] @ residual[own])


@pytest.mark.parametrize("n_features", [3, 30])
def test_blocks_of_rows_give_the_same_sums(monkeypatch, n_features):
    # Groups of 0, 1, a few and 200 rows, some of which are in several blocks.
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat(np.arange(8), [0, 1, 2, 5, 5, 9, 200, 40]))
    X, y, weight = rng.normal(size=(262, 2)), rng.normal(size=(262, 1)), rng.uniform(size=262)
    to = rng.normal(size=(2, n_features))
    made = []

    def make_features(rows):
        made.append(len(rows))
        return np.cos(rows @ to)

    monkeypatch.setattr(group_moments, "ROWS_AT_ONCE", 50)
    found = GroupMoments.of_rows(make_features, X, y, group, 8, weight)
    assert max(made) == 50
    both = np.hstack([np.cos(X @ to), y])
    for g in range(8):
        own = both[group == g]
        np.testing.assert_allclose(
            found.products[g], (own.T * weight[group == g]) @ own, atol=1e-12
        )
    np.testing.assert_allclose(found.sum(np.ones(8)), (both.T * weight) @ both)
