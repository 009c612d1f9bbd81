"""Warnings are given as ever, and kept beside."""

import warnings

import pytest

from leaflearn import RecoveryWarning
from leaflearn.data.table_text import TableWarning, warn
from leaflearn.estimators.kept_warnings import keeping_warnings


def test_ours_are_kept_once_in_their_order_and_all_are_given():
    with pytest.warns() as given, keeping_warnings() as kept:  # noqa: PT031
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
        with keeping_warnings() as kept:
            warn("Column 'b' is empty.")
    assert (kept, given) == (["Column 'b' is empty."], [])


def test_a_warning_that_is_an_error_to_the_user_is_one_in_the_end():
    kept = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TableWarning, match=r"^Column 'b' is empty\.$"), keeping_warnings() as kept:
            warn("Column 'b' is empty.")
    assert kept == ["Column 'b' is empty."]


def test_warnings_before_an_error_are_given_too():
    with pytest.warns(TableWarning), pytest.raises(ValueError, match="too bad"), keeping_warnings():  # noqa: PT012, PT031
        warn("Column 'b' is empty.")
        raise ValueError("too bad")
