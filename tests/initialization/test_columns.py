"""Inputs of all kinds as numbers for the search."""

import numpy as np
import pandas as pd
import torch
from scipy import sparse

from leaflearn.initialization.columns import MOST_DIRECTIONS, MOST_VALUES, as_numbers


def test_numbers_stay_what_they_are():
    x = np.arange(12, dtype=np.float32).reshape(2, 1, 2, 3)
    assert as_numbers(x) is not None
    np.testing.assert_array_equal(as_numbers(x), x)
    np.testing.assert_array_equal(as_numbers(torch.as_tensor(x)), x)


def test_frames_with_text_holes_and_dates_are_read_column_by_column():
    frame = pd.DataFrame(
        {
            "shop": ["a", "b", None],
            "size": [1.0, np.nan, 3.0],
            "on": [True, False, True],
            "when": pd.date_range("2026", periods=3),
        }
    )
    table = as_numbers(frame)
    assert np.isfinite(table).all()
    shop, size = table[:, :3], table[:, 3]  # each value of shop has a column, a missing one too
    np.testing.assert_array_equal(np.sort(shop @ [1, 2, 3]), [1, 2, 3])
    np.testing.assert_array_equal(size, [1, 2, 3])


def test_a_date_that_is_missing_is_a_hole_like_others():
    frame = pd.DataFrame({"when": pd.to_datetime(["2026-01-01", None, "2026-01-03"])})
    first, hole, last = as_numbers(frame)[:, 0]
    assert hole == (first + last) / 2


def test_text_with_many_values_keeps_the_common_ones():
    names = [f"name {i}" for i in range(50)] + ["often"] * 10
    table = as_numbers(np.array(names, dtype=object)[:, None])
    assert table.shape == (60, MOST_VALUES)
    assert (table.sum(0) == 10).sum() == 1


def test_wide_sparse_matrices_keep_their_distances():
    x = sparse.random(40, 2000, density=0.05, random_state=0, format="csr")
    table = as_numbers(x)
    assert table.shape == (40, MOST_DIRECTIONS)
    true = np.linalg.norm(x.toarray()[:, None] - x.toarray(), axis=-1)
    thrown = np.linalg.norm(table[:, None] - table, axis=-1)
    pairs = np.triu_indices(40, 1)
    assert np.median(np.abs(thrown[pairs] / true[pairs] - 1)) < 0.1
    narrow = sparse.csr_matrix(np.eye(3))
    np.testing.assert_array_equal(as_numbers(narrow), np.eye(3))


def test_directions_are_drawn_for_some_columns_at_a_time(monkeypatch):
    x = sparse.random(30, 500, density=0.05, random_state=0, format="csr")
    at_once = as_numbers(x)
    monkeypatch.setattr("leaflearn.initialization.columns.COLUMNS_AT_ONCE", 120)
    np.testing.assert_allclose(as_numbers(x), at_once, atol=1e-12)


def test_nothing_to_read_is_none():
    assert as_numbers(np.empty((0, 2))) is None
    assert as_numbers(pd.DataFrame(index=range(3))) is None
