"""The map of the groups: places agree with predictions, clouds with the spread of the points."""

import numpy as np

from leaflearn import LeafRegressor
from leaflearn.diagnostics.group_map import map_groups


def fit(offset, slope, n_contexts, local_model="linear", shift=0.0):
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(80), 20)
    X = rng.normal(size=(1600, 2))
    effects = (
        offset * rng.normal(size=80) + shift * (np.arange(80) % 2),
        slope * rng.normal(size=80),
    )
    y = X[:, 0] + effects[0][group] + effects[1][group] * X[:, 1] + 0.2 * rng.normal(size=1600)
    leaf = LeafRegressor(n_contexts, local_model=local_model, random_state=0)
    return leaf.fit(X, y, groups=group), X, np.stack(effects, 1)


def test_points_are_mean_predictions_and_slopes_of_the_groups():
    leaf, X, effects = fit(1.0, 0.5, 2, shift=8.0)
    drawn = map_groups(leaf.fitted_state_, X)
    assert drawn.input == 1
    np.testing.assert_allclose(drawn.points, effects, atol=0.25)
    own = map_groups(leaf.fitted_state_, X[:400])
    for g in (0, 1):
        mean = leaf.predict(X[:400], groups=np.full(400, g)).mean()
        np.testing.assert_allclose(own.points[g, 0], mean, rtol=1e-6, atol=1e-6)


def test_clouds_hold_most_of_their_groups():
    leaf, X, _ = fit(1.0, 0.5, 2, shift=8.0)
    drawn = map_groups(leaf.fitted_state_, X)
    distance = [
        deviation @ np.linalg.solve(drawn.covariances[k], deviation)
        for deviation, k in zip(drawn.deviations, drawn.contexts, strict=True)
    ]
    assert 0.75 < np.mean(np.array(distance) < 4.0) < 0.97  # 86 % of a normal distribution


def test_without_slopes_there_is_no_second_direction():
    leaf, X, _ = fit(1.0, 0.0, 1)
    assert not map_groups(leaf.fitted_state_, X).has_slopes


def test_smooth_models_have_a_map_too():
    leaf, X, effects = fit(1.0, 0.0, 1, "smooth")
    drawn = map_groups(leaf.fitted_state_, X)
    assert np.corrcoef(drawn.points[:, 0], effects[:, 0])[0, 1] > 0.95
