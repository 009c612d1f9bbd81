"""Errors and agreement, against numbers worked out by hand."""

import numpy as np
import pytest

from leaflearn.evaluation import allocation_agreement, best_errors, error_rate, match_contexts, rmse


def test_rmse_of_each_model_by_hand():
    predictions = np.array([[0.0, 1.0], [0.0, 5.0]])
    assert rmse(predictions, np.array([3.0, 4.0])) == pytest.approx([np.sqrt(12.5), np.sqrt(2.5)])


def test_rmse_averages_over_several_outputs():
    predictions = np.zeros((2, 1, 2))
    assert rmse(predictions, np.array([[1.0, 1.0], [1.0, 3.0]])) == pytest.approx([np.sqrt(3.0)])


def test_error_rate_of_each_model_by_hand():
    assert error_rate(np.array([[1, 2], [1, 1], [0, 0], [1, 2]]), np.array([1, 1, 1, 2])).tolist() == [0.5, 0.5]


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
    with pytest.raises(ValueError, match=r"^There are predictions for 2 rows and true targets for 3\.$"):
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
    # Greedy would pair context 0 with domain 0 (3 groups) and leave context 1 with nothing; the other pairing has 2 + 3.
    contexts, domains = [0] * 5 + [1] * 3, [0] * 3 + [1] * 2 + [0] * 3
    assert allocation_agreement(contexts, domains) == pytest.approx(5 / 8)


def test_more_contexts_than_domains_leave_one_over():
    assert match_contexts([0, 0, 1, 2, 2], [0, 0, 0, 1, 1]).tolist() == [0, -1, 1]
    assert allocation_agreement([0, 0, 1, 2, 2], [0, 0, 0, 1, 1]) == 0.8


def test_fewer_contexts_than_domains():
    assert allocation_agreement([0, 0, 0], [0, 1, 1]) == pytest.approx(2 / 3)


def test_unused_contexts_are_matched_last():
    assert match_contexts([1, 1, 0], [0, 0, 1], n_contexts=3).tolist() == [1, 0, -1]


def test_agreement_refuses_unequal_lengths():
    with pytest.raises(ValueError, match=r"their shapes are \(2,\) and \(3,\)\.$"):
        allocation_agreement([0, 1], [0, 1, 1])
