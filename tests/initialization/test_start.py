"""The start: right contexts without training where data permit, and what estimators do with it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from leaflearn import LeafRegressor
from leaflearn.benchmark.datasets import colored_digits, functions
from leaflearn.benchmark.datasets.sampling import sample_groups
from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.benchmark.recovery.tasks import TASKS
from leaflearn.initialization import settings
from leaflearn.initialization.start import find_start

MAX_ROWS = settings.SEARCH.max_rows
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
def test_groups_are_in_the_right_context_before_training(name):
    shares, starts = agreements(name)
    assert np.median(shares) > 0.96  # one data set of three may fail: they are small
    assert all(start.is_trusted for start in starts)


def test_single_rows_are_separated_if_every_context_has_labels_of_its_own():
    shares, starts = agreements("digits-n1")
    assert (shares > 0.99).all()
    assert {start.kind for start in starts} == {"labels"}


def test_superfluous_requested_contexts_stay_empty():
    shares, starts = agreements("functions", n_contexts=4)
    assert np.median(shares) > 0.96
    assert [len(np.unique(start.contexts)) for start in starts].count(3) >= 2


@pytest.mark.parametrize("n_contexts", [3, 4])
def test_labels_of_a_context_stay_together_if_too_many_contexts_are_requested(n_contexts):
    shares, starts = agreements("digits-n1", n_contexts=n_contexts)
    assert (shares > 0.99).all()
    assert all(start.is_trusted and len(np.unique(start.contexts)) == 2 for start in starts)


def test_outlier_rows_are_found_in_mixed_groups_and_not_in_clean_ones():
    task = TASKS["functions-mixed"]
    sample, truth = task.sample(0)
    start = find_start(sample.x, sample.y[:, None], sample.groups, 3, 0, seed=0)
    true = truth.row_domain != truth.domain[sample.groups]
    assert np.mean(start.is_outlier[true]) > 0.8
    assert np.mean(start.is_outlier[~true]) < 0.03
    clean, _ = sample_groups(functions(), random_state=0)
    assert not find_start(clean.x, clean.y[:, None], clean.groups, 3, 0, seed=0).is_outlier.any()


@pytest.mark.parametrize(("n_groups", "group_size"), [(1500, 4), (30, 200)])
def test_outlier_rows_are_found_among_rows_that_are_not_searched(n_groups, group_size):
    """In groups that were not searched, and in large groups that were searched in part."""
    sample, truth = sample_groups(
        functions(), n_groups=n_groups, group_size=group_size, mixing=0.1, random_state=0
    )
    assert len(sample.y) > 2 * MAX_ROWS
    start = find_start(sample.x, sample.y[:, None], sample.groups, 3, 0, seed=0)
    true = truth.row_domain != truth.domain[sample.groups]
    assert np.mean(start.is_outlier[true]) > 0.8
    assert np.mean(start.is_outlier[~true]) < 0.03
    agreement = allocation_agreement(start.contexts, truth.domain)
    assert agreement > 0.97  # with squared losses, outlier rows outweigh the others: 0.94


def test_many_clean_rows_have_no_outliers():
    sample, _ = sample_groups(functions(), n_groups=600, group_size=4, random_state=0)
    assert len(sample.y) > MAX_ROWS
    assert not find_start(sample.x, sample.y[:, None], sample.groups, 3, 0, seed=0).is_outlier.any()


def test_contexts_of_random_labels_are_not_trusted():
    rng = np.random.default_rng(0)
    x, y, group = rng.normal(size=(300, 4)), rng.integers(3, size=300), np.arange(300) // 3
    assert not find_start(x, y, group, 2, 3, seed=0).is_trusted


def test_groups_that_are_not_searched_are_allocated():
    sample, truth = sample_groups(colored_digits(), n_groups=1000, group_size=4, random_state=0)
    assert len(sample.y) > MAX_ROWS
    start = find_start(sample.x, sample.y, sample.groups, 2, 18, seed=0)
    assert allocation_agreement(start.contexts, truth.domain) > 0.99


def test_a_few_very_large_groups_are_represented_by_random_rows():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(6), 3000)
    # Inputs are sorted, so that the first rows of a group are all similar.
    x = np.sort(rng.uniform(-1, 1, (6, 3000)), axis=1).reshape(-1, 1)
    y = np.where(group % 2 == 0, 1.0, -1.0)[:, None] * x
    start = find_start(x, y, group, 2, 0, seed=0)
    assert allocation_agreement(start.contexts, np.arange(6) % 2) == 1.0


def test_the_same_seed_gives_the_same_contexts():
    sample, _ = sample_groups(functions(), random_state=0)
    one, again = (
        find_start(sample.x, sample.y[:, None], sample.groups, 3, 0, seed=4) for _ in range(2)
    )
    assert np.array_equal(one.contexts, again.contexts)


@pytest.mark.parametrize("constant", ["x", "y"])
def test_constant_data_are_accepted(constant):
    x, y = (
        np.ones((20, 2)) if constant == "x" else np.arange(40.0).reshape(20, 2),
        np.arange(20.0)[:, None],
    )
    start = find_start(
        x, np.zeros((20, 1)) if constant == "y" else y, np.arange(20) // 2, 2, 0, seed=0
    )
    assert start.contexts.shape == (10,)


# ---- starts of estimators -----------------------------------------------------------------------


def lines(n_contexts, n_groups=40, size=5, seed=0):
    """Groups of rows on one of several lines through the origin."""
    rng = np.random.default_rng(seed)
    context, groups = rng.integers(n_contexts, size=n_groups), np.repeat(np.arange(n_groups), size)
    X = rng.uniform(-1, 1, (n_groups * size, 1))
    y = (2.0 * context[groups] - n_contexts + 1) * X[:, 0] + rng.normal(0, 0.05, len(X))
    return X, y, groups, context


@pytest.mark.parametrize("n_contexts", [1, 2, 3])
def test_the_number_of_contexts_is_chosen_from_the_data(n_contexts):
    X, y, groups, context = lines(n_contexts)
    leaf = LeafRegressor("auto", local_model=LinearRegression(), random_state=0).fit(X, y, groups)
    assert leaf.n_contexts_ == len(leaf.local_models_) == n_contexts
    assert allocation_agreement(leaf.contexts_, context) > 0.9
    assert leaf.selection_["n_contexts"][:3].tolist() == [1, 2, 3]
    assert len({len(column) for column in leaf.selection_.values()}) == 1


def test_the_number_is_also_chosen_with_text_and_missing_values():
    rng = np.random.default_rng(0)
    colour, size, groups = (
        rng.choice(["red", "green", "blue"], 400),
        rng.normal(size=400),
        np.arange(400) // 4,
    )
    likes = np.array([{"red": 2.0, "green": -2.0, "blue": 0.0}[c] for c in colour])
    y = np.where(groups % 2, likes, -likes) + 0.1 * rng.normal(size=400)
    size[::7] = np.nan
    frame = pd.DataFrame({"colour": pd.Categorical(colour), "size": size})
    leaf = LeafRegressor(
        local_model=HistGradientBoostingRegressor(categorical_features="from_dtype"), random_state=0
    ).fit(frame, y, groups)
    assert leaf.n_contexts_ == 2


def test_the_estimator_reports_how_it_started():
    X, y, groups, _ = lines(2)
    for init, expected in (
        ("auto", "conflict: smooth models of 2 contexts leave "),
        ("random", "random"),
    ):
        leaf = LeafRegressor(2, init=init, local_model=LinearRegression(), random_state=0).fit(
            X, y, groups
        )
        assert leaf.init_.startswith(expected)


def test_the_printed_rule_starts_at_random():
    X, y, groups, _ = lines(2)
    leaf = LeafRegressor(2, allocation="hard", local_model=LinearRegression(), random_state=0).fit(
        X, y, groups
    )
    assert leaf.init_ == "random"
    assert leaf.selection_["error"].size == 0


def test_outlier_rows_are_reported():
    task = TASKS["functions-mixed"]
    sample, truth = task.sample(0)
    weight = np.ones(len(sample.y))
    weight[:3] = 0.0  # rows of weight 0 do not shift the marks of the others
    leaf = LeafRegressor(3, max_epochs=1, n_init=1, random_state=0).fit(
        sample.x, sample.y, sample.groups, weight
    )
    is_outlier = truth.row_domain != truth.domain[sample.groups]
    assert leaf.outliers_.shape == (len(sample.y),)
    assert np.mean(leaf.outliers_[is_outlier]) > 0.7
    assert np.mean(leaf.outliers_[~is_outlier]) < 0.05


def test_clean_groups_have_no_outliers():
    X, y, groups, _ = lines(2)
    assert (
        not LeafRegressor(2, local_model=LinearRegression(), random_state=0)
        .fit(X, y, groups)
        .outliers_.any()
    )
