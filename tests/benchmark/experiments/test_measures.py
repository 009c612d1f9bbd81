"""What is measured of a trained method, by the protocols that apply to it."""

import numpy as np
import pytest
import torch

from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.benchmark.experiments.measures import Trained, features, method_errors, snapshot
from leaflearn.benchmark.methods import METHODS, describe, make_method
from leaflearn.engines.networks import mlp
from method_toys import QUICK, clusters

PROTOCOLS = {"maml": {"adapted"}, "modular": {"adapted"}}
FAST = {"leaf-annealed": {"n_peeked": 200}}


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in METHODS for kind in sorted(METHODS[name].claims)]
)
def test_every_method_has_an_error_in_every_domain(name, kind):
    data = "functions" if kind == "regression" else "colored-digits"
    sampler = BilevelSampler(DATASETS[data](), group_size=4)
    n_inputs = int(np.prod(sampler.domains.input_shape))
    method = make_method(name, **FAST.get(name, {}))
    method.prepare(
        describe(
            sampler,
            lambda n: torch.nn.Sequential(torch.nn.Flatten(), *mlp(n_inputs, n, hidden=(8,))),
            n_epochs=1,
        )
    )
    errors = method_errors(method, sampler.domains)
    assert set(errors) == PROTOCOLS.get(
        name, {"label set"} if method.gives_label_set else {"best", "identified"}
    )
    assert all(
        len(each) == len(sampler.domains) and np.isfinite(each).all() for each in errors.values()
    )


def test_a_context_that_predicts_a_domain_exactly_has_no_error_there():
    class PerfectInFirst:
        gives_label_set = False

        def predict_each(self, x):
            return torch.stack([self.first(x), torch.zeros(len(x), 1)], 1)

    domains = DATASETS["functions"]()
    method = PerfectInFirst()
    method.first = lambda x: torch.as_tensor(domains.domains[0].test.y)[:, None].float()
    errors = method_errors(method, domains)
    assert errors["best"][0] == pytest.approx(0.0, abs=1e-6)
    assert errors["identified"][0] == pytest.approx(0.0, abs=1e-6)
    assert min(errors["best"][1:]) > 0.3


def test_features_come_with_the_error_of_each_model_in_each_domain():
    sampler = BilevelSampler(clusters(), groups_per_step=16, random_state=0)
    method = make_method("leaf", n_contexts=3)
    method.prepare(describe(sampler, lambda n: torch.nn.Sequential(*mlp(2, n, (8,))), 1, 0, QUICK))
    found = features(Trained(method, sampler, 0.0, 0), n_rows=60)
    errors = torch.tensor(found["errors"])  # (K, n_domains)
    assert errors.shape == (3, 2)
    assert errors.min(0).values.tolist() == pytest.approx(
        method_errors(method, sampler.domains)["best"], abs=1e-4
    )


def test_a_snapshot_shows_the_contexts_of_training():
    sampler = BilevelSampler(
        DATASETS["functions"](), group_size=2, groups_per_epoch=250, redraw=False, random_state=0
    )
    method = make_method("leaf-annealed", n_peeked=500)
    method.prepare(describe(sampler, lambda n: mlp(1, n, (8,)), 10, 0, QUICK))
    shown = [point[2] for part in snapshot(method, sampler)["points"] for point in part]
    domains = [domain for _, truth in sampler.epoch(0) for domain in truth.domain for _ in range(2)]
    assert allocation_agreement([int(context) for context in shown], domains) > 0.95
