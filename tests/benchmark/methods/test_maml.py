"""MAML: it learns a useful initialization, both orders equal a loop, bad groups are refused."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from leaflearn.benchmark.methods import METHODS, Problem, make_method
from leaflearn.benchmark.methods.maml import MAML, as_table, halve
from leaflearn.core.batches import Batches


def small_network(n_outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, n_outputs)
    )


def problem(seed: int = 0, network: Callable[[int], nn.Module] = small_network) -> Problem:
    return Problem(
        (1,),
        1,
        False,
        3,
        100,
        None,
        network,
        lambda n_rows: sines(n_rows, 1, torch.Generator()),
        seed,
    )


def sines(n_groups: int, size: int, generator: torch.Generator) -> Batches:
    """Every group is a sine of its own phase and height."""
    phase = 2 * math.pi * torch.rand(n_groups, 1, 1, generator=generator)
    height = 0.5 + 1.5 * torch.rand(n_groups, 1, 1, generator=generator)
    x = 4 * torch.rand(n_groups, size, 1, generator=generator) - 2
    y = height * torch.sin(2 * x + phase)
    return Batches(x.flatten(0, 1), y.flatten(0, 1), torch.arange(n_groups).repeat_interleave(size))


def prepared(seed: int = 0, **settings: object) -> MAML:
    method = make_method("maml", **settings)
    assert isinstance(method, MAML)
    method.prepare(problem(seed))
    return method


def error(answer: Callable[[Tensor], Tensor], rows: Batches) -> float:
    return float((answer(rows.x) - rows.y).square().mean())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_learns_an_initialization_that_adapts_to_a_new_sine(seed: int) -> None:
    method = prepared(seed, optimizer="adam", outer_learning_rate=0.005, inner_learning_rate=0.1)
    untrained = prepared(seed, inner_learning_rate=0.1)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(120):
        method.update(sines(16, 20, generator))
    before, after, without_learning = [], [], []
    for number in range(10):
        seen, asked = halved(sines(1, 200, torch.Generator().manual_seed(100 + number)))
        before.append(error(lambda x: method.predict_each(x)[:, 0], asked))
        after.append(error(method.adapt(seen.x, seen.y), asked))
        without_learning.append(error(untrained.adapt(seen.x, seen.y), asked))
    assert sum(after) < 0.5 * sum(before)
    assert sum(after) < 0.7 * sum(without_learning)


def halved(rows: Batches) -> tuple[Batches, Batches]:
    n = len(rows.x) // 2
    return Batches(rows.x[:n], rows.y[:n], rows.group[:n]), Batches(
        rows.x[n:], rows.y[n:], rows.group[n:]
    )


def outer_gradient(method: MAML, batches: Batches) -> list[Tensor]:
    """As the method has it: one update of plain descent by 1, read off the parameters."""
    method.optimizer = torch.optim.SGD(method.network.parameters(), lr=1.0)
    before = [parameter.detach().clone() for parameter in method.network.parameters()]
    method.update(batches)
    return [
        old - new.detach() for old, new in zip(before, method.network.parameters(), strict=True)
    ]


def looped_gradient(method: MAML, batches: Batches, create_graph: bool) -> list[Tensor]:
    """The textbook, one group after the other, with autograd alone."""
    start = list(method.network.parameters())
    total = torch.zeros(())
    for b in range(batches.n_groups):
        x, y = batches.x[batches.group == b], batches.y[batches.group == b]
        n = len(x) // 2
        fast = start
        for _ in range(method.inner_steps):
            slopes = torch.autograd.grad(
                run_by_hand(fast, x[:n], y[:n]), fast, create_graph=create_graph
            )
            fast = [
                value - method.inner_learning_rate * slope
                for value, slope in zip(fast, slopes, strict=True)
            ]
        total = total + run_by_hand(fast, x[n:], y[n:]) / batches.n_groups
    return list(torch.autograd.grad(total, start))


def run_by_hand(parameters: list[Tensor], x: Tensor, y: Tensor) -> Tensor:
    w1, b1, w2, b2, w3, b3 = parameters
    prediction = torch.tanh(torch.tanh(x @ w1.T + b1) @ w2.T + b2) @ w3.T + b3
    return (prediction - y).square().mean()


def ragged() -> Batches:
    """Groups of 2, 5 and 4 rows, shuffled."""
    group = torch.tensor([0, 1, 2, 1, 1, 2, 0, 1, 2, 1, 2])
    generator = torch.Generator().manual_seed(1)
    return Batches(
        torch.randn(11, 1, generator=generator), torch.randn(11, 1, generator=generator), group
    )


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "batches", [sines(5, 4, torch.Generator().manual_seed(0)), ragged()], ids=["even", "ragged"]
)
def test_a_batch_of_groups_equals_a_loop_over_groups(order: int, batches: Batches) -> None:
    method = prepared(order=order, inner_learning_rate=0.2, inner_steps=3)
    by_loop = looped_gradient(method, batches, create_graph=order == 2)
    for ours, theirs in zip(outer_gradient(method, batches), by_loop, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=1e-4)


def test_the_second_order_is_not_the_first() -> None:
    batches = sines(5, 4, torch.Generator().manual_seed(0))
    first, second = (
        outer_gradient(prepared(order=order, inner_learning_rate=0.2), batches) for order in (1, 2)
    )
    apart = sum(float((a - b).square().sum()) for a, b in zip(first, second, strict=True))
    assert apart > 0.01 * sum(float(a.square().sum()) for a in first)


def test_adapting_and_later_training_do_not_affect_each_other() -> None:
    method, rows = prepared(), sines(1, 20, torch.Generator().manual_seed(3))
    start = method.predict_each(rows.x)
    adapted = method.adapt(rows.x, rows.y)
    first = adapted(rows.x)
    assert first.shape == (20, 1)
    assert torch.equal(method.predict_each(rows.x), start)
    assert not torch.equal(first, start[:, 0])
    method.update(sines(8, 4, torch.Generator().manual_seed(4)))
    assert torch.equal(adapted(rows.x), first)


def test_predictions_before_adapting_are_those_of_the_initialization() -> None:
    method, x = prepared(), torch.linspace(-1, 1, 7)[:, None]
    assert torch.equal(method.predict_each(x), method.network(x).detach()[:, None])


def test_a_group_of_one_row_is_refused() -> None:
    single = Batches(torch.zeros(3, 1), torch.zeros(3, 1), torch.tensor([0, 0, 1]))
    with pytest.raises(
        ValueError,
        match=r"The smallest of 2 groups has 1 rows, but a meta-learner needs at least "
        r"2.*group_size=4",
    ):
        prepared().update(single)


def test_targets_of_a_wrong_shape_are_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r"2 inputs to adapt to have targets of shape \(2,\), but \(2, 1\) was expected",
    ):
        prepared().adapt(torch.zeros(2, 1), torch.zeros(2))
    with pytest.raises(ValueError, match="There are no rows to adapt to"):
        prepared().adapt(torch.zeros(0, 1), torch.zeros(0, 1))


def test_every_row_is_in_one_half_and_padding_has_weight_zero() -> None:
    batches = ragged()
    parts = halve(batches)
    assert sorted([*parts.support.tolist(), *parts.query.tolist()]) == list(range(11))
    x, _, weight = as_table(batches, parts.query)
    assert weight.sum(1).tolist() == [1.0, 3.0, 2.0]
    assert sorted(x[weight > 0].flatten().tolist()) == sorted(
        batches.x[parts.query].flatten().tolist()
    )


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="`order` is 3, but must be 1 or 2"):
        make_method("maml", order=3)
    with pytest.raises(ValueError, match="`optimizer` is 'rmsprop'"):
        make_method("maml", optimizer="rmsprop")
    with pytest.raises(ValueError, match="batch norm and dropout"):
        MAML().prepare(
            problem(
                network=lambda n_outputs: nn.Sequential(
                    nn.Linear(1, 4), nn.BatchNorm1d(4), nn.Linear(4, n_outputs)
                )
            )
        )


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_saved_method_resumes_exactly(optimizer: str) -> None:
    generator = torch.Generator().manual_seed(0)
    stream = [sines(4, 4, generator) for _ in range(6)]
    whole, other = prepared(seed=0, optimizer=optimizer), prepared(seed=9, optimizer=optimizer)
    for batches in stream[:3]:
        whole.update(batches)
    other.load_state_dict(whole.state_dict())
    for batches in stream[3:]:
        assert whole.update(batches) == other.update(batches)
    assert torch.equal(whole.predict_each(stream[0].x), other.predict_each(stream[0].x))


def test_it_is_not_an_oracle() -> None:
    assert METHODS["maml"].sees == frozenset()
