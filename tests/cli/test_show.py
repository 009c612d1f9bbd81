"""`leaflearn show`: what is in a model folder, as text and as JSON."""

import copy
import json

import pytest

from leaflearn.messages import SavedText
from special_names import SPECIAL_NAMES


@pytest.mark.usefixtures("model")
def test_the_summary_of_the_fit_is_shown(call):
    code, out, err = call("show", "model")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert (
        lines[0] == "80 rows, 10 groups by 'source'. The target 'effect' is treated as a quantity "
        "(it holds numbers)."
    )
    assert "2 contexts were found." in lines
    assert any(line.startswith("LeafRegressor, written by leaflearn ") for line in lines)
    assert lines[-1].startswith("Files: fitted.safetensors (")
    assert "\x1b" not in out


@pytest.mark.usefixtures("model")
def test_json(call):
    code, out, err = call("show", "model", "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (answer["estimator"], answer["target"], answer["n_contexts"], answer["local_model"]) == (
        "LeafRegressor",
        "effect",
        2,
        "linear",
    )
    assert {group["group"] for context in answer["contexts"] for group in context["groups"]} == set(
        SPECIAL_NAMES
    )
    assert len(answer["training_data"]["sha256"]) == 64
    assert set(answer["files"]) == {"fitted.safetensors", "local-models.skops", "preparation.skops"}


def test_warnings_of_the_fit_are_shown(fitted, table, call):
    model = copy.copy(fitted)
    model.warnings_ = [
        SavedText("Column '\x1b[31mred' is empty."),
        SavedText("There may be no conflict."),
    ]
    model.save("model")
    code, out, err = call("show", "model")
    assert (code, err) == (0, "")
    assert (
        "Warnings of the fit:\n- Column '\\x1b[31mred' is empty.\n- There may be no conflict.\n\n"
        "LeafRegressor, written" in out
    )
    answer = json.loads(call("show", "model", "--json")[1])
    assert answer["warnings"] == [str(message) for message in model.warnings_]


@pytest.mark.usefixtures("model")
def test_a_fit_without_warnings(call):
    assert "Warnings of the fit" not in call("show", "model")[1]
    assert json.loads(call("show", "model", "--json")[1])["warnings"] == []


def test_an_estimator_without_a_table(fitted, table, call):
    fitted.estimator_.save("plain")
    code, out, err = call("show", "plain")
    assert (code, err) == (0, "")
    assert out.startswith("An estimator that was fitted in Python, without a table.\n")
    assert json.loads(call("show", "plain", "--json")[1])["estimator"] == "LeafRegressor"


def test_paths_that_are_not_models(table, call):
    assert call("show", "nowhere") == (
        2,
        "",
        "leaflearn: 'nowhere' does not exist; give the folder of a model that was saved.\n",
    )
    assert call("show", "table.csv") == (
        2,
        "",
        "leaflearn: 'table.csv' is a file, but the folder of a model was expected.\n",
    )
    assert call("show", ".") == (
        2,
        "",
        "leaflearn: '.' is not a leaflearn model folder: it has no model.json.\n",
    )
