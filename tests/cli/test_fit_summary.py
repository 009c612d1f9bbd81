"""The summary of a fit, and the commands printed after it."""

import re
import shlex
import shutil
from dataclasses import replace
from html import unescape
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

from leaflearn.cli._fit_summary import describe, summarize
from leaflearn.cli.main import run
from leaflearn.tabular.column_kinds import NOT_INFORMATIVE, Column
from leaflearn.tabular.held_out import HeldOutErrors
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.table_model import TableModel
from leaflearn.tabular.targets import Target, find_target

PLACE = "it's my model"
FIT = ["--target", "effect", "--group", "source", "--local-model", "linear", "-o", PLACE]
LABEL = Target("rating", "classification", True, "it holds 5 different whole numbers")


@pytest.fixture
def model():
    """A stand-in for a fitted model, with the attributes that a summary reads."""
    estimator = SimpleNamespace(
        groups_=np.array(["A 10", "A 2", "B"]),
        contexts_=np.array([0, 0, 1]),
        usage_=np.array([2 / 3, 1 / 3]),
        n_contexts_=2,
        probabilities_=np.array([[0.99, 0.01], [1.0, 0.0], [0.4, 0.6]]),
        converged_=True,
        stability_=1.0,
        classes_=np.array([1, 2]),
        selection_={},
        replay_buffer_=None,
        init_="random",
        fitted_state_=SimpleNamespace(effects=None, local_models=None),
    )
    columns = (
        Column("price", "number"),
        Column("colour", "nothing", NOT_INFORMATIVE),
        Column("id", "nothing", "a different text in every row"),
    )
    return SimpleNamespace(
        estimator_=estimator,
        preparation_=Preparation(columns, {"text": []}, np.array([0])),
        target="rating",
        target_=LABEL,
        group="who",
        n_rows_=1200,
        local_model_="mlp",
        group_sizes_=np.array([500, 400, 300]),
        errors_=HeldOutErrors("error rate", 0.5, 0.125, 240),
        contexts="auto",
    )


@pytest.fixture
def with_effects():
    """A fitted model of 40 sites whose offsets differ, in one context or in two."""

    def fit(shift, contexts="auto"):
        rng = np.random.default_rng(0)
        site, dose = np.repeat(np.arange(40), 15), rng.normal(size=600)
        offset = 0.5 * rng.normal(size=40) + shift * (np.arange(40) % 2)
        effect = dose + offset[site] + 0.5 * rng.normal(size=600)
        table = pandas.DataFrame({"site": site, "dose": dose, "effect": effect})
        return TableModel("effect", "site", contexts=contexts, local_model="linear").fit(table)

    return fit


def test_groups_that_differ_by_degree(with_effects):
    model = with_effects(0.0)
    between = 100 * describe(model)["kind_or_degree"]["share_of_groups_in_variance"]
    lines = summarize(model).splitlines()
    assert between == pytest.approx(50, abs=8)
    assert lines[3:8] == [
        "One context: no group contradicts the others, but each may have its own effects.",
        "",
        "Groups differ by degree only: each deviates in its own way from one common context.",
        f"Of the variance of rows with the same inputs, {between:.0f} % is between groups; "
        "the rest is noise.",
        "The number of contexts: groups differ by degree: more contexts do not explain them "
        "better.",
    ]
    assert re.search(r": pooled model 0\.6.*, with group effects 0\.4", lines[8])


def test_groups_that_differ_in_kind_and_by_degree(with_effects):
    model = with_effects(6.0, 2)
    found = describe(model)["kind_or_degree"]
    kind, degree = (100 * found[f"share_of_{part}"] for part in ("kind", "degree"))
    assert (
        f"Of the differences between groups, {kind:.0f} % are of kind (2 contexts) and "
        f"{degree:.0f} % of degree." in summarize(model).splitlines()
    )
    assert found["share_of_kind"] == pytest.approx(0.973, abs=0.02)
    assert found["share_of_kind"] + found["share_of_degree"] == pytest.approx(1.0)


def test_models_without_effects_say_nothing_of_degree(model):
    assert "degree" not in summarize(model)
    assert describe(model)["kind_or_degree"] is None


def test_the_whole_summary(model):
    assert summarize(model).splitlines() == [
        "1,200 rows, 3 groups by 'who'. The target 'rating' is treated as a label (it "
        "holds 5 different whole numbers).",
        "Learned from 'price'. Left out as uninformative about the target: 'colour'.",
        "",
        "2 contexts were found.",
        "",
        "           groups  rows    sure  which",
        "context 0       2   900  2 of 2  A 2, A 10",
        "context 1       1   300  0 of 1  B",
        "",
        "Less than 90 % sure: B (60 %). A few more labelled rows of these groups would determine "
        "their contexts.",
        "Error rate on 240 rows held out within the groups: pooled model 50 %, contexts 12 %.",
        "With the contexts the error is 75 % smaller than that of a pooled model.",
        "The model was saved by a version without intervals; fit it again to get them.",
    ]


def test_errors_with_their_intervals(model):
    model.errors_ = HeldOutErrors("RMSE", 1.5, 0.75, 240, 30, (1.2, 1.9), (0.6, 0.9), (0.4, 0.6))
    lines = summarize(model).splitlines()
    assert lines[-3:-1] == [
        "Root mean squared error on 240 rows held out within the groups: "
        "pooled model 1.5 (95 % interval: 1.2 to 1.9), contexts 0.75 (95 % interval: 0.6 to 0.9).",
        "With the contexts the error is 50 % smaller than that of a pooled model (95 % "
        "interval: 40 % to 60 %).",
    ]
    assert lines[-1].startswith(
        "A 95 % interval is where the error would lie on many more groups like these;"
    )
    model.estimator_.n_contexts_ = 1
    assert (
        summarize(model)
        .splitlines()[-2]
        .endswith(" within the groups: pooled model 1.5 (95 % interval: 1.2 to 1.9).")
    )


def test_ratings_name_the_option_that_makes_them_labels(model):
    cells = pandas.Series([1, 2, 3, 4, 5] * 9, name="rating")
    model.target_ = find_target(cells)
    assert (
        summarize(model)
        .splitlines()[0]
        .endswith(
            " The target 'rating' is treated as a quantity (it holds ratings from 1 to 5; --task "
            "classification treats them as labels)."
        )
    )
    model.target_ = find_target(cells % 3)
    assert (
        summarize(model)
        .splitlines()[0]
        .endswith(
            "is treated as a label (it holds 3 different whole numbers; --task regression treats "
            "them as quantities)."
        )
    )


def test_the_first_sentence_does_not_contradict_the_errors(model):
    model.errors_ = HeldOutErrors("RMSE", 4.3, 4.3, 240, 30, (4.0, 4.6), (4.0, 4.6), (0.9, 1.1))
    text = summarize(model)
    assert (
        "\n2 contexts were found, but a pooled model predicts held-out rows about as well.\n"
        in text
    )
    assert "\nThe contexts hardly lower the error: a pooled model does about as well.\n" in text


def test_group_effects_of_one_context(model):
    model.estimator_.n_contexts_, model.contexts = 1, 1
    model.estimator_.fitted_state_.effects = "some"
    model.errors_ = HeldOutErrors("RMSE", 2.0, 1.0, 240, 30, has_effects=True)
    text = summarize(model)
    assert (
        "One context, as requested: one model predicts for all groups, with effects of each.\n"
        in text
    )
    assert (
        "pooled model 2, with group effects 1.\nWith group effects the error is 50 % smaller "
        "than that of a pooled model.\n" in text
    )


def test_empty_contexts_are_reported(model):
    model.estimator_.contexts_, model.estimator_.usage_ = (
        np.zeros(3, dtype=int),
        np.array([1.0, 0.0]),
    )
    assert (
        "2 contexts were requested, but only 1 has groups; try another --seed, or fewer contexts.\n"
        in summarize(model)
    )


def test_one_context(model):
    model.estimator_.n_contexts_, model.errors_ = (
        1,
        replace(model.errors_, metric="RMSE", one_model=1.5),
    )
    text = summarize(model)
    assert (
        "One context: the groups do not clearly contradict each other, so a pooled model predicts "
        "for all of them.\n\n" in text
    )
    assert (
        "\nRoot mean squared error on 240 rows held out within the groups: pooled model 1.5.\n"
        in text
    )
    assert "smaller" not in text


def test_one_context_as_requested(model):
    model.estimator_.n_contexts_, model.contexts = 1, 1
    assert "One context, as requested: a pooled model predicts for all groups.\n\n" in summarize(
        model
    )


def hint_at(n_contexts, percent):
    return (
        f"But with {n_contexts} contexts only {percent} % of its error on held-out rows remains, "
        "although too few groups improve for a clear decision; "
        f"inspect them with --contexts {n_contexts}."
    )


@pytest.mark.parametrize(
    ("errors", "hint"),
    [
        ([0.81, 0.27, 0.26], hint_at(2, 33)),
        ([0.42, 0.41, 0.21], hint_at(3, 50)),
        ([0.53, 0.50, 0.44], ""),
        ([0.53], ""),
        ([np.nan, np.nan], ""),
    ],
)
def test_one_context_where_more_may_be_better(model, errors, hint):
    model.estimator_.n_contexts_ = 1
    model.estimator_.selection_ = {
        "n_contexts": np.arange(1, len(errors) + 1),
        "held_out": np.array(errors),
    }
    lines = summarize(model).splitlines()
    assert lines[4] == hint
    assert sum(line.startswith("But ") for line in lines) == bool(hint)


def test_rows_without_groups_are_only_counted(model):
    model.group = None
    text = summarize(model)
    assert "1,200 rows, every row a group of its own." in text
    assert "A 10" not in text


def test_only_the_first_of_many_groups_are_named(model):
    model.estimator_.groups_ = np.array([f"group {i}" for i in range(1000)])
    model.estimator_.contexts_ = np.arange(1000) % 2
    model.estimator_.probabilities_, model.group_sizes_ = (
        np.full((1000, 2), 0.5),
        np.ones(1000, dtype=int),
    )
    text = summarize(model)
    assert "group 0, group 2, group 4, group 6, group 8, group 10 and 494 more\n" in text
    assert len(text) < 1500


def test_as_many_groups_are_named_as_fit_into_a_line(model):
    model.estimator_.groups_ = np.array(
        [*"ABCDEFGHIJKLMNOPQRST", "a long name of a group that is cut " * 9]
    )
    model.estimator_.contexts_ = np.array([0] * 20 + [1])
    model.estimator_.probabilities_, model.group_sizes_ = (
        np.full((21, 2), 1.0),
        np.ones(21, dtype=int),
    )
    rows = [line for line in summarize(model).splitlines() if line.startswith("context")]
    assert rows[0].endswith("20 of 20  A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T")
    assert rows[1].endswith("1 of 1  a long name of a group that...")


def test_plain_data(model):
    found = describe(model)
    assert found["contexts"][1] == {
        "context": 1,
        "share_of_groups": 1 / 3,
        "rows": 300,
        "groups": [{"group": "B", "rows": 300, "probability": 0.6}],
    }
    assert found["held_out"] == {
        "metric": "error rate",
        "one_model": 0.5,
        "one_model_interval": None,
        "contexts": 0.125,
        "contexts_interval": None,
        "contexts_to_one_model_interval": None,
        "rows": 240,
        "groups": 0,
        "has_group_effects": False,
        "by_context": [],
    }
    assert (found["columns"], found["labels"]) == (["price"], [1, 2])


# The commands after a fit: they run as printed, once the files to fill in are there.


def commands_in(out):
    return [line.strip() for line in out.splitlines() if line.startswith("  leaflearn ")]


def fill_in(folder):
    for name in ("NEW.csv", "FEW.csv"):
        shutil.copy(folder / "table.csv", folder / name)


@pytest.mark.parametrize("contexts", [1, 2])
def test_every_printed_command_runs(table, call, contexts):
    _, out, _ = call("fit", "table.csv", *FIT, "--contexts", contexts)
    fill_in(table.parent)
    printed = commands_in(out)
    assert [shlex.split(command)[1] for command in printed] == [
        "predict",
        *["identify"] * (contexts > 1),
        "report",
    ]
    for command in printed:
        assert call(*shlex.split(command)[1:])[0] == 0, command
    assert (table.parent / "answers.csv").exists()
    assert (table.parent / "report.html").exists()


def test_every_command_of_the_page_runs(table, call):
    assert call("fit", "table.csv", *FIT, "--contexts", 2, "--report", "page.html")[0] == 0
    fill_in(table.parent)
    page = (table.parent / "page.html").read_text(encoding="utf-8")
    printed = [
        unescape(command)
        for command in re.findall(r"<pre [^>]*><code>(.*?)</code></pre>", page, re.S)
    ]
    assert [shlex.split(command)[1] for command in printed] == [
        "identify",
        "predict",
        "predict",
        "fit",
    ]
    for command in printed:
        assert call(*shlex.split(command)[1:])[0] == 0, command


def test_the_commands_say_what_to_fill_in(table, call):
    _, out, _ = call("fit", "table.csv", *FIT, "--contexts", 2)
    lines = out[out.index("The model is in") :].splitlines()
    assert lines == [
        "The model is in 'it's my model'. Next steps:",
        "",
        """  leaflearn predict 'it'"'"'s my model' NEW.csv --each -o answers.csv""",
        "      the prediction of every context. Fill in NEW.csv: a table of new rows, "
        "with the columns that the model was fitted to",
        """  leaflearn identify 'it'"'"'s my model' FEW.csv""",
        "      the context of a new 'source'. Fill in FEW.csv: a table of a few of its rows, "
        "including 'effect'",
        """  leaflearn report 'it'"'"'s my model' table.csv -o report.html""",
        "      a page about the model, to open in a browser",
    ]


def test_a_page_without_the_table_says_what_to_fill_in(fitted, table, capsys):
    fitted.save("model")
    assert run(["report", "model"]) == 0
    page = (table.parent / "report.html").read_text(encoding="utf-8")
    assert "leaflearn fit DATA.csv --target effect" in page
    assert "Fill in <code>DATA.csv</code>: the training table." in page
    capsys.readouterr()
