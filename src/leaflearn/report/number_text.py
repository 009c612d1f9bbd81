"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, timedelta

SPACE = "\u00a0"  # that no line breaks at
_FIRST_DAY = date(1970, 1, 1)


def show_number(value: float) -> str:
    """Three digits that count; thousands with commas between them.

    Examples
    --------
    >>> [show_number(value) for value in (0.12345, 12.0, 123456.7, -0.5, 1e-9, float("inf"))]
    ['0.123', '12', '123,457', '-0.5', '1e-09', '∞']
    """
    if not math.isfinite(value):
        return "none" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    if 1000 <= abs(value) < 1e12:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def show_beside(value: float, spread: float) -> str:
    """A number among others that differ by about `spread`, with as many decimals as it takes to tell them apart.

    Examples
    --------
    >>> [show_beside(value, 20.0) for value in (14.321, 0.029, -3.8)]
    ['14.3', '0.0', '-3.8']
    """
    if not (math.isfinite(value) and 1e-6 < spread < 1e6):
        return show_number(value)
    decimals = max(0, 2 - math.floor(math.log10(spread)))
    return f"{round(value, decimals) + 0.0:,.{decimals}f}"  # the sum turns -0.0 into 0.0


def show_share(share: float) -> str:
    """Percent; nothing is called 100 % or 0 % that is not.

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
    fine = 0.0 < percent < 1.0 or 99.0 < percent < 100.0
    return f"{percent:.{int(fine)}f}{SPACE}%"


def show_range(ends: tuple[float, float], show: Callable[[float], str]) -> str:
    """From here to there; a word of its own where both look the same.

    Examples
    --------
    >>> show_range((0.071, 0.12), show_number), show_range((0.0701, 0.0702), lambda value: f"{value:.2f}")
    ('0.071 to 0.12', 'about 0.07')
    """
    low, high = (show(end) for end in ends)
    return f"{low} to {high}" if low != high else f"about {low}"


def show_day(days: float) -> str:
    """The date that is so many days after the first of January 1970.

    Examples
    --------
    >>> show_day(19723.0)
    '2024-01-01'
    """
    try:
        return (_FIRST_DAY + timedelta(days=round(days))).isoformat()
    except (OverflowError, ValueError):
        return f"day {days:.0f}"


def count(number: int, what: str) -> str:
    """So many of something.

    Examples
    --------
    >>> count(1, "group"), count(1200, "row")
    ('1 group', '1,200 rows')
    """
    return f"{number:,}{SPACE}{what}{'' if number == 1 else 's'}".replace(SPACE, " ")
