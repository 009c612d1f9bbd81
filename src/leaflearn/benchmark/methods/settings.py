"""Settings of the benchmark methods that neither the paper nor a spec fixes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LeafAnnealedSettings:
    """Settings of `leaf-annealed`.

    Parameters
    ----------
    temperature_scale
        Temperature of the annealed rule as a multiple of the loss of the best constant prediction;
        0.5 as in the estimators.
    min_group_size
        Rows that every group of a meta-batch needs before rows are allocated one by one; 3 is the
        smallest size at which a single row of another context is in the minority.
    first_outlier_share
        Assumed share of rows from other contexts before the first step. It only affects the first
        steps.
    outlier_share_decay
        Weight of the previous estimate in the moving average of that share; 0.95 averages over
        about 20 steps.
    min_outlier_share
        Up to this estimated share all rows keep the context of their group; 0.03 is above the
        estimate for pure groups.

    Examples
    --------
    >>> LeafAnnealedSettings().min_outlier_share
    0.03
    """

    temperature_scale: float = 0.5
    min_group_size: int = 3
    first_outlier_share: float = 0.1
    outlier_share_decay: float = 0.95
    min_outlier_share: float = 0.03


LEAF_ANNEALED = LeafAnnealedSettings()
