"""The map of the groups: a cloud per context, a point per group, and given axes."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.linear_model import Ridge

from leaflearn import LeafRegressor
from leaflearn.plot.group_map import plot_groups


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(600, 1)), np.repeat(np.arange(40), 15)
    y = X[:, 0] + rng.normal(size=40)[group] + 0.3 * rng.normal(size=600)
    return X, y, group


def test_groups_that_differ_in_offset_stand_in_order(rows):
    X, y, group = rows
    leaf = LeafRegressor(1, local_model="linear").fit(X, y, groups=group)
    given = Figure().subplots()
    axes = plot_groups(leaf, axes=given)
    assert axes is given
    assert axes.get_ylabel() == "groups, in order"
    x, height = axes.lines[0].get_data()
    assert np.array_equal(np.argsort(x), np.argsort(height))
    assert axes.get_legend() is None


def test_models_without_effects_are_an_error(rows):
    X, y, group = rows
    leaf = LeafRegressor(1, local_model=Ridge()).fit(X, y, groups=group)
    with pytest.raises(ValueError, match="no group effects to draw; fit it with local_model="):
        plot_groups(leaf)
