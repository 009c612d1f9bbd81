"""Every method uses the task's optimizer and its learning rate schedule."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.benchmark.methods import METHODS, describe, make_method
from leaflearn.benchmark.methods.optimizers import adam, sgd
from leaflearn.benchmark.methods.running import make_oracle_info
from leaflearn.engines.networks import mlp

OWN = {"maml", "modular"}  # their optimizers are part of the method


def prepared(name, **settings):
    kind = {"regression": "functions", "classification": "colored-digits"}[
        sorted(METHODS[name].claims)[0]
    ]
    sampler = BilevelSampler(DATASETS[kind](), group_size=4)
    network = {
        "functions": lambda n: mlp(1, n, (8,)),
        "colored-digits": lambda n: torch.nn.Sequential(torch.nn.Flatten(), *mlp(192, n, (8,))),
    }
    method = make_method(name, **({"n_peeked": 200} if name == "leaf-annealed" else {}))
    method.prepare(replace(describe(sampler, network[kind], n_epochs=1), **settings))
    return method, sampler


@pytest.mark.parametrize("name", sorted(set(METHODS) - OWN))
def test_the_task_chooses_the_optimizer(name):
    method, _ = prepared(name, optimizer=adam)
    assert [optimizer.defaults["betas"] for optimizer in method.optimizers()] == [(0.5, 0.999)]


def test_the_learning_rate_decreases_linearly_to_zero():
    method, sampler = prepared("leaf", optimizer=partial(sgd, learning_rate=0.4), slows_down=True)
    rates = []
    for batches, truth in sampler.epoch(0):
        method.update(batches, make_oracle_info(method, truth))
        rates.append(method.optimizer.param_groups[0]["lr"])
    steps = len(sampler)
    assert rates == pytest.approx([0.4 * (1 - step / steps) for step in range(steps)])
