"""Linear contexts are found without an error, for every seed."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from leaflearn import LeafRegressor
from leaflearn.benchmark.evaluation import allocation_agreement


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_every_group_is_allocated_correctly(seed):
    """3 contexts, 300 groups of 20 rows, 10 features, noise 0.5, default settings."""
    rng = np.random.default_rng(seed)
    context, groups = rng.integers(3, size=300), np.repeat(np.arange(300), 20)
    X, coefficients = rng.normal(size=(6000, 10)), rng.normal(size=(3, 10))
    y = (X * coefficients[context[groups]]).sum(1) + rng.normal(0, 0.5, 6000)
    leaf = LeafRegressor(3, local_model=LinearRegression(), random_state=seed).fit(X, y, groups)
    assert allocation_agreement(leaf.contexts_, context) == 1.0
