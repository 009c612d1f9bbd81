"""Scikit-learn models are restored exactly, and only from trusted types and sound archives."""

import io
import json
import os
import pickle
import re
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    StackingRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from leaflearn.engines.refit_task import ConstantModel
from leaflearn.persistence import pack_objects, unpack_objects

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, 2.0, 3.0] + RNG.normal(size=60)
LABELS = (Y > 0).astype(int) + (Y > 2)

REGRESSORS = [
    LinearRegression(),
    HistGradientBoostingRegressor(max_iter=3),
    SVR(),
    MLPRegressor(hidden_layer_sizes=(3,), max_iter=3),
    GaussianProcessRegressor(RBF() + WhiteKernel()),
    StackingRegressor([("ridge", Ridge()), ("tree", DecisionTreeRegressor(max_depth=2))], cv=2),
    make_pipeline(
        ColumnTransformer(
            [("one", StandardScaler(), [0, 1]), ("two", SimpleImputer(), slice(2, 3))]
        ),
        Ridge(),
    ),
    make_pipeline(FunctionTransformer(np.exp), LinearRegression()),
]
CLASSIFIERS = [
    LogisticRegression(),
    HistGradientBoostingClassifier(max_iter=3),
    GradientBoostingClassifier(n_estimators=3),
    RandomForestClassifier(n_estimators=3),
    BaggingClassifier(n_estimators=3, max_features=2),
    SVC(probability=True),
    KNeighborsClassifier(algorithm="brute"),
    CalibratedClassifierCV(DecisionTreeClassifier(max_depth=2), cv=2),
    make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()),
    ConstantModel(0),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model", [*REGRESSORS, *CLASSIFIERS], ids=lambda model: type(model).__name__
)
def test_fitted_models_are_restored_exactly(model):
    model.fit(X, Y if model in REGRESSORS else LABELS)
    again = unpack_objects(pack_objects({"one": [model]}, "the model"), "the model")["one"][0]
    method = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X), strict=True)


@pytest.mark.parametrize(
    "model", [SVC(), KNeighborsClassifier(algorithm="brute"), DecisionTreeClassifier()]
)
def test_models_of_sparse_rows_are_restored(model):
    rows = sparse.csr_matrix(np.where(X > 0, X, 0.0))
    model.fit(rows, LABELS)
    again = unpack_objects(pack_objects(model, "the model"), "the model")
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


class Mine(LinearRegression):
    """A class that is not trusted."""


def refused(value, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        pack_objects(value, "local_model")


def test_types_that_are_not_trusted_cannot_be_saved():
    end = "which is not trusted in a model folder; choose scikit-learn's own estimators without it."
    refused(Mine(), f"local_model holds {__name__}.Mine, {end}")
    refused(
        make_pipeline(FunctionTransformer(os.system), Ridge()),
        f"local_model holds posix.system, {end}",
    )
    tree = KNeighborsClassifier(algorithm="kd_tree").fit(X, LABELS)
    types = (
        "sklearn.metrics._dist_metrics.EuclideanDistance64 and sklearn.neighbors._kd_tree.KDTree"
    )
    refused(
        tree,
        f"local_model holds {types}, which is not trusted in a model folder; "
        "choose algorithm='brute'.",
    )
    with pytest.raises(
        ValueError,
        match=r"^local_model (holds|cannot be kept).*; choose scikit-learn's own estimators",
    ):
        pack_objects(FunctionTransformer(lambda x: x), "local_model")


def test_the_caller_may_trust_further_types():
    name = f"{__name__}.Mine"
    content = pack_objects(Mine(), "local_model", also=[name])
    assert type(unpack_objects(content, "local_model", also=[name])) is Mine
    with pytest.raises(
        ValueError, match=rf"^local_model holds {re.escape(name)}, which is not trusted"
    ):
        unpack_objects(content, "local_model")


def make_node(module, name, loader, **rest):
    return {"__class__": name, "__module__": module, "__loader__": loader, "__id__": 1, **rest}


def text(value):
    return make_node("builtins", "str", "JsonNode", content=json.dumps(value), is_json=True)


def harmful(path):
    """Schemas with which an attacker may try to create a folder."""
    arguments = make_node("builtins", "tuple", "TupleNode", content=[text(str(path))])
    return {
        "call": make_node("os", "mkdir", "ConstructorFromReduceNode", content=arguments),
        "object": make_node(
            "subprocess",
            "Popen",
            "ObjectNode",
            content=make_node("builtins", "dict", "DictNode", content={}, key_types=[]),
        ),
        "function": make_node("os", "mkdir", "FunctionNode"),
        "type": make_node("subprocess", "Popen", "TypeNode"),
        "operator": make_node("operator", "methodcaller", "OperatorFuncNode", attrs=arguments),
        "loss": make_node(
            "os", "mkdir", "LossNode", __reduce__={"args": arguments}, content=text({})
        ),
        "list": make_node("os", "mkdir", "ListNode", content=[text(str(path))]),
        "old function": make_node(
            "os", "mkdir", "FunctionNode", content={"module_path": "os", "function": "mkdir"}
        ),
    }


@pytest.mark.parametrize("kind", harmful(""))
@pytest.mark.parametrize("protocol", [0, 1, 2])
def test_no_code_from_an_archive_is_run(tmp_path, kind, protocol):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(
            "schema.json",
            json.dumps(
                {**harmful(tmp_path / "made")[kind], "protocol": protocol, "_skops_version": "0.16"}
            ),
        )
    with pytest.raises(
        ValueError, match=r"^local_model (holds .* which is not trusted|cannot be read)"
    ):
        unpack_objects(buffer.getvalue(), "local_model")
    assert os.listdir(tmp_path) == []


class Harmful:
    """Creates a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_is_refused_and_not_run(tmp_path):
    sentence = (
        "local_model is a pickle, and pickles can run code, so it was not read; "
        "get a fresh copy of the model folder."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        unpack_objects(pickle.dumps(Harmful(tmp_path / "made")), "local_model")
    assert os.listdir(tmp_path) == []


# Archives that declare wrong sizes


def json_node(value, number):
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "__id__": number,
        "content": json.dumps(value),
    }


def rewritten(content, change, compression=zipfile.ZIP_STORED):
    """The archive with each member replaced by `change(name, bytes)`."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(buffer, "w", compression) as new,
    ):
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return buffer.getvalue()


def test_the_name_that_version_0_1_0_saved_is_trusted(monkeypatch):
    monkeypatch.setitem(
        sys.modules, "leaflearn.core.row_losses", sys.modules[ConstantModel.__module__]
    )
    content = rewritten(
        pack_objects(ConstantModel(3), "local_model"),
        lambda name, old: old.replace(
            ConstantModel.__module__.encode(), b"leaflearn.core.row_losses"
        ),
    )
    assert b"leaflearn.core.row_losses" in content
    assert unpack_objects(content, "local_model").predict(np.zeros((2, 1))).tolist() == [3, 3]


def header(shape, dtype="<f8"):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue()


@pytest.fixture(scope="module")
def content():
    return pack_objects(Ridge().fit(X, Y), "local_model")


@pytest.mark.parametrize(
    "array",
    [
        header((2**40,)) + bytes(8),
        header((3,)) + bytes(16),
        header((1,), "|O") + bytes(8),
        b"",
        b"nonsense",
    ],
)
def test_arrays_whose_declared_shape_does_not_fit_their_bytes_are_refused(content, array):
    wrong = rewritten(content, lambda name, old: array if name.endswith(".npy") else old)
    with pytest.raises(ValueError, match=r"^local_model cannot be read \("):
        unpack_objects(wrong, "local_model")


def test_compressed_archives_are_refused(content):
    wrong = rewritten(content, lambda name, old: old, zipfile.ZIP_DEFLATED)
    with pytest.raises(
        ValueError,
        match=r"^local_model cannot be read "
        r"\(ValueError: the archive expands to more bytes than it has\); ",
    ):
        unpack_objects(wrong, "local_model")


@pytest.mark.parametrize("wrong", [b"", b"PK", b"nonsense" * 100, b"\x80"])
def test_bytes_that_are_not_an_archive_are_refused(wrong):
    with pytest.raises(ValueError, match=r"^local_model (cannot be read|is a pickle)"):
        unpack_objects(wrong, "local_model")


def declare_more_outputs(tree):
    number = tree["__reduce__"]["args"]["content"][2]
    number.update(content=str(10**6), __id__=0)


def use_another_loader(tree):
    arguments = tree["__reduce__"]["args"]
    declare_more_outputs(tree)
    tree.clear()
    tree.update(
        __module__="sklearn.tree._tree",
        __class__="Tree",
        __loader__="ConstructorFromReduceNode",
        content=arguments,
    )


def use_the_same_id_twice(tree):
    earlier = json_node(10**6, tree["__reduce__"]["args"]["content"][2]["__id__"])
    tree["content"]["content"] = {"first": earlier, **tree["content"]["content"]}


@pytest.mark.parametrize("spoil", [declare_more_outputs, use_another_loader, use_the_same_id_twice])
def test_a_tree_that_would_read_beyond_its_memory_is_not_built(spoil):
    content = pack_objects(DecisionTreeRegressor(max_depth=2).fit(X, Y), "local_model")

    def change(name, old):
        if name != "schema.json":
            return old
        schema = json.loads(old)
        spoil(schema["content"]["content"]["tree_"])
        return json.dumps(schema)

    with pytest.raises(ValueError, match=r"^local_model cannot be read \((KeyError|ValueError): "):
        unpack_objects(rewritten(content, change), "local_model")
