"""Which column names what was labelled: by its shape, and by nothing that a quantity has too."""

import warnings

import numpy as np
import pandas
import pytest

from leaflearn.messages import TableWarning
from leaflearn.tabular.column_kinds import MOST_VALUES
from leaflearn.tabular.items import (
    ITEM,
    count_sets,
    find_item_column,
    list_columns_of_answers,
    read_codes,
    warn_about_item_sets,
)

RNG = np.random.default_rng(0)
GROUP = np.repeat(np.arange(20), 30)
ITEMS = np.concatenate([RNG.permutation(80)[:30] for _ in range(20)])
Y = (RNG.random(80) < 0.5)[ITEMS].astype(int)
NAMES = pandas.Series([f"item{i}" for i in ITEMS])


def find(column, name="thing", y=Y, group=GROUP, **others):
    return find_item_column(pandas.DataFrame({name: column, **others}), y, group)


def test_every_item_is_told_apart():
    column = find(NAMES)
    assert (column.kind, column.form, len(column.values)) == ("category", ITEM, 80)
    assert list(column.values) == sorted({f"item{i}" for i in ITEMS})


def test_rare_items_are_told_apart_too():
    """Each is in fewer rows than a value of an ordinary category has to be."""
    item = np.concatenate([np.random.default_rng(i).permutation(500)[:30] for i in range(40)])
    assert pandas.Series(item).value_counts().max() < 0.01 * len(item)
    assert len(
        find([f"item{i}" for i in item], y=item % 2, group=np.repeat(np.arange(40), 30)).values
    ) == len(set(item.tolist()))


@pytest.mark.parametrize(
    ("why", "column", "group"),
    [
        ("few values are an ordinary category", [f"kind{i % MOST_VALUES}" for i in ITEMS], GROUP),
        (
            "a group has the same value again and again",
            [f"city{i}" for i in RNG.integers(30, size=600)],
            np.repeat([0, 1], 300),
        ),
        (
            "no value is in two groups",
            [f"{group}-{i}" for group, i in zip(GROUP, ITEMS, strict=True)],
            GROUP,
        ),
        ("every row is a group of its own", NAMES, np.arange(600)),
        (
            "another name of the group",
            [f"site{group}" for group in np.repeat(np.arange(40), 15)],
            np.repeat(np.arange(40), 15),
        ),
    ],
)
def test_what_is_no_item(why, column, group):
    assert find(column, group=group) is None, why


def test_numbers_are_names_where_their_order_tells_nothing():
    assert find(ITEMS) is not None
    assert (
        find(ITEMS, y=np.sin(ITEMS / 10.0)) is None
    )  # a curve over a quantity that every group was asked about once
    assert find(ITEMS + 0.5) is None


@pytest.mark.parametrize("name", ["item", "task_id", "taskId", "QUESTION_ID", "Item"])
def test_numbers_in_a_column_that_says_so_are_names_whatever_their_order(name):
    assert find(ITEMS, name, y=np.sin(ITEMS / 10.0)).name == name
    few = np.tile(np.arange(12), 20)
    assert find(few, name, y=few % 2, group=np.repeat(np.arange(20), 12)) is not None


def test_prose_comes_after_a_name():
    words = np.array(
        ["the", "a", "red", "blue", "sky", "sea", "dog", "runs", "over", "hill", "far", "away"]
    )
    texts = [" ".join(words[np.random.default_rng(i).integers(12, size=8)]) for i in range(80)]
    prose = [texts[i] for i in ITEMS]
    assert find(prose, "text", code=NAMES).name == "code"
    assert find(prose, "text").name == "text"


def test_the_items_with_the_most_answers_are_kept_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr("leaflearn.tabular.items.MOST_ITEMS", 25)
    with pytest.warns(TableWarning) as caught:
        column = find(NAMES)
    (warning,) = caught
    assert (
        str(warning.message)
        == "Column 'thing' names 80 items; the 25 with the most answers are told apart, all others are one."
    )
    counts = NAMES.value_counts()
    assert len(column.values) == 25
    assert counts[list(column.values)].min() >= counts.drop(list(column.values)).max()


def test_columns_of_answers_are_those_that_differ_between_rows_of_an_item():
    frame = pandas.DataFrame(
        {
            "item": NAMES,
            "length": ITEMS % 7,
            "age": GROUP % 5,
            "seconds": RNG.random(600),
            "unit": "x",
        }
    )
    assert list_columns_of_answers(frame, "item") == ["age", "seconds"]


def test_codes_are_the_same_for_numbers_and_their_names():
    holes = pandas.Series([3.0, np.nan, 1.0, 3.0])
    assert (
        read_codes(holes).tolist()
        == read_codes(pandas.Series(["c", None, "a", "c"])).tolist()
        == [1, -1, 0, 1]
    )


def test_groups_are_compared_through_others():
    chain = np.array([0, 1, 1, 2, 2, 3])
    assert count_sets(chain, np.array([0, 0, 1, 1, 2, 2])) == 1
    assert count_sets(chain, np.array([0, 0, 1, 1, 1, 2])) == 2
    assert count_sets(np.full(3, -1), np.arange(3)) == 3


LONELY = (
    "No two groups in 'worker' have a value of 'item' in common, so no group can be compared with another; "
    "let several groups answer the same items, or add columns that describe them."
)


def test_where_nobody_can_be_compared_that_is_said_in_a_sentence():
    own = pandas.DataFrame(
        {"item": [f"{group}-{i}" for group, i in zip(GROUP, ITEMS, strict=True)]}
    )
    with pytest.raises(ValueError) as error:  # noqa: PT011
        warn_about_item_sets(own, GROUP, "worker")
    assert str(error.value) == LONELY
    twice = pandas.DataFrame(
        {"item": [f"{group}-{i}" for group in range(4) for i in [0, 1, 2] * 5]}
    )  # a category, which can be learnt
    with pytest.warns(TableWarning) as caught:
        warn_about_item_sets(twice, np.repeat(np.arange(4), 15), "worker")
    assert str(caught[0].message) == LONELY


def test_sets_of_groups_are_counted():
    halves = pandas.DataFrame(
        {"item": [f"{'AB'[group % 2]}{i}" for group, i in zip(GROUP, ITEMS, strict=True)]}
    )
    with pytest.warns(TableWarning) as caught:
        warn_about_item_sets(halves, GROUP, "worker")
    assert str(caught[0].message) == (
        "The groups in 'worker' fall into 2 sets without a value of 'item' in common, so contexts of different sets cannot be compared; "
        "let several groups answer the same items, or add columns that describe them."
    )


def test_tables_that_are_something_else_are_left_alone():
    tables = [
        pandas.DataFrame({"item": NAMES}),
        pandas.DataFrame({"dose": RNG.random(600)}),
        pandas.DataFrame(
            {"name": [f"site{group}" for group in GROUP]}
        ),  # another name of the group has an error of its own
        pandas.DataFrame(
            {
                "item": [f"{group}-{i}" for group, i in zip(GROUP, ITEMS, strict=True)],
                "length": ITEMS,
            }
        ),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for table in tables:
            warn_about_item_sets(table, GROUP, "worker")
