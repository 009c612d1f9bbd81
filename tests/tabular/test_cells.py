"""Cells as numbers and days, whatever they are, and cells that are spoken of."""

import numpy as np
import pandas
from leaflearn.tabular.cells import describe_cell, read_dates, read_numbers


def test_dates_are_days_wherever_they_were_measured():
    assert read_dates(
        pandas.Series(["1970-01-02T00:00:00+00:00", "1970-01-02T09:00:00+09:00"]), "ISO8601"
    ).tolist() == [1.0, 1.0]
    assert read_dates(pandas.Series(["03.01.1970", "no day"]), "%d.%m.%Y").tolist()[0] == 2.0


def test_cells_that_are_no_cells_are_no_numbers():
    assert np.isnan(read_numbers(pandas.Series([[1, 2], {"a": 1}, None]))).all()


def test_types_of_every_library_are_numbers():
    for cells in (
        [1, None],
        ["1", None],
        pandas.array([1, None], dtype="Int64"),
        pandas.to_timedelta(["1s", None]),
    ):
        np.testing.assert_array_equal(read_numbers(pandas.Series(cells)), [1.0, np.nan])


def test_a_long_cell_is_cut_where_it_is_spoken_of():
    assert describe_cell(pandas.Series(["x" * 1000]), 0) == f"'{'x' * 40}...' in row 1"
