"""The three functions are those of the paper."""

import numpy as np
import pytest

from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.functions import functions
from leaflearn.benchmark.datasets.sampling import sample_groups


def test_it_is_registered():
    assert DATASETS["functions"].factory is functions


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("absolute", -2.0, 2.0),
        ("absolute", 0.0, -2.0),
        ("sine", 0.0, 2.0),
        ("sine", 2.0, 2 * np.cos(6.0)),
        ("logarithm", -2.0, 1.5 * np.log(4.5) - 1),
        ("logarithm", 2.0, 1.5 * np.log(0.5) - 1),
    ],
)
def test_targets(name, at, value):
    test = {domain.name: domain.test for domain in functions()}[name]
    row = np.argmin(np.abs(test.x[:, 0] - at))
    assert test.x[row, 0] == pytest.approx(at)
    assert test.y[row] == pytest.approx(value)


def test_the_paper_draws_250_groups_of_2_points_with_noise_of_a_hundredth():
    domains = functions()
    (x, y, _), truth = sample_groups(domains, random_state=0)
    assert x.shape == (500, 1)
    noise = y - np.array(
        [
            domains.domains[d].train.target(v)
            for d, v in zip(truth.domain.repeat(2), x[:, 0], strict=True)
        ]
    )
    assert noise.std() == pytest.approx(0.01, rel=0.15)
    assert np.abs(x).max() <= 2


def test_all_functions_are_tested_on_the_same_inputs():
    first, *others = functions()
    assert all(np.array_equal(first.test.x, other.test.x) for other in others)
