"""What the verbs for tables share."""

import warnings

import pytest

from leaflearn.cli._tables import check_model_place, report_warnings
from leaflearn.messages import (
    NoBetterThanPooled,
    RecoveryWarning,
    StillMoving,
    TableWarning,
    TryMoreContexts,
)


def warn(*messages, category=TableWarning):
    warnings.warn(category(*messages), stacklevel=2)


def test_each_warning_is_printed_once_and_those_of_other_libraries_are_not(capsys):
    with report_warnings() as sentences:
        for _ in range(2):
            warn("Column '\x1b[2J' is empty.")
        warnings.warn("lbfgs failed to converge", UserWarning, stacklevel=1)
    assert sentences == ["Column '\x1b[2J' is empty."]
    assert capsys.readouterr().err == "Warning: Column '\\x1b[2J' is empty.\n"


def test_messages_are_rendered_with_options_of_the_command(capsys):
    with report_warnings() as sentences:
        warn(TryMoreContexts(3, n_fitted=2), StillMoving(), category=RecoveryWarning)
        warn(NoBetterThanPooled(2), category=RecoveryWarning)
    assert [sentence.rpartition("try ")[2] for sentence in sentences] == [
        "--contexts 3.",
        "another --seed.",
        "--contexts 1.",
    ]
    assert capsys.readouterr().err.splitlines() == [f"Warning: {text}" for text in sentences]


def test_no_warnings_are_printed_after_an_error(capsys):
    def fail():
        with report_warnings():
            warn("Column 'a' is empty.")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert capsys.readouterr().err == ""


def test_an_empty_folder_may_become_a_model(tmp_path):
    check_model_place(tmp_path)
    assert list(tmp_path.iterdir()) == []
