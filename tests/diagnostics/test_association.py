"""Tests of association: the same order as the textbook statistics, and the promised level."""

import numpy as np
import pytest
from scipy import stats

from leaflearn.diagnostics.association import correct_p_values, find_p_value

RNG = np.random.default_rng(0)
CATEGORY = RNG.choice(["a", "b", "c"], 60)
NUMBER = RNG.normal(size=60) + 0.3 * (CATEGORY == "a")
CONTEXT = RNG.integers(0, 2, 60)


def p_of_kruskal(category, number):
    return stats.kruskal(*(number[category == value] for value in np.unique(category))).pvalue


def p_of_chi_squared(category, other):
    table = [[np.sum((category == a) & (other == b)) for b in (0, 1)] for a in "abc"]
    return stats.chi2_contingency(table, correction=False).pvalue


@pytest.mark.parametrize(
    ("values", "others", "expected"),
    [
        (CATEGORY, CONTEXT, p_of_chi_squared(CATEGORY, CONTEXT)),
        (CATEGORY, NUMBER, p_of_kruskal(CATEGORY, NUMBER)),
        (NUMBER, NUMBER**2, stats.spearmanr(NUMBER, NUMBER**2).pvalue),
    ],
)
def test_p_values_are_close_to_those_of_the_textbook(values, others, expected):
    assert find_p_value(values, others) == pytest.approx(expected, abs=0.04)
    assert find_p_value(others, values) == pytest.approx(expected, abs=0.04)


def test_missing_numbers_are_left_out_and_constants_are_associated_with_nothing():
    number = NUMBER.copy()
    number[:5] = np.nan
    assert find_p_value(number, number) < 0.001
    assert find_p_value(np.ones(60), CONTEXT) == 1.0
    assert find_p_value(np.full(60, "x"), CONTEXT) == 1.0


def test_holms_correction_keeps_the_order_and_never_exceeds_one():
    assert correct_p_values(np.array([0.5, 0.001, 0.9])).tolist() == [1.0, 0.003, 1.0]
    assert correct_p_values(np.empty(0)).tolist() == []
