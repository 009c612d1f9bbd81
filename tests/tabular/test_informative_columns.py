"""Informative columns are found although contexts cancel out."""

import numpy as np
import pandas
import pytest

from leaflearn import find_informative_columns
from leaflearn.tabular.informative_columns import choose_features, find_informative_features
from leaflearn.tabular.table_model import TableModel

RNG = np.random.default_rng(0)
SITE = np.array([f"site {i}" for i in np.repeat(np.arange(20), 12)])
SIGN = np.where(np.repeat(np.arange(20), 12) % 2, 1.0, -1.0)
X = RNG.normal(size=(240, 6))
Y = SIGN * X[:, 2]


def test_columns_are_found_although_contexts_cancel_out():
    assert find_informative_columns(X, Y, SITE).tolist() == [2]
    assert find_informative_columns(X, np.where(Y > 0, "up", "down"), SITE).tolist() == [2]
    assert find_informative_columns(X, (100 * Y).astype(int), SITE).tolist() == [2]


def test_columns_of_a_data_frame_are_named():
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    assert find_informative_columns(frame, Y, SITE).tolist() == ["c"]
    assert frame[find_informative_columns(frame, Y, SITE)].shape == (240, 1)


def test_missing_values_do_not_change_the_selection():
    assert find_informative_columns(
        np.where(RNG.random(X.shape) < 0.1, np.nan, X), Y, SITE
    ).tolist() == [2]


def test_all_columns_are_selected_if_none_is_associated_with_the_target():
    assert find_informative_columns(X, RNG.normal(size=240), SITE).tolist() == list(range(6))


def test_table_models_select_the_same_columns():
    table = pandas.DataFrame(X, columns=list("abcdef")).assign(site=SITE, effect=Y)
    model = TableModel("effect", "site", contexts=2, local_model="linear").fit(table)
    assert model.informative_columns_ == ["c"]


@pytest.mark.parametrize(
    ("inputs", "targets", "sentence"),
    [
        (
            X[:, 0],
            Y,
            "X has shape (240,) and type float64, but rows and columns of numbers were expected.",
        ),
        (
            SITE[:, None],
            Y,
            "X has shape (240, 1) and type <U7, but rows and columns of numbers were expected.",
        ),
        (X, Y[:5], "y has shape (5,), but one target for each of the 240 rows of X was expected."),
    ],
)
def test_inputs_of_the_wrong_shape_or_type_are_errors(inputs, targets, sentence):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        find_informative_columns(inputs, targets, SITE)
    assert str(error.value) == sentence


# ---- features -----------------------------------------------------------------------------------


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(20), 12)
    return rng.normal(size=(240, 40)), group, np.where(group % 2 == 0, 1.0, -1.0), rng


def test_a_feature_with_opposite_effects_is_chosen_although_its_correlation_is_small(rows):
    features, group, sign, rng = rows
    y = sign * features[:, 7] + 0.1 * rng.normal(size=240)
    assert abs(np.corrcoef(features[:, 7], y)[0, 1]) < 0.2
    assert 7 in choose_features(features, y, group, most=3)


def test_squares_and_labels_are_informative_too(rows):
    features, group, sign, _ = rows
    assert 5 in choose_features(features, sign * np.abs(features[:, 5]), group, most=3)
    assert 6 in choose_features(features, (sign * features[:, 6] > 0).astype(int), group, most=3)


def test_few_features_are_all_chosen_in_their_order(rows):
    features, group, sign, _ = rows
    assert choose_features(features, sign, group, most=40).tolist() == list(range(40))


def test_associated_features_and_properties_of_groups_are_informative(rows):
    features, group, sign, rng = rows
    features = np.column_stack([features, group % 3])  # constant within the groups
    y = sign * features[:, 7] + 0.3 * rng.normal(size=240)
    selected = find_informative_features(features, y, group, seed=0)
    assert {7, 40} <= set(selected.tolist())
    assert len(selected) <= 4


def test_all_features_are_selected_if_none_is_informative(rows):
    features, group, _, rng = rows
    assert len(find_informative_features(features[:, :5], rng.normal(size=240), group, seed=0)) == 5


def test_single_rows_are_treated_as_one_group(rows):
    features, _, _, _ = rows
    assert find_informative_features(
        features[:, :8], features[:, 3], np.arange(240), seed=0
    ).tolist() == [3]
