"""Warnings are given as ever, and kept beside."""

import warnings

import numpy as np
import pandas
import pytest

from leaflearn import RecoveryWarning
from leaflearn.messages import TableWarning, warn
from leaflearn.tabular.table_model import TableModel
from leaflearn.tabular.warning_log import hold_warnings, log_warnings, reissue


def test_ours_are_kept_once_in_their_order_and_all_are_given():
    with pytest.warns() as given, log_warnings() as kept:  # noqa: PT031
        warn("Column 'b' is empty.")
        warnings.warn("of another library", UserWarning, stacklevel=1)
        warnings.warn("The fit may not be right.", RecoveryWarning, stacklevel=1)
        warn("Column 'b' is empty.")
    assert kept == ["Column 'b' is empty.", "The fit may not be right."]
    assert {(warning.category, str(warning.message)) for warning in given} == {
        (TableWarning, "Column 'b' is empty."),
        (UserWarning, "of another library"),
        (RecoveryWarning, "The fit may not be right."),
    }


def test_filters_of_the_user_are_obeyed_and_what_they_hide_is_kept():
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", TableWarning)
        with log_warnings() as kept:
            warn("Column 'b' is empty.")
    assert (kept, given) == (["Column 'b' is empty."], [])


def test_a_warning_that_is_an_error_to_the_user_is_one_in_the_end():
    kept = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TableWarning, match=r"^Column 'b' is empty\.$"), log_warnings() as kept:
            warn("Column 'b' is empty.")
    assert kept == ["Column 'b' is empty."]


def test_warnings_before_an_error_are_given_too():
    with pytest.warns(TableWarning), pytest.raises(ValueError, match="too bad"), log_warnings():  # noqa: PT012, PT031
        warn("Column 'b' is empty.")
        raise ValueError("too bad")


def test_warnings_that_are_held_back_are_given_only_where_they_still_hold():
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        with log_warnings() as kept:
            with hold_warnings():
                warnings.warn("The first fit may not be right.", RecoveryWarning, stacklevel=1)
            with hold_warnings() as held:
                warnings.warn("The second fit may not be right.", RecoveryWarning, stacklevel=1)
            reissue(held)
    assert (
        kept == [str(warning.message) for warning in given] == ["The second fit may not be right."]
    )


@pytest.fixture
def table():
    """No conflict at all, and a column that tells nothing: three contexts are too many."""
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(
        {
            "site": np.repeat(np.arange(12), 8),
            "dose": rng.normal(size=96),
            "noise": rng.normal(size=96),
        }
    )
    return table.assign(effect=table["dose"] + 0.3 * rng.normal(size=96))


@pytest.mark.filterwarnings("ignore::leaflearn.RecoveryWarning")
@pytest.mark.parametrize("is_missed", [False, True])
def test_of_two_fits_only_the_doubts_of_the_last_are_told(table, monkeypatch, is_missed):
    """Where columns that were left out are missed, the table is fitted again with all of them."""
    monkeypatch.setattr("leaflearn.tabular.fitting.are_needed", lambda *arguments: is_missed)
    model = TableModel("effect", "site", contexts=3, local_model="linear").fit(table)
    assert model.informative_columns_ == (["dose", "noise"] if is_missed else ["dose"])
    assert [sentence[:25] for sentence in model.warnings_] == ["The fit may not be right."]


@pytest.mark.filterwarnings("ignore::leaflearn.tabular.text_encoding.TableWarning")
def test_single_rows_are_spoken_of_once_and_the_column_is_named(table):
    model = TableModel("effect", "site", contexts=2, local_model="linear").fit(
        table.assign(site=[f"s{i}" for i in range(96)])
    )
    assert [sentence for sentence in model.warnings_ if "row" in sentence] == [
        "Every group in 'site' has one row, and single rows hardly tell contexts apart; group rows that share one."
    ]
