"""The numbers of the measures that specs do not set; the paper's numbers are in the specs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeasureSettings:
    """How trained methods are measured.

    Parameters
    ----------
    adaptation_rows
        Labeled rows of a domain that a meta-learner is fine-tuned on; from the paper.
    n_adaptations
        How often these rows are drawn; from the paper.
    timed_rows
        Rows that predictions are timed on, if there are as many; from the paper. Also the number
        of training rows on which local models are compared to find a superfluous one.
    n_timings
        How often predictions are timed; the median is reported.
    rare_usage
        A local model that is used for less than this fraction of an equal share of the groups is
        superfluous. The paper gives no number.
    solution_rmse
        A pair of functions counts as found if a curve is closer than this to each of them; the
        lines span the interval from 0 to 1.
    idle_usage
        Share of the groups below which figures show the curve of a local model as hardly used.
    near_function
        Figures give a curve the colour of a function if its RMSE to the function is less than this
        fraction of the RMSE of the best constant.

    Examples
    --------
    >>> MEASURES.adaptation_rows, MEASURES.n_adaptations
    (100, 10)
    """

    adaptation_rows: int = 100
    n_adaptations: int = 10
    timed_rows: int = 3000
    n_timings: int = 5
    rare_usage: float = 0.25
    solution_rmse: float = 0.05
    idle_usage: float = 0.02
    near_function: float = 0.5


MEASURES = MeasureSettings()
