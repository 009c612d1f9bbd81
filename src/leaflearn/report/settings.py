"""The numbers that decide what the report says and computes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReportSettings:
    """Thresholds of the sentences, and caps on the work for one page.

    The thresholds were set by reading the sentences for tables whose contexts are known. The caps
    keep a page within a few seconds and three megabytes.

    Parameters
    ----------
    hardly_smaller
        The contexts hardly lower the error if it is at least this share of the pooled model's.
    min_agreement
        Below this stability, equally good starts are said to disagree.
    flat
        A curve hardly changes if its range is below this share of the widest context's range.
    bend
        A curve bends if it returns by more than this share of its own range.
    constant_offset
        Contexts differ by a constant if their means are this many times further apart than their
        curves along any column.
    min_explained
        Columns act together if single columns explain less than this share of the differences.
    as_informative
        Columns count as equally informative from this share of the first one's difference.
    near_agreement
        Contexts nearly agree where their gap is below this share of the widest gap.
    worth_drawing
        A column is drawn if its difference is at least this share of the first column's.
    n_values
        Places along a number at which a curve is evaluated.
    few_values
        A number with at most this many values is evaluated at each of them.
    tail
        Share of the rows at either end of a number that its curve leaves out.
    max_curve_predictions
        Predictions of each context for all curves together, about.
    min_curve_rows, max_curve_rows
        Rows over which a curve averages.
    max_cells
        Feature values that are predicted at once, about.
    max_mean_rows
        Rows over which the mean prediction of a context is taken.
    max_example_rows
        Rows among which examples are searched.
    many_values
        A category with more values than this holds items, which are compared one by one.
    min_share_of_large_groups
        Columns can be constant within groups only if this share of the groups has several rows.
    max_values_per_group
        A category with more values than this per group names the groups, and is not tested.
    min_standard_errors
        A curve is drawn if the contexts' own curves explain rows better than a shared curve,
        by this many standard errors over the groups. For a curve with p free parameters that is
        fitted to noise, the number is about half the root of p, so 2 allows for flexible models.

    Examples
    --------
    >>> REPORT.max_curve_rows
    200
    """

    hardly_smaller: float = 0.95
    min_agreement: float = 0.9
    flat: float = 0.1
    bend: float = 0.25
    constant_offset: float = 3.0
    min_explained: float = 0.5
    as_informative: float = 0.7
    near_agreement: float = 0.15
    worth_drawing: float = 0.1
    n_values: int = 21
    few_values: int = 12
    tail: float = 0.02
    max_curve_predictions: int = 200_000
    min_curve_rows: int = 30
    max_curve_rows: int = 200
    max_cells: int = 2 * 10**7
    max_mean_rows: int = 500
    max_example_rows: int = 5000
    many_values: int = 25
    min_share_of_large_groups: float = 0.5
    max_values_per_group: float = 0.5
    min_standard_errors: float = 2.0


REPORT = ReportSettings()
