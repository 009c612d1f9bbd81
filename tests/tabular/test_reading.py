"""A table is read whatever program wrote it, and where it cannot be, one sentence says why and where."""

import io
import sys
import warnings
import zipfile

import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaflearn.messages import TableWarning
from leaflearn.tabular.reading import find_column, find_delimiter, list_names, read_table
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


# What is read


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_any_usual_delimiter_and_line_end(read, delimiter, line_end):
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
def test_numbers_are_numbers_however_they_are_written(read, text, values):
    assert read(text)["a"].tolist() == values


def test_a_quoted_cell_may_hold_line_ends_and_quotation_marks(read):
    frame = read('name,text\n"a\nb","say ""hi"""\nc,d\n')
    assert frame["name"].tolist() == ["a\nb", "c"]
    assert frame["text"].tolist() == ['say "hi"', "d"]


def test_one_column_is_a_table(read):
    assert read("length\n1\n2\n")["length"].tolist() == [1, 2]


def test_a_row_with_too_few_fields_has_holes(read):
    assert read("a,b\n1\n2,3\n")["b"].isna().tolist() == [True, False]


def test_cells_as_text_stay_as_they_are_written(read):
    frame = read("id,share\n007,1.50\n,NA\n", as_text=True)
    assert frame.to_dict("list") == {"id": ["007", ""], "share": ["1.50", "NA"]}


def test_a_very_long_cell_is_read(read):
    assert read(f"a,b\n{'x' * 300_000},1\ny,2\n")["b"].tolist() == [1, 2]


def test_what_it_is_shows_in_the_bytes_and_not_in_the_name(read):
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


def test_row_numbers_that_pandas_wrote_are_left_out(read):
    text = pandas.DataFrame({"a": [5, 6]}).to_csv()
    with pytest.warns(TableWarning, match=r"^Column 1 has no name and was left out\.$"):
        assert list(read(text).columns) == ["a"]


def test_several_columns_without_a_name(read):
    with pytest.warns(TableWarning, match=r"^Columns 2, 3 have no name and were left out\.$"):
        assert list(read("a,,\n1,2,3\n").columns) == ["a"]


# What is refused


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "'table.csv' is empty."),
        (b" \r\n\n", "'table.csv' is empty."),
        (b"\xef\xbb\xbf\n", "'table.csv' is empty."),
        (b"sep=;\n\n", "'table.csv' is empty."),
        (b"a,b\n", "'table.csv' has a header, but no rows."),
        (b"a,b\n\n\n", "'table.csv' has a header, but no rows."),
        (b"a,b, a\n1,2,3\n", "Column 'a' is there twice in 'table.csv', as columns 1 and 3; give each a name of its own."),
        (b"a,b\n1,2\n3,4,5\n", "'table.csv' cannot be read as a table: line 3 has 3 fields, but 2 were expected; "
                               "put texts that hold the delimiter in quotation marks."),
        (b"a,b\n1,2,3\n", "'table.csv' cannot be read as a table: its rows have more fields than its header; name every column."),
        (b'a,b\n1,2\n3,"4\n', "'table.csv' cannot be read as a table: a quotation mark that opens in row 2 is never closed; "
                              "close it, or double it."),
        (b"a,b\n\x00,2\n", "'table.csv' is not text (it holds a zero byte in line 2); give a table as CSV or Parquet."),
        (b"PAR1 and then nothing", "'table.csv' is not a whole Parquet file; get a fresh copy."),
    ],
)  # fmt: skip
def test_refused_in_one_sentence(read, content, sentence):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        read(content)
    assert str(error.value) == sentence


def test_a_table_without_any_name(read):
    warnings.simplefilter("ignore")
    with pytest.raises(
        ValueError,
        match=r"^'table.csv' has no columns with names; give every column a name in the first line\.$",
    ):
        read(",\n1,2\n")


def test_a_missing_file_is_answered_with_the_nearest(tmp_path):
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


def test_a_folder_is_no_table(tmp_path):
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
        str(error.value)
        == "To read 't.parquet', which is Parquet, pyarrow is needed: pip install 'leaflearn[parquet]'."
    )


# Columns by name


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "Raiting",
            "There is no column 'Raiting' in 't.csv'; did you mean 'rating'? There are: 'site', 'rating', 'Note'.",
        ),
        (
            "note",
            "There is no column 'note' in 't.csv'; did you mean 'Note'? There are: 'site', 'rating', 'Note'.",
        ),
        ("xyzzy", "There is no column 'xyzzy' in 't.csv'. There are: 'site', 'rating', 'Note'."),
    ],
)
def test_a_misspelt_column_is_answered_with_those_that_look_like_it(name, sentence):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        find_column(["site", "rating", "Note"], name, "'t.csv'")
    assert str(error.value) == sentence


def test_ten_thousand_names_are_not_all_listed():
    assert list_names(range(10_000)).endswith("'7' and 9992 more")


def test_a_delimiter_inside_of_texts_is_not_taken_for_one():
    assert find_delimiter("id|text\n1|a, b, c\n2|d, e, f\n") == "|"


# Whatever it is


CELLS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=12
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=5),
    st.sampled_from(["utf-8-sig", "utf-16"]),
)
def test_what_we_write_is_read_again_cell_by_cell(tmp_path_factory, rows, encoding):
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
