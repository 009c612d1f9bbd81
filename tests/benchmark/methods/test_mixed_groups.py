"""Rows of other contexts inside the groups: how many there are is learnt, and they do no harm."""

import numpy as np
import pytest
import torch

from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.benchmark.experiments.measures import method_errors
from leaflearn.benchmark.methods import describe, make_method, train
from leaflearn.benchmark.methods.mixed_groups import FEW, Strangers
from leaflearn.engines.networks import mlp
from method_toys import QUICK, clusters


def trained(mixing, seed):
    sampler = BilevelSampler(clusters(), groups_per_step=16, random_state=seed, mixing=mixing)
    problem = describe(sampler, lambda n_outputs: mlp(2, n_outputs, (16,)), 30, seed, QUICK)
    method = make_method("leaf-annealed", n_peeked=400)
    train(method, sampler, problem, 30)
    return method


@pytest.mark.parametrize("mixing", [0.0, 0.1])
def test_the_share_of_strangers_is_learnt(mixing):
    methods = [trained(mixing, seed) for seed in range(2)]
    assert np.mean([method.strangers.share for method in methods]) == pytest.approx(
        mixing, abs=0.03
    )
    assert np.mean([method_errors(method, clusters())["best"] for method in methods]) < 0.02


def test_one_stranger_does_not_outvote_its_group():
    group = torch.zeros(4, dtype=torch.long)
    losses = torch.tensor([[0.1, 0.1, 0.1, 50.0], [9.0, 9.0, 9.0, 0.1]])
    assert losses.sum(1).argmin() == 1, "summed losses are outvoted"
    assert Strangers().allocate(losses, group, 1).tolist() == [0]


def test_where_strangers_are_few_groups_are_taken_at_their_word():
    strangers = Strangers()
    strangers.share = FEW / 2
    losses = torch.tensor([[0.1, 0.1, 0.1, 9.0], [9.0, 9.0, 9.0, 0.1]])
    context = torch.zeros(4, dtype=torch.long)
    assert strangers.deal_rows(losses, context, torch.Generator().manual_seed(0)).tolist() == [
        0,
        0,
        0,
        0,
    ]


def test_it_goes_on_with_the_share_it_had():
    strangers, other = Strangers(), Strangers()
    strangers.share = 0.2
    other.load_state_dict(strangers.state_dict())
    assert other.share == 0.2
