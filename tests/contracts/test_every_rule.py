"""Properties of every registered allocation rule."""

import pytest
import torch

from leaflearn.core.allocation import RULES, make_rule


@pytest.fixture(params=RULES)
def rule(request):
    return make_rule(request.param, 0.5)


def weigh(rule, scores, progress=0.4, seed=0):
    sizes = torch.arange(1, scores.shape[-2] + 1, dtype=scores.dtype)
    return rule(
        scores, sizes, torch.arange(scores.shape[-2]), progress, torch.Generator().manual_seed(seed)
    )


def test_a_group_goes_to_the_model_with_a_much_lower_score(rule):
    scores = torch.full((3, 4), 1000.0).scatter_(1, torch.tensor([[2], [0], [3]]), 0.0)
    torch.testing.assert_close(weigh(rule, scores).argmax(1), torch.tensor([2, 0, 3]))


def test_a_lower_score_never_has_a_lower_weight(rule):
    scores = torch.tensor([[0.0, 1.0, 2.0]]).expand(20_000, 3)
    mean = rule(
        scores, torch.ones(20_000), torch.arange(20_000), 0.4, torch.Generator().manual_seed(0)
    ).mean(0)
    assert mean[0] >= mean[1] >= mean[2]


def test_a_constant_added_to_all_scores_of_a_group_changes_nothing(rule):
    scores = torch.rand(5, 3, dtype=torch.float64)
    torch.testing.assert_close(weigh(rule, scores + 7.0), weigh(rule, scores))


def test_the_same_seed_gives_the_same_weights(rule):
    scores = torch.rand(50, 3)
    assert torch.equal(weigh(rule, scores), weigh(rule, scores))


def test_restarts_are_independent(rule):
    scores = torch.rand(2, 5, 3)
    changed = torch.stack([scores[0], scores[1] + torch.rand(5, 3)])
    torch.testing.assert_close(weigh(rule, scores)[0], weigh(rule, changed)[0])
