"""`leaflearn identify`: the contexts of new sources, and advice for each."""

import json
import os
import re

import pandas
import pytest

from leaflearn.tabular.table_model import TableModel
from special_names import make_table

pytestmark = pytest.mark.usefixtures("model")
NEW = ["new A", "new B", "\x1b[31mC", "new D"]


@pytest.fixture
def few(table):
    make_table(NEW, 5, seed=1).to_csv("few.csv", index=False)
    return table.parent / "few.csv"


def test_one_line_per_source(few, call):
    code, out, err = call("identify", "model", few)
    assert (code, err) == (0, "")
    rows = {line.split("  ")[0]: line.split() for line in out.splitlines()[1:]}
    assert sorted(rows) == [r"\x1b[31mC", "new A", "new B", "new D"]
    assert [rows[name][-4] for name in ("new A", "new D", "new B")] == ["1", "1", "0"]
    assert all(row[-1] == "determined" for row in rows.values())


def test_json(few, call):
    code, out, err = call("identify", "model", few, "--json")
    assert (code, err) == (0, "")
    sources = json.loads(out)["sources"]
    assert [list(source) for source in sources] == [
        ["group", "context", "probability", "margin", "is_new", "more_rows"]
    ] * 4
    assert {source["group"]: source["context"] for source in sources} == {
        "new A": 1,
        "new B": 0,
        "\x1b[31mC": 0,
        "new D": 1,
    }


def test_rows_unlike_the_training_table_are_counted(few, call):
    table = pandas.read_csv(few)
    table.loc[0, "dose"] = 900.0
    table.to_csv(few, index=False)
    _, out, err = call("identify", "model", few, "--json")
    sentence = (
        "1 of 20 rows of 'few.csv' is unlike the training table: 1 has a number far outside its "
        "range in 'dose' (by more than the width of the range); do not rely on the results for "
        "these rows."
    )
    assert (json.loads(out)["warnings"], err) == ([sentence], f"Warning: {sentence}\n")


def test_advice_for_sources_whose_context_is_uncertain(table, call):
    rows = [
        ("unsure", 0.01, 0.01),
        ("unlike", 0.5, 9.0),
        ("unlike", -0.5, 9.5),
        ("unlike", 0.3, 9.2),
        ("unlike", 0.1, 8.9),
    ]
    pandas.DataFrame(rows * 3, columns=["source", "dose", "effect"]).to_csv("few.csv", index=False)
    _, out, _ = call("identify", "model", "few.csv")
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert lines["unlike"].endswith(
        "fits no known context; collect more of its rows and fit again with them"
    )
    no_more = (
        "rows like these do not distinguish the contexts; "
        "label rows on which the contexts of `leaflearn predict --each` disagree"
    )
    assert re.search(
        rf"  (about \d+ more labelled rows? would determine it|{no_more})$", lines["unsure"]
    )


def test_one_context_needs_no_advice(few, call):
    TableModel("effect", "source", contexts=1, local_model="linear").fit(make_table()).save("model")
    _, out, _ = call("identify", "model", few)
    assert len(re.findall(r" 0 +1\.000 +-  the model has only one context$", out, re.M)) == 4


def test_the_contexts_are_written_as_a_table(few, call):
    code, out, err = call("identify", "model", few, "-o", "answer.csv")
    assert (code, out, err) == (0, "The contexts of 4 sources are in 'answer.csv'.\n", "")
    answer = pandas.read_csv("answer.csv")
    assert list(answer.columns) == [
        "group",
        "context",
        "probability",
        "margin",
        "is_new",
        "more_rows",
    ]
    assert answer["more_rows"].tolist() == [0, 0, 0, 0]


def test_without_groups_all_rows_are_one_source(few, call):
    pandas.read_csv(few).iloc[:5].drop(columns="source").to_csv(few, index=False)
    _, out, _ = call("identify", "model", few, "--json")
    assert [source["group"] for source in json.loads(out)["sources"]] == ["all rows"]


@pytest.mark.parametrize(
    ("text", "arguments", "sentence"),
    [
        (
            "source,dose\na,1\n",
            [],
            "There is no column 'effect' in 'few.csv'. There are: 'source', 'dose'.",
        ),
        (
            "source,effect\na,1\n",
            [],
            "There is no column 'dose' in 'few.csv'. There are: 'source', 'effect'.",
        ),
        (
            "source,dose,effect\na,1,\n",
            [],
            "The target 'effect' is missing in every row of 'few.csv'.",
        ),
        (
            "source,dose,effect\na,1,1\n,1,1\n",
            [],
            "The group 'source' is missing in row 2; name it, or leave the row out.",
        ),
        (
            "source,dose,effect\na,1,x\n",
            [],
            "The target 'effect' holds numbers, but 'x' in row 1 is not a number; "
            "correct it, or set the task to classification.",
        ),
        (
            "source,dose,effect\na,1,1\n",
            ["-o", "few.csv"],
            "Cannot write 'few.csv': it is the table that is read; choose another name.",
        ),
        (
            "source,dose,effect\na,1,1\n",
            ["-o", "out.txt"],
            "Cannot write 'out.txt': its name must end in .csv or .parquet.",
        ),
        (
            "source,dose,effect\na,1,1\n",
            ["--local-model", "mlp"],
            "The folder holds the local models of the model; leave out --local-model.",
        ),
    ],
)
def test_errors_are_one_sentence(few, call, text, arguments, sentence):
    few.write_text(text)
    assert call("identify", "model", "few.csv", *arguments) == (2, "", f"leaflearn: {sentence}\n")
    assert sorted(os.listdir(few.parent)) == ["few.csv", "model", "table.csv"]


def test_a_folder_that_is_not_a_model(few, call):
    assert call("identify", "nowhere", few) == (
        2,
        "",
        "leaflearn: 'nowhere' does not exist; give the folder of a model that was saved.\n",
    )
