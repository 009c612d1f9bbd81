import pytest
import torch

from leaflearn.core.losses import CrossEntropy, SquaredError


def test_cross_entropy_is_torchs():
    logits, y = torch.randn(2, 3, 7, 4), torch.randint(4, (7,))  # restarts, models, rows, classes
    expected = torch.stack([torch.stack([torch.nn.functional.cross_entropy(one, y, reduction="none") for one in row]) for row in logits])
    torch.testing.assert_close(CrossEntropy()(logits, y), expected)


def test_squared_error_averages_over_outputs():
    prediction, y = torch.randn(2, 7, 3), torch.randn(7, 3)
    expected = torch.stack([torch.nn.functional.mse_loss(one, y, reduction="none").mean(1) for one in prediction])
    torch.testing.assert_close(SquaredError()(prediction, y), expected)


def test_no_constant_beats_the_best_constant_in_regression():
    y = torch.randn(50, 2) * 3 + 1
    best = SquaredError().of_best_constant(y)
    assert SquaredError()(y.mean(0).expand(50, 2), y).mean().item() == pytest.approx(best, rel=1e-5)
    assert SquaredError()((y.mean(0) + 0.1).expand(50, 2), y).mean().item() > best


def test_no_constant_beats_the_best_constant_in_classification():
    y = torch.tensor([0, 0, 0, 1, 3])  # a class without rows costs nothing
    best = CrossEntropy().of_best_constant(y)
    share = torch.tensor([0.6, 0.2, 1e-30, 0.2])
    assert CrossEntropy()(share.log().expand(5, 4), y).mean().item() == pytest.approx(best, rel=1e-5)
    assert CrossEntropy()(torch.zeros(5, 4), y).mean().item() > best
