"""Numbers, errors and intervals in words, for the report and for the terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, timedelta

from leaflearn.report import settings
from leaflearn.tabular import settings as table_settings
from leaflearn.tabular.held_out import HeldOutErrors, Interval

SPACE = "\u00a0"  # no-break space
PERCENT = f"95{SPACE}%"
_FIRST_DAY = date(1970, 1, 1)


def show_number(value: float) -> str:
    """Three significant digits; thousands with commas between them.

    Examples
    --------
    >>> [show_number(value) for value in (0.12345, 12.0, 123456.7, -0.5, 1e-9, float("inf"))]
    ['0.123', '12', '123,457', '-0.5', '1e-09', '∞']
    """
    if not math.isfinite(value):
        return "none" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.3g}"


def natural_key(text: str) -> list[tuple[int, str]]:
    """A sort key that puts group 2 before group 10.

    Examples
    --------
    >>> sorted(["group 10", "group 2"], key=natural_key)
    ['group 2', 'group 10']
    """
    return [
        (int(piece), "") if piece.isdecimal() else (-1, piece)
        for piece in re.split(r"(\d+)", text[:100])
    ]


def show_at_scale(value: float, spread: float) -> str:
    """A number with enough decimals to distinguish values that differ by about `spread`.

    Examples
    --------
    >>> [show_at_scale(value, 20.0) for value in (14.321, 0.029, -3.8)]
    ['14.3', '0.0', '-3.8']
    """
    if not (math.isfinite(value) and 1e-6 < spread < 1e6):
        return show_number(value)
    decimals = max(0, 2 - math.floor(math.log10(spread)))
    return f"{round(value, decimals) + 0.0:,.{decimals}f}"  # the sum turns -0.0 into 0.0


def show_share(share: float) -> str:
    """Percent; only exact values are shown as 100 % or 0 %.

    Examples
    --------
    >>> [show_share(share).replace(SPACE, " ") for share in (0.123, 0.9999, 1.0, 0.0001, 0.996)]
    ['12 %', 'over 99.9 %', '100 %', 'under 0.1 %', '99.6 %']
    """
    percent = 100.0 * share
    if 99.9 < percent < 100.0:
        return f"over 99.9{SPACE}%"
    if 0.0 < percent < 0.1:
        return f"under 0.1{SPACE}%"
    needs_decimal = 0.0 < percent < 1.0 or 99.0 < percent < 100.0
    return f"{percent:.{int(needs_decimal)}f}{SPACE}%"


def show_range(ends: tuple[float, float], show: Callable[[float], str]) -> str:
    """Both ends of a range, or "about" one value where both round to the same text.

    Examples
    --------
    >>> show_range((0.071, 0.12), show_number)
    '0.071 to 0.12'
    >>> show_range((0.0701, 0.0702), lambda value: f"{value:.2f}")
    'about 0.07'
    """
    low, high = (show(end) for end in ends)
    return f"{low} to {high}" if low != high else f"about {low}"


def show_day(days: float) -> str:
    """The date that is this many days after 1 January 1970.

    Examples
    --------
    >>> show_day(19723.0)
    '2024-01-01'
    """
    try:
        return (_FIRST_DAY + timedelta(days=round(days))).isoformat()
    except (OverflowError, ValueError):
        return f"day {days:.0f}"


def count(number: int, noun: str) -> str:
    """A number with its noun, in the plural where needed.

    Examples
    --------
    >>> count(1, "group"), count(1200, "row")
    ('1 group', '1,200 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def enumerate_names(names: list[str], last: str = " and ") -> str:
    """Names with commas between them, and a word before the last one.

    Examples
    --------
    >>> enumerate_names(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])}{last}{names[-1]}"


def show_error(errors: HeldOutErrors, error: float) -> str:
    """An error rate in percent, or a number in the unit of the target.

    Examples
    --------
    >>> show_error(HeldOutErrors("RMSE", 2.0, 1.0, n_rows=12), 1.2345)
    '1.23'
    """
    return show_share(error) if errors.is_rate else show_number(error)


def show_interval(errors: HeldOutErrors, interval: Interval) -> str:
    """The lower and the upper end of an interval.

    Examples
    --------
    >>> show_interval(HeldOutErrors("RMSE", 2.0, 1.0, n_rows=12), (0.5, 1.2345))
    '0.5 to 1.23'
    """
    return show_range(interval, show_share if errors.is_rate else show_number)


def explain_intervals(errors: HeldOutErrors) -> str:
    """What an interval means and how it was estimated, or why there is none.

    Examples
    --------
    >>> errors = HeldOutErrors("RMSE", 2.0, 1.0, n_rows=12, n_groups=3)
    >>> print(explain_intervals(errors).replace(SPACE, " "))
    The held-out rows come from 3 groups, too few for a 95 % interval: the error on other groups may
    be very different.
    """
    if not errors.n_groups:
        return "The model was saved by a version without intervals; fit it again to get them."
    if errors.n_groups < table_settings.TABLES.min_interval_groups:
        groups = count(errors.n_groups, "group")
        return (
            f"The held-out rows come from {groups}, too few for a {PERCENT} interval: the error on "
            "other groups may be very different."
        )
    fixed = ", taking the contexts as given" if len(errors.by_context) > 1 else ""
    has_few = errors.n_groups < table_settings.TABLES.few_interval_groups
    rough = " With so few groups it is only approximate." if has_few else ""
    return (
        f"A {PERCENT} interval is where the error would lie on many more groups like these; it "
        "misses about 5 times in 100. It is estimated from how much the error differs between the "
        f"{errors.n_groups:,} groups with held-out rows{fixed}.{rough}"
    )


def name_compared(errors: HeldOutErrors) -> str:
    """What is compared with a pooled model: contexts, group effects, or both.

    Examples
    --------
    >>> name_compared(HeldOutErrors("RMSE", 2.0, 1.0, n_rows=12))
    'the contexts'
    """
    if not errors.has_effects:
        return "the contexts"
    has_contexts = len(errors.by_context) > 1
    return "the contexts and group effects" if has_contexts else "group effects"


def question_gain(errors: HeldOutErrors) -> str:
    """Why the gain over a pooled model is in question; empty if it is not.

    Examples
    --------
    >>> question_gain(HeldOutErrors("RMSE", 2.0, 1.0, n_rows=12, ratio_interval=(0.3, 1.1)))
    'on held-out rows, the gain over a pooled model may be chance'
    """
    limit, ends = settings.REPORT.hardly_smaller, errors.ratio_interval
    if errors.contexts > errors.one_model / limit:
        return "a pooled model predicts held-out rows better"
    if errors.contexts >= limit * errors.one_model:
        return "a pooled model predicts held-out rows about as well"
    is_chance = ends is not None and ends[1] >= 1.0
    return "on held-out rows, the gain over a pooled model may be chance" if is_chance else ""


def describe_gain(errors: HeldOutErrors) -> tuple[str, str]:
    """By how much the contexts lower the error, and whether that may be chance.

    Both errors are measured on the same rows, so the interval of their ratio is more informative
    than whether their own intervals overlap.

    Returns
    -------
    clause, rest : str
        The main clause, and the rest of the sentence.

    Examples
    --------
    >>> errors = HeldOutErrors("RMSE", 2.0, 1.0, n_rows=90, n_groups=30, ratio_interval=(0.4, 0.6))
    >>> print("".join(describe_gain(errors)).replace(SPACE, " "))
    With the contexts the error is 50 % smaller than that of a pooled model (95 % interval: 40 % to
    60 %).
    """
    compared, limit = name_compared(errors), settings.REPORT.hardly_smaller
    if limit * errors.one_model <= errors.contexts <= errors.one_model / limit:
        clause = f"{compared[0].upper()}{compared[1:]} hardly lower the error"
        return clause, ": a pooled model does about as well."
    rest = " than that of a pooled model"
    if not errors.one_model:
        return f"With {compared} the error is larger", f"{rest}, which makes none."
    ratio, ends = errors.contexts / errors.one_model, errors.ratio_interval
    clause = f"With {compared} the error is {_show_change(ratio)}"
    if ends is None:
        return clause, f"{rest}."
    if ends[0] <= 1.0 <= ends[1]:
        reach = f"from {_show_change(ends[0])} to {_show_change(ends[1])}"
        return clause, f"{rest}, but that may be chance: the {PERCENT} interval goes {reach}."
    changes = sorted(abs(1.0 - end) for end in ends)
    return (
        clause,
        f"{rest} ({PERCENT} interval: {show_range((changes[0], changes[1]), show_share)}).",
    )


def _show_change(ratio: float) -> str:
    return f"{show_share(abs(1.0 - ratio))} {'smaller' if ratio < 1.0 else 'larger'}"
