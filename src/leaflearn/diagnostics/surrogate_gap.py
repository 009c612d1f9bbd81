"""Is a function badly drawn? The contexts may all be right, and a network with few rows still goes astray between them.

Smooth models of the same groups tell. Where one that foretells unseen groups well answers quite differently from the network of the same
context, to inputs that might have been that context's own, the network is in doubt.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leaflearn.initialization.surrogate import BestStart, SmoothSurrogate

FAR = 0.15  # of the targets' spread, from which a difference is told


def find_surrogate_gaps(
    reading: SmoothSurrogate, fitted: BestStart, outputs: NDArray[np.float64]
) -> dict[int, float]:
    """How far local models are from smooth ones, where that is too far, by context, in units of the targets' spread.

    Parameters
    ----------
    reading
        Of the data.
    fitted
        What smooth models make of the fitted contexts.
    outputs
        What the local models answer to the rows of the reading, shape (N', K, D).

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.sampling import sample_groups
    >>> from leaflearn.benchmark.datasets import functions
    >>> sample, truth = sample_groups(functions(), random_state=0)
    >>> reading = SmoothSurrogate.of(sample.x, sample.y[:, None], sample.groups, n_classes=0, seed=0)
    >>> fitted = reading.judge(truth.domain, 3, scale=2)
    >>> outputs = (reading.answer(fitted) * reading.y.scale + reading.y.mean).transpose(0, 1).numpy()
    >>> find_surrogate_gaps(reading, fitted, outputs)
    {}
    >>> outputs[:, 1] += 1.0
    >>> list(find_surrogate_gaps(reading, fitted, outputs))
    [1]
    """
    groups = np.searchsorted(
        reading.groups, reading.group[reading.rows]
    )  #                      (N',)
    own = torch.as_tensor(fitted.contexts[groups])
    z, smooth = reading.project(reading.x[reading.rows]), reading.answer(fitted)
    straying = {}
    for k in range(len(smooth)):
        near = torch.nonzero(_within_reach(z, own == k))[:, 0]
        if len(near):
            gap = (
                (reading.y.scaled(outputs[near.numpy(), k]) - smooth[k, near])
                .square()
                .sum(-1)
                .mean()
            )
            unexplained = fitted.found.losses[0, k, fitted.found.contexts[0] == k].mean()
            if gap > max(FAR**2, float(unexplained)):
                straying[k] = float(gap.sqrt())
    return straying


def _within_reach(z: Tensor, is_own: Tensor) -> Tensor:
    """Rows of others (N',) that are no farther from a row (N', d) of one's own than those are from one another."""
    between = torch.cdist(z[is_own], z[is_own]).fill_diagonal_(torch.inf)
    if len(between) < 2:
        return torch.zeros_like(is_own)
    return ~is_own & (torch.cdist(z, z[is_own]).amin(1) <= between.amin(1).amax())
