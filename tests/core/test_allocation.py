import pytest
import torch

from leaflearn.core.allocation import RULES, Annealed, Given, Hard, Sampled, Soft, make_rule


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("progress", [0.0, 0.5, 1.0])
def test_weights_of_every_rule_sum_to_one(name, progress):
    scores, sizes = torch.rand(2, 5, 3) * 100, torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    weights = make_rule(name, 0.5)(
        scores, sizes, torch.arange(5), progress, torch.Generator().manual_seed(0)
    )
    assert weights.shape == scores.shape
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 5))


def test_sampled_contexts_follow_the_posterior():
    scores = torch.tensor([[0.0, 0.5, 2.0]]).expand(40_000, 3)
    share = Sampled(0.7)(
        scores, torch.ones(40_000), generator=torch.Generator().manual_seed(0)
    ).mean(0)
    expected = Soft(0.7)(scores[:1], torch.ones(1))[0]
    torch.testing.assert_close(share, expected, atol=4 * 0.5 / 200, rtol=0)  # four standard errors


def test_soft_uses_summed_losses_and_annealed_uses_mean_losses():
    scores, sizes = torch.tensor([[0.0, 6.0]]), torch.tensor([3.0])
    torch.testing.assert_close(Soft(2.0)(scores, sizes), torch.softmax(-scores / 2, 1))
    torch.testing.assert_close(
        Annealed(2.0)(scores, sizes, progress=0.0), torch.softmax(-scores / 3 / 2, 1)
    )


def test_the_annealed_temperature_falls_linearly_and_the_rule_ends_hard():
    rule = Annealed(0.8, until=0.75)
    assert rule.temperature(0.0) == 0.8
    assert rule.temperature(0.375) == pytest.approx(0.4)
    scores, sizes = torch.tensor([[1.0, 1.001]]), torch.ones(1)
    assert torch.equal(rule(scores, sizes, progress=0.75), Hard()(scores, sizes))
    assert not torch.equal(rule(scores, sizes, progress=0.74), Hard()(scores, sizes))


def test_restarts_may_have_different_temperatures():
    scores = torch.tensor([[0.0, 1.0]]).expand(2, 1, 2)
    hot, cold = Annealed(torch.tensor([5.0, 0.1])[:, None, None])(
        scores, torch.ones(1), progress=0.0
    )
    assert hot[0, 0] < 0.6
    assert cold[0, 0] > 0.99


def test_given_selects_contexts_by_group_id():
    weights = Given(torch.tensor([2, 0, 1]))(
        torch.rand(4, 2, 3), torch.ones(2), torch.tensor([2, 0])
    )
    assert weights.argmax(-1).tolist() == [[1, 2]] * 4


def test_a_diverged_restart_does_not_affect_the_others():
    scores = torch.tensor([[[float("nan"), 1.0]], [[0.0, 9.0]]])
    for name in RULES:
        weights = make_rule(name, 0.1)(
            scores, torch.ones(1), torch.arange(1), 0.0, torch.Generator().manual_seed(0)
        )
        assert weights[1, 0].tolist() == pytest.approx([1.0, 0.0])
