"""Folders of table models hold the warnings of the fit, and older folders can be loaded."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest

from leaflearn import RecoveryWarning
from leaflearn.messages import ColumnsLeftOut, SavedText
from leaflearn.persistence import read_model, write_model
from leaflearn.tabular.table_model import TableModel

SAVED = Path(__file__).parent / "saved"  # written by version 0.1.0
LEFT_OUT = ColumnsLeftOut(("constant",), (("unit",),))


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


def test_warnings_are_saved_and_loaded(model, tmp_path):
    assert model.warnings_ == [LEFT_OUT]
    model.save(tmp_path / "model")
    assert TableModel.load(tmp_path / "model").warnings_ == [LEFT_OUT]
    saved = read_model(tmp_path / "model").sections["preparation"]["warnings"]
    assert saved == [{"code": "columns-left-out", "reasons": ["constant"], "columns": [["unit"]]}]


def test_sentences_of_version_0_1_0_are_loaded(model, tmp_path):
    model.save(tmp_path / "model")
    saved = read_model(tmp_path / "model")
    about = {**saved.sections["preparation"], "warnings": ["Column 'a' is empty."]}
    write_model(tmp_path / "model", {**saved.sections, "preparation": about}, saved.parts)
    assert TableModel.load(tmp_path / "model").warnings_ == [SavedText("Column 'a' is empty.")]


def test_warnings_of_the_estimator_are_saved_too(table):
    with pytest.warns(RecoveryWarning):
        fitted = TableModel(
            "effect", "site", contexts=3, local_model="linear", features=["dose"]
        ).fit(table.assign(effect=np.random.default_rng(1).normal(size=60)))
    assert fitted.warnings_
    assert all(str(w).startswith("The fit may not be right. ") for w in fitted.warnings_)


def test_a_new_fit_replaces_the_warnings(table):
    model = TableModel("effect", "site", contexts=1, local_model="linear")
    with pytest.warns(match="were left out"):
        model.fit(table)
    assert model.fit(table.drop(columns="unit")).warnings_ == []


def test_a_folder_of_version_0_1_0_gives_the_same_predictions():
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


def test_errors_are_saved_with_their_intervals(model, tmp_path):
    model.save(tmp_path / "model")
    again = TableModel.load(tmp_path / "model")
    assert again.errors_ == model.errors_
    assert again.errors_.contexts_interval is not None


def test_malformed_errors_are_refused(model, tmp_path):
    model.save(tmp_path / "model")
    saved = read_model(tmp_path / "model")
    for malformed in (
        {"contexts_interval": [1]},
        {"one_model": "half"},
        {"by_context": [{"own": 1.0}]},
        {"by_context": "abc"},
    ):
        about = {
            **saved.sections["preparation"],
            "errors": {**saved.sections["preparation"]["errors"], **malformed},
        }
        write_model(tmp_path / "model", {**saved.sections, "preparation": about}, saved.parts)
        with pytest.raises(
            ValueError,
            match="does not describe the columns of a table; save the model again, or get a fresh",
        ):
            TableModel.load(tmp_path / "model")


def test_malformed_warnings_are_refused(model, tmp_path):
    model.save(tmp_path / "model")
    saved = read_model(tmp_path / "model")
    for malformed in (
        None,
        7,
        "a sentence",
        [["a"]],
        [1],
        [{"code": "no-such-code"}],
        [{"text": "no code"}],
        [{"code": "one-group", "groups": "an unknown field"}],
    ):
        about = {**saved.sections["preparation"], "warnings": malformed}
        write_model(tmp_path / "model", {**saved.sections, "preparation": about}, saved.parts)
        with pytest.raises(
            ValueError,
            match="does not describe the columns of a table; save the model again, or get a fresh",
        ):
            TableModel.load(tmp_path / "model")
