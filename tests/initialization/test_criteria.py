"""AIC, BIC and ICL of smooth models against what they are by definition."""

import numpy as np
import pytest
import torch

from leaflearn.benchmark.datasets import functions
from leaflearn.benchmark.datasets.sampling import sample_groups
from leaflearn.initialization.criteria import measure
from leaflearn.initialization.search import refine
from leaflearn.initialization.smoothers import GroupTable
from leaflearn.initialization.surrogate import SmoothSurrogate


def test_one_constant_is_one_gaussian():
    y = np.random.default_rng(0).normal(size=40)
    table = GroupTable.of(
        torch.ones(40, 1, dtype=torch.float64), torch.as_tensor(y)[:, None], np.arange(40) // 2
    )
    found = refine(table, torch.zeros(1, 20, dtype=torch.long), 1, torch.full((1,), 0.5))
    criteria = measure(table, found)
    variance = y.var()
    deviance = 40 * np.log(2 * np.pi * variance) + 40
    assert criteria.train_error == pytest.approx(variance, rel=1e-4)
    assert criteria.aic == pytest.approx(deviance + 2 * 2, rel=1e-4)  # a mean and a variance
    assert criteria.bic == pytest.approx(deviance + 2 * np.log(40), rel=1e-4)
    assert criteria.icl == pytest.approx(criteria.bic)  # with one context nothing is open


def test_the_third_function_saves_nearly_all_and_a_fourth_context_hardly_anything():
    sample, _ = sample_groups(functions(), random_state=0)
    reading = SmoothSurrogate.of(sample.x, sample.y[:, None], sample.groups, 0, seed=0)
    scale = reading.find(3).scale
    criteria = [(reading.find(k, [scale]), reading.measure(k))[1] for k in (1, 2, 3, 4)]
    for name in ("aic", "bic", "icl"):
        saved = -np.diff([getattr(c, name) for c in criteria])
        assert saved[2] < 0.05 * saved[1]
