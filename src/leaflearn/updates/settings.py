"""The numbers that steer updates of a fitted model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class UpdateSettings:
    """How contexts are pruned, merged and opened.

    Parameters
    ----------
    min_usage_share
        `prune` removes contexts used by less than this share of a fair share of the groups.
    max_refits
        Refits of scikit-learn models at most, when they are fine-tuned.
    n_folds
        Folds of the groups on which fine-tuned scikit-learn models are compared out of sample.
    max_parameters
        Parameters of networks that are fine-tuned side by side; larger sets take turns.
    single_row_gain
        Where every group has one row, a context must divide the loss by this factor to stay.
    n_small_group
        Groups with fewer rows are too small to show alone that their context is new.
    small_group_novelty
        Novelty from which such a group may be new; one known group in six is above it.
    min_new_rows
        Rows from which a new context can be learned.
    max_rows, max_bytes
        Size of the replay buffer, which is copied and pickled with the estimator.
    max_rows_per_group
        Rows of a large group in the replay buffer, where there are many groups.
    smoothness
        Variances of the shrunk coefficients, in units of the noise, that are tried for a context
        that keeps the other variances of a known one.
    """

    min_usage_share: float = 0.1
    max_refits: int = 4
    n_folds: int = 3
    max_parameters: int = 20_000_000
    single_row_gain: float = 2.0
    n_small_group: int = 4
    small_group_novelty: float = 1.0
    min_new_rows: int = 20
    max_rows: int = 2000
    max_bytes: int = 64 * 2**20
    max_rows_per_group: int = 32
    smoothness: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)


UPDATES = UpdateSettings()
