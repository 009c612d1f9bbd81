"""Theorems 1 and 2 of the paper, on domain sets small enough to try every model set."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaflearn.benchmark.conflict_rank import conflict_rank, conflicts, models_needed
from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sources import Examples
from leaflearn.benchmark.recovery.tasks import ten_waves

N_INPUTS = 3
ANSWERS = list(product((0, 1), repeat=N_INPUTS))  # all functions of three inputs
FUNCTIONS = st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=4)


def domain_set(functions):
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
    """er(H) of the paper, with equal shares: every domain is allocated to its best model."""
    wrong = [
        min(sum(a != b for a, b in zip(model, function, strict=True)) for model in models)
        for function in functions
    ]
    return sum(wrong) / (N_INPUTS * len(functions))


@settings(deadline=None, max_examples=40)
@given(FUNCTIONS, st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=3))
def test_the_expected_error_is_zero_only_if_every_domain_has_a_model(functions, models):
    """Theorem 1."""
    assert (expected_error(models, functions) == 0) == all(
        function in models for function in functions
    )


@settings(deadline=None, max_examples=40)
@given(FUNCTIONS)
def test_the_conflict_rank_is_a_lower_bound_of_the_models_needed(functions):
    """Theorem 2, and the exact number of models needed."""
    domains = domain_set(functions)
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
    domains = domain_set([(0, 1, 1), (0, 1, 1), (1, 0, 0)])
    assert conflicts(domains).tolist() == [
        [False, False, True],
        [False, False, True],
        [True, True, False],
    ]
    assert (conflict_rank(domains), models_needed(domains)) == (2, 2)


def test_ten_conflicting_domains_need_ten_models():
    assert models_needed(ten_waves(0)) == 10


def test_rare_differences_can_be_ignored():
    domains = domain_set([(0, 1, 1), (0, 1, 0)])
    assert [conflict_rank(domains, at_least=share) for share in (0.0, 0.3, 0.4)] == [2, 2, 1]


def test_domains_with_different_inputs_raise_an_error():
    one, other = Examples(np.zeros((2, 1)), np.zeros(2)), Examples(np.ones((2, 1)), np.zeros(2))
    domains = DomainSet("apart", (Domain("a", one, one), Domain("b", other, other)), 10, 2)
    with pytest.raises(
        ValueError,
        match=r"^The domains of 'apart' are tested on different inputs, so their targets cannot be "
        r"compared; choose domains with the same test inputs\.$",
    ):
        conflict_rank(domains)
