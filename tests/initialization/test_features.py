"""Inputs of all kinds as numeric columns for the search."""

import numpy as np
import pandas as pd
import torch
from scipy import sparse

from leaflearn.initialization import settings
from leaflearn.initialization.features import as_numbers


def test_numbers_are_returned_unchanged():
    x = np.arange(12, dtype=np.float32).reshape(2, 1, 2, 3)
    assert as_numbers(x) is not None
    np.testing.assert_array_equal(as_numbers(x), x)
    np.testing.assert_array_equal(as_numbers(torch.as_tensor(x)), x)


def test_frames_with_text_missing_values_and_dates_are_converted_column_by_column():
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
    shop, size = table[:, :3], table[:, 3]  # a missing shop has a column of its own, too
    np.testing.assert_array_equal(np.sort(shop @ [1, 2, 3]), [1, 2, 3])
    np.testing.assert_array_equal(size, [1, 2, 3])


def test_a_missing_date_is_replaced_by_the_mean():
    frame = pd.DataFrame({"when": pd.to_datetime(["2026-01-01", None, "2026-01-03"])})
    first, filled, last = as_numbers(frame)[:, 0]
    assert filled == (first + last) / 2


def test_only_frequent_text_values_have_indicator_columns():
    names = [f"name {i}" for i in range(50)] + ["often"] * 10
    table = as_numbers(np.array(names, dtype=object)[:, None])
    assert table.shape == (60, settings.SEARCH.features.max_text_values)
    assert (table.sum(0) == 10).sum() == 1


def test_projected_sparse_matrices_keep_their_distances():
    x = sparse.random(40, 2000, density=0.05, random_state=0, format="csr")
    table = as_numbers(x)
    assert table.shape == (40, settings.SEARCH.features.n_sparse_directions)
    true = np.linalg.norm(x.toarray()[:, None] - x.toarray(), axis=-1)
    projected = np.linalg.norm(table[:, None] - table, axis=-1)
    pairs = np.triu_indices(40, 1)
    assert np.median(np.abs(projected[pairs] / true[pairs] - 1)) < 0.1
    narrow = sparse.csr_matrix(np.eye(3))
    np.testing.assert_array_equal(as_numbers(narrow), np.eye(3))


def test_sparse_matrices_are_projected_in_parts(monkeypatch):
    x = sparse.random(30, 500, density=0.05, random_state=0, format="csr")
    at_once = as_numbers(x)
    monkeypatch.setattr("leaflearn.initialization.features.SPARSE_COLUMNS_AT_ONCE", 120)
    np.testing.assert_allclose(as_numbers(x), at_once, atol=1e-12)


def test_empty_inputs_give_none():
    assert as_numbers(np.empty((0, 2))) is None
    assert as_numbers(pd.DataFrame(index=range(3))) is None
