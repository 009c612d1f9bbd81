"""Rows unlike the training table are counted, with the columns in which they are."""

import json
import warnings

import numpy as np
import pandas
import pytest

from leaflearn.messages import InputWarning
from leaflearn.persistence import read_model, write_model
from leaflearn.tabular import settings
from leaflearn.tabular.column_kinds import Column
from leaflearn.tabular.table_model import TableModel
from leaflearn.tabular.unfamiliar_rows import TrainingValues


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"site": np.repeat([f"S{i}" for i in range(12)], 10)})
    table["dose"] = rng.uniform(0, 1, 120).round(3)
    table["ward"] = rng.choice(["north", "south"], 120)
    table["day"] = rng.choice(pandas.date_range("2026-01-01", periods=30), 120)
    days = (table["day"] - table["day"].min()).dt.days
    table["effect"] = table["dose"] + 0.5 * (table["ward"] == "south") + 0.1 * days
    return table


@pytest.fixture(scope="module")
def model(table):
    columns = ["dose", "ward", "day"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TableModel("effect", "site", contexts=1, local_model="linear", features=columns).fit(
            table
        )


def sentences(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, InputWarning)]


def change(table):
    new = table.head(20).copy()
    new.loc[0, "dose"] = 5.0
    new.loc[1, "day"] = pandas.Timestamp("2031-01-01")
    new.loc[[1, 2], "ward"] = "east"
    new.loc[3, "ward"] = None  # missing is not unknown
    new.loc[4, "dose"] = 1.5  # outside the range, by less than its width
    return new


SENTENCE = (
    "3 of 20 rows of the table are unlike the training table: 2 have numbers far outside its range "
    "in 'dose', 'day' (by more than the width of the range), 2 have unknown values in 'ward'; do "
    "not rely on the results for these rows."
)


def test_predict_and_identify_warn_once(model, table):
    new = change(table)
    assert sentences(lambda: model.predict(new)) == [SENTENCE]
    assert sentences(lambda: model.predict(new, each=True)) == [SENTENCE]
    assert sentences(lambda: model.identify(new)) == [SENTENCE]
    assert sentences(lambda: model.predict(table)) == []


def test_labelled_rows_and_others_are_told_apart(model, table):
    new = change(table).drop(columns="effect")
    found = sentences(lambda: model.predict(new, "'new.csv'", support=table.head(20)))
    assert found == [SENTENCE.replace("the table", "'new.csv'")]
    found = sentences(lambda: model.predict(table.head(20), support=change(table)))
    assert found == [SENTENCE.replace("the table", "the table of labelled rows")]


def test_a_loaded_model_warns_and_an_older_folder_is_silent(model, table, tmp_path):
    model.save(tmp_path / "model")
    assert sentences(lambda: TableModel.load(tmp_path / "model").predict(change(table))) == [
        SENTENCE
    ]
    saved = read_model(tmp_path / "model")
    about = {**saved.sections["preparation"]}
    del about["training_values"]
    write_model(tmp_path / "model", {**saved.sections, "preparation": about}, saved.parts)
    again = TableModel.load(tmp_path / "model")
    assert again.training_values_ is None
    assert sentences(lambda: again.predict(change(table))) == []


@pytest.mark.parametrize("malformed", [7, {"ranges": {}}, {"ranges": {"a": 1}, "categories": {}}])
def test_malformed_values_are_refused(model, tmp_path, malformed):
    model.save(tmp_path / "model")
    saved = read_model(tmp_path / "model")
    about = {**saved.sections["preparation"], "training_values": malformed}
    write_model(tmp_path / "model", {**saved.sections, "preparation": about}, saved.parts)
    with pytest.raises(ValueError, match="does not describe the columns of a table"):
        TableModel.load(tmp_path / "model")


def test_values_survive_json(model):
    known = model.training_values_
    assert TrainingValues.from_json(json.loads(json.dumps(known.to_json()))) == known


def test_rare_values_of_the_training_table_are_known(table):
    rare = table.assign(ward=["west", *["north"] * 119])
    known = TrainingValues.of(rare, [Column("ward", "category", values=("north",))])
    columns = [Column("ward", "category", values=("north",))]
    assert known.describe_unfamiliar(rare, columns, "the table") is None


def test_columns_with_very_many_values_are_not_stored():
    n = settings.TABLES.max_known_values
    names = pandas.DataFrame({"item": [f"I{i}" for i in range(n + 1)]})
    columns = [Column("item", "category")]
    assert TrainingValues.of(names, columns).categories == {}
    assert len(TrainingValues.of(names.head(n), columns).categories["item"]) == n
