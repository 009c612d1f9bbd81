"""Equal data have equal fingerprints, different data have different ones."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from leaflearn.persistence.fingerprint import fingerprint

ROWS = np.arange(12.0).reshape(4, 3)
COLUMNS = {"a": [1.0, 2.0], "b": ["x", None], "c": [True, False]}
KINDS = {
    "array": (ROWS, ROWS.copy(order="F"), ROWS + 1e-12),
    "images": (np.zeros((2, 3, 4)), np.zeros((2, 3, 4)), np.zeros((2, 4, 3))),
    "sparse": (sparse.csr_matrix(ROWS), sparse.csr_matrix(ROWS), sparse.csr_matrix(ROWS * 2)),
    "pandas": (
        pd.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS, index=[7, 8]),
        pd.DataFrame({**COLUMNS, "b": ["x", "y"]}),
    ),
    "arrow": (pa.table(COLUMNS), pa.table(COLUMNS), pa.table({**COLUMNS, "a": [1.0, 3.0]})),
    "polars": (
        pl.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS),
        pl.DataFrame({**COLUMNS, "c": [True, True]}),
    ),
}


@pytest.mark.parametrize(("data", "equal", "other"), KINDS.values(), ids=KINDS)
def test_equal_data_have_equal_fingerprints_and_different_data_do_not(data, equal, other):
    assert fingerprint(data) == fingerprint(equal)
    assert fingerprint(data) != fingerprint(other)


def test_targets_groups_and_weights_change_the_fingerprint():
    y = np.arange(4)
    found = {
        fingerprint(ROWS, y, None),
        fingerprint(ROWS, y, y),
        fingerprint(ROWS, y[::-1], None),
        fingerprint(ROWS, None, y),
    }
    assert len(found) == 4
