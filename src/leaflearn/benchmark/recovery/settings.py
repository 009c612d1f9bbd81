"""What counts as success in the recovery suite; thresholds of single tasks are in `tasks.py`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RecoverySettings:
    """When a run counts as successful, and how rates are reported.

    Parameters
    ----------
    max_oracle_ratio
        If the oracle misses the threshold of the task too, a run succeeds if its error in every
        domain is at most this many times the oracle's. Chosen when the suite was designed.
    confidence_level
        Of Wilson's interval of the success rate.
    cost_unit
        The rule whose mean processor seconds are the unit of cost: a single run of the printed
        rule.

    Examples
    --------
    >>> RECOVERY.max_oracle_ratio
    1.5
    """

    max_oracle_ratio: float = 1.5
    confidence_level: float = 0.95
    cost_unit: str = "hard"


RECOVERY = RecoverySettings()
