"""What is chosen where the choice is left to the data."""

import numpy as np
import pytest
import torch

from leaflearn.core.allocation import Annealed, Hard, Sampled, Soft
from leaflearn.core.losses import CrossEntropy, SquaredError
from leaflearn.engines.networks import mlp
from leaflearn.engines.recipe import resolve_rule
from opposite_lines import Stages, fit, make_data


def test_small_networks_get_several_starts_and_large_ones_one():
    assert len(fit(max_epochs=1, refresh=False).restarts) == 5
    assert (
        len(fit(max_epochs=1, refresh=False, factory=lambda: mlp(1, 1, (400, 400))).restarts) == 1
    )


@pytest.mark.parametrize(
    ("name", "loss", "y", "expected"),
    [
        ("hard", SquaredError(), torch.tensor([[0.0], [4.0]]), Hard()),
        (
            "annealed",
            SquaredError(),
            torch.tensor([[0.0], [4.0]]),
            Annealed(2.0),
        ),  # half of the variance 4
        ("annealed", CrossEntropy(), torch.tensor([0, 1]), Annealed(0.5 * float(np.log(2)))),
        (
            "annealed",
            SquaredError(),
            torch.tensor([[3.0], [3.0]]),
            Annealed(1.0),
        ),  # nothing to explain
        (
            "sampled",
            SquaredError(),
            torch.tensor([[0.0], [4.0]]),
            Sampled(0.1),
        ),  # the paper's temperatures
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
    fit(
        make_data(n_groups=64, size=1),
        max_epochs="auto",
        refresh=False,
        n_init=1,
        n_iter_no_change=None,
        callbacks=[stages],
    )
    assert len(stages.heard) == 1000  # two steps each
    stages = Stages()
    data = make_data(n_groups=6400, size=1)
    fit(data, max_epochs="auto", refresh=False, n_init=1, n_iter_no_change=None, callbacks=[stages])
    assert len(stages.heard) == 20
