"""The step agrees with the literal Algorithm 1, and has the properties of the paper."""

import copy
import itertools
import math

import pytest
import torch
from torch import nn

import reference
from leaflearn.core.algorithm import identify, objective, score, step
from leaflearn.core.allocation import Annealed, Hard, Soft
from leaflearn.core.batches import Batches, balance
from leaflearn.core.losses import CrossEntropy, SquaredError
from leaflearn.core.model_set import LoopedModels, StackedModels

SIZES = [1, 3, 2, 7, 1, 4]  # ragged
RULES = {
    "hard": (Hard(), reference.hard, 0.0),
    "soft": (Soft(0.7), reference.soft(0.7), 0.0),
    "annealed, warm": (Annealed(0.5), reference.annealed(0.5), 0.3),
    "annealed, cold": (Annealed(0.5), reference.annealed(0.5), 0.9),
}
TASKS = {
    "one output": (SquaredError(), reference.squared_error, 1),
    "three outputs": (SquaredError(), reference.squared_error, 3),
    "classes": (CrossEntropy(), reference.cross_entropy, 4),
}


@pytest.fixture(autouse=True)
def double_precision():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def make_modules(n, n_outputs, seed=0):
    torch.manual_seed(seed)
    return [nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, n_outputs)) for _ in range(n)]


def make_batches(n_outputs, loss, weighted=False, seed=1):
    """Groups of different sizes, rows in random order."""
    generator = torch.Generator().manual_seed(seed)
    group = torch.arange(len(SIZES)).repeat_interleave(torch.tensor(SIZES))
    group = group[torch.randperm(len(group), generator=generator)]
    x = torch.randn(len(group), 2, generator=generator)
    if isinstance(loss, CrossEntropy):
        y = torch.randint(n_outputs, (len(group),), generator=generator)
    else:
        y = torch.randn(len(group), n_outputs, generator=generator)
    weight = (
        balance(torch.rand(len(group), generator=generator) + 0.1, group, len(SIZES))
        if weighted
        else None
    )
    return Batches(x, y, group, torch.arange(len(SIZES)), weight=weight)


def by_group(batches, values):
    return [values[batches.group == i] for i in range(batches.n_groups)]


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01)


def parameters_of(modules):
    return torch.cat([p.detach().flatten() for module in modules for p in module.parameters()])


@pytest.mark.parametrize("model_set", [LoopedModels, StackedModels])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("rule", RULES)
def test_three_steps_agree_with_the_literal_algorithm(rule, task, weighted, model_set):
    library_rule, literal_rule, progress = RULES[rule]
    loss, literal_loss, n_outputs = TASKS[task]
    batches = make_batches(n_outputs, loss, weighted)
    literal = make_modules(3, n_outputs)
    models = model_set(copy.deepcopy(literal), (3,))
    optimizer, literal_optimizer = (
        sgd(models.parameters()),
        sgd([p for m in literal for p in m.parameters()]),
    )
    groups = list(zip(by_group(batches, batches.x), by_group(batches, batches.y), strict=True))
    weights = by_group(batches, batches.weight) if weighted else None
    for _ in range(3):
        step(models, batches, loss, library_rule, optimizer, progress)
        reference.run_algorithm_1(
            literal,
            literal_optimizer,
            groups,
            literal_loss,
            literal_rule,
            progress=progress,
            weights=weights,
        )
        torch.testing.assert_close(
            parameters_of(models.modules()), parameters_of(literal), rtol=0, atol=1e-6
        )


def test_the_literal_algorithm_updates_after_every_meta_batch_and_at_the_end():
    """Six groups in meta-batches of four are two steps of the library."""
    loss = SquaredError()
    whole = make_batches(1, loss)
    literal = make_modules(2, 1)
    models = LoopedModels(copy.deepcopy(literal), (2,))
    groups = list(zip(by_group(whole, whole.x), by_group(whole, whole.y), strict=True))
    reference.run_algorithm_1(
        literal,
        sgd([p for m in literal for p in m.parameters()]),
        groups,
        reference.squared_error,
        meta_batch_size=4,
    )
    optimizer = sgd(models.parameters())
    for part in (groups[:4], groups[4:]):
        group = torch.cat([torch.full((len(x),), i) for i, (x, _) in enumerate(part)])
        step(
            models,
            Batches(torch.cat([x for x, _ in part]), torch.cat([y for _, y in part]), group),
            loss,
            Hard(),
            optimizer,
        )
    torch.testing.assert_close(
        parameters_of(models.modules()), parameters_of(literal), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("seed", range(3))
def test_hard_allocation_on_all_groups_never_increases_the_empirical_error(seed):
    loss = SquaredError()
    batches = make_batches(1, loss, seed=seed)
    models = StackedModels(make_modules(2, 1, seed), (2,))
    optimizer = torch.optim.SGD(models.parameters(), lr=0.01)
    errors = [float(step(models, batches, loss, Hard(), optimizer).value) for _ in range(300)]
    assert all(after <= before for before, after in itertools.pairwise(errors))
    assert errors[-1] < 0.9 * errors[0]


def test_hard_selects_the_most_likely_model_under_gaussian_noise():
    batches, models = make_batches(1, SquaredError()), LoopedModels(make_modules(3, 1), (3,))
    with torch.no_grad():
        noise = torch.distributions.Normal(models(batches.x), 0.3)
        likelihood = noise.log_prob(batches.y).sum(-1)  # (K, N)
    best = torch.stack(
        [likelihood[:, batches.group == i].sum(1) for i in range(batches.n_groups)]
    ).argmax(1)
    chosen = Hard()(score(models, batches, SquaredError()), batches.sizes).argmax(1)
    assert chosen.tolist() == best.tolist()
    assert len(set(best.tolist())) > 1, "the test needs more than one model that is selected"


def test_hard_selects_the_most_likely_model_of_categorical_labels():
    batches, models = make_batches(4, CrossEntropy()), LoopedModels(make_modules(3, 4), (3,))
    with torch.no_grad():
        labels = torch.distributions.Categorical(logits=models(batches.x))
        likelihood = labels.log_prob(batches.y)  # (K, N)
    best = torch.stack(
        [likelihood[:, batches.group == i].sum(1) for i in range(batches.n_groups)]
    ).argmax(1)
    chosen = Hard()(score(models, batches, CrossEntropy()), batches.sizes).argmax(1)
    assert chosen.tolist() == best.tolist()
    assert len(set(best.tolist())) > 1, "the test needs more than one model that is selected"


@pytest.mark.parametrize("rule", [Hard(), Soft(0.5), Annealed(0.5)])
def test_permuting_the_models_permutes_scores_weights_and_parameters(rule):
    loss, order = SquaredError(), [2, 0, 1]
    batches, modules = make_batches(1, loss), make_modules(3, 1)
    models, permuted = (
        LoopedModels(copy.deepcopy(modules), (3,)),
        LoopedModels([copy.deepcopy(modules[k]) for k in order], (3,)),
    )
    one = step(models, batches, loss, rule, sgd(models.parameters()))
    other = step(permuted, batches, loss, rule, sgd(permuted.parameters()))
    torch.testing.assert_close(one.scores[:, order], other.scores)
    torch.testing.assert_close(one.weights[:, order], other.weights)
    torch.testing.assert_close(one.value, other.value)
    torch.testing.assert_close(
        parameters_of([models.modules()[k] for k in order]), parameters_of(permuted.modules())
    )


def test_renumbering_the_groups_changes_nothing():
    loss, order = SquaredError(), torch.tensor([4, 2, 0, 5, 1, 3])  # group i becomes order[i]
    batches = make_batches(1, loss)
    renamed = Batches(batches.x, batches.y, order[batches.group])
    models, other = LoopedModels(make_modules(3, 1), (3,)), LoopedModels(make_modules(3, 1), (3,))
    one = step(models, batches, loss, Hard(), sgd(models.parameters()))
    two = step(other, renamed, loss, Hard(), sgd(other.parameters()))
    torch.testing.assert_close(one.scores, two.scores[order])
    torch.testing.assert_close(parameters_of(models.modules()), parameters_of(other.modules()))


def test_batch_norm_statistics_of_models_without_groups_do_not_change():
    torch.manual_seed(0)
    modules = [nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)) for _ in range(2)]
    nn.init.constant_(modules[1][2].bias, 100.0)  # never selected
    models, batches = LoopedModels(modules, (2,)), make_batches(1, SquaredError())
    step(models, batches, SquaredError(), Hard(), sgd(models.parameters()))
    assert modules[0][1].num_batches_tracked == 1
    assert modules[1][1].num_batches_tracked == 0


def test_a_model_with_batch_norm_can_learn_from_a_single_row():
    modules = [nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)) for _ in range(2)]
    models = LoopedModels(modules, (2,))
    batches = Batches(torch.randn(1, 2), torch.randn(1, 1), torch.tensor([0]))
    before = parameters_of(modules).clone()
    step(models, batches, SquaredError(), Hard(), sgd(models.parameters()))
    assert not torch.equal(parameters_of(modules), before)


@pytest.mark.parametrize("model_set", [LoopedModels, StackedModels])
def test_weight_decay_applies_to_models_without_groups(model_set):
    modules = [nn.Linear(1, 1), nn.Linear(1, 1)]
    nn.init.constant_(modules[1].bias, 100.0)  # never selected
    models = model_set(modules, (2,))
    idle = parameters_of(models.modules()[1:])
    batches = Batches(torch.zeros(2, 1), torch.zeros(2, 1), torch.tensor([0, 1]))
    step(
        models,
        batches,
        SquaredError(),
        Hard(),
        torch.optim.SGD(models.parameters(), lr=0.1, weight_decay=0.5),
    )
    torch.testing.assert_close(parameters_of(models.modules()[1:]), idle * (1 - 0.1 * 0.5))


def test_a_group_counts_once_regardless_of_its_size():
    """Nine rows at 1 in one group, one row at -1 in another: the best constant is 0."""
    x, y, group = torch.zeros(10, 1), torch.ones(10, 1), torch.zeros(10, dtype=torch.long)
    y[9], group[9] = -1.0, 1
    models = LoopedModels([nn.Linear(1, 1)], (1,))
    optimizer = torch.optim.SGD(models.parameters(), lr=0.2)
    for _ in range(100):
        step(models, Batches(x, y, group), SquaredError(), Hard(), optimizer)
    assert models(torch.zeros(1, 1)).item() == pytest.approx(0.0, abs=1e-6)


def test_objective_and_step_in_one_pass_agree():
    loss, batches = SquaredError(), make_batches(1, SquaredError(), weighted=True)
    models = StackedModels(make_modules(6, 1), (2, 3))
    weights = Soft(0.5)(score(models, batches, loss), batches.sizes)
    value = objective(models, batches, loss, weights).detach()
    assert value.shape == (2,)
    torch.testing.assert_close(
        step(models, batches, loss, Soft(0.5), sgd(models.parameters())).value, value
    )


def test_identify_is_the_softmax_of_the_scores_and_changes_no_parameter():
    loss, batches = SquaredError(), make_batches(1, SquaredError())
    models = LoopedModels(make_modules(3, 1), (3,))
    before = parameters_of(models.modules()).clone()
    posterior = identify(models, batches, loss, temperature=0.2)
    torch.testing.assert_close(posterior, torch.softmax(-score(models, batches, loss) / 0.2, 1))
    torch.testing.assert_close(parameters_of(models.modules()), before, rtol=0, atol=0)


class FixedPredictions:
    """A model set with given predictions."""

    one_pass = False

    def __init__(self, predictions):
        self.predictions, self.shape = predictions, (len(predictions),)

    def __call__(self, x):
        return self.predictions

    def train(self, mode):
        pass


def literal_trimmed_score(losses, group, weight, trim):
    scores = torch.zeros(int(group.max()) + 1, len(losses))
    for i, k in itertools.product(range(len(scores)), range(len(losses))):
        rows = sorted((group == i).nonzero()[:, 0].tolist(), key=lambda j: losses[k, j].item())
        kept = rows[: len(rows) - math.floor(trim * len(rows) + 1e-9)]
        scores[i, k] = sum(weight[j] * losses[k, j] for j in kept)
    return scores


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("trim", [0.0, 0.2, 0.34, 0.49])
def test_a_trimmed_score_leaves_out_the_largest_losses_of_each_model_and_group(trim, weighted):
    loss, batches = SquaredError(), make_batches(1, SquaredError(), weighted)
    models = LoopedModels(make_modules(3, 1), (3,))
    losses = loss(models(batches.x), batches.y).detach()
    weight = batches.weight if weighted else torch.ones(len(batches.x))
    torch.testing.assert_close(
        score(models, batches, loss, trim),
        literal_trimmed_score(losses, batches.group, weight, trim),
    )


def test_restarts_are_trimmed_separately():
    loss, batches = SquaredError(), make_batches(1, SquaredError())
    modules = make_modules(6, 1)
    together = score(StackedModels(modules, (2, 3)), batches, loss, trim=0.34)
    separate = [
        score(LoopedModels(part, (3,)), batches, loss, trim=0.34)
        for part in (modules[:3], modules[3:])
    ]
    torch.testing.assert_close(together, torch.stack(separate))


@pytest.mark.parametrize("outlier", [1e3, 1e9])
def test_an_outlier_does_not_decide_the_context_of_a_trimmed_group(outlier):
    """Four rows at 0 and an outlier: without trimming, a model at 1 scores better than one at 0."""
    models = FixedPredictions(torch.tensor([0.0, 1.0])[:, None, None].expand(2, 5, 1))
    batches = Batches(
        torch.zeros(5, 1),
        torch.tensor([[0.0], [0.0], [outlier], [0.0], [0.0]]),
        torch.zeros(5, dtype=torch.long),
    )
    assert score(models, batches, SquaredError()).argmin(-1).tolist() == [1]
    torch.testing.assert_close(
        score(models, batches, SquaredError(), trim=0.2), torch.tensor([[0.0, 4.0]])
    )


@pytest.mark.parametrize("model_set", [LoopedModels, StackedModels])
def test_a_trimmed_step_allocates_by_trimmed_scores_and_learns_from_all_rows(model_set):
    loss, batches = SquaredError(), make_batches(1, SquaredError())
    modules = make_modules(3, 1)
    trimmed = score(LoopedModels(modules, (3,)), batches, loss, trim=0.34)
    weights = Hard()(trimmed, batches.sizes)
    value = objective(LoopedModels(copy.deepcopy(modules), (3,)), batches, loss, weights).detach()
    models = model_set(modules, (3,))
    taken = step(models, batches, loss, Hard(), sgd(models.parameters()), trim=0.34)
    torch.testing.assert_close(taken.scores, trimmed)
    torch.testing.assert_close(taken.value, value)
