"""Which rows and columns are used, and warnings about the others."""

import warnings

import pandas
import pytest

from leaflearn.messages import (
    GroupMissing,
    NoGroupColumn,
    OneGroup,
    OneRowPerGroup,
    TableWarning,
    TargetMissing,
)
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
            "There is no column 'efect' in t; did you mean 'effect'? There are: 'site', 'dose', "
            "'day', 'effect'.",
        ),
        (
            ("effect", "sit", None, []),
            "There is no column 'sit' in t; did you mean 'site'? There are: 'site', 'dose', "
            "'day', 'effect'.",
        ),
        (
            ("effect", "effect", None, []),
            "Column 'effect' is both the target and the group; choose two different columns.",
        ),
        (
            ("effect", "site", ["effect"], []),
            "Column 'effect' is the target and cannot be a feature; leave it out of the features.",
        ),
        (
            ("effect", "site", ["site"], []),
            "Column 'site' is the group and cannot be a feature; leave it out of the features.",
        ),
        (
            ("effect", None, None, ["dse"]),
            "There is no column 'dse' in t; did you mean 'dose'? There are: 'site', 'dose', "
            "'day', 'effect'.",
        ),
        (
            ("effect", "site", None, ["day", "dose"]),
            "No column of t is left to learn from besides the target and the group.",
        ),
    ],
)
def test_impossible_choices_of_columns_are_errors(arguments, sentence):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        choose_columns(NAMES, *arguments, "t")
    assert str(error.value) == sentence


def test_rows_without_target_or_group_are_left_out_with_a_warning():
    with pytest.warns(
        TableWarning,
        match=r"^The target 'effect' is missing in 1 of 4 rows, which were left out\.$",
    ) as of_target:
        rows = keep_rows_with_target(TABLE, "effect", "t")
    with pytest.warns(
        TableWarning,
        match=r"^The group 'site' is missing in 2 rows, the first is row 2; they were left out\.$",
    ) as of_group:
        rows = keep_rows_with_group(rows, "site", "t")
    assert rows.index.tolist() == [0]
    assert of_target[0].message.messages == (TargetMissing("effect", 1, 4),)
    assert of_group[0].message.messages == (GroupMissing("site", 2, 2),)


def test_a_column_without_any_group_is_an_error():
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
    ("arguments", "message", "beginning"),
    [
        (
            (None, 5, 5),
            NoGroupColumn(),
            "No column of groups was given, so every row is a group of its own;",
        ),
        (
            ("site", 1, 5),
            OneGroup("site"),
            "Column 'site' holds a single group, and a group has a single context;",
        ),
        (
            ("site", 5, 5),
            OneRowPerGroup("site"),
            "Every group in 'site' has one row, and contexts can hardly be identified from single "
            "rows;",
        ),
    ],
)
def test_groups_that_do_not_identify_contexts_give_a_warning(arguments, message, beginning):
    with pytest.warns(TableWarning, match=f"^{beginning}") as caught:
        warn_about_groups(*arguments)
    assert caught[0].message.messages == (message,)


def test_groups_of_several_rows_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_about_groups("site", 2, 4)
