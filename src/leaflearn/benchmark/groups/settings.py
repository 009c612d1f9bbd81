"""The simulated groups, and what counts as good.

The numbers are the same for all methods.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GroupsSettings:
    """How data sets are drawn, and how what was found is judged.

    Parameters
    ----------
    degree_groups, kind_groups
        Numbers of groups; the seed chooses among them.
    sizes
        Least and most rows of a group; sizes are uniform on a logarithmic scale.
    n_new_groups, n_labels, n_test_rows
        New groups, their labelled rows, and the rows of every known or new group that are
        predicted.
    noise, log_noise_spread
        Standard deviation of a row; and of its logarithm over groups, where noise is unequal.
    degree_deviation, kind_deviation
        Standard deviations of the intercepts and slopes of groups, without contexts and inside
        contexts.
    degrees_of_freedom
        Of the t distribution of heavy-tailed effects, scaled to the same standard deviation.
    logit_scale
        Log odds of a yes per unit of the mean and the effects.
    shares
        Share of each context, by their number.
    separations
        Distances of contexts, in standard deviations of the effects.
    n_draws
        Draws of effects over which the likelihood of yes/no answers is averaged.
    interval
        Probability of the intervals whose coverage is counted.
    sure
        A stated probability of a context from which a wrong one is counted as confident.
    bins
        Ends of the bins of stated probabilities.
    one_context_bar
        Share of data sets without contexts that should be fitted with one context.
    cost_rows
        Rows of the larger data sets whose cost is measured, in 1,000 groups.

    Examples
    --------
    >>> GROUPS.separations
    (1, 2, 3, 4, 5, 6)
    """

    degree_groups: tuple[int, ...] = (20, 50, 120, 400)
    kind_groups: tuple[int, ...] = (40, 120)
    sizes: tuple[int, int] = (6, 60)
    n_new_groups: int = 20
    n_labels: int = 5
    n_test_rows: int = 10
    noise: float = 0.5
    log_noise_spread: float = 0.5
    degree_deviation: float = 1.0
    kind_deviation: float = 0.5
    degrees_of_freedom: float = 3.0
    logit_scale: float = 1.5
    shares: tuple[tuple[float, ...], ...] = ((1.0,), (0.6, 0.4), (0.4, 0.3, 0.3))
    separations: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    n_draws: int = 1000
    interval: float = 0.9
    sure: float = 0.9
    bins: tuple[float, ...] = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
    one_context_bar: float = 0.95
    cost_rows: tuple[int, ...] = (100_000, 1_000_000)


GROUPS = GroupsSettings()
