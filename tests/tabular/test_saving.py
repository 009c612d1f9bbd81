"""A table model in its folder: what the fit warned of comes along, and folders of before keep loading."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest

from leaflearn import RecoveryWarning
from leaflearn.persistence import read_model, write_model
from leaflearn.tabular.table_model import TableModel

SAVED = Path(__file__).parent / "saved"  # its README says how these were made
LEFT_OUT = "Columns were left out: 'unit' (the same everywhere)."


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    site = np.repeat(np.arange(10), 6)
    table = pandas.DataFrame({"site": site, "dose": rng.normal(size=60), "unit": "mg"})
    return table.assign(effect=np.where(site % 2, 1.0, -1.0) * table["dose"])


@pytest.fixture(scope="module")
def model(table):
    with pytest.warns(match="were left out"):
        return TableModel("effect", "site", contexts=2, local_model="linear").fit(table)


def test_warnings_are_kept_and_come_back(model, tmp_path):
    assert model.warnings_ == [LEFT_OUT]
    model.save(tmp_path / "model")
    assert TableModel.load(tmp_path / "model").warnings_ == [LEFT_OUT]


def test_doubts_of_the_estimator_are_kept_too(table):
    with pytest.warns(RecoveryWarning):
        doubtful = TableModel(
            "effect", "site", contexts=3, local_model="linear", features=["dose"]
        ).fit(table.assign(effect=np.random.default_rng(1).normal(size=60)))
    assert (
        [
            sentence
            for sentence in doubtful.warnings_
            if sentence.startswith("The fit may not be right. ")
        ]
        == doubtful.warnings_
        != []
    )


def test_a_new_fit_forgets_the_warnings_of_the_one_before(table):
    model = TableModel("effect", "site", contexts=1, local_model="linear")
    with pytest.warns(match="were left out"):
        model.fit(table)
    assert model.fit(table.drop(columns="unit")).warnings_ == []


def test_a_folder_from_before_warnings_were_kept_answers_as_it_did():
    again = TableModel.load(SAVED / "table-version-1")
    expected = json.loads((SAVED / "table-version-1.json").read_text(encoding="utf-8"))
    rows = pandas.DataFrame(expected["rows"])
    np.testing.assert_allclose(
        again.predict(rows, each=True), pandas.DataFrame(expected["each"]), rtol=1e-9
    )
    assert again.identify(rows)["context"].tolist() == expected["context"]
    assert (again.estimator_.n_contexts_, again.warnings_, again.informative_columns_) == (
        expected["n_contexts"],
        [],
        ["dose"],
    )
    assert (
        again.errors_.contexts < again.errors_.one_model,
        again.errors_.contexts_interval,
        again.errors_.by_context,
    ) == (True, None, ())


def test_errors_come_back_with_their_intervals(model, tmp_path):
    model.save(tmp_path / "model")
    again = TableModel.load(tmp_path / "model")
    assert again.errors_ == model.errors_
    assert again.errors_.contexts_interval is not None


def test_errors_that_are_no_numbers_are_refused(model, tmp_path):
    model.save(tmp_path / "model")
    kept = read_model(tmp_path / "model")
    for strange in (
        {"contexts_interval": [1]},
        {"one_model": "half"},
        {"by_context": [{"own": 1.0}]},
        {"by_context": "abc"},
    ):
        about = {
            **kept.sections["preparation"],
            "errors": {**kept.sections["preparation"]["errors"], **strange},
        }
        write_model(tmp_path / "model", {**kept.sections, "preparation": about}, kept.parts)
        with pytest.raises(
            ValueError,
            match="does not describe the columns of a table; save the model again, or get a fresh copy",
        ):
            TableModel.load(tmp_path / "model")


def test_warnings_that_are_no_sentences_are_refused(model, tmp_path):
    model.save(tmp_path / "model")
    kept = read_model(tmp_path / "model")
    for strange in (None, 7, "a sentence", [["a"]], [1]):
        about = {**kept.sections["preparation"], "warnings": strange}
        write_model(tmp_path / "model", {**kept.sections, "preparation": about}, kept.parts)
        with pytest.raises(
            ValueError,
            match="does not describe the columns of a table; save the model again, or get a fresh copy",
        ):
            TableModel.load(tmp_path / "model")
