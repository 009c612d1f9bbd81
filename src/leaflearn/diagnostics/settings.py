"""The numbers that steer the diagnostics."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class DiagnosticSettings:
    """Thresholds of the checks of a fit, and of the rows that identification still requires.

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
    identified_margin
        A source is identified from this margin on: one of two contexts is then 95 % probable.
    sure_probability
        A group whose context is at least this probable is called sure; with `abstain=True`, less
        probable contexts are not reported.
    n_paths
        Continuations of a source that are simulated; their median is reported.
    rows_per_step
        Simulated rows are added one by one at first, and then one in this many of those
        so far at once.
    n_answer_paths, answers_per_step
        The same two numbers for classes with group effects, whose paths take longer.
    max_required_rows
        Where more rows would be required, rows like these do not identify the context.
    far_widths
        An input is far outside the training data if it is beyond their range by more than this
        many times its width. Samples of ten rows from a normal distribution have a range of about
        three standard deviations, so that ordinary rows are never that far.
    min_variance_share
        Differences between groups below this share of the variance of a row are not mentioned.
    max_mapped_rows
        Rows on which groups are compared; their mean changes little beyond some hundreds.
    n_permutations
        Permutations of the groups in a test of association; the smallest p-value is 1 / 2000.
    significance
        Associations are reported from this p-value, corrected for the number of tests.
    """

    min_error_ratio: float = 2.0
    equal_error_ratio: float = 1.5
    same_allocation: float = 0.98
    min_agreement: float = 0.9
    max_share_of_pooled_error: float = 0.5
    min_surrogate_gap: float = 0.15
    identified_margin: float = math.log(0.95 / 0.05)
    sure_probability: float = 0.9
    n_paths: int = 100
    rows_per_step: int = 12
    n_answer_paths: int = 30
    answers_per_step: int = 4
    max_required_rows: int = 1000
    far_widths: float = 1.0
    min_variance_share: float = 0.01
    max_mapped_rows: int = 500
    n_permutations: int = 1999
    significance: float = 0.05


DIAGNOSTICS = DiagnosticSettings()
