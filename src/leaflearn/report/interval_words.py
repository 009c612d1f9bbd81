"""Errors and their intervals as they are written, and what the intervals are, in plain words: for the page and for the terminal."""

from __future__ import annotations

from leaflearn.report.number_text import SPACE, count, show_number, show_range, show_share
from leaflearn.tabular.held_out import FEW_GROUPS, FEWEST_GROUPS, HeldOutErrors, Interval

PERCENT = f"95{SPACE}%"
CLEARLY_LESS = 0.95  # of one model's error, or less: then the contexts are worth their while


def show_error(errors: HeldOutErrors, error: float) -> str:
    """A share of wrong answers, or a number in the unit of the target.

    Examples
    --------
    >>> show_error(HeldOutErrors("RMSE", 2.0, 1.0, n_rows=12), 1.2345)
    '1.23'
    """
    return show_share(error) if errors.is_rate else show_number(error)


def show_interval(errors: HeldOutErrors, interval: Interval) -> str:
    """From the lower end to the upper end.

    Examples
    --------
    >>> show_interval(HeldOutErrors("RMSE", 2.0, 1.0, n_rows=12), (0.5, 1.2345))
    '0.5 to 1.23'
    """
    return show_range(interval, show_share if errors.is_rate else show_number)


def explain_intervals(errors: HeldOutErrors) -> str:
    """What an interval is and what it rests on, or why there is none.

    Examples
    --------
    >>> print(explain_intervals(HeldOutErrors("RMSE", 2.0, 1.0, n_rows=12, n_groups=3)).replace(SPACE, " "))
    The held-out rows are of 3 groups, too few for a 95 % interval: other groups may give quite another error.
    """
    if not errors.n_groups:
        return "The model was saved before errors had intervals; fit it again to have them."
    if errors.n_groups < FEWEST_GROUPS:
        groups = count(errors.n_groups, "group")
        return f"The held-out rows are of {groups}, too few for a {PERCENT} interval: other groups may give quite another error."
    taken = ", with the contexts as they are" if len(errors.by_context) > 1 else ""
    rough = " With so few groups it is rough." if errors.n_groups < FEW_GROUPS else ""
    return (
        f"A {PERCENT} interval is where the error would lie on many more groups like these; it misses about 5 times in 100. It is judged "
        f"by how much the error differs between the {errors.n_groups:,} groups with held-out rows{taken}.{rough}"
    )


def tell_gain(errors: HeldOutErrors) -> tuple[str, str]:
    """What the contexts are worth, and whether that may be chance: the main clause, and the rest of the sentence.

    Both errors are of the same rows, so the interval of their ratio says more than whether their own intervals overlap.

    Examples
    --------
    >>> errors = HeldOutErrors("RMSE", one_model=2.0, contexts=1.0, n_rows=90, n_groups=30, ratio_interval=(0.4, 0.6))
    >>> print("".join(tell_gain(errors)).replace(SPACE, " "))
    With the contexts the error is 50 % smaller than that of one model for all (95 % interval: 40 % to 60 %).
    """
    if errors.contexts >= CLEARLY_LESS * errors.one_model:
        return "The contexts hardly lower the error", ": one model for all does about as well."
    ends, less = errors.ratio_interval, show_share(1.0 - errors.contexts / errors.one_model)
    clause, rest = (
        f"With the contexts the error is {less} smaller",
        " than that of one model for all",
    )
    if ends is None:
        return clause, f"{rest}."
    if ends[1] >= 1.0:
        reach = f"from {show_share(1.0 - ends[0])} smaller to {show_share(ends[1] - 1.0)} larger"
        return clause, f"{rest}, but that may be chance: the {PERCENT} interval goes {reach}."
    return (
        clause,
        f"{rest} ({PERCENT} interval: {show_range((1.0 - ends[1], 1.0 - ends[0]), show_share)}).",
    )
