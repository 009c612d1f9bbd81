"""The errors of methods by the protocol that fits each."""

import numpy as np
import pytest
import torch

from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.benchmark.experiments.method_errors import method_errors
from leaflearn.benchmark.methods import METHODS, describe, make_method
from leaflearn.engines.networks import mlp

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


def test_an_answer_that_is_right_in_one_context_has_no_error_there():
    class OracleInfo:
        gives_label_set = False

        def predict_each(self, x):
            return torch.stack([self.first(x), torch.zeros(len(x), 1)], 1)

    domains = DATASETS["functions"]()
    method = OracleInfo()
    method.first = lambda x: torch.as_tensor(domains.domains[0].test.y)[:, None].float()
    errors = method_errors(method, domains)
    assert errors["best"][0] == pytest.approx(0.0, abs=1e-6)
    assert errors["identified"][0] == pytest.approx(0.0, abs=1e-6)
    assert min(errors["best"][1:]) > 0.3
