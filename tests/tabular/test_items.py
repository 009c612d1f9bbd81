"""Tables of answers: which column names the labelled items, and contexts from such tables."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas
import pytest
from sklearn.linear_model import LogisticRegression

from leaflearn import LeafClassifier, RecoveryWarning
from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.cli.main import run
from leaflearn.diagnostics.identifiability import count_answers_needed
from leaflearn.messages import GroupsShareNoItems, MayNameItems, TableWarning, TooManyItems
from leaflearn.tabular import settings
from leaflearn.tabular.column_kinds import DESCRIBED, ITEM
from leaflearn.tabular.items import (
    count_sets,
    find_item_column,
    list_columns_of_answers,
    read_codes,
    warn_about_item_sets,
)
from leaflearn.tabular.table_model import TableModel

RNG = np.random.default_rng(0)
GROUP = np.repeat(np.arange(20), 30)
ITEMS = np.concatenate([RNG.permutation(80)[:30] for _ in range(20)])
Y = (RNG.random(80) < 0.5)[ITEMS].astype(int)
NAMES = pandas.Series([f"item{i}" for i in ITEMS])


def find(column, name="thing", y=Y, group=GROUP, **others):
    return find_item_column(pandas.DataFrame({name: column, **others}), y, group)


def test_every_item_gets_a_value():
    column = find(NAMES)
    assert (column.kind, column.form, len(column.values)) == ("category", ITEM, 80)
    assert list(column.values) == sorted({f"item{i}" for i in ITEMS})


def test_rare_items_get_a_value_too():
    """Each item has fewer rows than a value of another category needs."""
    item = np.concatenate([np.random.default_rng(i).permutation(500)[:30] for i in range(40)])
    assert pandas.Series(item).value_counts().max() < 0.01 * len(item)
    assert len(
        find([f"item{i}" for i in item], y=item % 2, group=np.repeat(np.arange(40), 30)).values
    ) == len(set(item.tolist()))


@pytest.mark.parametrize(
    ("why", "column", "group"),
    [
        (
            "few values are another category",
            [f"kind{i % settings.TABLES.max_values}" for i in ITEMS],
            GROUP,
        ),
        (
            "a group has the same value again and again",
            [f"city{i}" for i in RNG.integers(30, size=600)],
            np.repeat([0, 1], 300),
        ),
        (
            "no value is in two groups",
            [f"{group}-{i}" for group, i in zip(GROUP, ITEMS, strict=True)],
            GROUP,
        ),
        ("every row is a group of its own", NAMES, np.arange(600)),
        (
            "another name of the group",
            [f"site{group}" for group in np.repeat(np.arange(40), 15)],
            np.repeat(np.arange(40), 15),
        ),
    ],
)
def test_columns_that_do_not_name_items(why, column, group):
    assert find(column, group=group) is None, why


def test_numbers_are_names_if_their_order_is_not_informative():
    assert find(ITEMS) is not None
    assert find(ITEMS, y=np.sin(ITEMS / 10.0)) is None  # a function of a quantity
    assert find(ITEMS + 0.5) is None


@pytest.mark.parametrize("name", ["item", "task_id", "taskId", "QUESTION_ID", "Item"])
def test_numbers_are_names_if_the_name_of_their_column_says_so(name):
    assert find(ITEMS, name, y=np.sin(ITEMS / 10.0)).name == name
    few = np.tile(np.arange(12), 20)
    assert find(few, name, y=few % 2, group=np.repeat(np.arange(20), 12)) is not None


def test_names_are_preferred_to_prose():
    words = np.array(
        ["the", "a", "red", "blue", "sky", "sea", "dog", "runs", "over", "hill", "far", "away"]
    )
    texts = [" ".join(words[np.random.default_rng(i).integers(12, size=8)]) for i in range(80)]
    prose = [texts[i] for i in ITEMS]
    assert find(prose, "text", code=NAMES).name == "code"
    assert find(prose, "text").name == "text"


def test_the_number_of_items_is_limited_to_those_with_the_most_answers(monkeypatch):
    monkeypatch.setattr(settings, "TABLES", replace(settings.TABLES, max_items=25))
    with pytest.warns(TableWarning) as caught:
        column = find(NAMES)
    (warning,) = caught
    assert warning.message.messages == (TooManyItems("thing", 80, 25),)
    assert str(warning.message) == (
        "Column 'thing' names 80 items; the 25 with the most answers get a feature each, and all "
        "others are treated as one."
    )
    counts = NAMES.value_counts()
    assert len(column.values) == 25
    assert counts[list(column.values)].min() >= counts.drop(list(column.values)).max()


def test_columns_of_answers_vary_between_rows_of_an_item():
    frame = pandas.DataFrame(
        {
            "item": NAMES,
            "length": ITEMS % 7,
            "age": GROUP % 5,
            "seconds": RNG.random(600),
            "unit": "x",
        }
    )
    assert list_columns_of_answers(frame, "item") == ["age", "seconds"]


def test_codes_are_the_same_for_numbers_and_their_names():
    numbers = pandas.Series([3.0, np.nan, 1.0, 3.0])
    assert (
        read_codes(numbers).tolist()
        == read_codes(pandas.Series(["c", None, "a", "c"])).tolist()
        == [1, -1, 0, 1]
    )


def test_groups_can_be_compared_through_other_groups():
    chain = np.array([0, 1, 1, 2, 2, 3])
    assert count_sets(chain, np.array([0, 0, 1, 1, 2, 2])) == 1
    assert count_sets(chain, np.array([0, 0, 1, 1, 1, 2])) == 2
    assert count_sets(np.full(3, -1), np.arange(3)) == 3


NO_COMMON_ITEM = (
    "No two groups in 'worker' have a value of 'item' in common, so no group can be compared with "
    "another; let several groups label the same items, or add columns that describe them."
)


def test_groups_without_common_items_are_an_error_or_a_warning():
    own = pandas.DataFrame(
        {"item": [f"{group}-{i}" for group, i in zip(GROUP, ITEMS, strict=True)]}
    )
    with pytest.raises(ValueError) as error:  # noqa: PT011
        warn_about_item_sets(own, GROUP, "worker")
    assert str(error.value) == NO_COMMON_ITEM
    # A category, which can be used.
    items = [f"{group}-{i}" for group in range(4) for i in [0, 1, 2] * 5]
    twice = pandas.DataFrame({"item": items})
    with pytest.warns(TableWarning) as caught:
        warn_about_item_sets(twice, np.repeat(np.arange(4), 15), "worker")
    assert str(caught[0].message) == NO_COMMON_ITEM


def test_sets_of_groups_are_counted():
    halves = pandas.DataFrame(
        {"item": [f"{'AB'[group % 2]}{i}" for group, i in zip(GROUP, ITEMS, strict=True)]}
    )
    with pytest.warns(TableWarning) as caught:
        warn_about_item_sets(halves, GROUP, "worker")
    assert str(caught[0].message) == (
        "The groups in 'worker' fall into 2 sets without a value of 'item' in common, so contexts "
        "of different sets cannot be compared; let several groups label the same items, or add "
        "columns that describe them."
    )
    assert caught[0].message.messages == (GroupsShareNoItems("worker", "item", 20, 2),)


def test_other_tables_give_no_warning():
    tables = [
        pandas.DataFrame({"item": NAMES}),
        pandas.DataFrame({"dose": RNG.random(600)}),
        pandas.DataFrame({"name": [f"site{group}" for group in GROUP]}),  # has another error
        pandas.DataFrame(
            {
                "item": [f"{group}-{i}" for group, i in zip(GROUP, ITEMS, strict=True)],
                "length": ITEMS,
            }
        ),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for table in tables:
            warn_about_item_sets(table, GROUP, "worker")


# ---- fits to tables of answers ------------------------------------------------------------------

N_WORKERS, N_ITEMS = 40, 200


def make_answers(n_conventions=2, n_each=30, differ=0.4, wrong=0.0, seed=0, n_workers=N_WORKERS):
    """A long table, the convention of each worker, and the conventions."""
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
    """Fit without any warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return TableModel("label", "worker", **options).fit(table)


def form_of(model, column):
    return next(c.form for c in model.preparation_.columns if c.name == column)


@pytest.mark.parametrize("seed", range(5))
def test_two_conventions_are_two_contexts(seed):
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


def test_one_convention_is_one_context_even_with_wrong_answers():
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


def test_new_workers_are_identified_and_new_items_predicted():
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


def test_a_model_of_items_is_saved_and_loaded(tmp_path):
    table, _, _ = make_answers()
    model = fit(table)
    model.save(tmp_path / "model")
    again = TableModel.load(tmp_path / "model")
    pandas.testing.assert_frame_equal(
        again.predict(table, each=True), model.predict(table, each=True)
    )
    assert again.informative_columns_ == ["item"]
    assert form_of(again, "item") == ITEM


# ---- other columns beside the items


def describe(table, **columns):
    """The table with columns that have one value for each item."""
    number = table["item"].str.removeprefix("item ").astype(int).to_numpy()
    return table.assign(**{name: np.asarray(values)[number] for name, values in columns.items()})


def test_columns_that_describe_items_well_are_used_instead():
    """They apply to new items, too."""
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


def test_items_are_used_if_other_columns_do_not_describe_them():
    rng = np.random.default_rng(0)
    table, truth, _ = make_answers()
    table = describe(
        table, length=rng.normal(size=N_ITEMS), section=rng.choice(list("abc"), N_ITEMS)
    )
    model = fit(table)
    assert model.informative_columns_ == ["item", "length", "section"]
    assert allocation_agreement(model.estimator_.contexts_, truth) == 1.0


def test_columns_about_answers_or_workers_are_left_out():
    table, truth, _ = make_answers()
    table["seconds"] = np.random.default_rng(0).exponential(size=len(table))
    table["age"] = table["worker"].str.removeprefix("w").astype(int) % 7
    with pytest.warns(TableWarning) as caught:
        model = TableModel("label", "worker").fit(table)
    assert [str(warning.message) for warning in caught] == [
        "Columns were left out: 'seconds', 'age' (about the answer or the group, not the item)."
    ]
    assert allocation_agreement(model.estimator_.contexts_, truth) == 1.0


def test_an_informative_column_about_answers_gives_a_warning():
    table, truth, _ = make_answers()
    table["hint"] = (table["label"] == "yes") + np.random.default_rng(0).normal(size=len(table))
    with pytest.warns(TableWarning) as caught:
        TableModel("label", "worker", contexts=1, local_model="linear").fit(table)
    assert str(caught[0].message) == (
        "Column 'item' may name the labelled items, but 'hint' varies between rows of an item and "
        "is associated with the target, so only its most common values get features; to use all of "
        "its values, pass the columns to learn from as features=."
    )
    assert caught[0].message.messages == (MayNameItems("item", ("hint",)),)
    model = fit(table, features=["item"])
    assert allocation_agreement(model.estimator_.contexts_, truth) == 1.0


# ---- too few answers


def test_workers_without_common_items_cannot_be_compared():
    table, _, _ = make_answers()
    with pytest.raises(
        ValueError,
        match=r"^No two groups in 'worker' have a value of 'item' in common, so no group can be ",
    ):
        TableModel("label", "worker").fit(
            table.assign(item=[f"item {i}" for i in range(len(table))])
        )
    half = np.where(table["worker"] < "w020", "A ", "B ") + table["item"]
    with pytest.warns(
        TableWarning,
        match=r"^The groups in 'worker' fall into 2 sets without a value of 'item' in common, ",
    ):
        TableModel("label", "worker").fit(table.assign(item=half))


def test_two_answers_each_are_too_few():
    table, _, _ = make_answers(n_each=2, n_workers=400)
    with pytest.warns(RecoveryWarning) as caught:
        TableModel("label", "worker").fit(table)
    assert str(caught[-1].message) == (
        "Half of the groups in 'worker' gave at most 2 answers. From yes or no alone, 2 contexts "
        "cannot be identified with fewer than 3 per group; collect more answers, or ask for fewer "
        "contexts."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", RecoveryWarning)
        TableModel("label", "worker", contexts=1).fit(table)  # enough for one context


def test_single_answers_give_a_warning():
    table, _, _ = make_answers(n_each=1, n_workers=300)
    with pytest.warns(
        TableWarning,
        match=r"^Every group in 'worker' has one row, and contexts can hardly be identified from ",
    ):
        TableModel("label", "worker", contexts=1, local_model="linear").fit(table)


def test_more_contexts_need_more_answers():
    needed = [count_answers_needed(n) for n in range(1, 10)]
    assert needed == [1, 3, 5, 5, 7, 7, 7, 7, 9]


# ---- without a table, and by the command


def test_estimators_recognize_one_hot_items():
    table, truth, _ = make_answers()
    X = pandas.get_dummies(table["item"])
    for inputs in (X, X.to_numpy(dtype=float)):
        leaf = LeafClassifier(local_model=LogisticRegression(C=10), random_state=0).fit(
            inputs, table["label"], groups=table["worker"]
        )
        assert leaf.init_.startswith("conflict: mean answers to the items in 2 contexts leave ")
        assert allocation_agreement(leaf.contexts_, truth) == 1.0


def test_the_command_finds_the_contexts(tmp_path, monkeypatch, capsys):
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
