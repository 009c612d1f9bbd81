"""Which stages a fit has, and what one stage hands to the next."""

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
