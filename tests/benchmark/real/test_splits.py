"""Splits never leak, and use every group as a new one exactly once."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from leaflearn.benchmark.real.settings import REAL
from leaflearn.benchmark.real.splits import make_splits

sizes = st.lists(st.integers(1, 40), min_size=5, max_size=30)


def rows_of(sizes):
    group = np.repeat(np.arange(len(sizes)), sizes)
    return np.random.default_rng(1).permutation(group)


@given(sizes)
@settings(max_examples=30, deadline=None)
def test_nothing_that_is_predicted_is_learnt_from(sizes):
    group = rows_of(sizes)
    for split in make_splits(group):
        assert not set(split.train) & set(split.known)
        assert set(group[split.known]) <= set(group[split.train])
        for labelled, rest in split.new.values():
            assert not set(labelled) & set(rest)
            assert not set(group[labelled]) & set(group[split.train])
            assert set(group[rest]) == set(group[labelled])


@given(sizes)
@settings(max_examples=30, deadline=None)
def test_every_group_is_new_once(sizes):
    group = rows_of(sizes)
    learnt = [set(group[split.train]) for split in make_splits(group)]
    assert len(learnt) == REAL.n_splits
    for g in range(len(sizes)):
        assert sum(g not in each for each in learnt) == 1


@given(sizes)
@settings(max_examples=30, deadline=None)
def test_new_groups_have_the_labels_and_enough_other_rows(sizes):
    group = rows_of(sizes)
    size = np.bincount(group)
    for split in make_splits(group):
        is_new = ~np.isin(np.arange(len(sizes)), group[split.train])
        for n_labels, (labelled, rest) in split.new.items():
            used = np.flatnonzero(is_new & (size >= n_labels + 5))
            assert np.bincount(group[labelled], minlength=len(sizes))[used].tolist() == [
                n_labels
            ] * len(used)
            assert set(group[rest]) == set(used)


def test_half_of_the_rows_of_a_known_group_are_learnt_from():
    group = np.repeat(np.arange(10), [7, 8] * 5)
    for split in make_splits(group):
        learnt, known = (
            np.bincount(group[rows], minlength=10) for rows in (split.train, split.known)
        )
        assert set(zip(learnt, known, strict=True)) == {(4, 3), (4, 4), (0, 0)}


def test_splits_are_the_same_every_time():
    group = rows_of([9] * 20)
    for first, second in zip(make_splits(group), make_splits(group), strict=True):
        assert first.train.tolist() == second.train.tolist()
        assert first.new[1][0].tolist() == second.new[1][0].tolist()
