"""Written tables hold no formulas, and are written completely or not at all."""

import io
import os
import sys

import numpy as np
import pandas
import pytest

from leaflearn.tabular.writing import check_place, safe_cell, to_csv, write_table


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+49 170",
        "-",
        "-a",
        "@sum",
        "\tx",
        "\rx",
        "=cmd|' /C calc'!A0",
        "--1",
        "+-1",
        "-1-1",
    ],
)
def test_an_apostrophe_precedes_text_that_would_be_run(text):
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize(
    "value", ["-5", "+5", "-1.5e-3", "-1,5", "-.5", "+1.", "a=1", "", " =1", -5, -5.5, None, True]
)
def test_numbers_and_other_text_are_unchanged(value):
    assert safe_cell(value) == value


def test_texts_names_and_categories_are_made_safe():
    frame = pandas.DataFrame(
        {
            "=name": ["=a", "b"],
            "kind": pandas.Categorical(["@x", "y"]),
            "mixed": [-1, "-x"],
            "number": [-1.0, 2.0],
            "truth": [True, False],
        }
    )
    assert to_csv(frame).decode().splitlines() == [
        "'=name,kind,mixed,number,truth",
        "'=a,'@x,-1,-1.0,True",
        "b,y,'-x,2.0,False",
    ]


def test_cells_with_line_ends_stay_one_cell():
    text = "a\r\nb\rc\nd"
    again = pandas.read_csv(
        io.BytesIO(to_csv(pandas.DataFrame({"x": [text], "y": ["z"]}))), lineterminator="\n"
    )
    assert again["y"].tolist() == ["z"]


def test_parquet_keeps_types(tmp_path):
    frame = pandas.DataFrame({"=a": ["=1"], "n": [1]})
    write_table(frame, tmp_path / "t.parquet")
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "t.parquet"), frame)


def test_cells_of_mixed_types_become_text_in_parquet(tmp_path):
    frame = pandas.DataFrame(
        {"mixed": [1, "a", None], "huge": [10**30, 1, None], "truth": [True, None, False]},
        dtype=object,
    )
    write_table(frame, tmp_path / "t.parquet")
    again = pandas.read_parquet(tmp_path / "t.parquet")
    assert again["mixed"].tolist()[:2] == ["1", "a"]
    assert again["huge"].tolist()[0] == str(10**30)
    assert again["truth"].tolist() == [True, None, False]
    assert again.isna().to_numpy().sum() == 3


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        write_table(pandas.DataFrame({"a": [1]}), tmp_path / "t.parquet")
    assert (
        str(error.value)
        == "To write 't.parquet', pyarrow is needed: pip install 'leaflearn[parquet]'."
    )
    assert os.listdir(tmp_path) == []


def test_paths_that_cannot_be_written_are_errors(tmp_path):
    table, folder = tmp_path / "t.csv", tmp_path / "f.csv"
    detour = folder / ".." / "t.csv"
    table.write_text("a\n1\n")
    folder.mkdir()
    for path, inputs, sentence in (
        (
            tmp_path / "t.xlsx",
            (),
            f"Cannot write '{tmp_path}/t.xlsx': its name must end in .csv or .parquet.",
        ),
        (folder, (), f"Cannot write '{folder}': it is a folder."),
        (
            detour,
            (table,),
            f"Cannot write '{detour}': it is the table that is read; choose another name.",
        ),
        (
            table / "x.csv",
            (),
            f"Cannot write into '{table}': it is a file, and a folder is needed.",
        ),
    ):
        with pytest.raises((ValueError, OSError)) as error:
            check_place(path, inputs)
        assert str(error.value) == sentence
    assert sorted(os.listdir(tmp_path)) == ["f.csv", "t.csv"]


def test_checking_a_path_leaves_no_files(tmp_path):
    check_place(tmp_path / "deep" / "t.csv")
    assert os.listdir(tmp_path / "deep") == []


def test_a_full_disk_leaves_the_old_table(small_disk):
    path = small_disk / "t.csv"
    write_table(pandas.DataFrame({"a": [1]}), path)
    with pytest.raises(OSError, match="No space left on device"):
        write_table(pandas.DataFrame({"a": np.arange(100_000)}), path)
    assert path.read_text() == "a\n1\n"
    assert os.listdir(small_disk) == ["t.csv"]
