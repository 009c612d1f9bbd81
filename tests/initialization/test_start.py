"""The start from the conflict: right contexts without training, over several data sets, and honest about when it knows nothing."""

import numpy as np
import pytest

from leaflearn.benchmark.datasets import colored_digits, functions
from leaflearn.benchmark.datasets.sampling import sample_groups
from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.benchmark.recovery.tasks import TASKS
from leaflearn.initialization.start import MOST_ROWS, find_start

SEEDS = range(3)


def agreements(name, seeds=SEEDS, n_contexts=None):
    """Share of groups in the right context, for each seed; and the starts."""
    task = TASKS[name]
    starts, shares = [], []
    for seed in seeds:
        data = task.make(seed)
        sample, truth = task.sample(seed)
        y = sample.y if data.classes else sample.y[:, None]
        starts.append(
            find_start(
                sample.x,
                y,
                sample.groups,
                n_contexts or task.n_contexts,
                len(data.classes or ()),
                seed,
            )
        )
        shares.append(allocation_agreement(starts[-1].contexts, truth.domain))
    return np.array(shares), starts


@pytest.mark.parametrize(
    "name", ["functions", "rare", "functions-m50", "functions-mixed", "opposites"]
)
def test_groups_are_in_the_right_context_before_anything_is_trained(name):
    shares, starts = agreements(name)
    assert np.median(shares) > 0.96  # one data set of three may fail: they are small
    assert all(start.is_trusted for start in starts)


def test_single_rows_come_apart_where_every_context_has_labels_of_its_own():
    shares, starts = agreements("digits-n1")
    assert (shares > 0.99).all()
    assert {start.kind for start in starts} == {"labels"}


def test_contexts_that_were_asked_for_and_are_not_there_stay_empty():
    shares, starts = agreements("functions", n_contexts=4)
    assert np.median(shares) > 0.96
    assert [len(np.unique(start.contexts)) for start in starts].count(3) >= 2


@pytest.mark.parametrize("n_contexts", [3, 4])
def test_labels_of_a_context_are_not_cut_in_two_because_more_contexts_were_asked_for(n_contexts):
    shares, starts = agreements("digits-n1", n_contexts=n_contexts)
    assert (shares > 0.99).all()
    assert all(start.is_trusted and len(np.unique(start.contexts)) == 2 for start in starts)


def test_strangers_are_found_where_there_are_some_and_only_there():
    task = TASKS["functions-mixed"]
    sample, truth = task.sample(0)
    start = find_start(sample.x, sample.y[:, None], sample.groups, 3, 0, seed=0)
    true = truth.row_domain != truth.domain[sample.groups]
    assert np.mean(start.is_outlier[true]) > 0.8
    assert np.mean(start.is_outlier[~true]) < 0.03
    clean, _ = sample_groups(functions(), random_state=0)
    assert not find_start(clean.x, clean.y[:, None], clean.groups, 3, 0, seed=0).is_outlier.any()


@pytest.mark.parametrize(("n_groups", "group_size"), [(1500, 4), (30, 200)])
def test_strangers_are_found_beyond_the_rows_that_are_searched(n_groups, group_size):
    """In groups that were not searched, and in large groups of which some rows were."""
    sample, truth = sample_groups(
        functions(), n_groups=n_groups, group_size=group_size, mixing=0.1, random_state=0
    )
    assert len(sample.y) > 2 * MOST_ROWS
    start = find_start(sample.x, sample.y[:, None], sample.groups, 3, 0, seed=0)
    true = truth.row_domain != truth.domain[sample.groups]
    assert np.mean(start.is_outlier[true]) > 0.8
    assert np.mean(start.is_outlier[~true]) < 0.03
    assert (
        allocation_agreement(start.contexts, truth.domain) > 0.97
    )  # with squared losses strangers outvote the others: 0.94


def test_many_clean_rows_have_no_strangers():
    sample, _ = sample_groups(functions(), n_groups=600, group_size=4, random_state=0)
    assert len(sample.y) > MOST_ROWS
    assert not find_start(sample.x, sample.y[:, None], sample.groups, 3, 0, seed=0).is_outlier.any()


def test_labels_that_follow_no_context_are_not_trusted():
    rng = np.random.default_rng(0)
    x, y, group = rng.normal(size=(300, 4)), rng.integers(3, size=300), np.arange(300) // 3
    assert not find_start(x, y, group, 2, 3, seed=0).is_trusted


def test_groups_beyond_those_that_are_searched_are_allocated_too():
    sample, truth = sample_groups(colored_digits(), n_groups=1000, group_size=4, random_state=0)
    assert len(sample.y) > MOST_ROWS
    start = find_start(sample.x, sample.y, sample.groups, 2, 18, seed=0)
    assert allocation_agreement(start.contexts, truth.domain) > 0.99


def test_a_few_huge_groups_are_all_looked_at():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(6), 3000)
    x = np.sort(rng.uniform(-1, 1, (6, 3000)), axis=1).reshape(
        -1, 1
    )  # in order: the first rows of a group are all alike
    y = np.where(group % 2 == 0, 1.0, -1.0)[:, None] * x
    start = find_start(x, y, group, 2, 0, seed=0)
    assert allocation_agreement(start.contexts, np.arange(6) % 2) == 1.0


def test_the_same_seed_finds_the_same():
    sample, _ = sample_groups(functions(), random_state=0)
    one, again = (
        find_start(sample.x, sample.y[:, None], sample.groups, 3, 0, seed=4) for _ in range(2)
    )
    assert np.array_equal(one.contexts, again.contexts)


@pytest.mark.parametrize("constant", ["x", "y"])
def test_data_that_never_vary_do_no_harm(constant):
    x, y = (
        np.ones((20, 2)) if constant == "x" else np.arange(40.0).reshape(20, 2),
        np.arange(20.0)[:, None],
    )
    start = find_start(
        x, np.zeros((20, 1)) if constant == "y" else y, np.arange(20) // 2, 2, 0, seed=0
    )
    assert start.contexts.shape == (10,)
