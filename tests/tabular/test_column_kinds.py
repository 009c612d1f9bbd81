"""A column is what nearly all of its cells are."""

from decimal import Decimal

import numpy as np
import pandas
import pytest

from leaflearn.messages import TableWarning
from leaflearn.tabular.column_kinds import Column, find_kind, read_column, read_texts

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
def test_what_a_column_holds(cells, kind):
    assert find_kind(pandas.Series(cells), "column").kind == kind


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ([None, None], "empty"),
        (["a", "a"], "the same everywhere"),
        ([f"id{i}" for i in range(30)], "a different text in every row"),
        ([f"id{i // 2}" for i in range(600)], "a text of its own in nearly every row"),
        (list(range(50)), "numbers of the rows"),
        (list(range(1001, 1301)), "numbers of the rows"),
    ],
)
def test_why_a_column_is_left_out(cells, reason):
    assert find_kind(pandas.Series(cells), "column").form == reason


def test_years_one_after_the_other_are_no_row_numbers():
    assert find_kind(pandas.Series(range(1950, 2020)), "year").kind == "number"


def test_numbers_with_some_slips_are_numbers_and_the_slips_are_told():
    frame = pandas.DataFrame({"price": [*map(str, range(5, 50)), "n.a.", "?"]})
    column = find_kind(frame["price"], "price")
    assert column.kind == "number"
    sentence = r"^Column 'price' holds numbers, but 'n.a.' in row 46 is none, nor are 1 other cells; they count as missing\.$"
    with pytest.warns(TableWarning, match=sentence):
        values = read_column(frame, column)
    assert np.isnan(values).tolist() == [False] * 45 + [True] * 2


@pytest.mark.parametrize("bad", [np.inf, -np.inf, "inf", "1e999"])
def test_an_infinite_number_is_refused_with_its_row(bad):
    frame = pandas.DataFrame(
        {"a": ["1", "2", bad, "3"] if isinstance(bad, str) else [1.0, 2.0, bad, 3.0]}
    )
    with pytest.raises(
        ValueError,
        match=r"^Column 'a' holds an infinite number in row 3; correct it, or leave the column out\.$",
    ):
        read_column(frame, Column("a", "number"))


def test_a_number_whose_square_overflows_is_refused_too():
    with pytest.raises(
        ValueError,
        match=r"^Column 'a' holds the number 1e\+300, which is too large, in row 1; correct it, or",
    ):
        read_column(pandas.DataFrame({"a": [1e300]}), Column("a", "number"))


def test_rows_keep_their_numbers_when_others_were_left_out():
    frame = pandas.DataFrame({"a": [1.0, 2.0, np.inf]}).iloc[1:]
    with pytest.raises(ValueError, match="in row 3;"):
        read_column(frame, Column("a", "number"))


def test_two_values_need_one_feature_and_a_third_or_a_hole_more():
    assert find_kind(pandas.Series(["a", "b"] * 5), "x").values == ("b",)
    assert find_kind(pandas.Series(["a", "b"] * 5 + ["c"]), "x").values == ("a", "b")
    assert find_kind(pandas.Series(["a", "b"] * 5 + [None, None]), "x").values == ("", "a", "b")


def test_cells_that_are_no_cells_do_not_break_anything():
    column = pandas.Series([[1, 2], {"a": 1}, None, [1, 2]])
    assert read_texts(column) == ["[1, 2]", "{'a': 1}", "", "[1, 2]"]
    assert find_kind(column, "x").kind == "category"
