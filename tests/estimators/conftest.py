"""Small conflicting data: two sites whose answers have opposite signs, or opposite names."""

from copy import deepcopy

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from leaflearn import LeafClassifier, LeafRegressor


class Conflict:
    """Twelve groups of ten rows; every third group is of the second context."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(120, 2))
        self.groups = np.repeat(np.arange(12), 10)
        self.truth = (np.arange(12) % 3 == 0).astype(int)  # of each group
        self.sign = np.where(self.truth[self.groups] == 0, 1.0, -1.0)
        self.y = self.sign * (self.X @ [2.0, 1.0]) + rng.normal(0, 0.01, 120)
        self.labels = np.where(self.y > 0, "good", "bad")


@pytest.fixture
def conflict():
    return Conflict()


@pytest.fixture(scope="session")
def same_conflict():
    return Conflict()  # for fixtures that live longer than a test, which may change its own


@pytest.fixture(scope="session")
def _regressor():
    data = Conflict()
    return LeafRegressor(local_model=LinearRegression(), random_state=0).fit(data.X, data.y, data.groups)


@pytest.fixture(scope="session")
def _classifier():
    data = Conflict()
    return LeafClassifier(local_model=LogisticRegression(), random_state=0).fit(data.X, data.labels, data.groups)


@pytest.fixture
def regressor(_regressor):
    return deepcopy(_regressor)  # a test may change it


@pytest.fixture
def classifier(_classifier):
    return deepcopy(_classifier)
