"""Which columns tell something, for those who fit arrays and frames."""

import numpy as np
import pandas
import pytest

from leaflearn import find_informative_columns
from leaflearn.tabular.table_model import TableModel

RNG = np.random.default_rng(0)
SITE = np.array([f"site {i}" for i in np.repeat(np.arange(20), 12)])
SIGN = np.where(np.repeat(np.arange(20), 12) % 2, 1.0, -1.0)
X = RNG.normal(size=(240, 6))
Y = SIGN * X[:, 2]


def test_columns_are_found_though_contexts_cancel_each_other():
    assert find_informative_columns(X, Y, SITE).tolist() == [2]
    assert find_informative_columns(X, np.where(Y > 0, "up", "down"), SITE).tolist() == [2]
    assert find_informative_columns(X, (100 * Y).astype(int), SITE).tolist() == [2]


def test_a_frame_is_answered_by_names():
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    assert find_informative_columns(frame, Y, SITE).tolist() == ["c"]
    assert frame[find_informative_columns(frame, Y, SITE)].shape == (240, 1)


def test_holes_do_no_harm():
    assert find_informative_columns(
        np.where(RNG.random(X.shape) < 0.1, np.nan, X), Y, SITE
    ).tolist() == [2]


def test_all_columns_stay_where_none_goes_with_the_target():
    assert find_informative_columns(X, RNG.normal(size=240), SITE).tolist() == list(range(6))


def test_tables_leave_out_the_same_columns():
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
def test_what_cannot_be_asked(inputs, targets, sentence):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        find_informative_columns(inputs, targets, SITE)
    assert str(error.value) == sentence
