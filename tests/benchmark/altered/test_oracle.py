"""The oracle allocates groups by models of the true contexts, out of fold."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from leaflearn.benchmark.altered.oracle import allocate_knowing_models, laplace
from leaflearn.benchmark.real.contract import Rows


def make_rows(rng, is_binary, m=30, n=25):
    group, truth = np.repeat(np.arange(m), n), np.arange(m) % 2
    X = rng.normal(size=(m * n, 1))
    eta = 3 * X[:, 0] * np.where(truth == 1, 1, -1)[group] + rng.normal(0, 0.5, m)[group]
    if is_binary:
        return Rows(X, (rng.random(m * n) < expit(eta)).astype(int), group, 2), truth
    return Rows(X, eta + rng.normal(0, 0.3, m * n), group), truth


@pytest.mark.parametrize("is_binary", [False, True])
def test_groups_of_clear_contexts_are_allocated_correctly(is_binary):
    rows, truth = make_rows(np.random.default_rng(0), is_binary)
    contexts, probabilities = allocate_knowing_models(rows, truth)
    assert contexts.tolist() == truth.tolist()
    assert np.allclose(probabilities.sum(1), 1)


def test_contexts_that_mean_nothing_are_not_found():
    rng = np.random.default_rng(0)
    rows, _ = make_rows(rng, is_binary=False)
    rows = Rows(rows.X, rows.X[:, 0] + rng.normal(size=len(rows.X)), rows.group)
    truth = rng.permutation(np.arange(30) % 2)
    assert (allocate_knowing_models(rows, truth)[0] == truth).mean() < 0.8


def test_laplace_is_close_to_the_integral():
    y, variance = np.array([0, 1, 1, 1, 0, 1]), 0.8
    eta = np.column_stack([np.zeros(6), np.linspace(-1, 1, 6)])
    found = laplace(eta, y, np.zeros(6, dtype=int), 1, variance)[0]

    # Only the difference of the two intercepts matters; its variance is the sum of theirs.
    def density(u):
        p = expit(eta[:, 1] + u)
        return np.prod(np.where(y == 1, p, 1 - p)) * norm.pdf(u, 0, np.sqrt(2 * variance))

    assert found == pytest.approx(np.log(quad(density, -20, 20)[0]), abs=0.05)
