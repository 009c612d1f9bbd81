"""`leaf-annealed`: the contexts that it reports, and the rows of other contexts in its groups."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.benchmark.experiments.measures import method_errors
from leaflearn.benchmark.experiments.parts import make_network
from leaflearn.benchmark.methods import describe, leaf_annealed, make_method, settings, train
from leaflearn.benchmark.methods.leaf_annealed import GroupMixture
from leaflearn.core.algorithm import score
from leaflearn.engines.networks import mlp
from leaflearn.engines.settings import TRAINING
from method_toys import QUICK, clusters


def prepare(domains, n_epochs, n_extra=0, n_peeked=400, **sampling):
    """An untrained method, its sampler, and the problem."""
    sampler = BilevelSampler(domains, groups_per_step=32, random_state=0, **sampling)
    method = make_method("leaf-annealed", n_peeked=n_peeked, n_extra=n_extra)
    problem = describe(
        sampler,
        make_network({"name": "mlp", "hidden": [16]}, domains.input_shape),
        n_epochs,
        0,
        QUICK,
    )
    method.prepare(problem)
    return method, sampler, problem


def explain_best(method, batches):
    return score(method.models, batches, method.loss).argmin(-1)


@pytest.mark.parametrize("progress", [0.0, TRAINING.given_share])
def test_the_reported_contexts_are_those_of_the_next_step(progress):
    method, sampler, problem = prepare(DATASETS["functions"](), 10, group_size=2)
    batches, _ = next(iter(sampler.epoch(0)))
    method.n_updates = round(progress * problem.n_steps)
    shares = torch.bincount(method.contexts(batches), minlength=3) / batches.n_groups
    numbers = method.update(batches)
    assert [numbers[f"usage_{k}"] for k in range(3)] == pytest.approx(shares.tolist())


def test_the_start_allocates_first_and_the_networks_later():
    method, sampler, problem = prepare(DATASETS["functions"](), 10, group_size=2)
    batches, truth = next(iter(sampler.epoch(0)))
    assert allocation_agreement(method.contexts(batches), truth.domain) > 0.9
    assert allocation_agreement(explain_best(method, batches), truth.domain) < 0.7, (
        "untrained networks do not know the contexts"
    )
    method.n_updates = problem.n_steps
    assert torch.equal(method.contexts(batches), explain_best(method, batches))


def test_one_row_of_another_context_does_not_change_its_group(monkeypatch):
    method, sampler, problem = prepare(clusters(), 10)
    method.n_updates = problem.n_steps
    batches, _ = next(iter(sampler.epoch(0)))
    is_outlier = torch.arange(len(batches.group)) % 4 == 3  # the last of each group of four
    losses = torch.stack([torch.where(is_outlier, 50.0, 0.1), torch.where(is_outlier, 0.1, 9.0)])
    monkeypatch.setattr(leaf_annealed, "score_rows", lambda *_: losses)
    assert method.contexts(batches).tolist() == [0] * batches.n_groups


@pytest.mark.parametrize(
    ("name", "group_size"), [("colored-digits", 1), ("colored-digits", 4), ("functions", 2)]
)
def test_a_model_without_a_context_is_never_trained(name, group_size):
    method, sampler, problem = prepare(
        DATASETS[name](), 10, n_extra=1, n_peeked=1500, group_size=group_size
    )
    (idle,) = method.is_idle.nonzero().flatten().tolist()
    # now the networks allocate, and each untrained network is the best one for some rows
    method.n_updates = problem.n_steps // 2
    batches, _ = next(iter(sampler.epoch(0)))
    assert (explain_best(method, batches) == idle).any()
    assert idle not in method.contexts(batches)
    assert method.update(batches)[f"usage_{idle}"] == 0


# Mixed groups


def trained(mixing, seed):
    sampler = BilevelSampler(clusters(), groups_per_step=16, random_state=seed, mixing=mixing)
    problem = describe(sampler, lambda n_outputs: mlp(2, n_outputs, (16,)), 30, seed, QUICK)
    method = make_method("leaf-annealed", n_peeked=400)
    train(method, sampler, problem, 30)
    return method


@pytest.mark.parametrize("mixing", [0.0, 0.1])
def test_the_share_of_outlier_rows_is_estimated(mixing):
    methods = [trained(mixing, seed) for seed in range(2)]
    assert np.mean([method.mixture.share for method in methods]) == pytest.approx(mixing, abs=0.03)
    assert np.mean([method_errors(method, clusters())["best"] for method in methods]) < 0.02


def test_one_outlier_row_does_not_outweigh_its_group():
    group = torch.zeros(4, dtype=torch.long)
    losses = torch.tensor([[0.1, 0.1, 0.1, 50.0], [9.0, 9.0, 9.0, 0.1]])
    assert losses.sum(1).argmin() == 1, "summed losses are dominated by it"
    assert GroupMixture().allocate(losses, group, 1).tolist() == [0]


def test_rows_keep_the_context_of_their_group_where_outlier_rows_are_few(monkeypatch):
    losses = torch.tensor([[0.1, 0.1, 0.1, 9.0], [9.0, 9.0, 9.0, 0.1]])
    context = torch.zeros(4, dtype=torch.long)

    def allocate_rows():
        mixture = GroupMixture()
        mixture.share = settings.LEAF_ANNEALED.min_outlier_share / 2
        generator = torch.Generator().manual_seed(0)
        return mixture.allocate_rows(losses, context, generator).tolist()

    assert allocate_rows() == [0, 0, 0, 0]
    never_few = replace(settings.LEAF_ANNEALED, min_outlier_share=1e-9)
    monkeypatch.setattr(settings, "LEAF_ANNEALED", never_few)
    mixture = GroupMixture()
    assert mixture.allocate_rows(losses, context, torch.Generator().manual_seed(0))[3] == 1


def test_the_estimated_share_is_restored():
    mixture, other = GroupMixture(), GroupMixture()
    mixture.share = 0.2
    other.load_state_dict(mixture.state_dict())
    assert other.share == 0.2
