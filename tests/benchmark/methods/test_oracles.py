"""Oracles reach the noise, LEAF and its variants find two lines, a pooled model learns the mean."""

import numpy as np
import pytest
import torch

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sources import Function
from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.benchmark.experiments.measures import method_errors
from leaflearn.benchmark.methods import describe, make_method, train
from leaflearn.engines.networks import mlp
from method_toys import QUICK, clusters

NOISE = 0.1


def noisy_lines():
    sources = {
        "rising": Function(lambda x: x, -1.0, 1.0, noise=NOISE),
        "falling": Function(lambda x: -x, -1.0, 1.0, noise=NOISE),
    }
    return DomainSet(
        "lines",
        tuple(Domain(name, source, source.grid(101)) for name, source in sources.items()),
        n_groups=320,
        group_size=4,
    )


def trained(name, domains, seed=0, n_epochs=15):
    sampler = BilevelSampler(domains, groups_per_step=16, random_state=seed)
    problem = describe(
        sampler,
        lambda n_outputs: mlp(domains.input_shape[0], n_outputs, (16,)),
        n_epochs,
        seed,
        QUICK,
    )
    method = make_method(name, **({"n_peeked": 400} if name == "leaf-annealed" else {}))
    train(method, sampler, problem, n_epochs)
    return method


@pytest.mark.parametrize("shared", [False, True])
def test_the_domain_oracle_learns_each_function_down_to_the_noise(shared):
    sampler = BilevelSampler(noisy_lines(), groups_per_step=16)
    problem = describe(sampler, lambda n_outputs: mlp(1, n_outputs, (16,)), 15, optimizer=QUICK)
    oracle = make_method("mtl-oracle", shared=shared)
    history = train(oracle, sampler, problem, 15)
    # of the functions themselves
    assert max(method_errors(oracle, sampler.domains)["best"]) < NOISE / 2
    assert history[-1]["loss"] == pytest.approx(NOISE**2, rel=0.3)  # of rows with noise


def test_the_label_oracle_predicts_all_labels():
    oracle = trained("mll-oracle", clusters())
    assert max(method_errors(oracle, clusters())["label set"]) < 0.02


@pytest.mark.parametrize("name", ["leaf", "leaf-em", "leaf-extra", "leaf-annealed"])
def test_leaf_finds_the_lines_on_most_seeds(name):
    worst = [
        max(method_errors(trained(name, noisy_lines(), seed), noisy_lines())["best"])
        for seed in range(4)
    ]
    assert np.median(worst) < NOISE


def test_different_labels_separate_the_domains_without_groups_on_most_seeds():
    worst = [
        max(method_errors(trained("em-single", clusters(), seed, n_epochs=40), clusters())["best"])
        for seed in range(5)
    ]
    assert np.median(worst) < 0.1


def test_a_pooled_model_learns_the_mean():
    x = torch.linspace(-1, 1, 11)[:, None]
    answers = trained("erm", noisy_lines()).predict_each(x)
    assert answers.shape == (11, 1, 1)
    assert answers.abs().mean() < 0.15  # up and down cancel


def test_the_top_labels_of_a_pooled_model_are_those_of_the_domains():
    assert max(method_errors(trained("erm-top-k", clusters()), clusters())["label set"]) < 0.02
