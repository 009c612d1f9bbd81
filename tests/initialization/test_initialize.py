"""What the estimators make of a start from the conflict: the number of contexts, rows that do not belong, and when it is not used."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from leaflearn import LeafRegressor
from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.benchmark.recovery.tasks import TASKS


def lines(n_contexts, n_groups=40, size=5, seed=0):
    """Groups of rows on one of several lines through the origin."""
    rng = np.random.default_rng(seed)
    context, groups = rng.integers(n_contexts, size=n_groups), np.repeat(np.arange(n_groups), size)
    X = rng.uniform(-1, 1, (n_groups * size, 1))
    y = (2.0 * context[groups] - n_contexts + 1) * X[:, 0] + rng.normal(0, 0.05, len(X))
    return X, y, groups, context


@pytest.mark.parametrize("n_contexts", [1, 2, 3])
def test_the_number_of_contexts_is_read_off_the_data(n_contexts):
    X, y, groups, context = lines(n_contexts)
    leaf = LeafRegressor("auto", local_model=LinearRegression(), random_state=0).fit(X, y, groups)
    assert leaf.n_contexts_ == len(leaf.local_models_) == n_contexts
    assert allocation_agreement(leaf.contexts_, context) > 0.9
    assert leaf.selection_["n_contexts"][:3].tolist() == [1, 2, 3]
    assert len({len(column) for column in leaf.selection_.values()}) == 1


def test_the_number_is_read_off_text_and_holes_too():
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


def test_a_start_from_the_conflict_is_told_and_a_random_one_too():
    X, y, groups, _ = lines(2)
    for init, told in (
        ("auto", "conflict: smooth models of 2 contexts leave "),
        ("random", "random"),
    ):
        leaf = LeafRegressor(2, init=init, local_model=LinearRegression(), random_state=0).fit(
            X, y, groups
        )
        assert leaf.init_.startswith(told)


def test_the_printed_rule_starts_at_random():
    X, y, groups, _ = lines(2)
    leaf = LeafRegressor(2, allocation="hard", local_model=LinearRegression(), random_state=0).fit(
        X, y, groups
    )
    assert leaf.init_ == "random"
    assert leaf.selection_["error"].size == 0


def test_rows_that_do_not_belong_are_marked_and_teach_nobody():
    task = TASKS["functions-mixed"]
    sample, truth = task.sample(0)
    weight = np.ones(len(sample.y))
    weight[:3] = 0.0  # rows that are left out do not move the marks of the others
    leaf = LeafRegressor(3, max_epochs=1, n_init=1, random_state=0).fit(
        sample.x, sample.y, sample.groups, weight
    )
    strange = truth.row_domain != truth.domain[sample.groups]
    assert leaf.outliers_.shape == (len(sample.y),)
    assert np.mean(leaf.outliers_[strange]) > 0.7
    assert np.mean(leaf.outliers_[~strange]) < 0.05


def test_clean_groups_have_no_outliers():
    X, y, groups, _ = lines(2)
    assert (
        not LeafRegressor(2, local_model=LinearRegression(), random_state=0)
        .fit(X, y, groups)
        .outliers_.any()
    )
