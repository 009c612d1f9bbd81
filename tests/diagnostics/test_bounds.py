"""Theorems 3 and 4 of the paper."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaflearn.diagnostics.bounds import generalization_bound


def bound(counts=(40, 60), size=30, **changed):
    return generalization_bound(
        0.1, counts, size, **{"row_dimension": 3, "domain_dimension": 5, **changed}
    )


def test_the_bound_is_the_printed_formula():
    """Term by term."""
    m, n, d, d_bar, delta, alpha = 100, 30, 3, 5, 0.05, 0.2
    made = bound(mixing=alpha)
    first = math.sqrt((d_bar * (math.log(2 * m / d_bar) + 1) - math.log(delta / 24)) / m) + 1 / m
    second = sum(
        m_k
        / m
        * math.sqrt((d * (math.log(2 * m_k * n / d) + 1) - math.log(delta / 24)) / (m_k * n))
        + 1 / (m * n)
        for m_k in (40, 60)
    )
    third = math.sqrt((d * (math.log(2 * n / d) + 1) - math.log(delta / (24 * m))) / n) + 1 / n
    assert made.training == pytest.approx(0.1 / 0.8)
    assert made.domains == pytest.approx(1.2 / 0.8 * first)
    assert made.rows == pytest.approx(second / 0.8)
    assert made.allocation == pytest.approx(2 / 0.8 * third)


def test_each_term_vanishes_with_more_groups_or_rows():
    small, groups, rows = bound(), bound(counts=(4000, 6000)), bound(size=3000)
    assert groups.domains < small.domains / 5
    assert groups.rows < small.rows / 5
    assert groups.allocation > small.allocation, "more groups can be allocated wrongly"
    assert rows.domains == small.domains
    assert rows.rows < small.rows / 5
    assert rows.allocation < small.allocation / 5
    assert bound(mixing=0.1).total > small.total


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 200), st.floats(0.5, 1000))
def test_the_bound_is_finite_for_any_number_of_rows(size, dimension):
    assert math.isfinite(bound(size=size, row_dimension=dimension).total)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"counts": ()},
            r"`groups_of_domain` must hold the number of groups of each domain, with at least one "
            r"group in total, but it is \[\]\.",
        ),
        (
            {"size": 0},
            r"`group_size` and the dimensions must be positive, but `group_size` is 0 and the "
            r"smaller dimension is 3\.",
        ),
        (
            {"delta": 0},
            r"`delta` must be above 0 and at most 1, and `mixing` at least 0 and below 1, but they "
            r"are 0 and 0\.0\.",
        ),
    ],
)
def test_invalid_arguments_raise_an_error(changed, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        bound(**changed)
