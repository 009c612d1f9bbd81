"""Inputs far outside the training data: what far means, and who warns about them."""

import warnings

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression

import leaflearn
from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.diagnostics.input_range import find_far, find_range, join_ranges
from leaflearn.messages import InputWarning

SENTENCE = (
    "2 of 3 rows have values far outside the training range (by more than the width of the range) "
    "in columns 0, 1; do not rely on the results for these rows."
)
FAR = np.array([[-1.5, 0.5], [0.5, 99.0], [1.5, -0.5]])  # the training range is 0 to 1


def fitted(kind=LeafRegressor, as_frame=False, **options):
    X, group = np.stack([np.linspace(0, 1, 40), np.linspace(1, 0, 40)], 1), np.tile([0, 1], 20)
    y = X[:, 0] if kind is LeafRegressor else (X[:, 0] > 0.5).astype(int)
    inputs = pandas.DataFrame(X, columns=["dose", "age"]) if as_frame else X
    options = options or {"local_model": "linear"}
    return kind(1, random_state=0, **options).fit(inputs, y, groups=group)


def sentences(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, InputWarning)]


def test_predictions_and_identification_warn_once():
    leaf, y = fitted(), np.zeros(3)
    for call in (
        lambda: leaf.predict(FAR),
        lambda: leaf.predict(FAR, groups=[0, 1, 1]),
        lambda: leaf.predict(FAR, return_std=True),
        lambda: leaf.predict_each(FAR),
        lambda: leaf.identify(FAR, y),
    ):
        assert sentences(call) == [SENTENCE]
    assert sentences(lambda: leaf.predict(np.clip(FAR, -1, 2))) == []


def test_classifiers_and_networks_warn_too():
    assert sentences(lambda: fitted(LeafClassifier).predict_proba(FAR)) == [SENTENCE]
    assert sentences(lambda: fitted(max_epochs=1).predict(FAR)) == [SENTENCE]


def test_columns_are_named_where_they_have_names():
    leaf = fitted(as_frame=True)
    one = pandas.DataFrame({"dose": [0.0], "age": [3.0]})
    assert sentences(lambda: leaf.predict(one)) == [
        "1 of 1 rows has a value far outside the training range (by more than the width of the "
        "range) in column 'age'; do not rely on the results for these rows."
    ]


def test_frames_of_scikit_learn_models_are_checked_in_their_numbers():
    leaf = fitted(as_frame=True, local_model=LinearRegression())
    assert len(sentences(lambda: leaf.predict(pandas.DataFrame({"dose": [9], "age": [0]})))) == 1


def test_the_range_is_in_the_folder_and_older_folders_are_silent(tmp_path):
    leaf = fitted()
    leaf.save(tmp_path / "model")
    again = leaflearn.load(tmp_path / "model")
    assert np.array_equal(again.input_range_, [[0, 0], [1, 1]])
    assert sentences(lambda: again.predict(FAR)) == [SENTENCE]
    del again.input_range_
    assert sentences(lambda: again.predict(FAR)) == []


def test_new_rows_widen_the_range():
    leaf = fitted(local_model=LinearRegression())
    new = np.full((20, 2), 5.0) + np.linspace(0, 0.1, 20)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        leaf.partial_fit(new, new[:, 0], groups=np.full(20, 7))
    assert sentences(lambda: leaf.predict(np.full((1, 2), 5.0))) == []


def test_rows_of_weight_zero_do_not_count():
    X, weight = np.array([[0.0], [1.0], [0.5], [99.0]]), np.array([1.0, 1.0, 1.0, 0.0])
    leaf = LeafRegressor(1, local_model="linear").fit(X, X[:, 0], [0, 0, 1, 1], weight)
    assert leaf.input_range_.ravel().tolist() == [0.0, 1.0]


def test_images_and_sparse_inputs_have_no_range():
    assert find_range(np.zeros((2, 3, 4, 4))) is None
    assert find_range(sparse.csr_matrix(np.eye(3))) is None
    assert join_ranges(None, np.zeros((2, 1))) is None


def test_columns_without_numbers_are_left_out():
    frame = pandas.DataFrame({"word": ["a", "b"], "dose": [1.0, 2.0], "empty": [np.nan, np.nan]})
    known = find_range(frame)
    assert np.isnan(known).tolist() == [[True, False, True]] * 2
    assert not find_far(np.array([[7.0, 1.5, 7.0]]), known).any()


@pytest.mark.parametrize(("value", "is_far"), [(7.0, False), (7.0 + 1e-12, False), (8.0, True)])
def test_another_value_of_a_constant_column_is_far(value, is_far):
    assert find_far(np.array([[value]]), np.array([[7.0], [7.0]])).item() == is_far
