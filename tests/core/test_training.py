import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from leaflearn.core import settings
from leaflearn.core.allocation import Annealed, Hard, Sampled
from leaflearn.core.batches import GroupedExamples
from leaflearn.core.losses import SquaredError
from leaflearn.core.model_set import LoopedModels, make_model_set
from leaflearn.core.training import Callback, NonFiniteLossError, Training, score_groups


def make_data(n_groups=20, size=3):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n_groups * size, 2, generator=generator)
    group = torch.arange(n_groups).repeat_interleave(size)
    return GroupedExamples(
        x, torch.where(group[:, None] % 2 == 0, 1.0, -1.0) * x.sum(1, keepdim=True), group
    )


def make_training(shape=(2,), rule=None, seed=0, lr=0.05, **options):
    torch.manual_seed(seed)
    models = make_model_set(
        lambda: nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)), shape
    )
    optimizer = torch.optim.Adam(models.parameters(), lr=lr)
    generator = torch.Generator().manual_seed(seed)
    options = {"max_epochs": 12, "groups_per_step": 6, "generator": generator, **options}
    return Training(
        models, make_data(), SquaredError(), rule or Annealed(0.5), optimizer, **options
    )


class StopAfter(Callback):
    def __init__(self, epochs=None, steps=None):
        self.epochs, self.steps, self.events = epochs, steps, []

    def on_step(self, training):
        self.events.append("step")
        return training.n_steps == self.steps

    def on_epoch(self, training):
        self.events.append("epoch")
        return training.epoch == self.epochs


@pytest.mark.parametrize("rule", [Hard(), Annealed(0.5), Sampled(0.1)])
@pytest.mark.parametrize("shape", [(2,), (3, 2)])
def test_a_resumed_run_equals_an_uninterrupted_one(rule, shape):
    whole = make_training(shape, rule, schedule="cosine").run()
    first = make_training(shape, rule, schedule="cosine", callbacks=[StopAfter(epochs=5)]).run()
    second = make_training(shape, rule, schedule="cosine", seed=99)
    second.load_state_dict(first.state_dict())
    second.run()
    assert second.epoch == 12
    torch.testing.assert_close(second.score_all_groups(), whole.score_all_groups(), rtol=0, atol=0)
    assert torch.equal(second.contexts, whole.contexts)
    np.testing.assert_array_equal(second.columns()["loss"], whole.columns()["loss"])


def test_a_state_is_a_copy():
    training = make_training(callbacks=[StopAfter(epochs=2)])
    training.run()
    state = training.state_dict()
    before = {name: value.clone() for name, value in state["models"].items()}
    training.callbacks = []
    training.run()
    assert all(torch.equal(state["models"][name], value) for name, value in before.items())
    assert state["epoch"] == len(state["history"]["loss"]) == 2


def test_callbacks_are_called_after_every_step_and_epoch_and_may_end_the_run():
    spy = StopAfter(epochs=2)
    training = make_training(callbacks=[spy]).run()
    assert spy.events == (["step"] * 4 + ["epoch"]) * 2  # 20 groups, 6 at a time
    assert training.epoch == 2


def test_a_callback_that_stops_within_an_epoch_ends_the_run_after_it():
    training = make_training(callbacks=[StopAfter(steps=5)]).run()
    assert training.epoch == 2


def test_columns_of_the_history_have_equal_length():
    columns = make_training((3, 2)).run().columns(restart=1)
    assert {len(column) for column in columns.values()} == {12}
    np.testing.assert_allclose(columns["usage"].sum(1), 1.0)
    assert columns["temperature"][0] > columns["temperature"][5] > columns["temperature"][-1] == 0.0
    assert columns["loss"].ndim == 1


def test_learning_rate_follows_the_schedule():
    assert len(set(make_training().run().columns()["learning_rate"])) == 1
    falling = (
        make_training(schedule=lambda progress: 1.0 - progress).run().columns()["learning_rate"]
    )
    assert (np.diff(falling) < 0).all()
    # The history has the rate of the last of the four steps of an epoch.
    assert falling[0] == pytest.approx(0.05 * (1 - 3 / 48))


def test_training_stops_on_a_plateau_and_only_after_annealing():
    hard = make_training(rule=Hard(), lr=1e-12, max_epochs=200, n_iter_no_change=5, tol=0.5).run()
    annealed = make_training(
        rule=Annealed(0.5), lr=1e-12, max_epochs=200, n_iter_no_change=5, tol=0.5
    ).run()
    never = make_training(rule=Hard(), lr=1e-12, max_epochs=50, n_iter_no_change=None).run()
    assert (hard.epoch, annealed.epoch, never.epoch) == (6, 156, 50)


def test_training_continues_while_the_objective_falls():
    # With small steps from a distant start, the objective falls in every epoch.
    torch.manual_seed(0)
    models = LoopedModels([nn.Linear(1, 1)], (1,))
    data = GroupedExamples(torch.zeros(2, 1), torch.full((2, 1), 100.0), torch.arange(2))
    training = Training(
        models,
        data,
        SquaredError(),
        Hard(),
        torch.optim.SGD(models.parameters(), lr=1e-4),
        max_epochs=50,
        n_iter_no_change=3,
        tol=1e-5,
    )
    assert training.run().epoch == 50


def test_a_diverging_loss_raises_an_error_with_step_epoch_and_cause():
    torch.manual_seed(0)
    models = LoopedModels([nn.Linear(2, 1) for _ in range(2)], (2,))
    training = Training(
        models,
        make_data(),
        SquaredError(),
        Hard(),
        torch.optim.SGD(models.parameters(), lr=1e30),
        max_epochs=5,
    )
    message = (
        "The loss became non-finite at step 2 (epoch 2); the likely cause is a learning rate that "
        "is too large (it is 1e+30) or a large scale of y: lower the learning rate or "
        "standardize y."
    )
    with pytest.raises(NonFiniteLossError, match=f"^{re.escape(message)}$"):
        training.run()


def test_non_finite_initial_predictions_are_named_as_the_cause():
    models = LoopedModels([nn.Linear(2, 1) for _ in range(2)], (2,))
    for module in models.modules():
        nn.init.constant_(module.bias, float("inf"))
    training = Training(
        models,
        make_data(),
        SquaredError(),
        Hard(),
        torch.optim.SGD(models.parameters(), lr=0.1),
        max_epochs=5,
    )
    message = (
        "The loss became non-finite at step 1 (epoch 1); the likely cause is local models whose "
        "initial predictions are not finite: check their initial weights and the scale of X."
    )
    with pytest.raises(NonFiniteLossError, match=f"^{re.escape(message)}$"):
        training.run()


def test_one_diverging_restart_does_not_end_the_training():
    training = make_training((2, 2))
    with torch.no_grad():
        training.models.parameters()[0][:2] = float("inf")  # both models of the first restart
    training.run()
    assert not np.isfinite(training.columns(0)["loss"]).any()
    assert np.isfinite(training.columns(1)["loss"]).all()


def test_scoring_in_chunks_equals_scoring_at_once(monkeypatch):
    training = make_training((3, 2))
    at_once = training.score_all_groups()
    monkeypatch.setattr("leaflearn.core.training.ROWS_AT_ONCE", 7)
    torch.testing.assert_close(
        score_groups(training.models, training.data, training.loss), at_once, rtol=1e-5, atol=1e-5
    )
    assert at_once.shape == (3, 20, 2)


def test_groups_that_span_chunks_are_trimmed_as_a_whole(monkeypatch):
    training = make_training((3, 2), trim=0.4)
    at_once = training.score_all_groups()
    monkeypatch.setattr("leaflearn.core.training.ROWS_AT_ONCE", 7)
    torch.testing.assert_close(training.score_all_groups(), at_once, rtol=1e-5, atol=1e-5)
    assert (at_once < score_groups(training.models, training.data, training.loss)).any()


def test_a_run_that_has_reached_a_plateau_does_not_continue():
    training = make_training(
        rule=Hard(), lr=1e-12, max_epochs=200, n_iter_no_change=5, tol=0.5
    ).run()
    assert training.run().epoch == 6


@pytest.mark.parametrize("level", [1.0, 0.0, -1.0])
def test_a_plateau_is_detected_at_any_level(level):
    training = make_training(rule=Hard(), n_iter_no_change=3)
    training.history["loss"] = [np.array(level)] * 5
    assert training.has_reached_plateau()
    training.history["loss"] = [np.array(level - 0.1 * i) for i in range(5)]
    assert not training.has_reached_plateau()


@pytest.mark.parametrize(("plateau_rate", "epochs"), [(0.1, 96), (0.5, 56)])
def test_a_plateau_counts_once_the_learning_rate_is_low(monkeypatch, plateau_rate, epochs):
    changed = replace(settings.CORE, plateau_rate=plateau_rate)
    monkeypatch.setattr(settings, "CORE", changed)
    options = {"lr": 1e-12, "max_epochs": 100, "n_iter_no_change": 5, "tol": 0.5}
    assert make_training(rule=Hard(), schedule="linear", **options).run().epoch == epochs
