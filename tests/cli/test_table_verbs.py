"""What the verbs for tables share."""

import json
import warnings

import numpy as np
import pytest

from leaflearn import RecoveryWarning
from leaflearn.cli.table_verbs import check_model_place, report_warnings, say, say_json, table_of
from leaflearn.messages import TableWarning


def test_warnings_of_ours_are_said_once_and_those_of_others_not_at_all(capsys):
    with report_warnings() as told:
        for _ in range(2):
            warnings.warn(TableWarning("Column '\x1b[2J' is empty."), stacklevel=1)
        warnings.warn("lbfgs failed to converge", UserWarning, stacklevel=1)
    assert told == ["Column '\x1b[2J' is empty."]
    assert capsys.readouterr().err == "Warning: Column '\\x1b[2J' is empty.\n"


def test_where_the_work_is_refused_its_sentence_stands_alone(capsys):
    def refuse():
        with report_warnings():
            warnings.warn(TableWarning("Column 'a' is empty."), stacklevel=1)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        refuse()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("advice", "in_words_of_the_command"),
    [
        (
            "there may be no conflict: try n_contexts=1.",
            "there may be no conflict: try --contexts 1.",
        ),
        (
            "3 contexts explain unseen rows clearly better than 2; try n_contexts=3.",
            "3 contexts explain unseen rows clearly better than 2; try --contexts 3.",
        ),
        (
            "badly drawn; give more rows, raise max_epochs, or try another local_model.",
            "badly drawn; give more rows, or try --local-model linear or boosting.",
        ),
        ("so pass group= (annotator, site)", "so pass --group (annotator, site)"),
        # As models of before have kept it:
        (
            "there may be no conflict: set n_contexts='auto'.",
            "there may be no conflict: set --contexts auto.",
        ),
        (
            "Not the right ones. 3 contexts explain unseen rows clearly better than 2; raise n_contexts, or set it to 'auto'.",
            "Not the right ones. 3 contexts explain unseen rows clearly better than 2; try --contexts 3.",
        ),
        (
            "5 times better; set init='conflict', or raise n_init.",
            "5 times better; try another --seed.",
        ),
        ("when the fit ended; raise max_epochs.", "when the fit ended; try another --seed."),
    ],
)
def test_advice_that_a_command_can_follow(advice, in_words_of_the_command):
    with report_warnings(quiet=True) as told:
        warnings.warn(advice, RecoveryWarning, stacklevel=1)
    assert told == [in_words_of_the_command]


def test_json_that_every_program_can_read(capsys):
    say_json(
        {"a": np.array([1.5, np.nan, np.inf]), "b": {"c": np.int64(3)}, "d": (True, None, "\x1b")}
    )
    out = capsys.readouterr().out
    assert json.loads(out) == {"a": [1.5, None, None], "b": {"c": 3}, "d": [True, None, "\x1b"]}
    assert "\x1b" not in out


def test_lines_are_ours_and_the_rest_is_text(capsys):
    say("first\nsecond \x1b[2J")
    assert capsys.readouterr().out == "first\nsecond \\x1b[2J\n"


def test_columns_stand_below_each_other_also_with_wide_characters():
    lines = table_of(("group", "n"), [("日本", "1"), ("a\nb", "20"), ("🙂", "3")]).splitlines()
    assert lines == ["group   n", "日本    1", "a\\nb   20", "🙂      3"]


def test_an_empty_folder_may_become_a_model(tmp_path):
    check_model_place(tmp_path)
    assert list(tmp_path.iterdir()) == []
