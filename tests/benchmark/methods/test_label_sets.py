"""Methods for label sets also learn with many labels and large steps."""

import numpy as np
import pytest

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sources import Examples
from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.benchmark.experiments.measures import method_errors
from leaflearn.benchmark.experiments.parts import make_network, make_optimizer
from leaflearn.benchmark.methods import describe, make_method, train

N_CLASSES, N_SUPERCLASSES = 100, 20


def hierarchy(seed):
    """Clusters in many dimensions, called by their number or by that of their superclass."""
    rng = np.random.default_rng(seed)
    centers = np.abs(rng.normal(size=(N_CLASSES, 300))).astype(np.float32)

    def draw(n):
        of_class = rng.integers(N_CLASSES, size=n)
        return (centers[of_class] + 0.3 * rng.normal(size=(n, 300))).astype(np.float32), of_class

    (x, c), (x_test, c_test) = draw(4000), draw(500)
    called = [
        ("superclass", lambda c: c // (N_CLASSES // N_SUPERCLASSES)),
        ("class", lambda c: c + N_SUPERCLASSES),
    ]
    domains = tuple(
        Domain(name, Examples(x, call(c)), Examples(x_test, call(c_test))) for name, call in called
    )
    return DomainSet(
        "clusters", domains, 2000, 2, classes=tuple(map(str, range(N_CLASSES + N_SUPERCLASSES)))
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_large_steps_with_many_labels_do_not_deactivate_the_network(seed):
    domains = hierarchy(seed)
    sampler = BilevelSampler(domains, random_state=seed, group_size=2, groups_per_step=64)
    network, optimizer = (
        make_network({"name": "mlp", "hidden": [64]}, domains.input_shape),
        make_optimizer({"name": "sgd", "learning_rate": 0.1}),
    )
    method = make_method("mll-oracle")
    train(method, sampler, describe(sampler, network, 10, seed, optimizer), 10)
    assert max(method_errors(method, domains)["label set"]) < 0.1
