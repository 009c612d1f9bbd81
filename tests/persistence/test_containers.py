"""Rows are restored in the same container, with the same types of columns."""

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import sparse

from leaflearn.persistence import table_from_json, table_to_json


def through_json(table):
    arrays = {}
    content = json.loads(json.dumps(table_to_json(table, arrays, "X"), allow_nan=False))
    return table_from_json(content, arrays)


@pytest.mark.parametrize(
    "kind", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array]
)
def test_sparse_matrices_are_restored(kind):
    matrix = kind(np.random.default_rng(0).poisson(0.2, (60, 7)).astype(np.float32))
    again = through_json(matrix)
    assert type(again) is type(matrix)
    assert again.dtype == np.float32
    assert all(
        np.array_equal(getattr(again, part), getattr(matrix, part))
        for part in ("data", "indices", "indptr")
    )


def test_a_matrix_with_indices_out_of_range_is_refused():
    arrays = {}
    content = table_to_json(sparse.csr_matrix(np.eye(3)), arrays, "X")
    content["indices"]["$values"][2][0] = 10**6
    with pytest.raises(ValueError, match="indices"):
        table_from_json(content, arrays)


def test_pandas_frames_are_restored():
    frame = pd.DataFrame(
        {
            "float": [1.0, np.nan, -0.0],
            "small": np.array([1, 2, 3], dtype=np.int8),
            "bool": [True, False, True],
            "date": pd.to_datetime(["2026-01-31", None, "2026-02-01"]),
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "maybe": pd.array([True, None, False], dtype="boolean"),
            "text": pd.array(["x", None, "y"], dtype="string"),
            "str": ["x", "y", "z"],
            "category": pd.Categorical(["b", None, "a"], categories=["b", "a", "c"], ordered=True),
            "numbers": pd.Categorical([30, 10, 30]),
            3: [1, 2, 3],
        }
    )
    frame["object"] = pd.Series(["x", None, float("nan")], dtype=object)
    again = through_json(frame)
    pd.testing.assert_frame_equal(again, frame)
    assert again["object"].tolist()[1] is None


def test_polars_frames_are_restored():
    frame = pl.DataFrame(
        {
            "float": [1.0, None, float("nan")],
            "int": pl.Series([1, None, 3], dtype=pl.Int16),
            "text": ["x", None, "y"],
            "category": pl.Series(["u", "v", None], dtype=pl.Categorical),
            "date": [datetime.date(2026, 1, 31), None, None],
            "bool": [True, None, False],
        }
    )
    assert_frame_equal(through_json(frame), frame)


def test_other_types_of_columns_and_containers_are_refused():
    zoned = pd.DataFrame({"when": pd.to_datetime(["2026"], utc=True)})
    sentence = (
        r"^column 'when' is of type .*UTC.*, which a model folder cannot hold; "
        r"turn it into numbers, text, dates or categories.$"
    )
    with pytest.raises(ValueError, match=sentence):
        table_to_json(zoned, {}, "replay_buffer_.X")
    with pytest.raises(ValueError, match=r"^column 'when' is of type List"):
        table_to_json(pl.DataFrame({"when": [[1, 2]]}), {}, "replay_buffer_.X")
    with pytest.raises(
        ValueError,
        match=r"^replay_buffer_.X is a coo_matrix, which a model folder cannot hold; "
        r"use an array, a sparse matrix, or a frame of pandas or polars\.$",
    ):
        table_to_json(sparse.coo_matrix(np.eye(2)), {}, "replay_buffer_.X")


@pytest.mark.parametrize("kind", ["pickle", "os", None])
def test_unknown_types_are_refused(kind):
    with pytest.raises(ValueError, match="are not supported"):
        table_from_json({"kind": kind}, {})
    with pytest.raises(ValueError, match="are not supported"):
        table_from_json(
            {
                "kind": "pandas",
                "names": ["a"],
                "rows": 1,
                "columns": [{"type": "period[D]", "values": [1]}],
            },
            {},
        )
    with pytest.raises(ValueError, match="are not supported"):
        table_from_json(
            {"kind": "polars", "names": ["a"], "columns": [{"type": "Config", "values": [1]}]}, {}
        )
