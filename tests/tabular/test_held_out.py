"""The comparison with one model: on held-out rows, bounded, and honest where there is no conflict."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.tabular import held_out as one_model
from leaflearn.tabular.held_out import are_needed, compare_with_pooled_model

LEAF = LeafRegressor(2, local_model=LinearRegression())


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 2)), np.repeat(np.arange(15), 20), rng


def test_contexts_that_conflict_win(rows):
    X, group, rng = rows
    contexts = np.arange(15) % 2
    y = np.where(contexts[group] == 0, 1.0, -1.0) * X[:, 0] + 0.1 * rng.normal(size=300)
    errors = compare_with_pooled_model(LEAF, X, y, group, contexts, seed=0)
    assert errors.metric == "RMSE"
    assert errors.contexts < 0.3 * errors.one_model
    assert errors.n_rows == 60


def test_contexts_that_were_made_up_do_not(rows):
    X, group, rng = rows
    y = X[:, 0] + rng.normal(size=300)
    errors = compare_with_pooled_model(LEAF, X, y, group, rng.integers(0, 2, 15), seed=0)
    assert errors.contexts > 0.95 * errors.one_model


def test_one_context_is_compared_with_itself(rows):
    X, group, _ = rows
    errors = compare_with_pooled_model(LEAF, X, X[:, 0] * 2, group, np.zeros(15, dtype=int), seed=0)
    assert errors.contexts == errors.one_model


def test_single_rows_cannot_be_held_out(rows):
    X, _, _ = rows
    assert (
        compare_with_pooled_model(
            LEAF, X, X[:, 0], np.arange(300), np.zeros(300, dtype=int), seed=0
        )
        is None
    )


def test_a_context_with_one_label_only_answers_it(rows):
    X, group, _ = rows
    contexts = np.arange(15) % 2
    y = np.where(contexts[group] == 0, "always", np.where(X[:, 0] > 0, "up", "down"))
    leaf = LeafClassifier(2, local_model=LogisticRegression())
    errors = compare_with_pooled_model(leaf, X, y, group, contexts, seed=0)
    assert errors.metric == "error rate"
    assert errors.contexts < 0.1 < errors.one_model


def test_many_rows_are_not_all_asked(rows, monkeypatch):
    X, group, _ = rows
    monkeypatch.setattr(one_model, "MOST_ROWS", 100)
    assert (
        compare_with_pooled_model(LEAF, X, X[:, 0], group, np.zeros(15, dtype=int), seed=0).n_rows
        == 20
    )


def test_a_feature_that_matters_only_in_one_context_is_missed(rows):
    X, group, rng = rows
    contexts = np.arange(15) % 2
    y = np.where(contexts[group] == 0, X[:, 0], X[:, 1]) + 0.1 * rng.normal(size=300)
    assert are_needed(X, np.array([0]), y, group, contexts, seed=0)
    assert not are_needed(
        np.column_stack([X, rng.normal(size=300)]), np.array([0, 1]), y, group, contexts, seed=0
    )
