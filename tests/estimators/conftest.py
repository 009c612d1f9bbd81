"""Small conflicting data: two sites whose answers have opposite signs, or opposite names."""

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


@pytest.fixture
def regressor(conflict):
    return LeafRegressor(local_model=LinearRegression(), random_state=0).fit(conflict.X, conflict.y, conflict.groups)


@pytest.fixture
def classifier(conflict):
    return LeafClassifier(local_model=LogisticRegression(), random_state=0).fit(conflict.X, conflict.labels, conflict.groups)
