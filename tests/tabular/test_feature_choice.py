"""Features that matter are found although contexts cancel each other."""

import numpy as np
import pytest
from leaflearn.tabular.feature_choice import choose_features, find_informative_features


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(20), 12)
    return rng.normal(size=(240, 40)), group, np.where(group % 2 == 0, 1.0, -1.0), rng


def test_a_feature_with_opposite_signs_is_kept_though_its_correlation_over_all_rows_is_small(rows):
    features, group, sign, rng = rows
    y = sign * features[:, 7] + 0.1 * rng.normal(size=240)
    assert abs(np.corrcoef(features[:, 7], y)[0, 1]) < 0.2
    assert 7 in choose_features(features, y, group, most=3)


def test_squares_and_labels_tell_too(rows):
    features, group, sign, _ = rows
    assert 5 in choose_features(features, sign * np.abs(features[:, 5]), group, most=3)
    assert 6 in choose_features(features, (sign * features[:, 6] > 0).astype(int), group, most=3)


def test_few_features_are_all_kept_in_their_order(rows):
    features, group, sign, _ = rows
    assert choose_features(features, sign, group, most=40).tolist() == list(range(40))


def test_telling_features_are_those_that_matter_and_those_of_the_group(rows):
    features, group, sign, rng = rows
    features = np.column_stack([features, group % 3])  # nothing inside a group tells of it
    y = sign * features[:, 7] + 0.3 * rng.normal(size=240)
    found = find_informative_features(features, y, group, seed=0)
    assert {7, 40} <= set(found.tolist())
    assert len(found) <= 4


def test_where_nothing_tells_all_are_kept(rows):
    features, group, _, rng = rows
    assert len(find_informative_features(features[:, :5], rng.normal(size=240), group, seed=0)) == 5


def test_single_rows_are_taken_together(rows):
    features, _, _, _ = rows
    assert find_informative_features(
        features[:, :8], features[:, 3], np.arange(240), seed=0
    ).tolist() == [3]
