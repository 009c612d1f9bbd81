import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaflearn.core.grouped_data import as_labels, encode_groups, find_groups

LABELS = st.one_of(
    st.integers(), st.text(max_size=3), st.tuples(st.integers(0, 3), st.text(max_size=1))
)


@given(st.lists(LABELS, min_size=1, max_size=30))
def test_codes_lead_back_to_the_labels(groups):
    labels, code = encode_groups(groups, len(groups))
    assert [labels[i] for i in code] == groups
    assert len(set(labels)) == len(labels)
    assert set(code.tolist()) == set(range(len(labels)))


@given(st.lists(LABELS, min_size=1, max_size=30), st.lists(LABELS, min_size=1, max_size=30))
def test_labels_are_found_among_the_known_ones(known, asked):
    labels, _ = encode_groups(known, len(known))
    found = find_groups(as_labels(asked), labels)
    assert [i >= 0 for i in found] == [label in known for label in asked]
    assert all(labels[i] == label for i, label in zip(found, asked, strict=True) if i >= 0)


def test_labels_are_sorted_where_they_can_be_and_else_in_order_of_appearance():
    assert encode_groups(["b", "a", "b"], 3)[0].tolist() == ["a", "b"]
    assert encode_groups([("b", 1), ("a", 2)], 2)[0].tolist() == [("a", 2), ("b", 1)]
    assert encode_groups([3, "b", 1], 3)[0].tolist() == [3, "b", 1]


def test_without_groups_every_row_is_its_own():
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
        match=r"^groups holds 1 missing values; give these rows a group of their own or leave them out\.$",
    ):
        encode_groups(groups, 2)


def test_labels_that_cannot_be_compared_are_refused():
    with pytest.raises(
        ValueError,
        match=r"^groups holds labels that are not hashable \(.*\); use strings, numbers or tuples of them\.$",
    ):
        encode_groups([[1], [2]], 2)
