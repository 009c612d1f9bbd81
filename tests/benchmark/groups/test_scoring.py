"""Contexts are compared with the truth, and stated probabilities with rightness."""

import numpy as np

from leaflearn.benchmark.groups.scoring import collect_reliability, score_contexts


def stated(probability):
    return np.column_stack([probability, 1 - np.asarray(probability)])


def test_numbers_of_contexts_do_not_matter_and_wrong_ones_are_counted():
    found = score_contexts([0, 0, 1, 1], stated([0.99, 0.6, 0.05, 0.3]), truth=[1, 1, 0, 1])
    assert (found["n_groups"], found["n_right"]) == (4, 3)
    assert (found["n_sure"], found["n_sure_wrong"]) == (2, 0)
    assert sum(n for n, _, _ in found["bins"]) == 4
    assert sum(right for _, _, right in found["bins"]) == 3


def test_a_further_context_is_wrong():
    probabilities = np.eye(3)[[0, 0, 1, 2]]
    found = score_contexts([0, 0, 1, 2], probabilities, truth=[0, 0, 1, 1])
    assert (found["n_found"], found["n_true"], found["n_right"]) == (3, 2, 3)
    assert found["n_sure_wrong"] == 1


def test_one_context_where_there_is_one_agrees_fully():
    found = score_contexts([0, 0], np.ones((2, 1)), truth=[0, 0])
    assert (found["n_found"], found["ari"], found["n_sure_wrong"]) == (1, 1.0, 0)


def test_only_data_sets_with_the_right_number_of_several_contexts_count():
    right = score_contexts([0, 1], stated([0.8, 0.2]), truth=[0, 1])
    one = score_contexts([0, 0], np.ones((2, 1)), truth=[0, 0])
    too_few = score_contexts([0, 0], np.ones((2, 1)), truth=[0, 1])
    (found,) = collect_reliability([right, one, too_few])
    assert (found.n_groups, found.stated, found.right) == (2, 0.8, 1.0)
