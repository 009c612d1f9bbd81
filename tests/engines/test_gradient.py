"""Which stages a fit has, and what one stage hands to the next."""

import numpy as np
import pytest
import torch

from leaflearn.core.training import Callback
from opposite_lines import Stages, fit, make_data


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
            rule, progress = (
                training.rule,
                (training.n_steps - 1) / training.max_epochs,
            )  # one step an epoch
            chosen = training.last.weights.argmax(-1)  # (R, B), in the order of the meta-batch
            (self.held if progress < rule.until else self.mended).append(
                (chosen == rule.contexts[self.ids]).all().item()
            )
            if training.n_steps == 1:
                self.first_fresh = training.models(torch.ones(1, 1)).detach().clone()

    spy = Spy()
    data = make_data()
    batches_of = data.meta_batches

    def fill_replay_buffer(*arguments):
        for batches in batches_of(*arguments):
            spy.ids = batches.group_id
            yield batches

    data.meta_batches = fill_replay_buffer
    found = fit(data, callbacks=[spy], n_iter_no_change=None)
    assert all(spy.held)
    assert len(spy.held) == 12  # 0.3 of 40 epochs
    assert len(spy.mended) == 28
    assert (spy.first_fresh - spy.last_search).abs().min() > 1e-3, (
        "the models went on instead of starting again"
    )
    assert len(found.history["epoch"]) == 80


class Spoil(Callback):
    """Keeps the models of some stages from learning more than a third of a slope."""

    def __init__(self, *stages):
        self.stages = stages

    def on_step(self, training):
        if training.stage in self.stages:
            with torch.no_grad():
                for parameter in training.models.parameters():
                    parameter.clamp_(-0.3, 0.3)


def test_fresh_models_that_explain_much_less_are_not_taken():
    spoilt, plain = fit(callbacks=[Spoil("refresh")]), fit(refresh=False)
    assert spoilt.error == pytest.approx(plain.error)
    assert [start["stage"] for start in spoilt.restarts if start["kept"]] == ["search"]


def test_the_starts_of_all_stages_are_told():
    found = fit(n_init=2, max_epochs=200)  # enough for the fresh models, too
    assert [start["stage"] for start in found.restarts] == [
        "search",
        "search",
        "refresh",
        "refresh",
    ]
    assert [start["stage"] for start in found.restarts if start["kept"]] == ["search", "refresh"]
    assert found.restarts[found.best_restart]["kept"]
    assert found.error == pytest.approx(
        min(start["error"] for start in found.restarts if start["stage"] == "refresh")
    )


@pytest.mark.parametrize(
    ("spoilt", "stages"),
    [
        (("training",), "search search refresh refresh given given"),
        (("search", "refresh"), "given given search search refresh refresh"),
    ],
)
def test_a_stage_that_led_nowhere_is_told_last(spoilt, stages):
    crossed = (
        np.arange(12) // 6
    )  # half of the groups of either line in either context: they do not stay there
    found = fit(n_init=2, start=crossed, callbacks=[Spoil(*spoilt)])
    assert [start["stage"] for start in found.restarts] == stages.split()
    assert found.restarts[found.best_restart]["kept"]
    assert {start["stage"] for start in found.restarts if start["kept"]}.isdisjoint(
        stages.split()[-1:]
    )
    assert found.kept_start == (spoilt != ("training",))


def test_a_start_that_holds_is_all_there_is():
    found = fit(n_init=2, start=np.arange(12) % 2)
    assert found.kept_start
    assert [start["stage"] for start in found.restarts] == ["given", "given"]


def test_the_best_start_is_kept():
    found = fit(n_init=6, refresh=False, allocation="hard")
    errors = [start["error"] for start in found.restarts]
    assert len(errors) == 6
    assert (
        [start["kept"] for start in found.restarts].index(True)
        == found.best_restart
        == int(np.argmin(errors))
    )
    assert found.error == pytest.approx(min(errors))
    assert found.error == pytest.approx(float((found.scores.min(1) / 5).mean()))


def test_kept_modules_are_the_ones_that_were_scored():
    data = make_data()
    found = fit(data, n_init=3)
    with torch.no_grad():
        losses = torch.stack(
            [(module(data.x) - data.y).square().mean(1) for module in found.modules], 1
        )  # (N, K)
    sums = torch.zeros(12, 2).index_add_(0, data.group, losses)
    np.testing.assert_allclose(sums.numpy(), found.scores, rtol=1e-4, atol=1e-6)
