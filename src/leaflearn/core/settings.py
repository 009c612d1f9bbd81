"""The numbers that steer the training of networks, in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CoreSettings:
    """Settings of model sets and of the training loop.

    Parameters
    ----------
    max_stacked_parameters
        Plain chains of linear layers with at most this many parameters per model run as one
        batched program, and several starts run side by side by default. Larger models run one
        after the other. The value comes from benchmarks/stacking.py.
    plateau_rate
        A plateau of the objective ends the training only once the learning rate is at most this
        share of the first one, because a lower rate may still leave the plateau (decision 0013).

    Examples
    --------
    >>> CoreSettings().max_stacked_parameters
    100000
    """

    max_stacked_parameters: int = 100_000
    plateau_rate: float = 0.1


CORE = CoreSettings()
