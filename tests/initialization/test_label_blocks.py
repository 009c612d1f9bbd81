"""Labels of one domain share its probability, and are independent of all others."""

import numpy as np
import pytest
import torch

from leaflearn.initialization.label_blocks import partition_labels, predict_left_out

SIZES = (3, 2, 4)


def label_probabilities(seed, n=4000):
    """Probabilities of the labels of three domains, drawn for each input."""
    rng = np.random.default_rng(seed)
    shares = [0.5, 0.2, 0.3]
    return np.hstack(
        [share * rng.dirichlet(np.ones(size), n) for share, size in zip(shares, SIZES, strict=True)]
    )


@pytest.mark.parametrize("seed", range(5))
def test_labels_are_partitioned_by_domain_and_only_the_true_number_is_constant(seed):
    covariance = np.cov(label_probabilities(seed).T)
    block, worst = partition_labels(covariance, 3, np.random.default_rng(seed))
    truth = np.repeat([0, 1, 2], SIZES)
    assert len(set(zip(block, truth, strict=True))) == 3
    assert worst < 0.01
    assert partition_labels(covariance, 4, np.random.default_rng(seed))[1] > 0.5


def test_predictions_equal_those_of_refits_without_the_row():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(12, 3, generator=generator, dtype=torch.float64)
    y = torch.randn(12, 2, generator=generator, dtype=torch.float64)
    predicted = predict_left_out(x, y)
    for row in range(12):
        rest = [i for i in range(12) if i != row]
        normal = x[rest].T @ x[rest] + torch.eye(3, dtype=torch.float64)
        torch.testing.assert_close(
            predicted[row], x[row] @ torch.linalg.solve(normal, x[rest].T @ y[rest])
        )
