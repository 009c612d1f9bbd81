"""Features: fixed by the training rows, linear outside their range."""

from dataclasses import replace

import numpy as np

from leaflearn.moments import features as features_module
from leaflearn.moments.features import FeatureMap

X = np.linspace(0.0, 10.0, 101)[:, None]


def test_a_constant_input_keeps_its_unit():
    features = FeatureMap.of(np.full((5, 1), 3.0))
    assert features(np.array([[4.0]])).tolist() == [[1.0, 1.0]]


def test_hat_functions_are_one_at_their_knot_and_zero_at_its_neighbours():
    features = FeatureMap.of(X)
    knots = features.standardize(np.array([[2.0], [6.0]]))[:, 0]
    hats = replace(features, hat_input=np.array([0, 0]), hat_knot=knots)
    assert hats.n_features == 4
    at = hats(np.array([[0.0], [2.0], [4.0], [6.0], [10.0]]))[:, 2:]
    np.testing.assert_allclose(at, [[0, 0], [1, 0], [0.5, 0.5], [0, 1], [0, 0]], atol=1e-12)


def test_outside_the_training_range_only_the_linear_part_changes():
    rng = np.random.default_rng(0)
    smooth = replace(
        FeatureMap.of(X), directions=rng.normal(size=(1, 4)), phases=rng.uniform(size=4)
    )
    end, outside = smooth(np.array([[10.0], [20.0]]))
    np.testing.assert_allclose(outside[2:], end[2:])
    assert outside[1] > end[1]


def test_selected_features_are_those_of_all_rows(monkeypatch):
    rng = np.random.default_rng(0)
    smooth = replace(
        FeatureMap.of(X),
        hat_input=np.array([0]),
        hat_knot=np.array([0.0]),
        directions=rng.normal(size=(1, 4)),
        phases=rng.uniform(size=4),
    )
    everything = smooth(X)
    monkeypatch.setattr(features_module, "ROWS_AT_ONCE", 30)
    for columns in (np.array([0, 2]), np.array([1, 5]), np.empty(0, dtype=int)):
        np.testing.assert_allclose(smooth.select(X, columns), everything[:, columns])
    np.testing.assert_allclose(FeatureMap.of(X).scale, X.std(0))  # also in blocks
