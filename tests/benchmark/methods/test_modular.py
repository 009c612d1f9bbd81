"""Modular meta-learning: it learns modules and finds the modules of a group."""

from itertools import combinations, combinations_with_replacement

import pytest
import torch
from torch import Tensor

from leaflearn.benchmark.methods import METHODS, Problem, make_method
from leaflearn.benchmark.methods.modular import Modular, ModuleOutputs, anneal
from leaflearn.core.batches import Batches
from leaflearn.engines.networks import mlp

# the domains are the sums of two of them
BASES = (torch.abs, lambda x: torch.sin(3 * x), lambda x: 1.0 - x)
PAIRS = list(combinations(range(len(BASES)), 2))


def problem(seed: int = 0, n_steps: int = 100) -> Problem:
    return Problem(
        (1,),
        1,
        False,
        len(PAIRS),
        n_steps,
        None,
        lambda n: mlp(1, n),
        lambda n: sums(n, 1, torch.Generator())[0],
        seed,
    )


def sums(n_groups: int, size: int, generator: torch.Generator) -> tuple[Batches, Tensor]:
    """Every group is the sum of two functions; which two, in the second place."""
    pair = torch.randint(len(PAIRS), (n_groups,), generator=generator)
    x = 4 * torch.rand(n_groups * size, 1, generator=generator) - 2
    group = torch.arange(n_groups).repeat_interleave(size)
    answers = torch.stack([BASES[i](x) + BASES[j](x) for i, j in PAIRS])  #     (3, N, 1)
    return Batches(x, answers[pair[group], torch.arange(len(x))], group), pair


def prepared(seed: int = 0, n_steps: int = 100, **settings: object) -> Modular:
    method = make_method("modular", **settings)
    assert isinstance(method, Modular)
    method.prepare(problem(seed, n_steps))
    return method


class KnownModules:
    """Modules that are the functions themselves."""

    def __call__(self, x: Tensor) -> Tensor:
        return torch.stack([base(x) for base in (*BASES, torch.cos, torch.exp)])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("structure", list(combinations_with_replacement(range(5), 2)))
def test_it_finds_the_right_ones_of_known_modules(structure: tuple[int, int], seed: int) -> None:
    method, modules = prepared(seed), KnownModules()
    method.modules = modules  # type: ignore[assignment]
    x = torch.linspace(-2, 2, 9)[:, None]
    y = modules(x)[list(structure)].sum(0)
    assert tuple(method.find_structure(x, y).tolist()) == structure
    torch.testing.assert_close(method.adapt(x, y)(x), y)


def test_all_groups_are_searched_at_once_and_independently() -> None:
    batches, pair = sums(60, 4, torch.Generator().manual_seed(5))
    rows = ModuleOutputs(KnownModules()(batches.x), batches.y, batches.group, batches.n_groups)
    last, best = anneal(rows, 2, torch.logspace(0, -4, 100), torch.Generator().manual_seed(0))
    right = torch.tensor(PAIRS)[pair]
    # a search now and then ends where no single change helps
    assert (best.sort().values == right).all(1).float().mean() > 0.9
    # cold at the end, so it stays with what it found
    assert (last.sort().values == right).all(1).float().mean() > 0.9


def test_a_hot_search_accepts_worse_structures_and_a_cold_one_does_not() -> None:
    batches, _ = sums(60, 4, torch.Generator().manual_seed(5))
    rows = ModuleOutputs(KnownModules()(batches.x), batches.y, batches.group, batches.n_groups)
    hot, cold = (
        float(
            rows.loss(
                anneal(rows, 2, torch.full((100,), heat), torch.Generator().manual_seed(0))[0]
            ).mean()
        )
        for heat in (1e6, 1e-3)
    )
    assert cold < 0.1 * hot


def test_loss_of_a_group_is_the_mean_of_its_own_rows() -> None:
    # (2 modules, 3 rows, 1)
    outputs = torch.tensor([[[0.0], [1.0], [2.0]], [[10.0], [20.0], [30.0]]])
    rows = ModuleOutputs(outputs, torch.zeros(3, 1), torch.tensor([1, 0, 1]), 2)
    assert rows.loss(torch.tensor([[0, 1], [0, 0]])).tolist() == [21.0**2, (0.0 + 4.0**2) / 2]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_learns_modules_whose_sums_are_better_than_one_model(seed: int) -> None:
    method = prepared(seed, n_steps=200, learning_rate=0.01)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(200):
        method.update(sums(32, 4, generator)[0])
    x = torch.linspace(-2, 2, 200)[:, None]
    answers = torch.stack([BASES[i](x) + BASES[j](x) for i, j in PAIRS])  #     (3, 200, 1)
    best_of_one_model = float((answers - answers.mean(0)).square().mean())
    adapted = torch.stack([method.adapt(x[::20], y[::20])(x) for y in answers])
    structures = [tuple(method.find_structure(x[::20], y[::20]).tolist()) for y in answers]
    assert float((adapted - answers).square().mean()) < 0.4 * best_of_one_model
    assert len(set(structures)) == len(PAIRS)  # every domain has a structure of its own


def test_modules_learn_from_query_rows_only() -> None:
    batches, _ = sums(8, 4, torch.Generator().manual_seed(0))
    is_query = torch.arange(len(batches.x)) % 4 >= 2
    silent = Batches(
        batches.x, torch.where(is_query[:, None], torch.zeros(()), batches.y), batches.group
    )
    method = prepared(n_modules=1)  # one structure only, so the support decides nothing
    before, other = [p.detach().clone() for p in method.modules.parameters()], prepared(n_modules=1)
    other_support = Batches(
        batches.x, torch.where(is_query[:, None], torch.zeros(()), batches.y + 5), batches.group
    )
    method.update(silent)
    other.update(other_support)
    assert not all(
        torch.equal(a, b) for a, b in zip(before, method.modules.parameters(), strict=True)
    )
    assert all(
        torch.equal(a, b)
        for a, b in zip(other.modules.parameters(), method.modules.parameters(), strict=True)
    )


def test_adapting_does_not_affect_training() -> None:
    asked, unasked = prepared(), prepared()
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        batches, _ = sums(8, 4, generator)
        assert asked.update(batches) == unasked.update(batches)
        adapted = asked.adapt(batches.x[:4], batches.y[:4])
        first = adapted(batches.x)
        asked.predict_each(batches.x)
    asked.update(sums(8, 4, generator)[0])
    assert torch.equal(adapted(batches.x), first)  # a snapshot: later learning does not change it


def test_predictions_before_adapting_are_the_mean_of_all_structures() -> None:
    method, x = prepared(n_modules=3), torch.linspace(-1, 1, 5)[:, None]
    outputs = method.modules(x).detach()
    mean = torch.stack([outputs[i] + outputs[j] for i in range(3) for j in range(3)]).mean(0)
    torch.testing.assert_close(method.predict_each(x), mean[:, None])


def test_modules_have_the_paper_s_sizes_and_the_problem_s_inputs() -> None:
    method = Modular()
    method.prepare(
        Problem(
            (2, 3),
            4,
            False,
            2,
            10,
            None,
            lambda n: mlp(6, n),
            lambda n: sums(n, 1, torch.Generator())[0],
        )
    )
    assert [tuple(p.shape) for p in method.modules.modules()[0].parameters()] == [
        (16, 6),
        (16,),
        (16, 16),
        (16,),
        (4, 16),
        (4,),
    ]
    assert len(method.modules.modules()) == 5
    assert method.predict_each(torch.zeros(7, 2, 3)).shape == (7, 1, 4)


def test_a_group_of_one_row_and_a_rising_temperature_are_refused() -> None:
    with pytest.raises(ValueError, match="The smallest of 1 groups has 1 rows"):
        prepared().update(Batches(torch.zeros(1, 1), torch.zeros(1, 1), torch.tensor([0])))
    with pytest.raises(
        ValueError,
        match=r"`hot` is 0.1 and `cold` is 1.0, but `hot` must be at least `cold`",
    ):
        make_method("modular", hot=0.1, cold=1.0)


def test_a_saved_method_resumes_exactly() -> None:
    generator = torch.Generator().manual_seed(0)
    stream = [sums(8, 4, generator)[0] for _ in range(6)]
    whole, other = prepared(seed=0), prepared(seed=9)
    for batches in stream[:3]:
        whole.update(batches)
    other.load_state_dict(whole.state_dict())
    for batches in stream[3:]:
        assert whole.update(batches) == other.update(batches)
    assert torch.equal(whole.predict_each(stream[0].x), other.predict_each(stream[0].x))


def test_it_is_not_an_oracle_and_supports_regression_only() -> None:
    assert METHODS["modular"].sees == frozenset()
    assert METHODS["modular"].claims == {"regression"}
