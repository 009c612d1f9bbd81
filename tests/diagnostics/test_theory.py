"""The theorems of the paper, on worlds so small that everything can be tried."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaflearn.benchmark.conflict_rank import conflict_rank, conflicts, models_needed
from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sources import Examples
from leaflearn.benchmark.recovery.tasks import ten_waves
from leaflearn.diagnostics.bounds import generalization_bound

N_INPUTS = 3
ANSWERS = list(product((0, 1), repeat=N_INPUTS))  # every function of three inputs
WORLDS = st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=4)


def world(functions):
    x = np.arange(float(N_INPUTS))[:, None]
    tables = [Examples(x, np.array(function, dtype=np.int64)) for function in functions]
    return DomainSet(
        "small",
        tuple(Domain(str(d), table, table) for d, table in enumerate(tables)),
        10,
        2,
        classes=("no", "yes"),
    )


def expected_error(models, functions):
    """er(H) of the paper, with equal shares: every domain goes to the model that is best for it."""
    wrong = [
        min(sum(a != b for a, b in zip(model, function, strict=True)) for model in models)
        for function in functions
    ]
    return sum(wrong) / (N_INPUTS * len(functions))


@settings(deadline=None, max_examples=40)
@given(WORLDS, st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=3))
def test_no_expected_error_means_that_every_domain_has_its_model(functions, models):
    """Theorem 1."""
    assert (expected_error(models, functions) == 0) == all(
        function in models for function in functions
    )


@settings(deadline=None, max_examples=40)
@given(WORLDS)
def test_fewer_models_than_the_conflict_rank_cannot_do(functions):
    """Theorem 2, and beyond it: how many can."""
    domains = world(functions)
    best = {
        k: min(expected_error(models, functions) for models in combinations(ANSWERS, k))
        for k in range(1, 4)
    }
    enough = [k for k, error in best.items() if error == 0]
    rank, needed = conflict_rank(domains), models_needed(domains)
    assert all(k >= rank for k in enough)
    assert rank <= needed
    assert needed == min(enough, default=4)


def test_domains_without_conflict_share_a_model():
    domains = world([(0, 1, 1), (0, 1, 1), (1, 0, 0)])
    assert conflicts(domains).tolist() == [
        [False, False, True],
        [False, False, True],
        [True, True, False],
    ]
    assert (conflict_rank(domains), models_needed(domains)) == (2, 2)


def test_ten_domains_in_conflict_are_counted_at_once():
    assert models_needed(ten_waves(0)) == 10


def test_rare_differences_can_be_passed_over():
    domains = world([(0, 1, 1), (0, 1, 0)])
    assert [conflict_rank(domains, at_least=share) for share in (0.0, 0.3, 0.4)] == [2, 2, 1]


def test_domains_that_cannot_be_compared_are_refused():
    one, other = Examples(np.zeros((2, 1)), np.zeros(2)), Examples(np.ones((2, 1)), np.zeros(2))
    domains = DomainSet("apart", (Domain("a", one, one), Domain("b", other, other)), 10, 2)
    with pytest.raises(
        ValueError,
        match=r"^The domains of 'apart' are tested on different inputs, so their targets cannot be "
        r"compared; choose domains with the same test inputs\.$",
    ):
        conflict_rank(domains)


def bound(counts=(40, 60), size=30, **changed):
    return generalization_bound(
        0.1, counts, size, **{"row_dimension": 3, "domain_dimension": 5, **changed}
    )


def test_the_bound_is_the_printed_formula():
    """Term by term, as in the theorem."""
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


def test_each_term_dies_away_with_what_it_lacks():
    small, groups, rows = bound(), bound(counts=(4000, 6000)), bound(size=3000)
    assert groups.domains < small.domains / 5
    assert groups.rows < small.rows / 5
    assert groups.allocation > small.allocation, "more groups, more chances to allocate one wrongly"
    assert rows.domains == small.domains
    assert rows.rows < small.rows / 5
    assert rows.allocation < small.allocation / 5
    assert bound(mixing=0.1).total > small.total


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 200), st.floats(0.5, 1000))
def test_the_bound_is_a_number_however_few_rows_there_are(size, dimension):
    assert math.isfinite(bound(size=size, row_dimension=dimension).total)


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (
            {"counts": ()},
            r"`groups_of_domain` counts the groups of each domain, at least one in all; it is \[\]\.",
        ),
        (
            {"size": 0},
            r"`group_size` and the dimensions must be positive; they are 0 and at least 3\.",
        ),
        (
            {"delta": 0},
            r"`delta` must be above 0 and at most 1, `mixing` at least 0 and below 1; they are 0 and 0\.0\.",
        ),
    ],
)
def test_what_means_nothing_is_refused(changed, complaint):
    with pytest.raises(ValueError, match=f"^{complaint}$"):
        bound(**changed)
