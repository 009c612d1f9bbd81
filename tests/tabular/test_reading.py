"""Read tables from files and from other libraries, or raise one clear error."""

import datetime
import io
import re
import sys
import warnings
import zipfile

import numpy as np
import pandas
import polars
import pyarrow
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaflearn.messages import TableWarning, UnnamedColumns, list_names
from leaflearn.tabular.reading import find_column, find_delimiter, read_table, to_frame
from leaflearn.tabular.table_model import TableModel
from leaflearn.tabular.writing import to_csv


@pytest.fixture
def read(tmp_path):
    """Write these bytes to a file and read it as a table."""

    def write_and_read(content, name="table.csv", **options):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_table(path, **options)

    return write_and_read


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        yield


# ---- what is read -------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_delimiters_and_line_ends(read, delimiter, line_end):
    text = line_end.join(
        [
            delimiter.join(row)
            for row in (["site", "note", "length"], ["A", '"a, b; c | d"', "1.5"], ["B", "", "2"])
        ]
    )
    frame = read(text)
    assert list(frame.columns) == ["site", "note", "length"]
    assert frame["length"].tolist() == [1.5, 2.0]
    assert frame["note"].tolist()[0] == "a, b; c | d"
    assert pandas.isna(frame["note"][1])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a;b\n1,5;x\n2,25;y\n", [1.5, 2.25]),  # a comma, where semicolons separate
        ("a;b\n1.5;x\n2.25;y\n", [1.5, 2.25]),  # but not everywhere
        ("a\tb\n1,5\tx\n2,25\ty\n", [1.5, 2.25]),
        ("sep=;\na;b\n1,5;x\n2,25;y\n", [1.5, 2.25]),  # as Excel writes it
        ("\n\n a , b\n 1.5 , x\n\n2.25,y\n", [1.5, 2.25]),  # blank lines, spaces around names
        ('"a","b"\n"1.5","x"\n"2.25","y"\n', [1.5, 2.25]),
    ],
)
def test_decimal_signs_and_quoted_numbers(read, text, values):
    assert read(text)["a"].tolist() == values


def test_a_quoted_cell_may_hold_line_ends_and_quotation_marks(read):
    frame = read('name,text\n"a\nb","say ""hi"""\nc,d\n')
    assert frame["name"].tolist() == ["a\nb", "c"]
    assert frame["text"].tolist() == ['say "hi"', "d"]


def test_one_column_is_a_table(read):
    assert read("length\n1\n2\n")["length"].tolist() == [1, 2]


def test_a_row_with_too_few_fields_has_missing_values(read):
    assert read("a,b\n1\n2,3\n")["b"].isna().tolist() == [True, False]


def test_cells_as_text_stay_as_they_are_written(read):
    frame = read("id,share\n007,1.50\n,NA\n", as_text=True)
    assert frame.to_dict("list") == {"id": ["007", ""], "share": ["1.50", "NA"]}


def test_a_very_long_cell_is_read(read):
    assert read(f"a,b\n{'x' * 300_000},1\ny,2\n")["b"].tolist() == [1, 2]


def test_the_format_is_recognized_by_the_content(read):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("inside.txt", "a,b\n1,2\n")
    assert read(buffer.getvalue(), name="no-ending")["b"].tolist() == [2]


def test_parquet_with_an_index_categories_and_dates(read):
    buffer = io.BytesIO()
    days = pandas.to_datetime(["2024-01-01", None])
    pandas.DataFrame(
        {"day": days, "kind": pandas.Categorical(["x", "y"])},
        index=pandas.Index(["A", "B"], name="site"),
    ).to_parquet(buffer)
    frame = read(buffer.getvalue(), name="table.parquet")
    assert frame["site"].tolist() == ["A", "B"]
    assert frame["day"].isna().tolist() == [False, True]
    assert frame["kind"].tolist() == ["x", "y"]
    assert frame.index.tolist() == [0, 1]


def test_row_numbers_written_by_pandas_are_left_out(read):
    text = pandas.DataFrame({"a": [5, 6]}).to_csv()
    with pytest.warns(TableWarning, match=r"^Column 1 has no name and was left out\.$") as caught:
        assert list(read(text).columns) == ["a"]
    assert caught[0].message.messages == (UnnamedColumns((1,)),)


def test_several_columns_without_a_name(read):
    with pytest.warns(TableWarning, match=r"^Columns 2, 3 have no name and were left out\.$"):
        assert list(read("a,,\n1,2,3\n").columns) == ["a"]


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "'table.csv' is empty."),
        (b" \r\n\n", "'table.csv' is empty."),
        (b"\xef\xbb\xbf\n", "'table.csv' is empty."),
        (b"sep=;\n\n", "'table.csv' is empty."),
        (b"a,b\n", "'table.csv' has a header, but no rows."),
        (b"a,b\n\n\n", "'table.csv' has a header, but no rows."),
        (
            b"a,b, a\n1,2,3\n",
            "Column 'a' appears twice in 'table.csv', as columns 1 and 3; give each column a "
            "different name.",
        ),
        (
            b"a,b\n1,2\n3,4,5\n",
            "'table.csv' cannot be read as a table: line 3 has 3 fields, but 2 were expected; "
            "put texts that hold the delimiter in quotation marks.",
        ),
        (
            b"a,b\n1,2,3\n",
            "'table.csv' cannot be read as a table: its rows have more fields than its header; "
            "name every column.",
        ),
        (
            b'a,b\n1,2\n3,"4\n',
            "'table.csv' cannot be read as a table: a quotation mark that opens in row 2 is never "
            "closed; "
            "close it, or double it.",
        ),
        (
            b"a,b\n\x00,2\n",
            "'table.csv' is not text (zero byte in line 2); give a table as CSV or Parquet.",
        ),
        (b"PAR1 and then nothing", "'table.csv' is not a complete Parquet file; get a fresh copy."),
    ],
)
def test_files_that_are_not_tables_are_errors(read, content, sentence):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        read(content)
    assert str(error.value) == sentence


def test_a_table_without_column_names_is_an_error(read):
    warnings.simplefilter("ignore")
    with pytest.raises(
        ValueError,
        match=r"^'table.csv' has no columns with names; name every column in the first line\.$",
    ):
        read(",\n1,2\n")


def test_a_missing_file_is_an_error_with_a_suggestion(tmp_path):
    (tmp_path / "reviews.csv").touch()
    with pytest.raises(FileNotFoundError) as error:
        read_table(tmp_path / "revews.csv")
    assert (
        str(error.value)
        == f"There is no file '{tmp_path}/revews.csv'; did you mean '{tmp_path}/reviews.csv'?"
    )
    with pytest.raises(FileNotFoundError) as error:
        read_table(tmp_path / "no" / "such" / "folder.csv")
    assert str(error.value) == f"There is no file '{tmp_path}/no/such/folder.csv'."


def test_a_folder_is_an_error(tmp_path):
    with pytest.raises(IsADirectoryError) as error:
        read_table(tmp_path)
    assert (
        str(error.value) == f"'{tmp_path}' is a folder, but a table was expected: CSV or Parquet."
    )


def test_parquet_without_pyarrow(read, monkeypatch):
    buffer = io.BytesIO()
    pandas.DataFrame({"a": [1]}).to_parquet(buffer)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        read(buffer.getvalue(), name="t.parquet")
    assert (
        str(error.value) == "To read 't.parquet', which is Parquet, pyarrow is needed: pip install "
        "'leaflearn[parquet]'."
    )


# ---- columns by name ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "Raiting",
            "There is no column 'Raiting' in 't.csv'; did you mean 'rating'? There are: 'site', "
            "'rating', 'Note'.",
        ),
        (
            "note",
            "There is no column 'note' in 't.csv'; did you mean 'Note'? There are: 'site', "
            "'rating', 'Note'.",
        ),
        ("xyzzy", "There is no column 'xyzzy' in 't.csv'. There are: 'site', 'rating', 'Note'."),
    ],
)
def test_a_misspelled_column_is_an_error_with_a_suggestion(name, sentence):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        find_column(["site", "rating", "Note"], name, "'t.csv'")
    assert str(error.value) == sentence


def test_long_lists_of_names_are_shortened():
    assert list_names(range(10_000)).endswith("'7' and 9992 more")


def test_commas_in_texts_are_not_delimiters():
    assert find_delimiter("id|text\n1|a, b, c\n2|d, e, f\n") == "|"


# ---- unusual tables -----------------------------------------------------------------------------


CELLS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=12
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=5),
    st.sampled_from(["utf-8-sig", "utf-16"]),
)
def test_written_tables_are_read_back(tmp_path_factory, rows, encoding):
    path = tmp_path_factory.mktemp("tables") / "table.csv"
    written = pandas.DataFrame([["x", *row] for row in rows], columns=["first", "b", "c"])
    path.write_bytes(to_csv(written).decode().encode(encoding))
    again = read_table(path, as_text=True)
    for name in ("b", "c"):
        assert [cell.lstrip(" ").removeprefix("'") for cell in again[name]] == [
            cell.lstrip(" ").removeprefix("'") for cell in written[name]
        ]


def test_a_table_of_ten_thousand_columns(read):
    lines = [
        ",".join(f"c{i}" for i in range(10_000)),
        *[",".join(str(i * k) for i in range(10_000)) for k in (1, 2)],
    ]
    frame = read("\n".join(lines))
    assert frame.shape == (2, 10_000)
    assert frame["c9999"].tolist() == [9999, 19_998]


# ---- tables of other libraries ------------------------------------------------------------------


COLUMNS = {
    "site": ["A", "A", "B", None],
    "dose": [1.0, None, 2.5, 4.0],
    "rank": [1, 2, None, 4],
    "day": [datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 3), datetime.date(2024, 1, 4)],
}


class HuggingFace:
    """The part of a Hugging Face data set that leaflearn uses."""

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
    """Cells as texts, missing values as None, dates without their hour."""
    return {
        name: [
            None if pandas.isna(cell) else str(cell).removesuffix(" 00:00:00")
            for cell in frame[name].astype(object)
        ]
        for name in frame
    }


@pytest.mark.parametrize("kind", KINDS)
def test_columns_keep_their_names_order_and_missing_values(kind):
    frame = to_frame(KINDS[kind](COLUMNS))
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.index) == [0, 1, 2, 3]
    assert cells(frame) == {
        "site": ["A", "A", "B", None],
        "dose": ["1.0", None, "2.5", "4.0"],
        "rank": ["1.0", "2.0", None, "4.0"],
        "day": ["2024-01-01", None, "2024-01-03", "2024-01-04"],
    }


def test_categories_keep_missing_values():
    """The numpy arrays of pyarrow have the last category in place of missing values."""
    frame = polars.DataFrame({"site": ["A", None, "B"]}, schema={"site": polars.Categorical})
    for table in (frame, frame.to_arrow()):
        assert cells(to_frame(table)) == {"site": ["A", None, "B"]}


def test_polars_needs_no_pyarrow(monkeypatch):
    def refuse(self):
        raise ModuleNotFoundError("pyarrow is required for converting to pandas")

    monkeypatch.setattr(polars.Series, "to_pandas", refuse)
    assert cells(to_frame(polars.DataFrame(COLUMNS))) == cells(to_frame(COLUMNS))


def test_rows_are_matched_by_position_and_not_by_index():
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
            [1, 2],
            TypeError,
            "trial is of the type list, but a data frame of pandas or polars, a table of pyarrow, "
            "a "
            "Hugging Face data set, or a mapping from names to columns was expected.",
        ),
        (
            polars.LazyFrame(COLUMNS),
            TypeError,
            "trial is lazy and does not hold its columns yet; call its collect() first.",
        ),
        (
            {"a": [1, 2], "b": [1]},
            ValueError,
            "Column 'b' of trial has 1 rows, but column 'a' has 2; give all columns the same "
            "number of rows.",
        ),
        (
            {"a": np.ones((2, 3))},
            ValueError,
            "Column 'a' has shape (2, 3), but one value per row was expected.",
        ),
    ],
)
def test_other_objects_are_errors(table, error, sentence):
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        to_frame(table, "trial")


def test_a_data_set_with_several_splits_is_an_error():
    parts = HuggingFace(COLUMNS)
    parts.column_names = {"train": list(COLUMNS), "test": list(COLUMNS)}
    with pytest.raises(
        TypeError, match=r"^trial has several splits \('train', 'test'\); pass one of them\.$"
    ):
        to_frame(parts, "trial")


def test_no_other_library_is_imported(monkeypatch):
    for library in ("polars", "pyarrow", "datasets"):
        monkeypatch.setitem(sys.modules, library, None)  # importing it would fail
    assert len(to_frame(COLUMNS)) == 4


@pytest.mark.filterwarnings("ignore::leaflearn.RecoveryWarning")
def test_a_table_model_gives_the_same_results_for_all_of_them():
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
