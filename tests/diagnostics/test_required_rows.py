"""With the reported number of rows, sources are identified about as often as stated."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.diagnostics.required_rows import count_required_rows, rows_for
from leaflearn.diagnostics.settings import DIAGNOSTICS
from leaflearn.engines.local_models import RefittedModels
from leaflearn.engines.refit_task import SquaredRowLoss


def draw(rng, n, context, is_label, noise):
    x = rng.normal(size=(n, 1))
    score = (1 if context == 0 else -1) * x[:, 0]
    if is_label:
        return x, (rng.random(n) < 1 / (1 + np.exp(-score / noise))).astype(int)
    return x, score + noise * rng.normal(size=n)


@pytest.mark.parametrize("is_label", [True, False])
def test_the_required_rows_identify_most_sources(is_label):
    rng, noise = np.random.default_rng(0), 1.0
    parts = [draw(rng, 25, k % 2, is_label, noise) for k in range(16)]
    X, y = np.concatenate([x for x, _ in parts]), np.concatenate([label for _, label in parts])
    kind, model = (
        (LeafClassifier, LogisticRegression()) if is_label else (LeafRegressor, LinearRegression())
    )
    leaf = kind(2, local_model=model, random_state=0).fit(X, y, groups=np.repeat(np.arange(16), 25))
    is_identified, required = [], []
    for trial in range(60):
        x, label = draw(rng, 2, trial % 2, is_label, noise)
        found = leaf.identify(x, label)
        (more,) = count_required_rows(
            leaf.fitted_state_.local_models,
            x,
            np.zeros(2, dtype=int),
            found.probability,
            found.margin,
            found.is_new,
            evidence_unit=leaf.fitted_state_.evidence_unit,
            is_classifier=is_label,
        )
        if not 0 < more < 200:
            continue
        further, labels = draw(rng, int(more), trial % 2, is_label, noise)
        after = leaf.identify(np.concatenate([x, further]), np.concatenate([label, labels]))
        is_identified.append(after.margin[0] >= DIAGNOSTICS.identified_margin)
        required.append(more)
    assert len(required) > 20
    assert np.mean(is_identified) > 0.75  # nine in ten, if the first rows are not misleading
    assert np.median(required) < 60  # a number that always suffices would be larger


def test_an_identified_source_needs_no_rows_and_a_new_one_cannot_be_identified():
    required = count_required_rows(
        RefittedModels([], SquaredRowLoss()),
        np.zeros((2, 1)),
        np.array([0, 1]),
        probability=np.array([[1.0, 0.0]] * 2),
        margin=np.array([9.0, 0.1]),
        is_new=np.array([False, True]),
        evidence_unit=1.0,
        is_classifier=False,
    )
    assert required[0] == 0
    assert np.isnan(required[1])


def test_rows_that_say_less_are_required_in_larger_numbers():
    numbers = [rows_for(2.0, gain) for gain in (2.0, 0.5, 0.1)]
    assert numbers == sorted(numbers)
    assert np.isnan(rows_for(2.0, 0.0))
    assert np.isnan(rows_for(2.0, -1.0))
