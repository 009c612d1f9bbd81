import pytest
import torch
from torch import nn

from leaflearn.benchmark.methods import Problem, make_method
from leaflearn.core.batches import Batches
from leaflearn.engines.networks import mlp

N_CLASSES = 5


def lines(seed=0):
    return Problem(
        (1,),
        1,
        False,
        2,
        500,
        None,
        lambda n_outputs: mlp(1, n_outputs, (32,)),
        lambda n_rows: two_lines(torch.Generator())[1],
        seed,
    )


def flat():
    return Problem(
        (4,),
        N_CLASSES,
        True,
        3,
        10,
        20,
        lambda n_outputs: mlp(4, n_outputs, (8,)),
        lambda n_rows: rows_of(flat()),
    )


def images():
    def network(n_outputs):
        return nn.Sequential(
            nn.Conv2d(3, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(4 * 36, n_outputs),
        )

    return Problem((3, 8, 8), N_CLASSES, True, 3, 10, 20, network, lambda n_rows: rows_of(images()))


def rows_of(problem, n_rows=20, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n_rows, *problem.input_shape, generator=generator)
    return Batches(
        x, torch.randint(N_CLASSES, (n_rows,), generator=generator), torch.arange(n_rows) // 4
    )


def two_lines(generator, n_groups=16, group_size=8):
    """Groups of points on y = x or on y = -x."""
    sign = torch.randint(2, (n_groups,), generator=generator)
    group = torch.arange(n_groups).repeat_interleave(group_size)
    x = 4 * torch.rand(len(group), 1, generator=generator) - 2
    return sign, Batches(x, (2.0 * sign - 1)[group][:, None] * x, group)


def prepared(problem, name="learned-allocation", **settings):
    method = make_method(name, **settings)
    method.prepare(problem)
    return method


def run(seed, name):
    """A trained method with its losses; the run ends early where nothing is left to learn."""
    generator, method, losses = torch.Generator().manual_seed(seed), prepared(lines(seed), name), []
    while len(losses) < 500 and (not losses or losses[-1] > 0.02):
        losses.append(method.update(two_lines(generator)[1])["loss"])
    return method, losses


def worst_error(method):
    """The mean squared error on the line that is known worse, by the model that knows it best."""
    x = torch.linspace(-2, 2, 41)[:, None]
    return max(
        float((method.predict_each(x) - sign * x[:, None]).square().mean((0, 2)).min())
        for sign in (-1, 1)
    )


def test_most_runs_learn_both_lines_where_one_model_learns_their_mean():
    runs = [run(seed, "learned-allocation") for seed in range(3)]
    assert (
        sum(worst_error(method) < 0.2 and losses[-1] < 0.1 * losses[0] for method, losses in runs)
        >= 2
    )
    assert worst_error(run(0, "erm")[0]) > 1.0
    method = min(runs, key=lambda pair: pair[1][-1])[0]
    sign, batches = two_lines(torch.Generator().manual_seed(99), 100)
    right = (method.contexts(batches) == sign).double().mean()
    assert max(right, 1 - right) > 0.95


def test_the_allocation_learns_with_the_models():
    method = prepared(lines())
    method.update(two_lines(torch.Generator().manual_seed(0))[1])
    assert all(
        parameter.grad.any()
        for parameter in [method.reader.decide.weight, *method.models.parameters()]
    )


def test_the_weights_of_a_group_depend_only_on_its_rows_in_any_order():
    method, (_, batches) = (
        prepared(lines()),
        two_lines(torch.Generator().manual_seed(0), n_groups=3),
    )
    order = torch.randperm(24, generator=torch.Generator().manual_seed(1))
    shuffled = Batches(batches.x[order], batches.y[order], batches.group[order])
    alone = Batches(batches.x[8:16], batches.y[8:16], torch.zeros(8, dtype=torch.long))
    read = method.reader(batches)
    assert torch.allclose(read, method.reader(shuffled), atol=1e-6)
    assert torch.allclose(read[1:2], method.reader(alone), atol=1e-6)
    assert torch.allclose(read.sum(-1), torch.ones(3))


@pytest.mark.parametrize("problem", [flat, images])
def test_every_model_predicts_probabilities(problem):
    method = prepared(problem(), n_contexts=2)
    numbers = method.update(rows_of(problem()))
    assert numbers["usage_0"] + numbers["usage_1"] == pytest.approx(1.0)
    answers = method.predict_each(rows_of(problem(), 7).x)
    assert answers.shape == (7, 2, N_CLASSES)
    assert torch.allclose(answers.sum(-1), torch.ones(7, 2))
    assert method.contexts(rows_of(problem())).shape == (5,)


@pytest.mark.parametrize("problem", [flat, images])
def test_a_run_resumes_exactly_from_its_state(problem):
    whole, resumed = prepared(problem()), prepared(problem())
    whole.update(rows_of(problem()))
    resumed.load_state_dict(whole.state_dict())
    assert [whole.update(rows_of(problem(), seed=1)) for _ in range(3)] == [
        resumed.update(rows_of(problem(), seed=1)) for _ in range(3)
    ]
    assert torch.equal(
        whole.predict_each(rows_of(problem()).x), resumed.predict_each(rows_of(problem()).x)
    )
