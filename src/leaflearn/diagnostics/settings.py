"""The numbers that steer the diagnostics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist


@dataclass(frozen=True)
class DiagnosticSettings:
    """Thresholds of the checks, of novelty, of calibration and of the rows that are still required.

    Values without another source were set by judgement; no study compares alternatives.

    Parameters
    ----------
    min_error_ratio
        The surrogate contradicts a fit only where its error is this many times lower (decision
        0025).
    equal_error_ratio
        Starts up to this many times the error of the best one count as equally good.
    same_allocation
        Two allocations that agree on this weighted share of the groups count as the same.
    min_agreement
        Equally good starts must agree on this weighted share of the groups.
    max_share_of_pooled_error
        Contexts whose surrogate error is at most this share of the pooled surrogate's are accepted
        without a significant gain on held-out rows.
    min_surrogate_gap
        Differences between local models and surrogate models are reported from this share of the
        targets' standard deviation. Chosen on seeds 3000 to 3034 of the three functions with 50
        groups, where it separates most poor fits from all good ones (decision 0025).
    alarm_rate
        Share of the sources of known contexts that may be called new: the level of the rank test.
    held_out_share
        Share of the groups of a context that is held out (decision 0024).
    min_groups_to_hold_out
        A context with fewer groups holds out single rows instead of whole groups (decision 0024).
    max_held_out_rows
        At most this many rows are held out per context; more hardly change the ranks.
    min_held_out_rows
        A context with fewer held-out rows uses those of all contexts.
    min_training_share
        Copies of held-out rows are left out of training only where at least this share of the
        context's rows remains.
    negligible_loss
        Losses below this share of the best constant's loss count as equal: 1e-9 and 1e-30 are both
        a perfect fit (decision 0024).
    min_spread
        Lower bound of the standard deviation of the mean rank between sources of a known context;
        no two sources are exactly alike. It makes alarms rarer than `alarm_rate` (decision 0024).
    max_evidence_factor, n_evidence_factors
        Calibration tries this many factors between 1 and the maximum, evenly spaced on a log scale
        (decision 0024). None is below 1, because a few held-out rows may look clearer than they
        are.
    min_probability
        Smaller probabilities of the right context count like this one in calibration, so that a
        single row cannot determine the factor.
    identified_margin
        A source is identified from this margin on: one of two contexts is then 95 % probable.
    sufficient_rate
        The reported number of rows suffices with this probability if the local models are right.
    prior_rows
        The gain that the local models expect counts like this many observed rows.
    max_required_rows
        Where more rows would be required, rows like these do not identify the context.
    min_class_probability
        Classes that are less probable than this in every row do not enter the expected gain.

    Examples
    --------
    >>> from dataclasses import replace
    >>> round(replace(DIAGNOSTICS, alarm_rate=0.05).novelty_limit, 2)
    1.64
    """

    min_error_ratio: float = 2.0
    equal_error_ratio: float = 1.5
    same_allocation: float = 0.98
    min_agreement: float = 0.9
    max_share_of_pooled_error: float = 0.5
    min_surrogate_gap: float = 0.15
    alarm_rate: float = 0.01
    held_out_share: float = 0.2
    min_groups_to_hold_out: int = 10
    max_held_out_rows: int = 1000
    min_held_out_rows: int = 20
    min_training_share: float = 1 / 3
    negligible_loss: float = 1e-4
    min_spread: float = 0.05
    max_evidence_factor: float = 100.0
    n_evidence_factors: int = 41
    min_probability: float = 1e-12
    identified_margin: float = math.log(0.95 / 0.05)
    sufficient_rate: float = 0.9
    prior_rows: int = 5
    max_required_rows: int = 1000
    min_class_probability: float = 1e-3

    @property
    def novelty_limit(self) -> float:
        """The novelty that a source of a known context exceeds with probability `alarm_rate`."""
        return NormalDist().inv_cdf(1.0 - self.alarm_rate)


DIAGNOSTICS = DiagnosticSettings()
