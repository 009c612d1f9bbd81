"""The kind of a column is the kind of nearly all of its cells."""

from decimal import Decimal

import numpy as np
import pandas
import pytest

from leaflearn.messages import TableWarning, UnreadableCells
from leaflearn.tabular.column_kinds import (
    Column,
    describe_cell,
    find_kind,
    find_row_numbers,
    read_column,
    read_dates,
    read_numbers,
    read_texts,
)

RNG = np.random.default_rng(0)
WORDS = ["slow", "warm", "cold", "long", "dull", "fine"]
PROSE = [" ".join(RNG.choice(WORDS, 6)) for _ in range(100)]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1.5, None, 2.5], "number"),
        ([1, 5, 2], "number"),
        ([True, False, True], "number"),
        ([True, False, None], "number"),
        (["1", " 2.5 ", "3e4"], "number"),
        ([Decimal("1.5"), Decimal(2)], "number"),
        ([10**30, 1, 2], "number"),
        (pandas.to_timedelta(["1 day", "2 days"]), "number"),
        (pandas.array([1, None, 3], dtype="Int64"), "number"),
        (pandas.to_datetime(["2024-01-01", None, "2024-02-01"]), "date"),
        (pandas.to_datetime(["2024-01-01", "2024-02-01"]).tz_localize("Asia/Tokyo"), "date"),
        (["2024-01-01", "2024-02-01 12:30", None], "date"),
        (["31.12.2023", "01.02.2024"], "date"),
        (["12/31/2023", "02/01/2024"], "date"),
        (["31/12/2023", "01/02/2024"], "date"),
        (["5 March 2024", "17 April 2024"], "date"),
        (["a", "b", "a", "b", "c"], "category"),
        (pandas.Categorical([1, 2, 1, 2]), "category"),
        (["a", 1, "a", 1, "b"], "category"),
        (["1-2", "3-4", "1-2", "3-4"], "category"),
        (PROSE, "text"),
        (["一二三四五六七八九十" * 4 + str(i) for i in range(30)], "text"),
        ([None, None], "nothing"),
        (["a", "a", "a"], "nothing"),
        ([5, 5, 5], "nothing"),
        ([f"customer{i}" for i in range(30)], "nothing"),
        (list(range(30)), "nothing"),
        (list(range(1, 31)), "nothing"),
    ],
)
def test_kind_of_a_column(cells, kind):
    assert find_kind(pandas.Series(cells), "column").kind == kind


@pytest.mark.parametrize(
    ("cells", "form", "reason"),
    [
        ([None, None], "empty", "empty"),
        (["a", "a"], "the same everywhere", "constant"),
        (
            [f"id{i}" for i in range(30)],
            "a different text in every row",
            "a different text in every row",
        ),
        (
            [f"id{i // 2}" for i in range(600)],
            "a text of its own in nearly every row",
            "a different text in nearly every row",
        ),
        (list(range(50)), "numbers of the rows", "row numbers"),
        (list(range(1001, 1301)), "numbers of the rows", "row numbers"),
    ],
)
def test_why_a_column_is_left_out(cells, form, reason):
    """Model folders store the form; the reason is shown."""
    column = find_kind(pandas.Series(cells), "column")
    assert (column.form, column.reason) == (form, reason)


def test_consecutive_years_are_not_row_numbers():
    assert find_kind(pandas.Series(range(1950, 2020)), "year").kind == "number"


@pytest.mark.parametrize(
    ("slips", "sentence"),
    [
        (
            ["n.a.", "?"],
            "Column 'price' holds numbers, but 2 cells are not numbers, the first is 'n.a.' in row "
            "46; they are treated as missing.",
        ),
        (
            ["n.a."],
            "Column 'price' holds numbers, but 'n.a.' in row 46 is not a number; it is treated as "
            "missing.",
        ),
    ],
)
def test_numbers_with_some_other_cells_are_numbers_with_a_warning(slips, sentence):
    frame = pandas.DataFrame({"price": [*map(str, range(5, 50)), *slips]})
    column = find_kind(frame["price"], "price")
    assert column.kind == "number"
    with pytest.warns(TableWarning) as caught:
        values = read_column(frame, column)
    (warning,) = caught
    (message,) = warning.message.messages
    assert message == UnreadableCells("price", "number", "n.a.", 46, len(slips))
    assert (str(message), message.about) == (sentence, "cells")
    assert np.isnan(values).tolist() == [False] * 45 + [True] * len(slips)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, "inf", "1e999"])
def test_an_infinite_number_is_an_error_that_names_its_row(bad):
    frame = pandas.DataFrame(
        {"a": ["1", "2", bad, "3"] if isinstance(bad, str) else [1.0, 2.0, bad, 3.0]}
    )
    with pytest.raises(
        ValueError,
        match=r"^Column 'a' holds an infinite number in row 3; correct it, or leave the column "
        r"out\.$",
    ):
        read_column(frame, Column("a", "number"))


def test_a_number_whose_square_overflows_is_an_error():
    with pytest.raises(
        ValueError,
        match=r"^Column 'a' holds the number 1e\+300, which is too large, in row 1; correct it, or",
    ):
        read_column(pandas.DataFrame({"a": [1e300]}), Column("a", "number"))


def test_rows_keep_their_numbers_if_others_were_left_out():
    frame = pandas.DataFrame({"a": [1.0, 2.0, np.inf]}).iloc[1:]
    with pytest.raises(ValueError, match="in row 3;"):
        read_column(frame, Column("a", "number"))


def test_two_values_need_one_feature_and_a_third_or_missing_values_more():
    assert find_kind(pandas.Series(["a", "b"] * 5), "x").values == ("b",)
    assert find_kind(pandas.Series(["a", "b"] * 5 + ["c"]), "x").values == ("a", "b")
    assert find_kind(pandas.Series(["a", "b"] * 5 + [None, None]), "x").values == ("", "a", "b")


def test_lists_and_dicts_as_cells_are_texts():
    column = pandas.Series([[1, 2], {"a": 1}, None, [1, 2]])
    assert read_texts(column) == ["[1, 2]", "{'a': 1}", "", "[1, 2]"]
    assert find_kind(column, "x").kind == "category"
    assert np.isnan(read_numbers(column)).all()


def test_dates_are_days_in_any_time_zone():
    assert read_dates(
        pandas.Series(["1970-01-02T00:00:00+00:00", "1970-01-02T09:00:00+09:00"]), "ISO8601"
    ).tolist() == [1.0, 1.0]
    assert read_dates(pandas.Series(["03.01.1970", "no day"]), "%d.%m.%Y").tolist()[0] == 2.0


def test_numeric_types_of_all_libraries_are_numbers():
    for cells in (
        [1, None],
        ["1", None],
        pandas.array([1, None], dtype="Int64"),
        pandas.to_timedelta(["1s", None]),
    ):
        np.testing.assert_array_equal(read_numbers(pandas.Series(cells)), [1.0, np.nan])


def test_errors_shorten_long_cells():
    assert describe_cell(pandas.Series(["x" * 1000]), 0) == f"'{'x' * 40}...' in row 1"


def test_row_numbers_are_found_in_the_table_as_it_was_read():
    table = pandas.DataFrame({"id": np.arange(1, 101), "text": np.arange(100).astype(str)})
    table["shuffled"] = np.random.default_rng(0).permutation(100)
    table["years"] = np.arange(1950, 2050)
    table["word"] = "a"
    table.loc[3, "word"] = None
    found = find_row_numbers(table, list(table.columns))
    assert [(column.name, column.kind) for column in found] == [
        ("id", "nothing"),
        ("text", "nothing"),
    ]
    assert find_row_numbers(table.drop(index=5), ["id"]) == []
    assert find_row_numbers(table.iloc[:0], ["id"]) == []
