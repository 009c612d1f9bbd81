"""Properties of every registered method."""

import numpy as np
import pytest
import torch

from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.domains import Truth
from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.benchmark.methods import METHODS, describe, make_method
from leaflearn.benchmark.methods.running import make_oracle_info
from leaflearn.engines.networks import mlp

KINDS = {"regression": "functions", "classification": "colored-digits"}
CASES = [(name, kind) for name in METHODS for kind in sorted(METHODS[name].claims)]
FAST = {"leaf-annealed": {"n_peeked": 400}}


def flat_mlp(n_inputs):
    return lambda n_outputs: torch.nn.Sequential(
        torch.nn.Flatten(), *mlp(n_inputs, n_outputs, hidden=(32,))
    )


def prepared(name, kind, seed=0, n_epochs=3):
    sampler = BilevelSampler(
        DATASETS[KINDS[kind]](), group_size=4, groups_per_step=64, random_state=seed
    )
    problem = describe(
        sampler, flat_mlp(int(np.prod(sampler.domains.input_shape))), n_epochs, seed=seed
    )
    method = make_method(name, **FAST.get(name, {}))
    method.prepare(problem)
    return method, sampler


def run(method, sampler, epochs=1):
    losses = []
    for epoch in range(epochs):
        losses.append(
            np.mean(
                [
                    method.update(batches, make_oracle_info(method, truth))["loss"]
                    for batches, truth in sampler.epoch(epoch)
                ]
            )
        )
        method.end_epoch()
    return losses


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_learning_lowers_the_loss(name, kind):
    method, sampler = prepared(name, kind)
    losses = run(method, sampler, epochs=4)
    assert np.isfinite(losses).all()
    first = 1 if name == "label-prop" else 0  # it learns from the given labels only at first
    assert losses[-1] < losses[first]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_predictions_have_one_entry_per_row_context_and_output(name, kind):
    method, sampler = prepared(name, kind)
    run(method, sampler)
    x = torch.as_tensor(np.asarray(sampler.domains.domains[0].test.x[:7]), dtype=torch.float32)
    answers = method.predict_each(x)
    assert answers.shape[0] == 7
    assert answers.shape[2] == method.problem.n_outputs
    assert torch.isfinite(answers).all()
    if kind == "classification" and not method.gives_label_set:
        torch.testing.assert_close(answers.sum(-1), torch.ones(answers.shape[:2]))
    if method.gives_label_set:
        assert answers.shape[1] == 1


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_same_seed_gives_the_same_run_and_another_seed_another(name, kind):
    x = torch.as_tensor(
        np.asarray(DATASETS[KINDS[kind]]().domains[0].test.x[:5]), dtype=torch.float32
    )
    answers = []
    for seed in (1, 1, 2):
        method, sampler = prepared(name, kind, seed)
        run(method, sampler)
        answers.append(method.predict_each(x))
    torch.testing.assert_close(answers[0], answers[1], rtol=0, atol=0)
    assert not torch.equal(answers[0], answers[2])


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_loaded_state_continues_the_same_run(name, kind):
    whole, sampler = prepared(name, kind)
    run(whole, sampler)
    state = whole.state_dict()
    resumed, _ = prepared(name, kind)
    resumed.load_state_dict(state)
    batches, truth = next(iter(sampler.epoch(1)))
    for method in (whole, resumed):
        method.update(batches, make_oracle_info(method, truth))
        method.end_epoch()
    x = torch.as_tensor(np.asarray(sampler.domains.domains[0].test.x[:5]), dtype=torch.float32)
    torch.testing.assert_close(whole.predict_each(x), resumed.predict_each(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_methods_see_only_what_they_declare(name):
    truth = Truth(domain=np.array([0, 1]), names=("a", "b"), label_sets=np.array([[0, 1], [0, 1]]))
    oracle_info = make_oracle_info(make_method(name), truth)
    sees = METHODS[name].sees
    if not sees:
        assert oracle_info is None
        return
    assert (oracle_info.domain is not None) == ("domain" in sees)
    assert (oracle_info.label_sets is not None) == ("label_set" in sees)


def test_only_oracles_see_any_truth():
    assert {name for name, method in METHODS.items() if method.sees} == {"mtl-oracle", "mll-oracle"}


@pytest.mark.parametrize("name", METHODS)
def test_the_global_random_state_does_not_change(name):
    kind = sorted(METHODS[name].claims)[0]
    torch.manual_seed(3)
    before = torch.get_rng_state()
    method, sampler = prepared(name, kind)
    batches, truth = next(iter(sampler.epoch(0)))
    method.update(batches, make_oracle_info(method, truth))
    assert torch.equal(torch.get_rng_state(), before)


def test_an_unknown_method_gets_one_sentence():
    with pytest.raises(
        ValueError, match=r"^The method 'leav' is unknown; choose one of .*leaf.*\.$"
    ):
        make_method("leav")
