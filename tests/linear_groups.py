"""Groups on random linear functions, and models that log their calls, to test the refit engine."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LinearRegression

from leaflearn.core.allocation import Annealed, Hard, Sampled, Soft
from leaflearn.engines.refit_task import SquaredRowLoss

SQUARED = SquaredRowLoss()


def linear(seed):
    """Least squares; the seed is not used."""
    return LinearRegression()


def lines(seed, sizes, n_contexts=2, noise=0.1, n_features=2):
    """Groups on random linear functions, rows in random order; returns x, y, group, domain."""
    rng = np.random.default_rng(seed)
    domain = rng.permutation(np.arange(len(sizes)) % n_contexts)
    group = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    x = rng.normal(size=(len(group), n_features))
    slopes = 3 * rng.normal(size=(n_contexts, n_features))
    return (
        x,
        (x * slopes[domain[group]]).sum(1) + noise * rng.normal(size=len(group)),
        group,
        domain,
    )


def rules(y):
    """One allocation rule of each kind."""
    return [Hard(), Sampled(0.1), Soft(0.1), Annealed(0.5 * y.var())]


class Spy:
    """Least squares without intercept that logs the rows and weights of its calls.

    The first column of the input must be the number of the row, see `numbered`.
    """

    log: list = []

    def __init__(self, seed=0):
        self.seed = seed

    def fit(self, x, y, sample_weight=None):
        self.saw, self.weight = x[:, 0].astype(int), sample_weight
        root = np.ones(len(y)) if sample_weight is None else np.sqrt(sample_weight)
        self.coef = np.linalg.lstsq(x[:, 1:] * root[:, None], y * root, rcond=None)[0]
        Spy.log.append(("fit", self, self.saw))
        return self

    def predict(self, x):
        Spy.log.append(("predict", self, x[:, 0].astype(int)))
        return x[:, 1:] @ self.coef


class PlainSpy(Spy):
    """A spy whose `fit` has no `sample_weight`."""

    def fit(self, x, y):
        return super().fit(x, y)


def numbered(x):
    """The input with row numbers as the first column."""
    return np.column_stack([np.arange(len(x)), x])
