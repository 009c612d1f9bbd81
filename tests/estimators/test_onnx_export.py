"""ONNX files answer as the estimator does, for any number of rows."""

import builtins
import json
import os
import re
import warnings

import numpy as np
import onnxruntime
import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.engines import settings
from leaflearn.estimators.onnx_export import ExportedMeans
from leaflearn.messages import LeafWarning

RNG = np.random.default_rng(0)
X = 50.0 + 1000.0 * RNG.normal(size=(60, 2))
GROUPS = np.repeat(np.arange(12), 5)
Y = np.where(GROUPS % 2, 1.0, -1.0) * (X @ [2.0, 1.0]) + 7e4
LABELS = np.where(Y > 7e4, "good", "bad")
IMAGES = RNG.normal(size=(60, 3, 4, 4))
QUICK = {"max_epochs": 3, "random_state": 0, "init": "random", "n_init": 1}


def convolution(input_shape, n_outputs):
    layers = [
        nn.Conv2d(input_shape[0], 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Dropout(),
        nn.AdaptiveAvgPool2d(1),
    ]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(4, n_outputs))


FITS = {
    "regression": lambda: (LeafRegressor(2, **QUICK), X, Y, np.float64),
    "several outputs": lambda: (LeafRegressor(3, **QUICK), X, np.stack([Y, -Y], 1), np.float64),
    "images": lambda: (
        LeafClassifier(2, local_model=convolution, **QUICK),
        IMAGES,
        LABELS,
        np.float32,
    ),
}


@pytest.fixture(scope="module", autouse=True)
def without_a_second_opinion():
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(
            "leaflearn.estimators.base.make_surrogate", lambda examples, random_state: None
        )
        yield


def ask(path, rows):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (answer,) = session.run(None, {"X": rows})
    return answer, session


@pytest.mark.filterwarnings("ignore::leaflearn.RecoveryWarning")
@pytest.mark.parametrize(
    "name", ["regression", "images", pytest.param("several outputs", marks=pytest.mark.slow)]
)
def test_the_files_answer_as_the_estimator_does(name, tmp_path, capfd):
    leaf, rows, y, dtype = FITS[name]()
    leaf.fit(rows, y, GROUPS)
    capfd.readouterr()
    leaf.export_onnx(tmp_path / "onnx")
    assert capfd.readouterr() == ("", "")  # the exporter is kept quiet
    assert sorted(os.listdir(tmp_path / "onnx")) == [
        "all.onnx",
        *(f"context_{k}.onnx" for k in range(leaf.n_contexts_)),
    ]
    is_classifier = isinstance(leaf, LeafClassifier)
    for n_rows in (1, 2, 60):
        part = rows[:n_rows].astype(dtype)
        each = leaf.predict_proba_each(part) if is_classifier else leaf.predict_each(part)
        answer, session = ask(tmp_path / "onnx" / "all.onnx", part)
        np.testing.assert_allclose(answer, each, rtol=1e-5, atol=1e-5)
        assert answer.shape == each.shape
    for k in range(leaf.n_contexts_):
        answer, session = ask(tmp_path / "onnx" / f"context_{k}.onnx", part)
        np.testing.assert_allclose(answer, each[:, k], rtol=1e-5, atol=1e-5)
    facts = json.loads(session.get_modelmeta().custom_metadata_map["leaflearn"])
    assert facts.get("classes") == (["bad", "good"] if is_classifier else None)
    assert (facts["estimator"], facts["n_contexts"]) == (type(leaf).__name__, leaf.n_contexts_)
    assert next(leaf.local_models_[0].parameters()).dtype == (
        torch.float32 if is_classifier else torch.float64
    )  # left as they were


@pytest.mark.parametrize("name", ["smooth", pytest.param("labels", marks=pytest.mark.slow)])
def test_means_of_linear_and_smooth_models_are_exported_without_effects(name, tmp_path):
    rng = np.random.default_rng(0)
    group, rows = np.repeat(np.arange(30), 20), 5 + 3 * rng.normal(size=(600, 2))
    bend = rng.normal(size=30)[group] * np.abs(rows[:, 0] - 5)  # asks for hat functions
    y = rows[:, 0] + np.sin(rows[:, 1]) + bend + rng.normal(0, 0.1, 600)
    if name == "labels":
        leaf = LeafClassifier(2, local_model="linear", random_state=0)
        leaf.fit(rows, np.digitize(y, [3, 6]), groups=group)
        expected = leaf.predict_proba_each
    else:
        leaf = LeafRegressor(2, local_model="smooth", random_state=0).fit(rows, y, groups=group)
        assert len(leaf.fitted_state_.local_models.features.hat_input)
        expected = leaf.predict_each
    with pytest.warns(LeafWarning) as caught:
        leaf.export_onnx(tmp_path / "onnx")
    assert [str(warning.message) for warning in caught] == [
        "The exported files predict the mean of each context, without group effects; for groups "
        "whose effects are known, use save and predict(X, groups=...)."
    ]
    for part in (rows[:1], np.concatenate([rows, 20 * rows])):  # also outside of the data
        answer, _ = ask(tmp_path / "onnx" / "all.onnx", part)
        np.testing.assert_allclose(answer, expected(part), rtol=1e-9, atol=1e-9)
        answer, _ = ask(tmp_path / "onnx" / "context_1.onnx", part)
        np.testing.assert_allclose(answer, expected(part)[:, 1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_graph_of_classes_gives_their_probabilities(n_classes):
    labels = np.digitize(X[:, 0], [0, 500][: n_classes - 1])
    leaf = LeafClassifier(2, local_model="linear", random_state=0).fit(X, labels, groups=GROUPS)
    graph = ExportedMeans(leaf.fitted_state_.local_models, ())
    answer = graph(torch.as_tensor(X))[0].numpy()
    np.testing.assert_allclose(answer, leaf.predict_proba_each(X), rtol=1e-9)


def refused(leaf, folder, sentence, kind=ValueError):
    with pytest.raises(kind, match=f"^{re.escape(sentence)}$"):
        leaf.export_onnx(folder)


def test_boosted_trees_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "BOOSTING", settings.BoostingSettings(max_trees=10, n_folds=2))
    for leaf, y in ((LeafRegressor(1, local_model="boosting"), Y), (LeafClassifier(1), LABELS)):
        leaf.set_params(local_model="boosting").fit(X, y, GROUPS)
        sentence = (
            "export_onnx cannot write boosted trees; use save, which keeps them, or fit with "
            "local_model='smooth'."
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LeafWarning)
            refused(leaf, tmp_path / "onnx", sentence)
        assert not (tmp_path / "onnx").exists()


def test_scikit_learn_models_are_refused(tmp_path):
    leaf = LeafRegressor(1, local_model=LinearRegression()).fit(X, Y, GROUPS)
    sentence = (
        "export_onnx needs networks, but the local models are scikit-learn's LinearRegression; use"
        " save, which keeps them."
    )
    refused(leaf, tmp_path / "onnx", sentence)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("missing", ["onnx", "onnxscript"])
def test_a_missing_package_is_named(tmp_path, monkeypatch, missing):
    original = builtins.__import__

    def without(name, *arguments, **options):
        if name == missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return original(name, *arguments, **options)

    leaf = LeafRegressor(1, **QUICK).fit(X, Y, GROUPS)
    monkeypatch.setattr(builtins, "__import__", without)
    sentence = (
        f"export_onnx needs the package {missing}; install it with: pip install 'leaflearn[onnx]'."
    )
    refused(leaf, tmp_path / "onnx", sentence, ImportError)


def test_only_an_export_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr("leaflearn.estimators.onnx_export._trace", lambda *arguments: TRACED)
    leaf = LeafRegressor(1, **QUICK).fit(X, Y, GROUPS)
    folder = tmp_path / "onnx"
    folder.mkdir()
    for name in ("all.onnx", "context_0.onnx", "context_7.onnx"):
        (folder / name).touch()
    leaf.export_onnx(folder)
    assert sorted(os.listdir(folder)) == [
        "all.onnx",
        "context_0.onnx",
    ]  # nothing of the older export stays
    (folder / "notes.txt").touch()
    refused(
        leaf,
        folder,
        f"Cannot export to '{folder}': it holds 'notes.txt', which is not an export of leaflearn; "
        "choose another folder.",
    )
    assert sorted(os.listdir(folder)) == ["all.onnx", "context_0.onnx", "notes.txt"]
    (tmp_path / "file").touch()
    sentence = f"Cannot export to '{tmp_path}/file': it is a file, and a folder is needed."
    refused(leaf, tmp_path / "file", sentence, NotADirectoryError)


def _identity_graph():
    """A graph with the names of an export, which answers with its input."""
    from onnx import TensorProto, helper

    names = ["all", "context_0"]
    nodes = [helper.make_node("Identity", ["X"], [name]) for name in names]
    values = [
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["n", 2]) for name in ["X", *names]
    ]
    graph = helper.make_graph(nodes, "example", values[:1], values[1:])
    return helper.make_model(graph).SerializeToString()


TRACED = _identity_graph()
