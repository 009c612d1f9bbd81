"""From a frame to contexts and answers, and through a folder and back."""

import json
import os
import warnings

import numpy as np
import pandas
import pytest

import leaflearn
from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.messages import TableWarning
from leaflearn.tabular.table_model import TableModel

pytestmark = pytest.mark.filterwarnings(
    "ignore::leaflearn.tabular.text_encoding.TableWarning", "ignore::leaflearn.RecoveryWarning"
)


def make_table(n_sites=12, n_rows=8, seed=0):
    """Sites that measure with opposite signs, and columns that have nothing to do with it."""
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(n_sites), n_rows)
    table = pandas.DataFrame(
        {"site": [f"site {i}" for i in site], "dose": rng.normal(size=len(site)).round(3)}
    )
    table["kind"] = rng.choice(["a", "b", None], len(site))
    table["day"] = rng.permutation(pandas.date_range("2024-01-01", periods=len(site)).astype(str))
    table["effect"] = (
        np.where(site % 3 == 0, -1.0, 1.0) * table["dose"] + 0.05 * rng.normal(size=len(site))
    ).round(4)
    table["verdict"] = np.where(table["effect"] > 0, "good", "bad")
    return table


def hurry(monkeypatch):
    """To see that networks come through, not what they learn."""
    monkeypatch.setattr("leaflearn.engines.training_run.STEPS", 20)
    monkeypatch.setattr("leaflearn.tabular.held_out.STEPS", 5)


TABLE = make_table()
TRUTH = np.array([int(name.split()[1]) % 3 == 0 for name in sorted(set(TABLE["site"]))]).astype(int)


@pytest.fixture(scope="module")
def quantity():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TableModel("effect", "site", contexts=2, local_model="linear", drop=["verdict"]).fit(
            TABLE
        )


@pytest.fixture(scope="module")
def label():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TableModel("verdict", "site", contexts=2, local_model="linear", drop=["effect"]).fit(
            TABLE
        )


def test_contexts_are_found_among_columns_that_tell_nothing(quantity, label):
    for model in (quantity, label):
        assert allocation_agreement(model.estimator_.contexts_, TRUTH) == 1.0
        assert model.preparation_.feature_columns == ["dose"]
        assert model.errors_.contexts < 0.5 * model.errors_.one_model
    assert (quantity.errors_.metric, label.errors_.metric) == ("RMSE", "error rate")


def test_named_features_are_all_kept():
    model = TableModel(
        "effect", "site", contexts=1, local_model="linear", features=["dose", "day"]
    ).fit(TABLE)
    assert model.preparation_.feature_columns == ["dose", "day"]


def test_features_that_are_missed_come_back():
    """What flips the sign of another feature goes with nothing by itself, and yet is needed."""
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(
        {
            "site": np.repeat(np.arange(20), 30),
            "a": rng.normal(size=600),
            "flip": rng.choice(["x", "y"], 600),
        }
    )
    table["b"] = rng.normal(size=600)
    table["effect"] = table["a"] + np.where(table["flip"] == "x", 1.0, -1.0) * table["b"]
    model = TableModel("effect", "site", contexts=1, local_model="linear").fit(table)
    assert set(model.preparation_.feature_columns) == {"a", "flip", "b"}


def test_identify_and_predict(quantity):
    few, new = make_table(4, 5, seed=1), make_table(4, 3, seed=2)
    found = quantity.identify(few)
    assert found["group"].tolist() == ["site 0", "site 1", "site 2", "site 3"]
    opposite = found["context"].to_numpy()
    assert opposite[0] == opposite[3] != opposite[1] == opposite[2]
    assert (found["more_rows"] == 0).all()
    answers = quantity.predict(new, support=few)
    assert list(answers.columns) == ["context", "probability", "prediction"]
    np.testing.assert_allclose(answers["prediction"], new["effect"], atol=0.3)
    each = quantity.predict(new, each=True)
    assert list(each.columns) == ["prediction_0", "prediction_1"]
    for k in (0, 1):
        named = quantity.predict(new, context=k)
        np.testing.assert_allclose(named["prediction"], each[f"prediction_{k}"], rtol=1e-12)
        assert (named["probability"] == 1).all()
    by_group = quantity.predict(TABLE.drop(columns="effect"), by_group=True)
    np.testing.assert_allclose(by_group["prediction"], TABLE["effect"], atol=0.4)


def test_rows_are_answered_one_by_one_whatever_stands_beside_them(quantity, monkeypatch):
    whole = quantity.predict(TABLE, by_group=True)
    monkeypatch.setattr("leaflearn.tabular.predictions.ROWS_AT_ONCE", 7)
    done = []
    pandas.testing.assert_frame_equal(
        quantity.predict(TABLE, by_group=True, on_row=done.append), whole
    )
    assert done[-1] == len(TABLE)


def test_all_rows_are_one_source_without_a_column_of_groups(quantity):
    few = make_table(1, 6).drop(columns="site")
    assert quantity.identify(few)["group"].tolist() == ["all rows"]
    assert quantity.predict(few, support=few)["context"].nunique() == 1


def test_probabilities_of_labels(label):
    answers = label.predict(TABLE, by_group=True, proba=True)
    assert list(answers.columns) == [
        "context",
        "probability",
        "prediction",
        "probability_bad",
        "probability_good",
    ]
    np.testing.assert_allclose(answers[["probability_bad", "probability_good"]].sum(axis=1), 1.0)
    each = label.predict(TABLE, each=True, proba=True)
    assert list(each.columns)[2:] == [
        "probability_0_bad",
        "probability_0_good",
        "probability_1_bad",
        "probability_1_good",
    ]


def test_a_source_like_no_other_is_new(quantity):
    few = make_table(1, 12).assign(effect=lambda table: 5 + table["dose"])
    found = quantity.identify(few)
    assert found["is_new"].tolist() == [True]
    assert found["more_rows"].isna().all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "The model has 2 contexts; say in which of them, or in each, rows are answered."),
        ({"context": 2}, "There is no context 2; the model has 2, numbered from 0."),
        (
            {"each": True, "proba": True},
            "The target 'effect' is a quantity, which has no probabilities of labels; leave out --proba.",
        ),
    ],
)
def test_what_cannot_be_answered(quantity, arguments, sentence):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        quantity.predict(TABLE, **arguments)
    assert str(error.value) == sentence


def test_groups_that_nobody_knows(quantity):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        quantity.predict(TABLE.assign(site="elsewhere"), by_group=True)
    cure = "give a few labelled rows of it with --support, or ask --each context."
    assert str(error.value) == f"Group 'elsewhere' was not there in training; {cure}"
    with pytest.raises(ValueError) as error:  # noqa: PT011
        quantity.predict(TABLE, support=make_table(10))
    cure = cure.replace("of it", "of each")
    assert str(error.value) == f"Groups 'site 10', 'site 11' have no labelled rows; {cure}"
    with pytest.raises(
        ValueError,
        match=r"^The labelled rows are of 10 groups, but the table has no column 'site'; add it\.$",
    ):
        quantity.predict(TABLE.drop(columns="site"), support=make_table(10))


def test_a_model_without_groups_cannot_be_asked_by_group():
    with pytest.warns(TableWarning, match="^No column of groups was given"):
        model = TableModel("effect", contexts=1, local_model="linear", features=["dose"]).fit(TABLE)
    assert model.errors_ is None
    with pytest.raises(
        ValueError,
        match=r"^The model was fitted without groups, so rows cannot be answered by their group;",
    ):
        model.predict(TABLE, by_group=True)
    assert (model.predict(TABLE)["context"] == 0).all()


def test_one_group_and_one_row_a_group_are_fitted_with_a_warning():
    with pytest.warns(TableWarning, match="^Column 'site' holds one group only"):
        TableModel("effect", "site", local_model="linear", features=["dose"]).fit(make_table(1, 30))
    with pytest.warns(TableWarning, match="^Every group in 'site' has one row"):
        TableModel("effect", "site", local_model="linear", features=["dose"]).fit(make_table(30, 1))


@pytest.mark.parametrize("which", ["quantity", "label"])
def test_a_folder_keeps_everything_and_no_code(which, request, tmp_path):
    model = request.getfixturevalue(which)
    model.save(tmp_path / "model")
    again = TableModel.load(tmp_path / "model")
    pandas.testing.assert_frame_equal(
        again.predict(TABLE, each=True), model.predict(TABLE, each=True)
    )
    pandas.testing.assert_frame_equal(again.identify(TABLE), model.identify(TABLE))
    assert (again.target_, again.errors_, again.n_rows_) == (
        model.target_,
        model.errors_,
        model.n_rows_,
    )
    assert leaflearn.load(tmp_path / "model").n_contexts_ == 2
    assert sorted(os.listdir(tmp_path / "model")) == [
        "fitted.safetensors",
        "local-models.skops",
        "model.json",
        "preparation.skops",
    ]


def test_an_estimator_alone_is_no_table_model(quantity, tmp_path):
    quantity.estimator_.save(tmp_path / "model")
    with pytest.raises(ValueError) as error:  # noqa: PT011
        TableModel.load(tmp_path / "model")
    assert str(error.value) == (
        f"'{tmp_path}/model' holds an estimator that was not fitted to a table; load it in Python with leaflearn.load."
    )


def test_a_folder_that_says_something_else_is_refused(quantity, tmp_path):
    from leaflearn.persistence import read_model, write_model

    quantity.save(tmp_path / "model")
    kept = read_model(tmp_path / "model")
    broken = json.loads(json.dumps(kept.sections))
    del broken["preparation"]["target"]["task"]
    write_model(tmp_path / "model", broken, kept.parts)
    with pytest.raises(
        ValueError,
        match="does not describe the columns of a table; save the model again, or get a fresh copy",
    ):
        TableModel.load(tmp_path / "model")


@pytest.mark.parametrize("local_model", ["mlp", "boosting"])
def test_other_local_models_survive_the_folder(local_model, tmp_path, monkeypatch):
    hurry(monkeypatch)
    model = TableModel(
        "verdict", "site", contexts=1, local_model=local_model, features=["dose"]
    ).fit(TABLE)
    model.save(tmp_path / "model")
    pandas.testing.assert_frame_equal(
        TableModel.load(tmp_path / "model").predict(TABLE), model.predict(TABLE)
    )


FACTORY = "from torch import nn\n\ndef make(input_shape, n_outputs):\n    return nn.Sequential(nn.Linear(input_shape[0], n_outputs))\n"


def test_a_factory_of_ones_own_is_passed_again(tmp_path, monkeypatch):
    hurry(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(FACTORY)
    name = "module:net.py:make"
    model = TableModel("verdict", "site", contexts=1, local_model=name, features=["dose"]).fit(
        TABLE
    )
    model.save("model")
    with pytest.raises(ValueError) as error:  # noqa: PT011
        TableModel.load("model")
    assert (
        str(error.value)
        == f"The model was fitted with --local-model {name}, which is code and not in the folder; pass it again."
    )
    pandas.testing.assert_frame_equal(
        TableModel.load("model", name).predict(TABLE), model.predict(TABLE)
    )


def test_pictures_are_learnt_from_and_kept(tmp_path, monkeypatch):
    from PIL import Image

    hurry(monkeypatch)
    red = np.random.default_rng(0).random(40) < 0.5
    for i in range(40):
        Image.new("RGB", (12, 9), (255, 0, 0) if red[i] else (0, 0, 255)).save(
            tmp_path / f"{i}.png"
        )
    table = pandas.DataFrame(
        {"who": np.repeat(np.arange(4), 10), "file": [f"{i}.png" for i in range(40)]}
    )
    table["label"] = np.where(red, "warm", "cold")
    model = TableModel("label", "who", contexts=1, images=tmp_path).fit(table)
    assert (model.local_model_, model.preparation_.used) == ("convnet", ["file"])
    assert (model.predict(table)["prediction"] == table["label"]).mean() > 0.9
    model.save(tmp_path / "model")
    again = TableModel.load(tmp_path / "model")
    with pytest.raises(
        ValueError,
        match=r"^The model learnt from pictures; say with --images in which folder the new ones are\.$",
    ):
        again.predict(table)
    pandas.testing.assert_frame_equal(again.predict(table, images=tmp_path), model.predict(table))
    quantity = TableModel("size", "who", contexts=1, images=tmp_path, image_column="file").fit(
        table.assign(size=red * 1.5 + 0.1 * np.arange(40))
    )
    assert quantity.local_model_ == "mlp"


def test_networks_that_learn_by_heart_where_straight_lines_would_do_are_told(monkeypatch):
    hurry(monkeypatch)
    sentence = r"^Straight lines foretell held-out rows better than networks here \(RMSE .* instead of .*\); try the local model 'linear'\.$"
    with pytest.warns(TableWarning, match=sentence):
        TableModel("effect", "site", contexts=1, features=["dose"]).fit(
            TABLE.assign(effect=TABLE["dose"] * 100)
        )
