"""Groups on two lines of opposite slope, and small networks for them, to test the recipe."""

import numpy as np
import torch
from torch import nn

from leaflearn.core.batches import GroupedExamples
from leaflearn.core.losses import SquaredError
from leaflearn.core.training import Callback
from leaflearn.engines.gradient import fit_networks
from leaflearn.engines.recipe import Recipe


def make_data(n_groups=12, size=5):
    """Groups that are alternately on the one line and on the other."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n_groups * size, 1, generator=generator)
    group = torch.arange(n_groups).repeat_interleave(size)
    return GroupedExamples(x, torch.where(group[:, None] % 2 == 0, 1.0, -1.0) * x, group)


def fit(data=None, factory=lambda: nn.Linear(1, 1), seed=0, start=None, **settings):
    """Fit two contexts with the default recipe, except for the given settings."""
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
    """Logs the stage of every epoch, and may end a stage."""

    def __init__(self, stop_in=None):
        self.heard, self.stop_in = [], stop_in

    def on_epoch(self, training):
        self.heard.append(training.stage)
        return training.stage == self.stop_in
