"""A table is the same table in whatever library's hands it is."""

import datetime
import re
import sys

import numpy as np
import pandas
import polars
import pyarrow
import pytest
import torch

from leaflearn.tabular.reading import to_frame
from leaflearn.tabular.table_model import TableModel

COLUMNS = {
    "site": ["A", "A", "B", None],
    "dose": [1.0, None, 2.5, 4.0],
    "rank": [1, 2, None, 4],
    "day": [datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 3), datetime.date(2024, 1, 4)],
}


class HuggingFace:
    """As much of a Hugging Face data set as is asked for."""

    def __init__(self, columns):
        self._columns = columns
        self.column_names = list(columns)

    def __getitem__(self, name):
        return self._columns[name]


KINDS = {
    "mapping": dict,
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
    "pyarrow": pyarrow.table,
    "Hugging Face": HuggingFace,
}


def cells(frame):
    """Cells as texts, holes as None, dates without their hour."""
    return {
        name: [
            None if pandas.isna(cell) else str(cell).removesuffix(" 00:00:00")
            for cell in frame[name].astype(object)
        ]
        for name in frame
    }


@pytest.mark.parametrize("kind", KINDS)
def test_columns_keep_their_names_their_order_and_their_holes(kind):
    frame = to_frame(KINDS[kind](COLUMNS))
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.index) == [0, 1, 2, 3]
    assert cells(frame) == {
        "site": ["A", "A", "B", None],
        "dose": ["1.0", None, "2.5", "4.0"],
        "rank": ["1.0", "2.0", None, "4.0"],
        "day": ["2024-01-01", None, "2024-01-03", "2024-01-04"],
    }


def test_categories_with_holes_keep_them():
    """What pyarrow gives out as a numpy array has the last category in the place of a hole."""
    frame = polars.DataFrame({"site": ["A", None, "B"]}, schema={"site": polars.Categorical})
    for table in (frame, frame.to_arrow()):
        assert cells(to_frame(table)) == {"site": ["A", None, "B"]}


def test_polars_needs_no_pyarrow(monkeypatch):
    def refuse(self):
        raise ModuleNotFoundError("pyarrow is required for converting to pandas")

    monkeypatch.setattr(polars.Series, "to_pandas", refuse)
    assert cells(to_frame(polars.DataFrame(COLUMNS))) == cells(to_frame(COLUMNS))


def test_rows_are_matched_by_their_place_and_not_by_their_number():
    shuffled = pandas.Series([1.0, 2.0], index=[7, 3])
    assert to_frame({"a": shuffled, "b": [10, 20]}).to_numpy().tolist() == [
        [1.0, 10.0],
        [2.0, 20.0],
    ]
    assert to_frame(pandas.DataFrame({"a": shuffled})).index.tolist() == [0, 1]


def test_tensors_and_arrays_are_columns():
    frame = to_frame(
        {"a": torch.tensor([1.0, 2.0], requires_grad=True), "b": np.array([3, 4]), 5: (6, 7)}
    )
    assert frame.to_dict("list") == {"a": [1.0, 2.0], "b": [3, 4], "5": [6, 7]}


@pytest.mark.parametrize(
    ("table", "error", "sentence"),
    [
        (
            [1, 2], TypeError,
            "trial is of the type list, but a frame of pandas or polars, a table of pyarrow, a Hugging Face data set, or a mapping from "
            "names to columns was expected.",
        ),
        (polars.LazyFrame(COLUMNS), TypeError, "trial is lazy and does not hold its columns yet; call its collect() first."),
        ({"a": [1, 2], "b": [1]}, ValueError, "Column 'b' of trial has 1 rows, but column 'a' has 2; give all equally many."),
        ({"a": np.ones((2, 3))}, ValueError, "Column 'a' has shape (2, 3), but one value for each row was expected."),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused_in_a_sentence(table, error, sentence):
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        to_frame(table, "trial")


def test_a_data_set_in_parts_asks_for_one_of_them():
    parts = HuggingFace(COLUMNS)
    parts.column_names = {"train": list(COLUMNS), "test": list(COLUMNS)}
    with pytest.raises(
        TypeError, match=r"^trial has several parts \('train', 'test'\); take one of them\.$"
    ):
        to_frame(parts, "trial")


def test_no_library_is_imported_for_it(monkeypatch):
    for library in ("polars", "pyarrow", "datasets"):
        monkeypatch.setitem(sys.modules, library, None)  # importing it would fail
    assert len(to_frame(COLUMNS)) == 4


@pytest.mark.filterwarnings("ignore::leaflearn.RecoveryWarning")
def test_a_table_model_finds_and_answers_the_same_in_any_of_them():
    site, dose = np.repeat(np.arange(12), 8), np.tile(np.linspace(-1.0, 1.0, 8), 12)
    columns = {
        "site": [f"site {i}" for i in site],
        "dose": dose.tolist(),
        "effect": (dose * np.where(site % 3 == 0, -1.0, 1.0)).tolist(),
    }
    few, new = {name: cells[:8] for name, cells in columns.items()}, {"dose": [0.5, -0.5]}
    answers = []
    for kind in KINDS.values():
        model = TableModel("effect", "site", contexts=2, local_model="linear").fit(kind(columns))
        answers += [(model.identify(kind(few)), model.predict(kind(new), support=kind(few)))]
    for found, predicted in answers[1:]:
        pandas.testing.assert_frame_equal(found, answers[0][0])
        pandas.testing.assert_frame_equal(predicted, answers[0][1])
    np.testing.assert_allclose(answers[0][1]["prediction"], [-0.5, 0.5], atol=0.05)
