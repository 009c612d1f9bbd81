"""Errors and agreement, compared with numbers computed by hand."""

import numpy as np
import pytest

from leaflearn.benchmark.evaluation import (
    adjusted_rand,
    allocation_agreement,
    best_errors,
    error_rate,
    identified_errors,
    label_set_errors,
    rmse,
)
from leaflearn.core.matching import match_contexts


def test_rmse_of_each_model_by_hand():
    predictions = np.array([[0.0, 1.0], [0.0, 5.0]])
    assert rmse(predictions, np.array([3.0, 4.0])) == pytest.approx([np.sqrt(12.5), np.sqrt(2.5)])


def test_rmse_averages_over_several_outputs():
    predictions = np.zeros((2, 1, 2))
    assert rmse(predictions, np.array([[1.0, 1.0], [1.0, 3.0]])) == pytest.approx([np.sqrt(3.0)])


def test_error_rate_of_each_model_by_hand():
    assert error_rate(
        np.array([[1, 2], [1, 1], [0, 0], [1, 2]]), np.array([1, 1, 1, 2])
    ).tolist() == [0.5, 0.5]


def test_best_errors_take_the_best_model_of_every_domain():
    predictions = np.array([[0, 10], [1, 11], [2, 12]])
    found = best_errors(predictions, [[0, 1, 0], [10, 11, 12]], error_rate)
    assert found.error == pytest.approx([1 / 3, 0])
    assert found.model.tolist() == [0, 1]


def test_one_model_may_be_best_in_several_domains():
    assert best_errors([[1.0, 9.0]], [[1.0], [2.0]], rmse).model.tolist() == [0, 0]


def test_best_errors_with_several_outputs():
    found = best_errors(np.zeros((3, 2, 4)), [np.ones((3, 4))], rmse)
    assert found.error.tolist() == [1.0]


def test_rows_must_match():
    with pytest.raises(
        ValueError, match=r"^There are predictions for 2 rows and true targets for 3\.$"
    ):
        best_errors(np.zeros((2, 1)), [np.zeros(3)], rmse)


def test_agreement_does_not_depend_on_the_numbering():
    domains = np.random.default_rng(0).integers(4, size=100)
    for seed in range(5):
        renumber = np.random.default_rng(seed).permutation(4)
        assert allocation_agreement(renumber[domains], domains) == 1.0


def test_agreement_matches_one_to_one():
    # Context 0 holds both domains and would suit either; context 1 has one group of domain 1.
    assert allocation_agreement([0, 0, 0, 0, 1], [0, 0, 1, 1, 1]) == 0.6


def test_agreement_is_the_best_match_and_not_a_greedy_one():
    # A greedy match would pair context 0 with domain 0 (3 groups) and leave no domain for context
    # 1; the other match has 2 + 3 groups.
    contexts, domains = [0] * 5 + [1] * 3, [0] * 3 + [1] * 2 + [0] * 3
    assert allocation_agreement(contexts, domains) == pytest.approx(5 / 8)


def test_more_contexts_than_domains_leave_one_unmatched():
    assert match_contexts([0, 0, 1, 2, 2], [0, 0, 0, 1, 1]).tolist() == [0, -1, 1]
    assert allocation_agreement([0, 0, 1, 2, 2], [0, 0, 0, 1, 1]) == 0.8


def test_fewer_contexts_than_domains():
    assert allocation_agreement([0, 0, 0], [0, 1, 1]) == pytest.approx(2 / 3)


def test_unused_contexts_are_matched_last():
    assert match_contexts([1, 1, 0], [0, 0, 1], n_contexts=3).tolist() == [1, 0, -1]


def test_agreement_refuses_unequal_lengths():
    with pytest.raises(ValueError, match=r"their shapes are \(2,\) and \(3,\)\.$"):
        allocation_agreement([0, 1], [0, 1, 1])


def test_a_label_counts_as_found_at_any_place_of_the_set():
    scores = np.array([[0.1, 0.5, 0.4, 0.0], [0.6, 0.3, 0.1, 0.0], [0.0, 0.1, 0.2, 0.7]])
    assert label_set_errors(scores, [[1, 1, 1], [2, 2, 2]], n_domains=2) == pytest.approx(
        [1 / 3, 1 / 3]
    )
    assert label_set_errors(scores, [[1, 1, 1], [2, 2, 2]], n_domains=1) == pytest.approx(
        [2 / 3, 1]
    )


def test_label_sets_refuse_predictions_of_several_contexts():
    with pytest.raises(ValueError, match=r"^The scores must be .* their shape is \(3, 1, 2\)\.$"):
        label_set_errors(np.zeros((3, 1, 2)), [[0, 0, 0]], n_domains=2)
    with pytest.raises(ValueError, match=r"^The true targets have shape \(2,\)"):
        label_set_errors(np.zeros((3, 2)), [[0, 0]], n_domains=2)


def test_the_identified_context_is_the_best_one_where_contexts_differ_clearly():
    x = np.random.default_rng(0).normal(size=(50, 1))
    predictions = np.stack([x, -x, x + 0.1], axis=1)  # (N, 3, 1)
    found = identified_errors(predictions, [x, -x, x + 0.1], "squared")
    assert found == pytest.approx([0, 0, 0], abs=1e-12)


def test_the_support_rows_are_not_tested_on():
    # Context 0 is right for one row only. If that row is the support, the context is chosen, and
    # all other rows are wrong.
    probabilities = np.zeros((4, 2, 2))
    probabilities[:, 0] = [0.0, 1.0]
    probabilities[0, 0] = [1.0, 0.0]
    probabilities[:, 1] = [0.4, 0.6]  # wrong everywhere, but with a smaller loss
    assert identified_errors(
        probabilities, [np.zeros(4, dtype=int)], "cross-entropy", n_support=1, n_draws=50
    ) == pytest.approx([1.0])


def test_the_context_is_chosen_by_probabilities_and_evaluated_by_labels():
    sure, unsure = [0.9, 0.1], [0.6, 0.4]
    predictions = np.tile(np.array([sure, unsure]), (20, 1, 1))
    wrong = np.zeros(20, dtype=int)
    wrong[:8] = 1  # 40 %, with a larger loss for the sure context
    errors = [
        identified_errors(predictions, [wrong], "cross-entropy", n_draws=400, random_state=seed)[0]
        for seed in range(2)
    ]
    assert errors == pytest.approx([0.4, 0.4], abs=0.02)


def test_identification_is_drawn_from_the_seed():
    generator = np.random.default_rng(0)
    predictions, truth = generator.normal(size=(30, 3, 2)), generator.normal(size=(30, 2))
    first, again, other = (
        identified_errors(predictions, [truth], "squared", random_state=seed)[0]
        for seed in (0, 0, 1)
    )
    assert first == again != other


def test_identification_needs_rows_to_test_on():
    with pytest.raises(
        ValueError, match=r"^`n_support` must be .*; it is 10, and there are 10 rows\.$"
    ):
        identified_errors(np.zeros((10, 2, 1)), [np.zeros((10, 1))], "squared")
    with pytest.raises(
        ValueError, match=r"^`loss` must be 'squared' or 'cross-entropy'; it is 'zero-one'\.$"
    ):
        identified_errors(np.zeros((11, 2, 1)), [np.zeros((11, 1))], "zero-one")


def test_the_rand_index_does_not_depend_on_the_numbering_and_is_near_zero_by_chance():
    generator = np.random.default_rng(0)
    domains = generator.integers(3, size=2000)
    assert adjusted_rand(np.array([2, 0, 1])[domains], domains) == 1.0
    assert adjusted_rand(generator.integers(3, size=2000), domains) == pytest.approx(0, abs=0.01)
    with pytest.raises(ValueError, match=r"their shapes are \(2,\) and \(3,\)\.$"):
        adjusted_rand([0, 1], [0, 1, 1])
