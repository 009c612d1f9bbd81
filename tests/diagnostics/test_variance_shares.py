"""Variances between groups: known shares are found, and models without effects have none."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from leaflearn import LeafRegressor
from leaflearn.diagnostics.variance_shares import find_variance_shares


def simulate(shift, offset, noise, seed=0, m=80, n=30, slope=0.0):
    """Contexts at plus and minus `shift`, offsets and slopes of groups, noise of rows."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(m), n)
    X = rng.normal(size=(m * n, 2))
    sign = np.where(np.arange(m) % 2 == 0, 1.0, -1.0)
    effects = offset * rng.normal(size=m), slope * rng.normal(size=m)
    y = X[:, 0] + (shift * sign + effects[0])[group] + effects[1][group] * X[:, 1]
    return X, y + noise * rng.normal(size=m * n), group


@pytest.mark.parametrize(
    ("shift", "offset", "slope", "n_contexts"),
    [(3.0, 1.0, 0.0, 2), (3.0, 0.7, 0.7, 2), (0.0, 1.0, 1.0, 1)],
)
def test_shares_are_those_of_the_simulation(shift, offset, slope, n_contexts):
    kind, degree, noise = shift**2, offset**2 + slope**2, 0.25
    found = []
    for seed in range(3):
        X, y, group = simulate(shift, offset, 0.5, seed, slope=slope)
        leaf = LeafRegressor(n_contexts, local_model="linear", random_state=0)
        leaf.fit(X, y, groups=group)
        shares = find_variance_shares(leaf.fitted_state_, X)
        found.append((shares.kind_share, shares.between_share, shares.noise[0]))
    expected = kind / (kind + degree), (kind + degree) / (kind + degree + noise), noise
    np.testing.assert_allclose(np.mean(found, 0), expected, atol=0.04)


def test_groups_that_do_not_differ_differ_neither_in_kind_nor_by_degree():
    X, y, group = simulate(0.0, 0.0, 1.0)
    leaf = LeafRegressor(1, local_model="linear").fit(X, y, groups=group)
    shares = find_variance_shares(leaf.fitted_state_, X)
    assert not shares.differs_in_kind
    assert shares.between_share < 0.03


def test_models_without_effects_and_without_rows_have_no_shares():
    X, y, group = simulate(1.0, 0.0, 0.1, m=10, n=5)
    leaf = LeafRegressor(1, local_model=Ridge()).fit(X, y, groups=group)
    assert find_variance_shares(leaf.fitted_state_, X) is None
    leaf = LeafRegressor(1, local_model="linear").fit(X, y, groups=group)
    assert find_variance_shares(leaf.fitted_state_, None) is None
