"""The number of further rows is honest: with so many, sources are settled about as often as is said."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.diagnostics.required_rows import SETTLED, count_required_rows, rows_for
from leaflearn.estimators.identification import Identification


def draw(rng, n, context, is_label, noise):
    x = rng.normal(size=(n, 1))
    score = (1 if context == 0 else -1) * x[:, 0]
    if is_label:
        return x, (rng.random(n) < 1 / (1 + np.exp(-score / noise))).astype(int)
    return x, score + noise * rng.normal(size=n)


@pytest.mark.parametrize("is_label", [True, False])
def test_with_so_many_more_rows_most_sources_are_settled(is_label):
    rng, noise = np.random.default_rng(0), 1.0
    parts = [draw(rng, 25, k % 2, is_label, noise) for k in range(16)]
    X, y = np.concatenate([x for x, _ in parts]), np.concatenate([label for _, label in parts])
    kind, model = (
        (LeafClassifier, LogisticRegression()) if is_label else (LeafRegressor, LinearRegression())
    )
    leaf = kind(2, local_model=model, random_state=0).fit(X, y, groups=np.repeat(np.arange(16), 25))
    settled, told = [], []
    for trial in range(60):
        x, label = draw(rng, 2, trial % 2, is_label, noise)
        found = leaf.identify(x, label)
        more = count_required_rows(leaf, x, found, np.zeros(2, dtype=int))[0]
        if not 0 < more < 200:
            continue
        further, labels = draw(rng, int(more), trial % 2, is_label, noise)
        after = leaf.identify(np.concatenate([x, further]), np.concatenate([label, labels]))
        settled.append(after.margin[0] >= SETTLED)
        told.append(more)
    assert len(told) > 20
    assert np.mean(settled) > 0.75  # nine in ten, if the first rows did not mislead
    assert np.median(told) < 60  # and it is not bought with a number that always suffices


def test_a_settled_source_needs_none_and_a_new_one_cannot_be_settled():
    sure, is_new = np.array([[1.0, 0.0]] * 2), np.array([False, True])
    found = Identification(
        np.array(["a", "b"]),
        np.zeros(2, dtype=int),
        sure,
        np.array([9.0, 0.1]),
        np.zeros(2),
        is_new,
    )
    needed = count_required_rows(None, np.zeros((2, 1)), found, np.array([0, 1]))
    assert needed[0] == 0
    assert np.isnan(needed[1])


def test_more_is_needed_where_each_row_says_less():
    numbers = [rows_for(2.0, gain) for gain in (2.0, 0.5, 0.1)]
    assert numbers == sorted(numbers)
    assert np.isnan(rows_for(2.0, 0.0))
    assert np.isnan(rows_for(2.0, -1.0))
