"""Warnings are given as usual, and logged as messages."""

import warnings

import numpy as np
import pandas
import pytest

from leaflearn import RecoveryWarning
from leaflearn.messages import (
    OneGroup,
    OneRowPerGroup,
    SavedText,
    SingleRowGroups,
    StillMoving,
    TableWarning,
)
from leaflearn.tabular.table_model import TableModel
from leaflearn.tabular.warning_log import hold_warnings, log_warnings, reissue

MESSAGE = OneGroup("site")


def warn(message=MESSAGE, category=TableWarning):
    warnings.warn(category(message), stacklevel=1)


def test_our_messages_are_logged_once_and_all_warnings_are_given():
    with pytest.warns() as given, log_warnings() as messages:  # noqa: PT031
        warn()
        warnings.warn("of another library", UserWarning, stacklevel=1)
        warn(StillMoving(), RecoveryWarning)
        warn("A sentence without fields.", RecoveryWarning)
        warn()
    assert messages == [MESSAGE, StillMoving(), SavedText("A sentence without fields.")]
    assert {(warning.category, str(warning.message)) for warning in given} == {
        (TableWarning, str(MESSAGE)),
        (UserWarning, "of another library"),
        (RecoveryWarning, str(StillMoving())),
        (RecoveryWarning, "A sentence without fields."),
    }


def test_the_filters_of_the_user_apply_and_hidden_warnings_are_logged():
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", TableWarning)
        with log_warnings() as messages:
            warn()
    assert (messages, given) == ([MESSAGE], [])


def test_a_warning_that_the_user_turns_into_an_error_is_raised_at_the_end():
    messages = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with (
            pytest.raises(TableWarning, match=r"^Column 'site' holds a single group"),
            log_warnings() as messages,
        ):
            warn()
    assert messages == [MESSAGE]


def test_warnings_before_an_error_are_given_too():
    def warn_and_fail():
        with log_warnings():
            warn()
            raise ValueError("too bad")

    with pytest.warns(TableWarning), pytest.raises(ValueError, match="too bad"):
        warn_and_fail()


def test_held_warnings_are_given_only_if_reissued():
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        with log_warnings() as messages:
            with hold_warnings():
                warn(SingleRowGroups(False), RecoveryWarning)
            with hold_warnings() as held:
                warn(StillMoving(), RecoveryWarning)
            reissue(held)
    assert messages == [StillMoving()]
    assert [str(warning.message) for warning in given] == [str(StillMoving())]


@pytest.fixture
def table():
    """No conflict, and a column of noise: three contexts are too many."""
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
@pytest.mark.parametrize("is_needed", [False, True])
def test_of_two_fits_only_the_warnings_of_the_last_are_given(table, monkeypatch, is_needed):
    """If columns that were left out are needed, the table is fitted again with all of them."""
    monkeypatch.setattr("leaflearn.tabular.fitting.are_needed", lambda *arguments: is_needed)
    model = TableModel("effect", "site", contexts=3, local_model="linear").fit(table)
    assert model.informative_columns_ == (["dose", "noise"] if is_needed else ["dose"])
    assert [str(message)[:25] for message in model.warnings_] == ["The fit may not be right."]


@pytest.mark.filterwarnings("ignore::leaflearn.messages.TableWarning")
def test_single_rows_give_one_warning_that_names_the_column(table):
    model = TableModel("effect", "site", contexts=2, local_model="linear").fit(
        table.assign(site=[f"s{i}" for i in range(96)])
    )
    assert [message for message in model.warnings_ if "row" in str(message)] == [
        OneRowPerGroup("site")
    ]
