import numpy as np
import pytest
import torch
from torch import nn

from leaflearn.core.allocation import Annealed, Hard, Sampled, Soft
from leaflearn.core.batches import GroupedExamples
from leaflearn.core.losses import CrossEntropy, SquaredError
from leaflearn.core.training import Callback
from leaflearn.networks import mlp
from leaflearn.recipe import Recipe, fit_networks, resolve_rule


def make_data(n_groups=12, size=5):
    generator = torch.Generator().manual_seed(0)
    x, group = torch.randn(n_groups * size, 1, generator=generator), torch.arange(n_groups).repeat_interleave(size)
    return GroupedExamples(x, torch.where(group[:, None] % 2 == 0, 1.0, -1.0) * x, group)


def fit(data=None, factory=lambda: nn.Linear(1, 1), seed=0, **settings):
    recipe = Recipe(**{"max_epochs": 40, "learning_rate": 0.05, **settings})
    return fit_networks(factory, data or make_data(), SquaredError(), 2, recipe, np.random.RandomState(seed))


class Stages(Callback):
    def __init__(self, stop_in=None):
        self.heard, self.stop_in = [], stop_in

    def on_epoch(self, training):
        self.heard.append(training.stage)
        return training.stage == self.stop_in


def test_annealing_is_followed_by_fresh_models_and_nothing_else_is():
    for settings, expected in (
        ({}, ["search"] * 40 + ["refresh"] * 40),
        ({"refresh": False}, ["training"] * 40),
        ({"allocation": "hard"}, ["training"] * 40),
    ):
        stages = Stages()
        found = fit(callbacks=[stages], n_iter_no_change=None, **settings)
        assert stages.heard == expected
        assert found.history["epoch"].tolist() == list(range(1, len(expected) + 1))


def test_a_callback_that_stops_the_search_stops_the_fit():
    stages = Stages(stop_in="search")
    fit(callbacks=[stages])
    assert stages.heard == ["search"]


def test_fresh_models_learn_from_the_allocation_that_was_found():
    class Spy(Callback):
        def __init__(self):
            self.last_search, self.held, self.mended = None, [], []

        def on_step(self, training):
            if training.stage == "search":
                self.last_search = training.models(torch.ones(1, 1)).detach().clone()
                return
            rule, progress = training.rule, (training.n_steps - 1) / training.max_epochs  # one step an epoch
            chosen = training.last.weights.argmax(-1)  # (R, B), in the order of the meta-batch
            (self.held if progress < rule.until else self.mended).append((chosen == rule.contexts[self.ids]).all().item())
            if training.n_steps == 1:
                self.first_fresh = training.models(torch.ones(1, 1)).detach().clone()

    spy = Spy()
    data = make_data()
    batches_of = data.meta_batches

    def remember(*arguments):
        for batches in batches_of(*arguments):
            spy.ids = batches.group_id
            yield batches

    data.meta_batches = remember
    found = fit(data, callbacks=[spy], n_iter_no_change=None)
    assert all(spy.held)
    assert len(spy.held) == 12  # 0.3 of 40 epochs
    assert len(spy.mended) == 28
    assert (spy.first_fresh - spy.last_search).abs().min() > 1e-3, "the models went on instead of starting afresh"
    assert len(found.history["epoch"]) == 80


def test_fresh_models_that_explain_much_less_are_not_taken():
    class Spoil(Callback):
        def on_step(self, training):
            if training.stage == "refresh":
                with torch.no_grad():
                    for parameter in training.models.parameters():
                        parameter.zero_()

    spoilt, plain = fit(callbacks=[Spoil()]), fit(refresh=False)
    assert spoilt.error == pytest.approx(plain.error)


def test_the_best_start_is_kept():
    found = fit(n_init=6, refresh=False, allocation="hard")
    errors = [start["error"] for start in found.restarts]
    assert len(errors) == 6
    assert [start["kept"] for start in found.restarts].index(True) == found.best_restart == int(np.argmin(errors))
    assert found.error == pytest.approx(min(errors))
    assert found.error == pytest.approx(float((found.scores.min(1) / 5).mean()))


def test_kept_modules_are_the_ones_that_were_scored():
    data = make_data()
    found = fit(data, n_init=3)
    with torch.no_grad():
        losses = torch.stack([(module(data.x) - data.y).square().mean(1) for module in found.modules], 1)  # (N, K)
    sums = torch.zeros(12, 2).index_add_(0, data.group, losses)
    np.testing.assert_allclose(sums.numpy(), found.scores, rtol=1e-4, atol=1e-6)


def test_small_networks_get_several_starts_and_large_ones_one():
    assert len(fit(max_epochs=1).restarts) == 4
    assert len(fit(max_epochs=1, factory=lambda: mlp(1, 1, (400, 400))).restarts) == 1


@pytest.mark.parametrize(
    ("name", "loss", "y", "expected"),
    [
        ("hard", SquaredError(), torch.tensor([[0.0], [4.0]]), Hard()),
        ("annealed", SquaredError(), torch.tensor([[0.0], [4.0]]), Annealed(2.0)),  # half of the variance 4
        ("annealed", CrossEntropy(), torch.tensor([0, 1]), Annealed(0.5 * float(np.log(2)))),
        ("annealed", SquaredError(), torch.tensor([[3.0], [3.0]]), Annealed(1.0)),  # nothing to explain
        ("sampled", SquaredError(), torch.tensor([[0.0], [4.0]]), Sampled(0.1)),  # the paper's temperatures
        ("sampled", CrossEntropy(), torch.tensor([0, 1]), Sampled(1.0)),
        ("soft", SquaredError(), torch.tensor([[0.0], [4.0]]), Soft(0.1)),
    ],
)
def test_temperatures_are_in_the_units_of_the_loss(name, loss, y, expected):
    rule = resolve_rule(name, "auto", loss, y)
    assert type(rule) is type(expected)
    assert vars(rule) == pytest.approx(vars(expected))
    own = Annealed(0.123)
    assert resolve_rule(own, "auto", loss, y) is own


def test_large_data_gets_at_least_twenty_passes_and_small_data_two_thousand_steps():
    stages = Stages()
    fit(make_data(n_groups=64, size=1), max_epochs="auto", refresh=False, n_init=1, n_iter_no_change=None, callbacks=[stages])
    assert len(stages.heard) == 1000  # two steps each
    stages = Stages()
    data = make_data(n_groups=6400, size=1)
    fit(data, max_epochs="auto", refresh=False, n_init=1, n_iter_no_change=None, callbacks=[stages])
    assert len(stages.heard) == 20
