"""Scikit-learn models come back to the last bit, and only trusted types come back at all."""

import io
import json
import os
import pickle
import re
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
def test_fitted_models_come_back_to_the_last_bit(model):
    model.fit(X, Y if model in REGRESSORS else LABELS)
    again = unpack_objects(pack_objects({"one": [model]}, "the model"), "the model")["one"][0]
    ask = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    np.testing.assert_array_equal(getattr(again, ask)(X), getattr(model, ask)(X), strict=True)


@pytest.mark.parametrize(
    "model", [SVC(), KNeighborsClassifier(algorithm="brute"), DecisionTreeClassifier()]
)
def test_models_of_sparse_rows_come_back(model):
    rows = sparse.csr_matrix(np.where(X > 0, X, 0.0))
    model.fit(rows, LABELS)
    again = unpack_objects(pack_objects(model, "the model"), "the model")
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


class Mine(LinearRegression):
    """A class that no list can name."""


def refused(value, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        pack_objects(value, "local_model")


def test_types_outside_the_list_are_refused_on_saving():
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
        f"local_model holds {types}, which is not trusted in a model folder; choose algorithm='brute'.",
    )
    with pytest.raises(
        ValueError,
        match=r"^local_model (holds|cannot be kept).*; choose scikit-learn's own estimators",
    ):
        pack_objects(FunctionTransformer(lambda x: x), "local_model")


def test_the_caller_may_trust_more():
    name = f"{__name__}.Mine"
    content = pack_objects(Mine(), "local_model", also=[name])
    assert type(unpack_objects(content, "local_model", also=[name])) is Mine
    with pytest.raises(
        ValueError, match=rf"^local_model holds {re.escape(name)}, which is not trusted"
    ):
        unpack_objects(content, "local_model")


def node(module, name, loader, **rest):
    return {"__class__": name, "__module__": module, "__loader__": loader, "__id__": 1, **rest}


def text(value):
    return node("builtins", "str", "JsonNode", content=json.dumps(value), is_json=True)


def harmful(path):
    """What an attacker may write into a schema so that a folder is made."""
    arguments = node("builtins", "tuple", "TupleNode", content=[text(str(path))])
    return {
        "call": node("os", "mkdir", "ConstructorFromReduceNode", content=arguments),
        "object": node(
            "subprocess",
            "Popen",
            "ObjectNode",
            content=node("builtins", "dict", "DictNode", content={}, key_types=[]),
        ),
        "function": node("os", "mkdir", "FunctionNode"),
        "type": node("subprocess", "Popen", "TypeNode"),
        "operator": node("operator", "methodcaller", "OperatorFuncNode", attrs=arguments),
        "loss": node("os", "mkdir", "LossNode", __reduce__={"args": arguments}, content=text({})),
        "list": node("os", "mkdir", "ListNode", content=[text(str(path))]),
        "old function": node(
            "os", "mkdir", "FunctionNode", content={"module_path": "os", "function": "mkdir"}
        ),
    }


@pytest.mark.parametrize("kind", harmful(""))
@pytest.mark.parametrize("protocol", [0, 1, 2])
def test_no_code_of_an_archive_is_run(tmp_path, kind, protocol):
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
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_is_named_and_not_run(tmp_path):
    sentence = "local_model is a pickle, and pickles can run code, so it was not read; get a fresh copy of the model folder."
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        unpack_objects(pickle.dumps(Harmful(tmp_path / "made")), "local_model")
    assert os.listdir(tmp_path) == []
