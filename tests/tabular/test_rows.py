"""Which rows and columns are learnt from, and what is said of the others."""

import warnings

import pandas
import pytest

from leaflearn.messages import TableWarning
from leaflearn.tabular.rows import (
    choose_columns,
    keep_rows_with_group,
    keep_rows_with_target,
    name_groups,
    name_sources,
    warn_about_groups,
)

NAMES = ["site", "dose", "day", "effect"]
TABLE = pandas.DataFrame({"site": ["A", None, "B", None], "effect": [1.0, 2.0, None, 4.0]})


def test_columns_to_learn_from():
    assert choose_columns(NAMES, "effect", None, None, [], "t") == ["site", "dose", "day"]
    assert choose_columns(NAMES, "effect", "site", ["day", "dose", "day"], ["dose"], "t") == ["day"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("efect", None, None, []),
            "There is no column 'efect' in t; did you mean 'effect'? There are: 'site', 'dose', 'day', 'effect'.",
        ),
        (
            ("effect", "sit", None, []),
            "There is no column 'sit' in t; did you mean 'site'? There are: 'site', 'dose', 'day', 'effect'.",
        ),
        (
            ("effect", "effect", None, []),
            "Column 'effect' is both the target and the group; they have to differ.",
        ),
        (
            ("effect", "site", ["effect"], []),
            "Column 'effect' is the target and cannot be learnt from.",
        ),
        (("effect", "site", ["site"], []), "Column 'site' is the group and cannot be learnt from."),
        (
            ("effect", None, None, ["dse"]),
            "There is no column 'dse' in t; did you mean 'dose'? There are: 'site', 'dose', 'day', 'effect'.",
        ),
        (
            ("effect", "site", None, ["day", "dose"]),
            "No column of t is left to learn from beside the target and the group.",
        ),
    ],
)
def test_columns_that_cannot_be_meant(arguments, sentence):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        choose_columns(NAMES, *arguments, "t")
    assert str(error.value) == sentence


def test_rows_without_target_or_group_are_left_out_with_a_warning():
    with pytest.warns(
        TableWarning,
        match=r"^The target 'effect' is missing in 1 of 4 rows, which were left out\.$",
    ):
        rows = keep_rows_with_target(TABLE, "effect", "t")
    with pytest.warns(
        TableWarning,
        match=r"^The group 'site' is missing in 2 rows, the first is row 2; they were left out\.$",
    ):
        rows = keep_rows_with_group(rows, "site", "t")
    assert rows.index.tolist() == [0]


def test_a_column_without_any_group_is_refused():
    with pytest.raises(ValueError, match=r"^The group 'site' is missing in every row of t\.$"):
        keep_rows_with_group(TABLE.iloc[[1, 3]], "site", "t")


def test_groups_and_sources_without_a_column():
    assert name_groups(TABLE, None).tolist() == ["row 1", "row 2", "row 3", "row 4"]
    assert set(name_sources(TABLE, None)) == set(name_sources(TABLE, "elsewhere")) == {"all rows"}
    with pytest.raises(
        ValueError, match=r"^The group 'site' is missing in row 2; name it, or leave the row out\.$"
    ):
        name_sources(TABLE, "site")


@pytest.mark.parametrize(
    ("arguments", "beginning"),
    [
        ((None, 5, 5), "No column of groups was given, so every row is a group of its own;"),
        (("site", 1, 5), "Column 'site' holds one group only, and one group has one context;"),
        (
            ("site", 5, 5),
            "Every group in 'site' has one row, and single rows hardly tell contexts apart;",
        ),
    ],
)
def test_groups_that_cannot_tell(arguments, beginning):
    with pytest.warns(TableWarning, match=f"^{beginning}"):
        warn_about_groups(*arguments)


def test_good_groups_need_no_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_about_groups("site", 2, 4)
