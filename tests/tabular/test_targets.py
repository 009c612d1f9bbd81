"""Whether targets are labels or quantities, and errors that name the row of a wrong cell."""

import numpy as np
import pandas
import pytest

from leaflearn.tabular.targets import Target, find_target, to_names


def column(cells):
    return pandas.Series(cells, name="y")


@pytest.mark.parametrize(
    ("cells", "task", "reason"),
    [
        (["good", "bad", "good"], "classification", "it holds text"),
        ([True, False, True], "classification", "it holds text"),
        ([1, 2, 3, 4, 5] * 5, "regression", "it holds ratings from 1 to 5"),
        (["1", "2", "3", "4"] * 5, "regression", "it holds ratings from 1 to 4"),
        ([-2, -1, 0, 1, 2] * 5, "regression", "it holds ratings from -2 to 2"),
        ([0, 2, 3, 5, 7, 8, 10] * 5, "regression", "it holds ratings from 0 to 10"),
        ([0, 1, 2, 3, 4] * 5, "classification", "it holds 5 different whole numbers"),
        ([1, 2, 3] * 5, "classification", "it holds 3 different whole numbers"),
        ([1, 2, 4, 8] * 5, "classification", "it holds 4 different whole numbers"),
        ([-1, 1] * 5, "classification", "it holds 2 different whole numbers"),
        ([1.0, 2.0] * 5, "classification", "it holds 2 different whole numbers"),
        (["1", "2"] * 5, "classification", "it holds 2 different whole numbers"),
        (list(range(11)) * 5, "regression", "it holds numbers"),
        ([1, 2, 3, 4, 5], "regression", "it holds numbers"),
        ([0.5, 1.0, 0.5, 1.0] * 5, "regression", "it holds numbers"),
        (["0.5", "1.5"], "regression", "it holds numbers"),
    ],
)
def test_the_task_and_the_reason(cells, task, reason):
    target = find_target(column(cells))
    assert (target.task, target.reason) == (task, reason)


@pytest.mark.parametrize(
    ("cells", "alternative"),
    [
        ([1, 2, 3, 4, 5] * 5, "classification"),
        ([0, 1, 2] * 5, "regression"),
        ([0, 1] * 5, ""),
        ([1.5, 2.5], ""),
        (["a", "b"], ""),
    ],
)
def test_whole_numbers_that_would_suit_both_tasks_name_the_other(cells, alternative):
    assert find_target(column(cells)).alternative == alternative
    assert find_target(column([1, 2, 3, 4, 5] * 5), "regression").alternative == ""


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_task_can_be_set(task):
    target = find_target(column([1, 2, 3] * 9), task)
    assert (target.task, target.reason) == (task, "you said so")
    assert target.read(column([1, 2])).dtype == (
        np.int64 if task == "classification" else np.float64
    )


def test_labels_are_whole_numbers_or_text():
    assert find_target(column([1.0, 2.0] * 5)).read(column([2.0, 1.0])).tolist() == [2, 1]
    assert find_target(column(["1.5", "x"] * 5), "classification").read(
        column(["x", 7.0])
    ).tolist() == ["x", "7"]
    assert find_target(column([True, False])).read(column([False])).tolist() == ["False"]


@pytest.mark.parametrize(
    ("cells", "task", "sentence"),
    [
        (
            [1.5, 2.5, "oops"],
            "auto",
            "The target 'y' holds numbers, but 'oops' in row 3 is not a number; correct it, or "
            "set the task.",
        ),
        (
            ["a", "b"],
            "regression",
            "The target 'y' holds numbers, but 'a' in row 1 is not a number; correct it, or set "
            "the task to classification.",
        ),
        (
            [1.5, np.inf, 2.5],
            "auto",
            "Column 'y' holds an infinite number in row 2; correct it, or leave the row out.",
        ),
        ([5, 5], "auto", "The target 'y' is '5' in every row; there is nothing to learn."),
        (
            ["a in row 1"] * 2,
            "auto",
            "The target 'y' is 'a in row 1' in every row; there is nothing to learn.",
        ),
        (
            [f"text {i}" for i in range(1200)],
            "auto",
            "The target 'y' holds 1,200 different labels in 1,200 rows, too many to learn; choose "
            "another target.",
        ),
    ],
)
def test_targets_that_cannot_be_used_are_errors(cells, task, sentence):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        find_target(column(cells), task).read(column(cells))
    assert str(error.value) == sentence


def test_new_labels_of_another_kind_are_errors():
    whole = Target("y", "classification", has_numbers=True, reason="")
    with pytest.raises(
        ValueError,
        match=r"^The target 'y' holds numbers, but 'a' in row 2 is not a number; correct it\.$",
    ):
        whole.read(column([1, "a"]))
    with pytest.raises(
        ValueError,
        match=r"^The labels in 'y' are whole numbers, but '1.5' in row 1 is not; correct it\.$",
    ):
        whole.read(column([1.5, 2.0]))


def test_names_do_not_depend_on_missing_values_elsewhere():
    assert (
        to_names(pandas.Series([7, 8]))
        == to_names(pandas.Series([7.0, 8.0]))
        == to_names(pandas.Series(["7", "8"]))
        == ["7", "8"]
    )
    assert to_names(pandas.Series([1.5, 1e300])) == ["1.5", "1e+300"]
