from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

from leaflearn.benchmark.methods import Problem, make_method
from leaflearn.benchmark.methods.optimizers import sgd
from leaflearn.benchmark.methods.sparse_moe import append_targets, keep_top_1
from leaflearn.core.batches import Batches
from leaflearn.engines.networks import mlp

N_CLASSES = 5


def line(seed=0):
    return Problem(
        (1,),
        1,
        False,
        2,
        300,
        None,
        lambda n_outputs: nn.Linear(1, n_outputs),
        lambda n_rows: rows_of(line(), n_rows),
        seed,
    )


def flat(n_domains=3):
    return Problem(
        (4,),
        N_CLASSES,
        True,
        n_domains,
        10,
        20,
        lambda n_outputs: mlp(4, n_outputs, (8,)),
        lambda n_rows: rows_of(flat()),
    )


def images(n_domains=2):
    def network(n_outputs):
        return nn.Sequential(
            nn.Conv2d(3, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(4 * 36, n_outputs),
        )

    return Problem(
        (3, 8, 8), N_CLASSES, True, n_domains, 10, 20, network, lambda n_rows: rows_of(images())
    )


def rows_of(problem, n_rows=20, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n_rows, *problem.input_shape, generator=generator)
    if not problem.is_classification:
        return two_regions(n_rows, generator)[1]
    return Batches(
        x, torch.randint(N_CLASSES, (n_rows,), generator=generator), torch.arange(n_rows) // 2
    )


def two_regions(n_rows, generator):
    """Different lines left and right of zero; y has the same values on both sides."""
    side = torch.randint(2, (n_rows,), generator=generator)
    x = (2.0 * side - 1)[:, None] * (1 + torch.rand(n_rows, 1, generator=generator))
    return side, Batches(x, 2 * x.abs() - 3, torch.arange(n_rows))


def prepared(problem, **settings):
    method = make_method("sparse-moe", **settings)
    method.prepare(problem)
    return method


def gate_gradients(method):
    return [parameter.grad for parameter in method.gate.parameters()]


@pytest.mark.parametrize("problem", [line, flat, images])
def test_the_printed_gate_has_no_gradient_at_all(problem):
    method = prepared(problem())
    for seed in range(3):
        method.update(rows_of(problem(), seed=seed))
        assert all(
            gradient is not None and not gradient.any() for gradient in gate_gradients(method)
        )


@pytest.mark.parametrize("problem", [line, flat, images])
def test_the_switch_gate_has_a_gradient_even_without_the_balance_penalty(problem):
    method = prepared(problem(), gate="switch", balance=0.0)
    method.update(rows_of(problem()))
    assert all(gradient.any() for gradient in gate_gradients(method))


def test_the_experts_of_the_printed_gate_learn():
    method = prepared(line())
    batches = two_regions(200, torch.Generator().manual_seed(0))[1]
    losses = [method.update(batches)["loss"] for _ in range(60)]
    assert sum(losses[-10:]) < 0.8 * sum(losses[:10])


def test_the_switch_gate_separates_two_regions_in_most_runs():
    assert sum(parting(seed) > 0.95 for seed in range(3)) >= 2


def parting(seed):
    """The share of rows that are routed by their side."""
    generator, method = torch.Generator().manual_seed(seed), prepared(line(seed), gate="switch")
    for _ in range(300):
        method.update(two_regions(64, generator)[1])
    side, batches = two_regions(500, generator)
    right = (method.experts(batches) == side).double().mean()
    return float(max(right, 1 - right))


@pytest.mark.parametrize("gate", ["paper", "switch"])
def test_an_expert_learns_from_its_own_rows_only(gate):
    method = prepared(replace(line(), optimizer=partial(sgd, learning_rate=0.0)), gate=gate)
    nn.init.zeros_(method.gate.noise.weight)
    with torch.no_grad():
        # the side decides, whatever the noise
        method.gate.clean.weight.copy_(torch.tensor([[1e3, 0.0], [-1e3, 0.0]]))
    batches = Batches(torch.ones(6, 1), torch.ones(6, 1), torch.arange(6))
    numbers = method.update(batches)
    first, second = method.models.parameters()[0].grad
    assert first.any()
    assert not second.any()
    assert (numbers["usage_0"], numbers["usage_1"]) == (1.0, 0.0)


def test_top_1_keeps_one_expert_per_row_even_in_ties():
    logits = torch.tensor([[0.0, 2.0, 1.0], [1.0, 1.0, 1.0], [-3.0, -2.0, -2.0]])
    kept = keep_top_1(logits)
    assert torch.isfinite(kept).sum(-1).tolist() == [1, 1, 1]
    assert kept.argmax(-1).tolist() == [1, 0, 1]
    assert torch.softmax(kept, -1).sum(-1).tolist() == [1.0, 1.0, 1.0]


def test_noise_reroutes_rows_in_training_only():
    method = prepared(line())
    joined = torch.ones(200, 2)
    noisy = method.gate(joined, method.generator).argmax(-1)
    assert 0 < noisy.double().mean() < 1
    assert (
        len(
            method.experts(
                Batches(torch.ones(200, 1), torch.ones(200, 1), torch.arange(200))
            ).unique()
        )
        == 1
    )


def test_labels_become_planes_of_an_image_and_columns_of_a_table():
    planes = append_targets(torch.zeros(2, 3, 8, 8), torch.tensor([4, 1]), N_CLASSES)
    assert planes.shape == (2, 8, 8, 8)
    assert planes[0, 3 + 4].unique().tolist() == [1.0]
    assert planes[0].sum() == 64
    assert append_targets(torch.zeros(2, 3), torch.tensor([4, 1]), N_CLASSES)[1].tolist() == [
        0,
        0,
        0,
        0,
        1,
        0,
        0,
        0,
    ]
    assert append_targets(torch.zeros(1, 1), torch.tensor([[7.0, 8.0]])).tolist() == [
        [0.0, 7.0, 8.0]
    ]


@pytest.mark.parametrize("hidden", [0, 6])
@pytest.mark.parametrize(("problem", "n_domains"), [(flat, 3), (images, 2)])
def test_every_expert_predicts_probabilities(problem, n_domains, hidden):
    method = prepared(problem(), gate="switch", hidden=hidden)
    method.update(rows_of(problem()))
    answers = method.predict_each(rows_of(problem(), 7).x)
    assert answers.shape == (7, n_domains, N_CLASSES)
    assert torch.allclose(answers.sum(-1), torch.ones(7, n_domains))


@pytest.mark.parametrize("gate", ["paper", "switch"])
@pytest.mark.parametrize("problem", [flat, images])
def test_a_run_resumes_exactly_from_its_state(problem, gate):
    whole, resumed = prepared(problem(), gate=gate), prepared(problem(), gate=gate)
    whole.update(rows_of(problem()))
    resumed.load_state_dict(whole.state_dict())
    assert [whole.update(rows_of(problem(), seed=1)) for _ in range(3)] == [
        resumed.update(rows_of(problem(), seed=1)) for _ in range(3)
    ]
    assert torch.equal(
        whole.predict_each(rows_of(problem()).x), resumed.predict_each(rows_of(problem()).x)
    )


def test_an_unknown_gate_is_refused():
    with pytest.raises(
        ValueError,
        match=r"`gate` is 'soft'; choose 'paper', as printed, or 'switch', which can learn.",
    ):
        make_method("sparse-moe", gate="soft")
