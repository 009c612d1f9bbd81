import re

import pytest
import torch

from leaflearn.core.losses import CrossEntropy, GeneralizedCrossEntropy, Huber, SquaredError


def test_cross_entropy_equals_that_of_torch():
    logits, y = torch.randn(2, 3, 7, 4), torch.randint(4, (7,))  # restarts, models, rows, classes
    expected = torch.stack(
        [
            torch.stack(
                [torch.nn.functional.cross_entropy(one, y, reduction="none") for one in row]
            )
            for row in logits
        ]
    )
    torch.testing.assert_close(CrossEntropy()(logits, y), expected)


def test_squared_error_averages_over_outputs():
    prediction, y = torch.randn(2, 7, 3), torch.randn(7, 3)
    expected = torch.stack(
        [torch.nn.functional.mse_loss(one, y, reduction="none").mean(1) for one in prediction]
    )
    torch.testing.assert_close(SquaredError()(prediction, y), expected)


def test_no_constant_has_a_lower_squared_error_than_the_best_constant():
    y = torch.randn(50, 2) * 3 + 1
    best = SquaredError().of_best_constant(y)
    assert SquaredError()(y.mean(0).expand(50, 2), y).mean().item() == pytest.approx(best, rel=1e-5)
    assert SquaredError()((y.mean(0) + 0.1).expand(50, 2), y).mean().item() > best


def test_no_constant_has_a_lower_cross_entropy_than_the_best_constant():
    y = torch.tensor([0, 0, 0, 1, 3])  # class 2 has no rows
    best = CrossEntropy().of_best_constant(y)
    share = torch.tensor([0.6, 0.2, 1e-30, 0.2])
    assert CrossEntropy()(share.log().expand(5, 4), y).mean().item() == pytest.approx(
        best, rel=1e-5
    )
    assert CrossEntropy()(torch.zeros(5, 4), y).mean().item() > best


def test_generalized_cross_entropy_ranges_from_cross_entropy_to_the_error_probability():
    logits, y = torch.randn(2, 7, 4, dtype=torch.float64), torch.randint(4, (7,))
    p = torch.softmax(logits, -1).gather(-1, y.expand(2, 7)[..., None])[..., 0]
    torch.testing.assert_close(GeneralizedCrossEntropy(0.7)(logits, y), (1 - p**0.7) / 0.7)
    torch.testing.assert_close(GeneralizedCrossEntropy(1.0)(logits, y), 1 - p)
    torch.testing.assert_close(
        GeneralizedCrossEntropy(1e-6)(logits, y), CrossEntropy()(logits, y), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("logit", [0.0, 50.0, 1e4])
def test_generalized_cross_entropy_and_its_gradient_are_finite_for_extreme_logits(logit):
    logits = torch.tensor([[logit, 0.0], [-logit, 0.0]], requires_grad=True)
    losses = GeneralizedCrossEntropy()(logits, torch.tensor([0, 0]))
    losses.sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert (losses >= 0).all()
    assert (losses <= 1 / 0.7 + 1e-6).all()


@pytest.mark.parametrize("q", [0.3, 0.7, 0.999, 1.0])
def test_no_constant_has_a_lower_generalized_cross_entropy_than_the_best_constant(q):
    y = torch.tensor([0] * 6 + [1] * 2 + [3] * 2)  # class 2 has no rows
    loss = GeneralizedCrossEntropy(q)
    generator = torch.Generator().manual_seed(0)
    tried = torch.randn(2000, 1, 4, generator=generator, dtype=torch.float64) * 4
    costs = loss(tried.expand(-1, 10, -1), y).mean(-1)
    assert costs.min().item() >= loss.of_best_constant(y) - 1e-9
    assert costs.min().item() == pytest.approx(loss.of_best_constant(y), abs=0.05)


def test_huber_equals_twice_that_of_torch_and_squared_error_for_a_large_scale():
    prediction, y = 3 * torch.randn(2, 50, 3), torch.randn(50, 3)
    expected = 2 * torch.nn.functional.huber_loss(
        prediction, y.expand(2, 50, 3), reduction="none", delta=0.5
    ).mean(-1)
    torch.testing.assert_close(Huber(0.5)(prediction, y), expected)
    torch.testing.assert_close(Huber(1e6)(prediction, y), SquaredError()(prediction, y))


def test_huber_limits_by_how_much_a_row_favours_one_model():
    prediction, y = torch.tensor([[[0.0]], [[1.0]]]), torch.tensor([[1e6]])  # two models, one row
    gap = Huber(0.1)(prediction, y).diff(dim=0).abs().item()
    assert gap <= 2 * 0.1 * 1.0 * (1 + 1e-1)  # rounding of single precision at 1e6
    assert SquaredError()(prediction, y).diff(dim=0).abs().item() > 1e6


def test_no_constant_has_a_lower_huber_loss_than_the_best_constant():
    generator = torch.Generator().manual_seed(0)
    y = torch.cat(
        [torch.randn(40, 2, generator=generator), 50 + torch.randn(9, 2, generator=generator)]
    ).double()
    grid = torch.linspace(-3, 55, 5801, dtype=torch.float64)[:, None, None].expand(-1, len(y), 2)
    loss = Huber(0.5)
    # The best constant of each output is independent of the other.
    costs = torch.stack([loss(grid[..., [d]], y[:, [d]]).mean(-1).min() for d in range(2)])
    assert loss.of_best_constant(y) == pytest.approx(costs.mean().item(), abs=1e-4)
    assert loss.of_best_constant(torch.full((5, 1), 7.0)) == 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: GeneralizedCrossEntropy(0.0),
            "q=0.0 was given, but a number above 0 and at most 1 was expected; "
            "for q = 0 use CrossEntropy.",
        ),
        (
            lambda: GeneralizedCrossEntropy(1.5),
            "q=1.5 was given, but a number above 0 and at most 1 was expected; "
            "for q = 0 use CrossEntropy.",
        ),
        (
            lambda: Huber(0.0),
            "scale=0.0 was given, but a positive number, in units of the targets, was expected.",
        ),
    ],
)
def test_invalid_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        make()
