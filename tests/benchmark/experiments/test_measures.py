"""What is measured of a method that has learnt."""

import pytest
import torch

from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.benchmark.experiments.measures import Trained, features, snapshot
from leaflearn.benchmark.experiments.method_errors import method_errors
from leaflearn.benchmark.methods import describe, make_method
from leaflearn.engines.networks import mlp
from method_toys import QUICK, clusters


def test_features_come_with_the_error_of_each_model_in_each_domain():
    sampler = BilevelSampler(clusters(), groups_per_step=16, random_state=0)
    method = make_method("leaf", n_contexts=3)
    method.prepare(describe(sampler, lambda n: torch.nn.Sequential(*mlp(2, n, (8,))), 1, 0, QUICK))
    errors = torch.tensor(
        features(Trained(method, sampler, 0.0, 0), n_rows=60)["errors"]
    )  # (K, n_domains)
    assert errors.shape == (3, 2)
    assert errors.min(0).values.tolist() == pytest.approx(
        method_errors(method, sampler.domains)["best"], abs=1e-4
    )


def test_a_snapshot_shows_the_contexts_that_are_learnt_with():
    sampler = BilevelSampler(
        DATASETS["functions"](), group_size=2, groups_per_epoch=250, redraw=False, random_state=0
    )
    method = make_method("leaf-annealed", n_peeked=500)
    method.prepare(describe(sampler, lambda n: mlp(1, n, (8,)), 10, 0, QUICK))
    shown = [point[2] for part in snapshot(method, sampler)["points"] for point in part]
    truth = [domain for _, told in sampler.epoch(0) for domain in told.domain for _ in range(2)]
    assert allocation_agreement([int(context) for context in shown], truth) > 0.95
