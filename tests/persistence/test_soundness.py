"""Models with indices out of range are refused, before compiled code uses them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor

from leaflearn.persistence.soundness import check_sound

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.sin(3 * X[:, 0]) + X[:, 1]


def assert_refused(model):
    with pytest.raises(
        ValueError, match=r"out of range|inconsistent sizes|is deeper|has categorical features"
    ):
        check_sound([{"model": make_pipeline(StandardScaler(), model)}])


@pytest.mark.parametrize(
    ("part", "value"),
    [("feature", 3), ("feature", -2), ("children_left", 10**6), ("children_right", -5)],
)
@pytest.mark.parametrize(
    "kind", [DecisionTreeRegressor, RandomForestRegressor, GradientBoostingRegressor]
)
def test_trees_with_indices_out_of_range_are_refused(kind, part, value):
    model = (
        kind()
        .set_params(**({} if kind is DecisionTreeRegressor else {"n_estimators": 3}))
        .fit(X, Y)
    )
    check_sound(model)
    last = model if kind is DecisionTreeRegressor else np.ravel(model.estimators_)[-1]
    getattr(last.tree_, part)[0] = value
    assert_refused(model)


def test_trees_with_cycles_or_shared_branches_are_refused():
    model = DecisionTreeRegressor(max_depth=3).fit(X, Y)
    left = model.tree_.children_left
    inner = np.flatnonzero(left > 0)
    before, left[inner[1]] = left[inner[1]], inner[1]
    assert_refused(model)
    left[inner[1]] = before
    check_sound(model)
    left[inner[0]] = model.tree_.children_right[inner[0]]
    assert_refused(model)


def test_trees_that_are_deeper_or_larger_than_declared_are_refused():
    model = DecisionTreeRegressor(max_depth=3).fit(X, Y)
    state = model.tree_.__getstate__()
    for change in ({"max_depth": 1}, {"node_count": 10**6}, {"node_count": 0}):
        model.tree_.__setstate__({**state, **change})
        assert_refused(model)
    model.tree_.__setstate__(state)
    check_sound(model)
    model.n_features_in_ = 2
    assert_refused(model)


def test_boosting_with_trees_of_more_features_is_refused():
    model = GradientBoostingRegressor(n_estimators=2).fit(X, Y)
    model.estimators_[0, 0] = DecisionTreeRegressor().fit(np.hstack([X, X]), Y)
    assert_refused(model)
    model.estimators_[0, 0] = "not a tree"
    assert_refused(model)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("feature_idx", 3),
        ("feature_idx", -1),
        ("left", 0),
        ("left", 2**31),
        ("right", 2**31),
        ("is_categorical", 1),
    ],
)
def test_histogram_boosting_with_indices_out_of_range_is_refused(part, value):
    model = HistGradientBoostingRegressor(max_iter=2).fit(X, Y)
    check_sound(model)
    model._predictors[1][0].nodes[part][0] = value
    assert_refused(model)


def test_histogram_boosting_with_categorical_features_is_refused():
    model = HistGradientBoostingRegressor(max_iter=2, categorical_features=[2]).fit(
        np.c_[X[:, :2], RNG.integers(0, 3, 80)], Y
    )
    assert_refused(model)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("_n_support", lambda old: old + 1),
        ("_n_support", lambda old: np.array([old.sum() + 5, -5], dtype=old.dtype)),
        ("_dual_coef_", lambda old: old[:, :1]),
        ("_intercept_", lambda old: old[:0]),
        ("support_", lambda old: old + 1000),
        ("support_vectors_", lambda old: old[:3]),
    ],
)
def test_support_vector_machines_with_inconsistent_sizes_are_refused(name, change):
    model = SVC().fit(X, Y > 0)
    check_sound(model)
    setattr(model, name, change(getattr(model, name)))
    assert_refused(model)


def test_neighbors_with_another_number_of_features_are_refused():
    model = KNeighborsRegressor(algorithm="brute").fit(X, Y)
    check_sound(model)
    model._fit_X = model._fit_X[:, :1]
    assert_refused(model)


def test_sparse_matrices_with_indices_out_of_range_are_refused():
    matrix = sparse.csr_matrix(np.eye(3))
    check_sound({"a": [matrix]})
    matrix.indices[0] = 1000
    with pytest.raises(ValueError, match="indices"):
        check_sound({"a": [matrix]})
