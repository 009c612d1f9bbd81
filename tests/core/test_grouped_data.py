import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from leaflearn.core.algorithm import sum_rows_by_group
from leaflearn.core.grouped_data import (
    GroupedData,
    as_labels,
    encode_groups,
    find_groups,
    sum_by_group,
)

LABELS = st.one_of(
    st.integers(), st.text(max_size=3), st.tuples(st.integers(0, 3), st.text(max_size=1))
)


@given(st.lists(LABELS, min_size=1, max_size=30))
def test_codes_index_the_labels(groups):
    labels, code = encode_groups(groups, len(groups))
    assert [labels[i] for i in code] == groups
    assert len(set(labels)) == len(labels)
    assert set(code.tolist()) == set(range(len(labels)))


@given(st.lists(LABELS, min_size=1, max_size=30), st.lists(LABELS, min_size=1, max_size=30))
def test_find_groups_returns_the_position_among_known_labels(known, asked):
    labels, _ = encode_groups(known, len(known))
    found = find_groups(as_labels(asked), labels)
    assert [i >= 0 for i in found] == [label in known for label in asked]
    assert all(labels[i] == label for i, label in zip(found, asked, strict=True) if i >= 0)


def test_labels_are_sorted_if_comparable_and_else_in_order_of_appearance():
    assert encode_groups(["b", "a", "b"], 3)[0].tolist() == ["a", "b"]
    assert encode_groups([("b", 1), ("a", 2)], 2)[0].tolist() == [("a", 2), ("b", 1)]
    assert encode_groups([3, "b", 1], 3)[0].tolist() == [3, "b", 1]


def test_without_groups_every_row_is_its_own_group():
    labels, code = encode_groups(None, 3)
    assert labels.tolist() == code.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "groups",
    [
        np.array([1.0, np.nan]),
        [None, "a"],
        ["a", float("nan")],
        pd.Series([1, None], dtype="Int64"),
        pd.to_datetime(pd.Series(["2026-01-01", None])),
        pd.Series(["a", None], dtype="category"),
    ],
)
def test_missing_labels_are_refused(groups):
    with pytest.raises(
        ValueError,
        match=r"^groups holds 1 missing values; "
        r"give these rows a group of their own or leave them out\.$",
    ):
        encode_groups(groups, 2)


def test_labels_that_are_not_hashable_are_refused():
    with pytest.raises(
        ValueError,
        match=r"^groups holds labels that are not hashable \(.*\); "
        r"use strings, numbers or tuples of them\.$",
    ):
        encode_groups([[1], [2]], 2)


CONTAINERS = {
    "array": np.asarray,
    "sparse": sparse.csr_matrix,
    "pandas": lambda rows: pd.DataFrame(rows, columns=["a", "b"]),
    "polars": lambda rows: pl.DataFrame(rows, schema=["a", "b"]),
}


def make_data(container=np.asarray, weight=None):
    """Three rows in groups 0, 3 and 3."""
    rows, y, group = np.arange(6.0).reshape(3, 2), np.arange(3.0)[:, None], np.array([0, 3, 3])
    return GroupedData(container(rows), y, group, np.arange(3), weight, 1, False)


def dense(x):
    return x.toarray() if sparse.issparse(x) else np.asarray(x)


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_rows_are_selected_and_joined_in_their_container(container):
    data = make_data(container)
    part = data.take(np.array([2, 0]))
    assert type(part.X) is type(data.X)
    np.testing.assert_array_equal(dense(part.X), [[4.0, 5.0], [0.0, 1.0]])
    both = data.join(part)
    assert type(both.X) is type(data.X)
    np.testing.assert_array_equal(dense(both.X)[3:], dense(part.X))
    assert both.group.tolist() == [0, 3, 3, 3, 0]
    assert both.row.tolist() == [0, 1, 2, 2, 0]


def test_rows_without_a_weight_are_joined_with_weight_1():
    weighted = make_data(weight=np.array([2.0, 3.0, 4.0]))
    assert weighted.join(make_data()).weight.tolist() == [2.0, 3.0, 4.0, 1.0, 1.0, 1.0]
    assert make_data().join(weighted).weight.tolist() == [1.0, 1.0, 1.0, 2.0, 3.0, 4.0]
    assert make_data().join(make_data()).weight is None


def test_without_keeps_all_rows_of_a_group_that_would_be_empty():
    left = make_data(weight=np.array([2.0, 3.0, 4.0])).without(np.array([True, True, False]))
    assert left.row.tolist() == [0, 2]
    assert left.weight.tolist() == [2.0, 4.0]


def test_renumbered_groups_have_no_gaps():
    data, numbers = make_data().renumbered()
    assert data.group.tolist() == [0, 1, 1]
    assert numbers.tolist() == [0, 3]


def test_sums_over_groups_agree_for_arrays_and_tensors():
    losses = np.random.default_rng(0).random((7, 3))
    group = np.array([1, 0, 2, 2, 1, 0, 2])
    expected = sum_rows_by_group(torch.as_tensor(losses.T), torch.as_tensor(group), 3)
    np.testing.assert_allclose(sum_by_group(losses, group), expected)
