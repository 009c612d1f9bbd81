"""`leaflearn predict`: the columns of the input, then the predictions; no partial files."""

import os

import numpy as np
import pandas
import pytest

from leaflearn.cli.messages import WAYS_TO_PREDICT
from leaflearn.tabular.table_model import TableModel
from special_names import SPECIAL_NAMES, make_table

pytestmark = pytest.mark.usefixtures("model")


@pytest.fixture
def new(table):
    """Cells that reading could change: leading zeros, exact decimals, missing values, formulas."""
    lines = [
        "source,code,dose,note",
        "new A,007,1.50,=1+1",
        "new A,010,-0.5,",
        'new B,011,2,"a, b"',
    ]
    (table.parent / "new.csv").write_text("\n".join(lines) + "\n")
    make_table(["new A", "new B"], 6, seed=1).to_csv("few.csv", index=False)
    return table.parent / "new.csv"


def read(name="out.csv"):
    return pandas.read_csv(name, dtype=str, keep_default_na=False)


def test_the_columns_of_the_input_are_written_unchanged(new, call):
    sentence = "The predictions for 3 rows are in 'out.csv': 3 in context 0.\n"
    assert call("predict", "model", new, "--context", "0", "-o", "out.csv") == (0, sentence, "")
    out = read()
    assert list(out.columns) == [
        "source",
        "code",
        "dose",
        "note",
        "context",
        "probability",
        "prediction",
    ]
    assert out["code"].tolist() == ["007", "010", "011"]
    assert out["dose"].tolist() == ["1.50", "-0.5", "2"]
    assert out["note"].tolist() == ["'=1+1", "", "a, b"]
    np.testing.assert_allclose(out["prediction"].astype(float), [1.5, -0.5, 2.0], atol=0.15)


def test_each_context_at_once(new, call):
    assert call("predict", "model", new, "--each", "-o", "out.csv") == (
        0,
        "The predictions for 3 rows are in 'out.csv'.\n",
        "",
    )
    out = read()
    assert list(out.columns)[4:] == ["prediction_0", "prediction_1"]
    np.testing.assert_allclose(
        out["prediction_0"].astype(float), -out["prediction_1"].astype(float), atol=0.2
    )


def test_labelled_rows_identify_the_context(new, call):
    sentence = "The predictions for 3 rows are in 'out.csv': 1 in context 0, 2 in context 1.\n"
    assert call("predict", "model", new, "--support", "few.csv", "-o", "out.csv") == (
        0,
        sentence,
        "",
    )
    out = read()
    assert out["context"].tolist() == ["1", "1", "0"]
    np.testing.assert_allclose(out["prediction"].astype(float), [-1.5, 0.5, 2.0], atol=0.15)


@pytest.mark.parametrize(
    ("few", "warning"),
    [
        (
            [0.0],
            "The labelled rows do not determine the context of 'all rows', and the "
            "most probable one "
            "is used; `leaflearn identify` reports how many more labelled rows are needed.",
        ),
        (
            [9.0] * 12,
            "The labelled rows of 'all rows' fit no known context, so the predictions "
            "may be wrong; "
            "fit again with more such rows.",
        ),
    ],
)
def test_labelled_rows_that_do_not_identify_a_context(new, call, few, warning):
    pandas.DataFrame({"dose": 0.0, "effect": few}).to_csv("few.csv", index=False)
    code, out, err = call("predict", "model", new, "--support", "few.csv", "-o", "out.csv")
    assert (code, err) == (0, f"Warning: {warning}\n")
    assert out.startswith("The predictions for 3 rows are in 'out.csv'")


def test_known_groups_use_their_training_context(table, call):
    assert call("predict", "model", "table.csv", "--by-group", "-o", "out.parquet")[0] == 0
    out = pandas.read_parquet("out.parquet")
    assert out["context"].tolist() == [
        int(i % 3 == 0) for i in range(len(SPECIAL_NAMES)) for _ in range(8)
    ]
    assert out["source"].tolist() == make_table()["source"].tolist()
    assert out["prediction"].dtype == float
    np.testing.assert_allclose(out["prediction"], make_table()["effect"], atol=0.4)


def test_one_context_needs_no_option(new, call):
    TableModel("effect", "source", contexts=1, local_model="linear").fit(make_table()).save("model")
    assert call("predict", "model", new, "-o", "out.csv") == (
        0,
        "The predictions for 3 rows are in 'out.csv'.\n",
        "",
    )
    assert set(read()["context"]) == {"0"}


def test_rows_on_which_the_contexts_disagree_are_counted(new, call):
    frame = make_table().assign(verdict=lambda table: np.where(table["effect"] > 0, "good", "bad"))
    TableModel("verdict", "source", contexts=2, local_model="linear", features=["dose"]).fit(
        frame
    ).save("model")
    sentence = "The predictions for 3 rows are in 'out.csv'; the contexts disagree on 3 of them.\n"
    assert call("predict", "model", new, "--each", "-o", "out.csv") == (0, sentence, "")


def test_a_name_that_is_taken_gets_a_prefix(new, call):
    frame = pandas.read_csv(new).assign(context="mine", prediction=5)
    frame.to_csv(new, index=False)
    call("predict", "model", new, "--context", "0", "-o", "out.csv")
    out = read()
    assert list(out.columns)[-5:] == [
        "context",
        "prediction",
        "leaflearn_context",
        "probability",
        "leaflearn_prediction",
    ]
    assert set(out["context"]) == {"mine"}


def test_probabilities_of_labels(new, call):
    frame = make_table().assign(verdict=lambda table: np.where(table["effect"] > 0, "+1", "=bad"))
    TableModel("verdict", "source", contexts=1, local_model="linear", features=["dose"]).fit(
        frame
    ).save("model")
    assert call("predict", "model", new, "--proba", "-o", "out.csv")[0] == 0
    out = read()
    assert list(out.columns)[-3:] == ["prediction", "probability_+1", "probability_=bad"]
    assert set(out["prediction"]) <= {"+1", "'=bad"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], f"The model has 2 contexts; choose how to predict: {WAYS_TO_PREDICT}."),
        (["--each", "--context", "0"], f"Give only one of {WAYS_TO_PREDICT}."),
        (["--context", "2"], "There is no context 2; the model has 2, numbered from 0."),
        (
            ["--by-group"],
            "Groups 'new A', 'new B' were not in the training table; "
            "pass a few labelled rows of each with --support, or use --each.",
        ),
        (
            ["--each", "--proba"],
            "The target 'effect' is a quantity, which has no class probabilities; "
            "leave out --proba.",
        ),
        (["--support", "gone.csv"], "There is no file 'gone.csv'."),
        (
            ["--support", "new.csv"],
            "There is no column 'effect' in 'new.csv'. There are: 'source', 'code', "
            "'dose', 'note'.",
        ),
        (
            ["--each", "-o", "new.csv"],
            "Cannot write 'new.csv': it is the table that is read; choose another name.",
        ),
        (
            ["--support", "few.csv", "-o", "few.csv"],
            "Cannot write 'few.csv': it is the table that is read; choose another name.",
        ),
        (
            ["--each", "-o", "out.xlsx"],
            "Cannot write 'out.xlsx': its name must end in .csv or .parquet.",
        ),
        (
            ["--each", "-o", "few.csv/out.csv"],
            "Cannot write into 'few.csv': it is a file, and a folder is needed.",
        ),
    ],
)
def test_errors_are_one_sentence_and_leave_no_files(new, call, arguments, sentence):
    arguments = arguments if "-o" in arguments else [*arguments, "-o", "out.csv"]
    assert call("predict", "model", "new.csv", *arguments) == (2, "", f"leaflearn: {sentence}\n")
    assert sorted(os.listdir(new.parent)) == ["few.csv", "model", "new.csv", "table.csv"]


def test_rows_unlike_the_training_table_are_counted(new, call):
    new.write_text("source,dose\nnew A,900\nnew A,0.5\nnew A,-800\n")
    code, out, err = call("predict", "model", new, "--each", "-o", "out.csv")
    assert (code, out) == (0, "The predictions for 3 rows are in 'out.csv'.\n")
    assert err == (
        "Warning: 2 of 3 rows of 'new.csv' are unlike the training table: 2 have numbers far "
        "outside its range in 'dose' (by more than the width of the range); do not rely on the "
        "results for these rows.\n"
    )


def test_a_missing_column(new, call):
    new.write_text("source,dosis\na,1\n")
    sentence = (
        "leaflearn: There is no column 'dose' in 'new.csv'; did you mean 'dosis'? There "
        "are: 'source', 'dosis'.\n"
    )
    assert call("predict", "model", new, "--each", "-o", "out.csv") == (2, "", sentence)


def test_an_interrupted_run_keeps_the_old_file(new, call, monkeypatch):
    (new.parent / "out.csv").write_text("old")

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupt)
    assert call("predict", "model", new, "--each", "-o", "out.csv") == (
        130,
        "",
        "\nleaflearn: Interrupted.\n",
    )
    assert (new.parent / "out.csv").read_text() == "old"
    assert sorted(os.listdir(new.parent)) == ["few.csv", "model", "new.csv", "out.csv", "table.csv"]


def test_a_full_disk_keeps_the_old_file(new, call, small_disk):
    (small_disk / "out.csv").write_text("old")
    pandas.DataFrame({"source": "a", "dose": np.linspace(-1, 1, 20_000)}).to_csv(new, index=False)
    code, out, err = call("predict", "model", new, "--each", "-o", small_disk / "out.csv")
    assert (code, out, err) == (2, "", "leaflearn: No space left on device.\n")
    assert (small_disk / "out.csv").read_text() == "old"
    assert os.listdir(small_disk) == ["out.csv"]
