"""`leaflearn fit`: its output, its errors, and that no partial files remain."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leaflearn.cli.main import run
from leaflearn.tabular.table_model import TableModel
from special_names import SPECIAL_NAMES, make_table

FIT = ["--target", "effect", "--group", "source", "--local-model", "linear"]
ONE = [*FIT, "--contexts", "1"]


def test_help_imports_no_heavy_package():
    heavy = "{'torch', 'sklearn', 'matplotlib', 'pandas', 'scipy'}"
    for verb in ("fit", "identify", "predict", "show"):
        program = (
            f"import sys; from leaflearn.cli.main import run; run(['{verb}', '--help']); "
            f"sys.exit(bool({heavy} & set(sys.modules)))"
        )
        assert (
            subprocess.run(
                [sys.executable, "-c", program], capture_output=True, check=False
            ).returncode
            == 0
        ), verb


# Output


def test_the_number_of_contexts_is_found(table, call):
    code, out, err = call("fit", table, *FIT, "-o", "model")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:4] == [
        "80 rows, 10 groups by 'source'. The target 'effect' is treated as a quantity "
        "(it holds numbers).",
        "Learned from 'dose'.",
        "",
        "2 contexts were found.",
    ]
    assert [line.split()[:4] for line in lines if line.startswith("context")] == [
        ["context", "0", "6", "48"],
        ["context", "1", "4", "32"],
    ]
    assert "Every group belongs to its context with at least 90 % probability." in lines
    assert (
        "The contexts differ most in 'dose': 'effect' rises along it in context 0 and "
        "falls in context 1." in lines
    )
    ends = r"\(95 % interval: [\d.]+ to [\d.]+\)"
    assert re.search(
        r"^Root mean squared error on \d+ rows held out within the groups: "
        rf"pooled model [\d.]+ {ends}, contexts 0.0\d+ {ends}\.$",
        out,
        re.M,
    )
    assert "The model is in 'model'. Next steps:" in lines
    assert sorted(os.listdir("model")) == [
        "fitted.safetensors",
        "local-models.skops",
        "model.json",
        "preparation.skops",
    ]


def test_one_context_needs_no_each(table, call):
    _, out, _ = call("fit", table, *ONE, "-o", "model")
    assert "  leaflearn predict model NEW.csv -o answers.csv" in out.splitlines()
    assert "The contexts differ" not in out


def test_unusual_names_are_plain_text_on_the_terminal(table, call):
    _, out, _ = call("fit", table, *FIT, "--contexts", "2", "-o", "model")
    assert all(
        shown in out
        for shown in (
            "<script>alert(1)</script>",
            "[red]x[/red]",
            "=cmd()",
            "שלום",
            "🙂",
            r"two\nlines",
            r"\x1b[31mred",
        )
    )
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_json(table, call):
    code, out, err = call("fit", table, *FIT, "--contexts", "2", "--json", "-o", "model")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (
        answer["task"],
        answer["rows"],
        answer["groups"],
        answer["n_contexts"],
        answer["warnings"],
    ) == ("regression", 80, 10, 2, [])
    assert {group["group"] for context in answer["contexts"] for group in context["groups"]} == set(
        SPECIAL_NAMES
    )
    assert answer["features"] == [{"name": "dose", "column": "dose"}]
    held_out = answer["held_out"]
    assert held_out["contexts"] < 0.5 * held_out["one_model"]
    assert (
        held_out["contexts_interval"][0] < held_out["contexts"] < held_out["contexts_interval"][1]
    )
    assert [part["n_groups"] for part in held_out["by_context"]] == [6, 4]
    assert answer["where_contexts_differ"].startswith("The contexts differ most in 'dose': ")


def test_each_warning_is_printed_once_and_listed_in_json(table, call):
    make_table().assign(unit="mm").to_csv(table)
    code, out, err = call("fit", table, *ONE, "--json", "-o", "model")
    assert code == 0
    assert (
        err == "Warning: Column 1 has no name and was left out.\nWarning: Columns were left "
        "out: 'unit' (constant).\n"
    )
    assert json.loads(out)["warnings"] == [
        line.removeprefix("Warning: ") for line in err.splitlines()
    ]


def test_advice_names_options_of_the_command(table, call):
    code, _, err = call(
        "fit",
        table,
        "--target",
        "effect",
        "--drop",
        "source",
        "--local-model",
        "linear",
        "-o",
        "model",
    )
    assert code == 0
    assert err.count("Warning:") == 1  # single rows are reported once
    assert "pass --group (annotator, site, session, ...)" in err
    assert "groups=" not in err
    assert "enable_metadata_routing" not in err


def test_only_an_older_model_is_replaced(table, call):
    assert call("fit", table, *ONE, "-o", "model")[0] == 0
    before = (table.parent / "model" / "model.json").read_bytes()
    assert call("fit", table, *ONE, "--seed", "1", "-o", "model")[0] == 0
    assert (table.parent / "model" / "model.json").read_bytes() != before
    (table.parent / "letters").mkdir()
    (table.parent / "letters" / "dear.txt").write_text("Dear")
    sentence = (
        "leaflearn: Cannot save to 'letters': the folder holds other files; choose another name.\n"
    )
    assert call("fit", table, *ONE, "-o", "letters") == (2, "", sentence)
    assert call("fit", table, *ONE, "-o", "table.csv") == (
        2,
        "",
        "leaflearn: Cannot save to 'table.csv': it is a file, and a folder is needed.\n",
    )
    assert os.listdir(table.parent / "letters") == ["dear.txt"]


def test_parquet_and_compressed_tables(table, call):
    frame = make_table()
    frame.to_parquet("table.parquet")
    (table.parent / "table.csv.gz").write_bytes(gzip.compress(table.read_bytes()))
    answers = [
        json.loads(call("fit", name, *ONE, "--json", "-o", "model")[1])
        for name in ("table.parquet", "table.csv.gz", "table.csv")
    ]
    assert answers[0] == answers[1] == answers[2]


def test_ten_thousand_columns(table, call):
    frame = make_table(n_rows=3)
    wide = pandas.DataFrame(np.random.default_rng(0).normal(size=(30, 10_000)).round(2)).rename(
        columns=lambda i: f"c{i}"
    )
    pandas.concat([frame, wide], axis=1).to_csv(table, index=False)
    code, out, err = call("fit", table, *ONE, "--json", "-o", "model")
    assert code == 0
    assert (
        "Warning: The columns give 10,001 features; the 100 that are most strongly "
        "associated with the "
        "target within the groups are used." in err
    )
    assert "dose" in json.loads(out)["columns"]


def test_a_report_beside_the_model(table, call):
    code, out, _ = call("fit", table, *ONE, "--report", "page.html", "-o", "model")
    assert code == 0
    assert out.endswith("The report is in 'page.html'. Open it in a browser.\n")
    assert (table.parent / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert sorted(os.listdir(table.parent)) == ["model", "page.html", "table.csv"]


# Errors


@pytest.mark.parametrize(
    ("content", "options", "sentence"),
    [
        (b"", [], "'table.csv' is empty."),
        (b"source,dose,effect\n", [], "'table.csv' has a header, but no rows."),
        (
            b"source,dose,efect\na,1,2\n",
            [],
            "There is no column 'effect' in 'table.csv'; did you mean 'efect'? There "
            "are: 'source', 'dose', 'efect'.",
        ),
        (
            b"sources,dose,effect\na,1,2\n",
            [],
            "There is no column 'source' in 'table.csv'; did you mean 'sources'? There "
            "are: 'sources', 'dose', 'effect'.",
        ),
        (
            b"source,dose,effect\na,1,\nb,2,NA\n",
            [],
            "The target 'effect' is missing in every row of 'table.csv'.",
        ),
        (
            b"source,dose,effect\n,1,1\n,2,2\n",
            [],
            "The group 'source' is missing in every row of 'table.csv'.",
        ),
        (
            b"source,dose,dose,effect\na,1,2,3\n",
            [],
            "Column 'dose' appears twice in 'table.csv', as columns 2 and 3; give each "
            "column a different name.",
        ),
        (
            b"source,dose,effect\na,\x81,1\n",
            [],
            "'table.csv' is neither UTF-8 nor Windows-1252 text (byte 0x81 in line 2); "
            "save it as UTF-8.",
        ),
        (
            b"source,dose,effect\na,1,1\na,inf,2\n",
            [],
            "Column 'dose' holds an infinite number in row 2; correct it, or leave the column out.",
        ),
        (
            b"source,dose,effect\na,1,1\na,2,-inf\n",
            [],
            "Column 'effect' holds an infinite number in row 2; correct it, or leave the row out.",
        ),
        (
            b"source,dose,effect\na,1,1.5\na,2,x\na,3,2.5\n",
            [],
            "The target 'effect' holds numbers, but 'x' in row 2 is not a number; "
            "correct it, or set the task.",
        ),
        (
            b"source,effect\na,1.5\nb,2.5\n",
            [],
            "No column of 'table.csv' is left to learn from besides the target and the group.",
        ),
        (
            b"source,unit,effect\na,mm,1.5\nb,mm,2.5\n",
            [],
            "No column is left to learn from. Columns were left out: 'unit' (constant).",
        ),
        (
            b"source,dose,effect\na,1,5\nb,2,5\n",
            [],
            "The target 'effect' is '5' in every row; there is nothing to learn.",
        ),
        (
            None,
            ["--contexts", "99"],
            "There are 10 groups, fewer than the requested 99 contexts; request fewer.",
        ),
        (
            None,
            ["--contexts", "0"],
            "Invalid value for '--contexts': '0' is neither a whole number from 1 to "
            "1000 nor auto. See 'leaflearn fit --help'.",
        ),
        (
            None,
            ["--features", ","],
            "Invalid value for '--features': no column is named. See 'leaflearn fit --help'.",
        ),
        (
            None,
            ["--features", "dos"],
            "There is no column 'dos' in 'table.csv'; did you mean 'dose'? There are: "
            "'source', 'dose', 'effect'.",
        ),
        (
            None,
            ["--drop", "dose"],
            "No column of 'table.csv' is left to learn from besides the target and the group.",
        ),
        (
            None,
            ["--local-model", "tree"],
            "There is no local model called 'tree'; choose one of auto, linear, smooth, "
            "boosting, mlp, convnet, or module:PATH.py:FACTORY.",
        ),
        (None, ["--report", "page.pdf"], "Cannot write 'page.pdf': its name must end in .html."),
        (None, ["--images", "nowhere"], "There is no folder 'nowhere' with images."),
        (
            None,
            ["--target", "source"],
            "Column 'source' is both the target and the group; choose two different columns.",
        ),
    ],
)
def test_errors_are_one_sentence_and_leave_no_files(table, call, content, options, sentence):
    if content is not None:
        table.write_bytes(content)
    assert call("fit", "table.csv", *FIT, *options, "-o", "model") == (
        2,
        "",
        f"leaflearn: {sentence}\n",
    )
    assert os.listdir(table.parent) == ["table.csv"]


def test_a_missing_table_suggests_the_nearest_name(table, call):
    assert call("fit", "tabel.csv", *FIT, "-o", "model") == (
        2,
        "",
        "leaflearn: There is no file 'tabel.csv'; did you mean 'table.csv'?\n",
    )
    assert call("fit", "xyzzy", *FIT, "-o", "model") == (
        2,
        "",
        "leaflearn: There is no file 'xyzzy'.\n",
    )


def test_names_in_errors_cannot_move_the_cursor(table, call):
    table.write_bytes(b"source,dose,\x1b[2Jeffect\na,1,2\n")
    _, _, err = call("fit", table, *FIT, "-o", "model")
    there = "There are: 'source', 'dose', '\\x1b[2Jeffect'."
    assert (
        err == "leaflearn: There is no column 'effect' in 'table.csv'; did you mean "
        f"'\\x1b[2Jeffect'? {there}\n"
    )


@pytest.mark.parametrize("stage", ["fit", "save"])
def test_an_interrupted_fit_keeps_the_old_model(table, call, model, monkeypatch, stage):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    before = {name: (model / name).read_bytes() for name in os.listdir(model)}
    monkeypatch.setattr(*((TableModel, "fit") if stage == "fit" else ("os.fsync",)), interrupt)
    assert call("fit", table, *ONE, "-o", "model") == (130, "", "\nleaflearn: Interrupted.\n")
    assert {name: (model / name).read_bytes() for name in os.listdir(model)} == before
    assert sorted(os.listdir(table.parent)) == ["model", "table.csv"]


def test_a_full_disk_leaves_no_files(table, call, small_disk):
    code, out, err = call("fit", table, *ONE, "-o", small_disk / "model")
    assert (code, out) == (2, "")
    assert "No space left on device." in err
    assert os.listdir(small_disk) == []


# For any bytes and options: no traceback and no partial files

TEXT = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
ODD = st.one_of(
    st.sampled_from(["inf", "1e999", "1e300", '"', '"a"', "\x1b[0m", "=1", "é", "a,b;c"]),
    st.text(TEXT, max_size=6),
)
COLUMNS = [  # what most cells of a column are
    st.sampled_from(["1", "2", "-3.5", "0.25", "7", ""]),
    st.floats(-1e6, 1e6).map(str),
    st.integers(0, 3).map(str),
    st.sampled_from(["red", "green", "blue", "", "NA"]),
    st.dates().map(str),
    st.sampled_from(["TRUE", "FALSE", ""]),
    st.lists(st.sampled_from(["slow", "warm", "cold", "long"]), min_size=4, max_size=7).map(
        " ".join
    ),
    st.uuids().map(str),
    st.sampled_from(["1,5", "2,25", "-3,0"]),
    ODD,
]


@st.composite
def tables(draw):
    """Bytes that are almost a table, or arbitrary bytes."""
    if draw(st.integers(0, 19)) == 7:
        return draw(st.binary(max_size=200))
    header = draw(
        st.sampled_from(
            [["source", "dose", "effect"]] * 6
            + [["effect", "dose", "source", "more"], ["source", "effect"], ["", "effect"]]
        )
    )
    n_rows = draw(st.integers(0, 30))
    kinds = [draw(st.sampled_from(COLUMNS)) for _ in header]
    rows = [[draw(kind) for kind in kinds] for _ in range(n_rows)]
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 3]))):
        if rows:
            row = rows[draw(st.integers(0, n_rows - 1))]
            row[draw(st.integers(0, len(row) - 1))] = draw(ODD)
            row += [draw(ODD)] * draw(st.sampled_from([0, 0, 0, 0, 1]))
    delimiter, line_end = (
        draw(st.sampled_from(",;\t|")),
        draw(st.sampled_from(["\n", "\r\n", "\r"])),
    )
    content = line_end.join(delimiter.join(row) for row in [header, *rows]).encode(
        draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"])), "replace"
    )
    return pack(content, draw(st.sampled_from(["plain"] * 6 + ["gzip", "zip", "cut"])))


def pack(content, how):
    if how == "gzip":
        return gzip.compress(content)
    if how == "zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("table.csv", content)
        return buffer.getvalue()
    return content[: len(content) // 2] if how == "cut" else content


def mostly(*usual, seldom):
    return st.integers(0, 9).flatmap(lambda i: st.sampled_from(seldom if i == 5 else usual))


OPTIONS = st.fixed_dictionaries(
    {
        "--target": mostly("effect", "dose", seldom=["Effect", ""]),
        "--contexts": st.sampled_from(["1"] * 9 + ["99"]),
    },
    optional={
        "--group": mostly("source", seldom=["effect", "sources"]),
        "--task": mostly("auto", "regression", "classification", seldom=["both"]),
        "--features": mostly("dose", "source,dose", seldom=[",", "nothing"]),
        "--drop": mostly("source", "more", seldom=["dose", "nothing"]),
        "--seed": mostly("0", "7", seldom=["-1"]),
    },
)


@pytest.mark.slow
@settings(
    max_examples=2000,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(tables(), OPTIONS)
def test_no_table_and_no_options_cause_a_traceback(tmp_path_factory, capsys, content, options):
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "table.csv").write_bytes(content)
    # Linear models of one context: the search for contexts has its own tests.
    flat = [word for pair in options.items() for word in pair]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = run(
            [
                "fit",
                str(folder / "table.csv"),
                *flat,
                "--local-model",
                "linear",
                "-o",
                str(folder / "model"),
            ]
        )
    captured = capsys.readouterr()
    assert code in (0, 2), captured.err
    assert "Traceback" not in captured.err
    assert "This is a bug" not in captured.err
    assert sorted(os.listdir(folder)) == (["model", "table.csv"] if code == 0 else ["table.csv"])
    if code == 2:
        assert captured.err.startswith("leaflearn: ")
        assert captured.err.count("\n") == 1
