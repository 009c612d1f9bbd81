"""Long tables of answers: item, worker, label. Workers who follow different conventions come apart, and where they cannot, that is said."""

import json
import warnings

import numpy as np
import pandas
import pytest
from leaflearn.tabular.item_columns import DESCRIBED, OF_ANSWERS
from sklearn.linear_model import LogisticRegression

from leaflearn import LeafClassifier, RecoveryWarning
from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.cli.main import run
from leaflearn.diagnostics.identifiability import count_answers_needed
from leaflearn.messages import TableWarning
from leaflearn.tabular.items import ITEM
from leaflearn.tabular.table_model import TableModel

N_WORKERS, N_ITEMS = 40, 200


def make_answers(n_conventions=2, n_each=30, differ=0.4, wrong=0.0, seed=0, n_workers=N_WORKERS):
    """A long table, and the convention of each worker; a worker's name does not tell it."""
    rng = np.random.default_rng(seed)
    conventions = np.tile(rng.random(N_ITEMS) < 0.5, (n_conventions, 1))
    conventions[1:] ^= rng.random((n_conventions - 1, N_ITEMS)) < differ
    item = np.concatenate([rng.permutation(N_ITEMS)[:n_each] for _ in range(n_workers)])
    worker = np.repeat(np.arange(n_workers), n_each)
    truth = rng.permutation(np.arange(n_workers) % n_conventions)
    answer = conventions[truth[worker], item] ^ (rng.random(len(item)) < wrong)
    table = pandas.DataFrame(
        {"item": [f"item {i}" for i in item], "worker": [f"w{w:03}" for w in worker]}
    )
    return table.assign(label=np.where(answer, "yes", "no")), truth, conventions


def fit(table, **options):
    """Nothing is warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return TableModel("label", "worker", **options).fit(table)


def form_of(model, column):
    return next(c.form for c in model.preparation_.columns if c.name == column)


@pytest.mark.parametrize("seed", range(5))
def test_two_conventions_come_apart(seed):
    table, truth, conventions = make_answers(seed=seed)
    model = fit(table)
    assert model.estimator_.n_contexts_ == 2
    assert allocation_agreement(model.estimator_.contexts_, truth) == 1.0
    assert model.estimator_.converged_
    assert model.errors_.contexts < 0.5 * model.errors_.one_model
    each = model.predict(
        pandas.DataFrame({"item": [f"item {i}" for i in range(N_ITEMS)]}), each=True
    )
    disputed = (each["prediction_0"] != each["prediction_1"]).to_numpy()
    assert np.mean(disputed == (conventions[0] != conventions[1])) > 0.85


def test_one_convention_is_one_context_also_where_answers_are_wrong():
    for wrong in (0.0, 0.15):
        assert fit(make_answers(1, wrong=wrong)[0]).estimator_.n_contexts_ == 1


def test_three_conventions_are_three_contexts():
    table, truth, _ = make_answers(3, n_each=60, n_workers=60)
    model = fit(table)
    assert model.estimator_.n_contexts_ == 3
    assert allocation_agreement(model.estimator_.contexts_, truth) == 1.0


def test_items_may_be_numbers_and_labels_quantities():
    table, truth, _ = make_answers()
    table["item"] = table["item"].str.removeprefix("item ").astype(int)
    table["label"] = (table["label"] == "yes") + np.random.default_rng(0).normal(
        0.0, 0.2, len(table)
    )
    for name in ("item", "thing"):
        model = fit(table.rename(columns={"item": name}))
        assert (model.target_.task, model.informative_columns_) == ("regression", [name])
        assert allocation_agreement(model.estimator_.contexts_, truth) == 1.0


def test_a_new_worker_is_identified_and_an_unknown_item_is_no_error():
    table, truth, conventions = make_answers()
    model = fit(table)
    first = model.estimator_.contexts_[truth == 0][0]
    few = pandas.DataFrame(
        {
            "item": [f"item {i}" for i in range(40)],
            "worker": "new",
            "label": np.where(conventions[0][:40], "yes", "no"),
        }
    )
    assert model.identify(few)["context"].tolist() == [first]
    assert (
        model.predict(pandas.DataFrame({"item": ["never seen", None]}), context=0)["prediction"]
        .isin(["yes", "no"])
        .all()
    )


def test_a_model_of_items_survives_its_folder(tmp_path):
    table, _, _ = make_answers()
    model = fit(table)
    model.save(tmp_path / "model")
    again = TableModel.load(tmp_path / "model")
    pandas.testing.assert_frame_equal(
        again.predict(table, each=True), model.predict(table, each=True)
    )
    assert again.informative_columns_ == ["item"]
    assert form_of(again, "item") == ITEM


# Columns beside the item


def describe(table, **columns):
    """The table with columns that have one value for each item."""
    number = table["item"].str.removeprefix("item ").astype(int).to_numpy()
    return table.assign(**{name: np.asarray(values)[number] for name, values in columns.items()})


def test_columns_that_describe_items_well_enough_are_learnt_from_instead():
    """So that items that nobody has labelled yet can be answered too."""
    rng = np.random.default_rng(0)
    table, truth, _ = make_answers()
    length, tone = rng.normal(size=(2, N_ITEMS))
    table = describe(table, length=length, tone=tone)
    sides = np.where(np.repeat(truth, 30) == 0, table["length"], table["tone"]) > 0
    with pytest.warns(TableWarning) as caught:
        model = TableModel("label", "worker", contexts=2, local_model="linear").fit(
            table.assign(label=np.where(sides, "yes", "no"))
        )
    assert [str(warning.message) for warning in caught] == [
        f"Columns were left out: 'item' ({DESCRIBED})."
    ]
    assert set(model.informative_columns_) == {"length", "tone"}
    assert allocation_agreement(model.estimator_.contexts_, truth) == 1.0


def test_items_are_told_apart_where_other_columns_do_not_describe_them():
    rng = np.random.default_rng(0)
    table, truth, _ = make_answers()
    table = describe(
        table, length=rng.normal(size=N_ITEMS), section=rng.choice(list("abc"), N_ITEMS)
    )
    model = fit(table)
    assert model.informative_columns_ == ["item", "length", "section"]
    assert allocation_agreement(model.estimator_.contexts_, truth) == 1.0


def test_what_is_of_the_answer_or_the_worker_is_left_out():
    table, truth, _ = make_answers()
    table["seconds"] = np.random.default_rng(0).exponential(size=len(table))
    table["age"] = table["worker"].str.removeprefix("w").astype(int) % 7
    with pytest.warns(TableWarning) as caught:
        model = TableModel("label", "worker").fit(table)
    assert [str(warning.message) for warning in caught] == [
        f"Columns were left out: 'seconds', 'age' ({OF_ANSWERS})."
    ]
    assert allocation_agreement(model.estimator_.contexts_, truth) == 1.0


def test_a_column_of_answers_that_goes_with_the_label_is_told_with_advice():
    table, truth, _ = make_answers()
    table["hint"] = (table["label"] == "yes") + np.random.default_rng(0).normal(size=len(table))
    with pytest.warns(TableWarning) as caught:
        TableModel("label", "worker", contexts=1, local_model="linear").fit(table)
    assert str(caught[0].message) == (
        "Column 'item' may name what was labelled, but 'hint' differs between rows of one name and tells something of the target, so only "
        "its most common values are told apart; to tell all of them apart, name the columns to learn from."
    )
    model = fit(table, features=["item"])
    assert allocation_agreement(model.estimator_.contexts_, truth) == 1.0


# Where answers cannot tell


def test_workers_who_share_no_item_cannot_be_compared():
    table, _, _ = make_answers()
    with pytest.raises(
        ValueError,
        match=r"^No two groups in 'worker' have a value of 'item' in common, so no group can be compared ",
    ):
        TableModel("label", "worker").fit(
            table.assign(item=[f"item {i}" for i in range(len(table))])
        )
    half = np.where(table["worker"] < "w020", "A ", "B ") + table["item"]
    with pytest.warns(
        TableWarning,
        match=r"^The groups in 'worker' fall into 2 sets without a value of 'item' in common, so contexts ",
    ):
        TableModel("label", "worker").fit(table.assign(item=half))


def test_two_answers_each_are_too_few():
    table, _, _ = make_answers(n_each=2, n_workers=400)
    with pytest.warns(RecoveryWarning) as caught:
        TableModel("label", "worker").fit(table)
    assert str(caught[-1].message) == (
        "Half of the groups in 'worker' gave at most 2 answers. By yes or no alone 2 contexts cannot be told apart from fewer than 3 a "
        "group; ask for more answers, or for fewer contexts."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", RecoveryWarning)
        TableModel("label", "worker", contexts=1).fit(
            table
        )  # who asks for one context needs no more


def test_single_answers_are_warned_of():
    table, _, _ = make_answers(n_each=1, n_workers=300)
    with pytest.warns(
        TableWarning,
        match=r"^Every group in 'worker' has one row, and single rows hardly tell contexts apart;",
    ):
        TableModel("label", "worker", contexts=1, local_model="linear").fit(table)


def test_more_contexts_need_more_answers():
    needed = [count_answers_needed(n) for n in range(1, 10)]
    assert needed == [1, 3, 5, 5, 7, 7, 7, 7, 9]


# In Python, without a table


def test_one_hot_inputs_of_an_estimator_are_searched_by_counting():
    table, truth, _ = make_answers()
    X = pandas.get_dummies(table["item"])
    for inputs in (X, X.to_numpy(dtype=float)):
        leaf = LeafClassifier(local_model=LogisticRegression(C=10), random_state=0).fit(
            inputs, table["label"], groups=table["worker"]
        )
        assert leaf.init_.startswith("conflict: mean answers to the items in 2 contexts leave ")
        assert allocation_agreement(leaf.contexts_, truth) == 1.0


def test_the_command_finds_them_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table, truth, _ = make_answers(differ=0.5, seed=7)
    table.to_csv("answers.csv", index=False)
    assert (
        run(
            [
                "fit",
                "answers.csv",
                "--target",
                "label",
                "--group",
                "worker",
                "-o",
                "model",
                "--json",
                "--report",
                "page.html",
            ]
        )
        == 0
    )
    answer = json.loads(capsys.readouterr().out)
    assert (answer["n_contexts"], answer["local_model"], answer["columns"], answer["warnings"]) == (
        2,
        "linear",
        ["item"],
        [],
    )
    first = {group["group"] for group in answer["contexts"][0]["groups"]}
    names = np.array(sorted(set(table["worker"])))
    assert first in ({*names[truth == 0]}, {*names[truth == 1]})
    assert "values on which they differ less are not drawn." in (tmp_path / "page.html").read_text(
        encoding="utf-8"
    )
