"""Fit, identify, predict, save and load a `TableModel`."""

import json
import os
import warnings
from dataclasses import replace

import numpy as np
import pandas
import pytest

import leaflearn
from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.engines import settings as engine_settings
from leaflearn.messages import (
    ContextNotChosen,
    FittedWithoutGroups,
    GroupsNotInTraining,
    GroupsWithoutLabels,
    ImageFolderMissing,
    LocalModelCodeMissing,
    LocalModelInFolder,
    NoProbabilities,
    TableWarning,
)
from leaflearn.tabular.table_model import TableModel

pytestmark = pytest.mark.filterwarnings(
    "ignore::leaflearn.messages.TableWarning", "ignore::leaflearn.RecoveryWarning"
)


def make_table(n_sites=12, n_rows=8, seed=0):
    """Sites with effects of opposite signs, and columns without effects."""
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


def train_briefly(monkeypatch):
    """These tests check that networks can be fitted, not how well they predict."""
    monkeypatch.setattr(engine_settings, "TRAINING", replace(engine_settings.TRAINING, n_steps=20))


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


def test_contexts_are_found_among_columns_that_are_not_informative(quantity, label):
    for model in (quantity, label):
        assert allocation_agreement(model.estimator_.contexts_, TRUTH) == 1.0
        assert model.preparation_.feature_columns == ["dose"]
        assert model.errors_.contexts < 0.5 * model.errors_.one_model
    assert (quantity.errors_.metric, label.errors_.metric) == ("RMSE", "error rate")


def test_named_features_are_all_used():
    model = TableModel(
        "effect", "site", contexts=1, local_model="linear", features=["dose", "day"]
    ).fit(TABLE)
    assert model.preparation_.feature_columns == ["dose", "day"]


def test_features_that_are_needed_are_used():
    """A feature that flips the effect of another has no association with the target by itself."""
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


def test_predictions_do_not_depend_on_other_rows(quantity, monkeypatch):
    whole = quantity.predict(TABLE, by_group=True)
    monkeypatch.setattr("leaflearn.tabular.predictions.ROWS_AT_ONCE", 7)
    done = []
    pandas.testing.assert_frame_equal(
        quantity.predict(TABLE, by_group=True, on_row=done.append), whole
    )
    assert done[-1] == len(TABLE)


def test_without_a_column_of_groups_all_rows_are_one_group(quantity):
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


def test_a_group_that_fits_no_context_is_new(quantity):
    few = make_table(1, 12).assign(effect=lambda table: 5 + table["dose"])
    found = quantity.identify(few)
    assert found["is_new"].tolist() == [True]
    assert found["more_rows"].isna().all()


@pytest.mark.parametrize(
    ("arguments", "message", "sentence"),
    [
        (
            {},
            ContextNotChosen(2),
            "The model has 2 contexts; choose one by context=, support= or by_group=True, or pass "
            "each=True.",
        ),
        ({"context": 2}, None, "There is no context 2; the model has 2, numbered from 0."),
        (
            {"each": True, "proba": True},
            NoProbabilities("effect"),
            "The target 'effect' is a quantity, which has no class probabilities; leave out "
            "proba=True.",
        ),
    ],
)
def test_predictions_that_are_not_possible_are_errors(quantity, arguments, message, sentence):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        quantity.predict(TABLE, **arguments)
    assert (getattr(error.value, "message", None), str(error.value)) == (message, sentence)


def test_unknown_groups_are_errors(quantity):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        quantity.predict(TABLE.assign(site="elsewhere"), by_group=True)
    assert error.value.message == GroupsNotInTraining(("elsewhere",))
    assert str(error.value) == (
        "Group 'elsewhere' was not in the training table; pass a few labelled rows of it as "
        "support=, or pass each=True."
    )
    with pytest.raises(ValueError) as error:  # noqa: PT011
        quantity.predict(TABLE, support=make_table(10))
    assert error.value.message == GroupsWithoutLabels(("site 10", "site 11"))
    assert str(error.value) == (
        "Groups 'site 10', 'site 11' have no labelled rows; add a few labelled rows of each to "
        "support=, or pass each=True."
    )
    with pytest.raises(
        ValueError,
        match=r"^The labelled rows belong to 10 groups, but the table has no column 'site'; add "
        r"it\.$",
    ):
        quantity.predict(TABLE.drop(columns="site"), support=make_table(10))


def test_a_model_without_groups_has_no_contexts_of_groups():
    with pytest.warns(TableWarning, match="^No column of groups was given"):
        model = TableModel("effect", contexts=1, local_model="linear", features=["dose"]).fit(TABLE)
    assert model.errors_ is None
    with pytest.raises(
        ValueError,
        match=r"^The model was fitted without groups, so contexts cannot be looked up by group; "
        r"pass context= or each=True\.$",
    ) as error:
        model.predict(TABLE, by_group=True)
    assert error.value.message == FittedWithoutGroups()
    assert (model.predict(TABLE)["context"] == 0).all()


def test_a_single_group_and_single_rows_give_a_warning():
    with pytest.warns(TableWarning, match="^Column 'site' holds a single group"):
        TableModel("effect", "site", local_model="linear", features=["dose"]).fit(make_table(1, 30))
    with pytest.warns(TableWarning, match="^Every group in 'site' has one row"):
        TableModel("effect", "site", local_model="linear", features=["dose"]).fit(make_table(30, 1))


@pytest.mark.parametrize("which", ["quantity", "label"])
def test_a_saved_model_is_complete_and_holds_no_code(which, request, tmp_path):
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


def test_a_saved_estimator_is_not_a_table_model(quantity, tmp_path):
    quantity.estimator_.save(tmp_path / "model")
    with pytest.raises(ValueError) as error:  # noqa: PT011
        TableModel.load(tmp_path / "model")
    assert str(error.value) == (
        f"'{tmp_path}/model' holds an estimator that was not fitted to a table; load it in Python "
        f"with leaflearn.load."
    )


def test_a_folder_without_description_of_the_columns_is_an_error(quantity, tmp_path):
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
def test_other_local_models_are_saved_and_loaded(local_model, tmp_path, monkeypatch):
    train_briefly(monkeypatch)
    model = TableModel(
        "verdict", "site", contexts=1, local_model=local_model, features=["dose"]
    ).fit(TABLE)
    model.save(tmp_path / "model")
    pandas.testing.assert_frame_equal(
        TableModel.load(tmp_path / "model").predict(TABLE), model.predict(TABLE)
    )


FACTORY = """
from torch import nn


def make(input_shape, n_outputs):
    return nn.Sequential(nn.Linear(input_shape[0], n_outputs))
"""


def test_a_factory_of_the_user_is_passed_again(tmp_path, monkeypatch):
    train_briefly(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(FACTORY)
    name = "module:net.py:make"
    model = TableModel("verdict", "site", contexts=1, local_model=name, features=["dose"]).fit(
        TABLE
    )
    model.save("model")
    with pytest.raises(ValueError) as error:  # noqa: PT011
        TableModel.load("model")
    assert error.value.message == LocalModelCodeMissing(name)
    assert str(error.value) == (
        f"The model was fitted with local_model={name!r}, which is code and not in the folder; "
        "pass it again."
    )
    pandas.testing.assert_frame_equal(
        TableModel.load("model", name).predict(TABLE), model.predict(TABLE)
    )


def test_images_are_used_and_saved(tmp_path, monkeypatch):
    from PIL import Image

    train_briefly(monkeypatch)
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
        match=r"^The model was fitted to images; pass the folder of the new images as images=\.$",
    ) as error:
        again.predict(table)
    assert error.value.message == ImageFolderMissing()
    pandas.testing.assert_frame_equal(again.predict(table, images=tmp_path), model.predict(table))
    quantity = TableModel("size", "who", contexts=1, images=tmp_path, image_column="file").fit(
        table.assign(size=red * 1.5 + 0.1 * np.arange(40))
    )
    assert quantity.local_model_ == "mlp"


def test_linear_models_are_recommended_if_networks_predict_worse(monkeypatch):
    train_briefly(monkeypatch)
    sentence = (
        r"^Linear models predict held-out rows better than networks here \(RMSE .* instead of "
        r".*\); try local_model='linear'\.$"
    )
    with pytest.warns(TableWarning, match=sentence):
        TableModel("effect", "site", contexts=1, features=["dose"]).fit(
            TABLE.assign(effect=TABLE["dose"] * 100)
        )


def test_the_folder_of_a_linear_model_needs_no_local_model(quantity, tmp_path):
    quantity.save(tmp_path / "model")
    with pytest.raises(
        ValueError,
        match=r"^The folder holds the local models of the model; leave out local_model=\.$",
    ) as error:
        TableModel.load(tmp_path / "model", "linear")
    assert error.value.message == LocalModelInFolder()


def test_telling_columns_is_a_deprecated_name(quantity):
    sentence = (
        r"^telling_columns_ is renamed informative_columns_ and will be removed in version 0\.4; "
        r"use informative_columns_\.$"
    )
    with pytest.warns(FutureWarning, match=sentence):
        columns = quantity.telling_columns_
    assert columns == quantity.informative_columns_ == ["dose"]


def test_row_numbers_are_not_learned_from_where_rows_without_a_target_are_left_out():
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"row": np.arange(1, 301), "site": np.repeat(np.arange(15), 20)})
    table["dose"] = rng.normal(size=300)
    table["effect"] = table["dose"] + 0.02 * table["row"]  # a trend that the numbers would explain
    table.loc[rng.choice(300, 30, replace=False), "effect"] = np.nan
    model = TableModel("effect", group="site", contexts=1, local_model="linear")
    with pytest.warns(TableWarning, match=r"Columns were left out: 'row' \(row numbers\)\."):
        model.fit(table)
    assert model.informative_columns_ == ["dose"]
    named = TableModel("effect", "site", contexts=1, local_model="linear", features=["row"])
    with pytest.warns(TableWarning, match="is missing in 30 of 300 rows"):
        assert named.fit(table).informative_columns_ == ["row"]
    with pytest.raises(
        ValueError, match=r"^No column is left to learn from\. Columns were left out"
    ):
        TableModel("effect", "site").fit(table[["row", "site", "effect"]])
