"""Groups on two lines of opposite slope, and networks fitted to them in no time: for the tests of the recipe."""

import numpy as np
import torch
from torch import nn

from leaflearn.core.batches import GroupedExamples
from leaflearn.core.losses import SquaredError
from leaflearn.core.training import Callback
from leaflearn.engines.gradient import fit_networks
from leaflearn.engines.recipe import Recipe


def make_data(n_groups=12, size=5):
    """Rows and their groups, in turn on the one line and on the other."""
    generator = torch.Generator().manual_seed(0)
    x, group = (
        torch.randn(n_groups * size, 1, generator=generator),
        torch.arange(n_groups).repeat_interleave(size),
    )
    return GroupedExamples(x, torch.where(group[:, None] % 2 == 0, 1.0, -1.0) * x, group)


def fit(data=None, factory=lambda: nn.Linear(1, 1), seed=0, start=None, **settings):
    """Two contexts, by the default recipe but for the settings."""
    recipe = Recipe(**{"max_epochs": 40, "learning_rate": 0.05, **settings})
    return fit_networks(
        factory,
        data or make_data(),
        SquaredError(),
        2,
        recipe,
        np.random.RandomState(seed),
        start=start,
    )


class Stages(Callback):
    """Hears the stage of every epoch, and may end one."""

    def __init__(self, stop_in=None):
        self.heard, self.stop_in = [], stop_in

    def on_epoch(self, training):
        self.heard.append(training.stage)
        return training.stage == self.stop_in
