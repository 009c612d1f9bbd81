"""What a saved estimator can do: all that it could before, to the last bit."""

import datetime
import os
import re
import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn

import leaflearn
from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.core.allocation import Annealed
from leaflearn.core.losses import Huber
from leaflearn.estimators.model_io import ATTRIBUTES
from leaflearn.persistence import read_model

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
GROUPS = np.repeat(np.arange(12), 10)
Y = np.where(GROUPS % 3 == 0, -1.0, 1.0) * (X @ [2.0, 1.0]) + RNG.normal(0, 0.01, 120)
NAMES = np.where(Y > 0, "good", "bad")
QUICK = {"max_epochs": 3, "random_state": 0, "init": "random", "n_init": 1}
STATE = {"fitted_state_", "local_models_"}


def convolution(input_shape, n_outputs):
    layers = [
        nn.Conv2d(input_shape[0], 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 4, 1),
        nn.Dropout(),
    ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, n_outputs))


def chain(input_shape, n_outputs):
    return nn.Sequential(nn.Linear(input_shape[0], 8), nn.Tanh(), nn.Linear(8, n_outputs))


def frame():
    names = np.array(["red", "green", "blue"])
    return pd.DataFrame({"size": X[:, 0], "colour": names[np.arange(120) % 3], "age": X[:, 1]})


def encode():
    return make_column_transformer(
        (StandardScaler(), ["size", "age"]), (OneHotEncoder(), ["colour"])
    )


def several():
    return np.stack([Y, -Y], 1)


def images():
    return np.stack([X[:, i % 2] + 0.1 * i for i in range(48)], 1).reshape(120, 3, 4, 4)


FITS = {
    "network": lambda: (LeafRegressor(2, **QUICK), X, Y),
    "network of several outputs": lambda: (LeafRegressor(2, **QUICK), X, several()),
    "network of classes": lambda: (LeafClassifier(3, loss="gce", **QUICK), X, NAMES),
    "wide network": lambda: (LeafRegressor(2, **QUICK), np.tile(X, 11), Y),
    "chain": lambda: (LeafRegressor(2, local_model=chain, loss=Huber(0.3), **QUICK), X, Y),
    "convolution": lambda: (LeafClassifier(2, local_model=convolution, **QUICK), images(), NAMES),
    "linear": lambda: (
        LeafRegressor(
            2, local_model=LinearRegression(), **{**QUICK, "max_epochs": 20, "n_init": 4}
        ),
        X,
        Y,
    ),
    "linear of several outputs": lambda: (
        LeafRegressor(2, local_model=Ridge(), **QUICK),
        X,
        several(),
    ),
    "logistic": lambda: (LeafClassifier(2, local_model=LogisticRegression(), **QUICK), X, NAMES),
    "without probabilities": lambda: (
        LeafClassifier(2, local_model=Perceptron(), **QUICK),
        X,
        Y > 0,
    ),
    "boosting": lambda: (
        LeafRegressor(2, local_model=HistGradientBoostingRegressor(max_iter=3), **QUICK),
        X,
        Y,
    ),
    "boosting of classes": lambda: (
        LeafClassifier(2, local_model=HistGradientBoostingClassifier(max_iter=3), **QUICK),
        X,
        NAMES,
    ),
    "forest": lambda: (
        LeafClassifier(2, local_model=RandomForestClassifier(n_estimators=3), **QUICK),
        X,
        NAMES,
    ),
    "pipeline of a frame": lambda: (
        LeafRegressor(2, local_model=make_pipeline(encode(), Ridge()), **QUICK),
        frame(),
        Y,
    ),
    "polars": lambda: (
        LeafRegressor(2, local_model=make_pipeline(encode(), Ridge()), **QUICK),
        pl.DataFrame(frame().to_dict("list")),
        Y,
    ),
    "sparse": lambda: (LeafRegressor(2, local_model=Ridge(), **QUICK), sparse.csr_matrix(X), Y),
    "named features": lambda: (LeafRegressor(2, **QUICK), frame()[["size", "age"]], Y),
}


def quietly(call, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*arguments, **options)


def same(a, b):
    """Equal in everything, numbers to the last bit."""
    if isinstance(a, np.ndarray):
        assert isinstance(b, np.ndarray)
        np.testing.assert_array_equal(a, b)
        assert a.dtype.kind == b.dtype.kind
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert type(a) is type(b)
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            same(one, other)
    elif hasattr(a, "__dataclass_fields__"):
        assert type(a) is type(b)
        same(vars(a), vars(b))
    elif isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a.reset_index(drop=True), b)
    elif isinstance(a, pl.DataFrame):
        assert a.equals(b)
    elif sparse.issparse(a):
        same(a.toarray(), b.toarray())
    elif isinstance(a, nn.Module):
        same(
            {name: t.numpy() for name, t in a.state_dict().items()},
            {name: t.numpy() for name, t in b.state_dict().items()},
        )
    elif isinstance(a, BaseEstimator):
        assert repr(a) == repr(b)
    elif not callable(a):
        assert type(a) is type(b)
        assert a == b or a != a


def same_answers(a, b, X, y):
    same(a.predict_each(X), b.predict_each(X))
    same(a.predict(X, groups=GROUPS), b.predict(X, groups=GROUPS))
    if hasattr(a, "predict_proba"):
        same(a.predict_proba_each(X), b.predict_proba_each(X))
        same(a.predict_proba(X, context=1), b.predict_proba(X, context=1))
    same(a.identify(X, y, GROUPS % 5), b.identify(X, y, GROUPS % 5))
    assert a.score(X, y, GROUPS) == b.score(X, y, GROUPS)


def reload(leaf, tmp_path, **parameters):
    leaf.save(tmp_path / "model")
    if callable(leaf.local_model):
        parameters = {"local_model": leaf.local_model, **parameters}
    return leaflearn.load(tmp_path / "model", **parameters)


@pytest.fixture(scope="module", autouse=True)
def without_a_second_opinion():
    """What smooth models think of a fit takes longer than the fit, and is not asked here."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(
            "leaflearn.estimators.base.make_surrogate", lambda examples, random_state: None
        )
        monkeypatch.setattr(
            "leaflearn.updates.partial_fit._split",
            lambda part, random_state: np.zeros(part.group.max() + 1, dtype=int),
        )
        yield


@pytest.fixture(scope="module")
def fitted():
    """Each estimator is fitted once."""
    found = {}

    def get(name):
        if name not in found:
            leaf, X, y = FITS[name]()
            found[name] = quietly(leaf.fit, X, y, GROUPS), X, y
        return deepcopy(found[name][0]), *found[name][1:]

    return get


@pytest.mark.parametrize("name", FITS)
def test_it_comes_back_to_the_last_bit(fitted, name, tmp_path):
    leaf, X, y = fitted(name)
    state = torch.random.get_rng_state()
    again = reload(leaf, tmp_path)
    assert torch.equal(
        state, torch.random.get_rng_state()
    )  # nobody else's random numbers are touched
    assert set(vars(again)) == set(vars(leaf))
    for key in sorted(vars(leaf)):
        same(vars(leaf)[key], vars(again)[key])
    same_answers(leaf, again, X, y)


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_so_does_what_was_read_off_the_conflict(kind, request, tmp_path):
    leaf = request.getfixturevalue(kind)
    again = reload(leaf, tmp_path)
    assert len(again.selection_["n_contexts"]) > 1
    for key in sorted(vars(leaf)):
        same(vars(leaf)[key], vars(again)[key])


@pytest.mark.parametrize("name", FITS)
def test_all_that_a_fit_leaves_behind_is_in_the_list(fitted, name):
    leaf, *_ = fitted(name)
    assert set(vars(leaf)) - set(leaf.get_params()) <= {*ATTRIBUTES.values(), *STATE}


def prune(leaf, X, y):
    return leaf.prune()


def merge(leaf, X, y):
    return leaf.merge(0, 1)


def open_a_context(leaf, X, y):
    return leaf.partial_fit(X[:60], X[:60] @ [9.0, -9.0] + 40.0, groups=GROUPS[:60] + 100)


@pytest.mark.parametrize("change", [prune, merge, open_a_context])
@pytest.mark.parametrize("name", ["linear", "network", "chain"])
def test_it_goes_on_as_if_it_had_never_been_away(fitted, name, change, tmp_path):
    leaf, X, y = fitted(name)
    again = reload(leaf, tmp_path)
    quietly(change, leaf, X, y)
    quietly(change, again, X, y)
    for one in (
        again,
        reload(leaf, tmp_path),
    ):  # changed after the way through the folder, or before
        assert one.n_contexts_ == leaf.n_contexts_
        same(leaf.contexts_, one.contexts_)
        same(leaf.history_, one.history_)
        same(leaf.replay_buffer_, one.replay_buffer_)
        same(leaf.predict_each(X), one.predict_each(X))
        same(leaf.identify(X, y, GROUPS), one.identify(X, y, GROUPS))


def test_a_context_can_open_at_all(fitted):
    leaf, X, y = fitted("linear")
    assert open_a_context(leaf, X, y).n_contexts_ == 3


def test_a_context_with_one_class_comes_back(tmp_path):
    labels = np.where(GROUPS % 3 == 0, "yes", NAMES)
    leaf = quietly(
        LeafClassifier(2, local_model=LogisticRegression(), random_state=0).fit, X, labels, GROUPS
    )
    assert "ConstantModel" in {type(model).__name__ for model in leaf.local_models_}
    same_answers(leaf, reload(leaf, tmp_path), X, labels)


DAYS = [datetime.date(2026, 1, 1) + datetime.timedelta(int(day)) for day in GROUPS]
LABELS = {
    "text": [f"site {group:02}" for group in GROUPS],
    "floats": GROUPS + 0.5,
    "booleans": GROUPS % 2 == 0,
    "bytes of numbers": GROUPS.astype(np.uint8),
    "tuples": [("site", int(group)) for group in GROUPS],
    "mixed": [int(group) if group % 2 else f"site {group}" for group in GROUPS],
    "days": DAYS,
    "moments": np.array(DAYS, dtype="datetime64[ns]"),
    "column": pd.Series(LABEL := [f"s{group}" for group in GROUPS]),
    "categories": pd.Series(LABEL, dtype="category"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_groups_keep_their_labels(kind, tmp_path):
    leaf = LeafRegressor(1, local_model=LinearRegression()).fit(X, Y, LABELS[kind])
    again = reload(leaf, tmp_path)
    assert again.groups_.dtype.kind == leaf.groups_.dtype.kind
    assert again.groups_.tolist() == leaf.groups_.tolist()
    same(again.predict(X, groups=LABELS[kind]), leaf.predict(X, groups=LABELS[kind]))


def test_labels_that_no_file_can_hold_are_refused(tmp_path):
    groups = [frozenset([int(group)]) for group in GROUPS]
    leaf = LeafRegressor(1, local_model=LinearRegression()).fit(X, Y, groups)
    sentence = (
        r"^groups_.0 holds frozenset.*, of type frozenset, which a model folder cannot hold; use"
        r" text, numbers, dates, or tuples of them.$"
    )
    with pytest.raises(ValueError, match=sentence):
        leaf.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "labels", [Y > 0, (Y > 0) * 2 - 1, np.where(Y > 0, 0.5, 1.5), NAMES.astype(object)]
)
def test_classes_keep_their_type(labels, tmp_path):
    if labels.dtype.kind == "f":
        labels = labels.astype(int).astype(float)
    leaf = LeafClassifier(1, local_model=LogisticRegression()).fit(X, labels, GROUPS)
    again = reload(leaf, tmp_path)
    assert again.classes_.dtype == leaf.classes_.dtype
    same(again.predict(X), leaf.predict(X))


def test_parameters_come_back_and_generators_stand_where_they_stood(tmp_path):
    parameters = {
        "allocation": Annealed(0.5, 0.6),
        "temperature": np.float32(0.5),
        "random_state": np.random.RandomState(3),
        "tol": 1e-3,
    }
    leaf = quietly(LeafRegressor(2, local_model=LinearRegression(), **parameters).fit, X, Y, GROUPS)
    again = reload(leaf, tmp_path)
    assert again.allocation == Annealed(0.5, 0.6)
    assert again.random_state.randint(1000) == leaf.random_state.randint(1000)
    assert (again.temperature, again.tol, again.get_params()["local_model__fit_intercept"]) == (
        0.5,
        1e-3,
        True,
    )


def test_without_a_memory_no_training_rows_are_in_the_folder(fitted, tmp_path):
    leaf, *_ = fitted("linear")
    leaf.replay_buffer_ = None
    again = reload(leaf, tmp_path)
    assert again.replay_buffer_ is None
    same(leaf.predict_each(X), again.predict_each(X))
    assert "replay_buffer_" not in str(read_model(tmp_path / "model").sections)
    content = b"".join(read_model(tmp_path / "model").parts.values())
    assert not any(row.tobytes() in content for row in np.asarray(X))


def test_a_memory_that_no_file_can_hold_is_named(tmp_path):
    data = pd.DataFrame({"x": X[:, 0], "when": pd.date_range("2026-01-01", periods=120, tz="UTC")})
    model = make_pipeline(make_column_transformer((StandardScaler(), ["x"])), Ridge())
    leaf = LeafRegressor(1, local_model=model).fit(data, Y, GROUPS)
    sentence = (
        r"^column 'when' is of type datetime64\[.*UTC\], which a model folder cannot hold; turn it"
        r" into numbers, text, dates or categories."
        r" Or set replay_buffer_ to None: then no training rows are saved, and the model cannot be"
        r" updated.$"
    )
    with pytest.raises(ValueError, match=sentence):
        leaf.save(tmp_path / "model")
    leaf.replay_buffer_ = None
    same(reload(leaf, tmp_path).predict(data), leaf.predict(data))


class Mine(LeafRegressor):
    """A class that `load` cannot know."""


def test_what_cannot_be_saved_is_refused_in_a_sentence(fitted, tmp_path):
    with pytest.raises(NotFittedError):
        LeafRegressor().save(tmp_path / "model")
    leaf = Mine(1, local_model=LinearRegression()).fit(X, Y, GROUPS)
    with pytest.raises(
        ValueError,
        match=(
            r"^Mine is a class of your own, but only LeafRegressor and LeafClassifier can be saved;"
            r" fit one of "
        ),
    ):
        leaf.save(tmp_path / "model")
    leaf, *_ = fitted("linear")
    with pytest.raises(
        ValueError,
        match=(
            r"^local_model was changed after the fit, and no longer belongs to the local models;"
            r" fit again befo"
        ),
    ):
        leaf.set_params(local_model=None).save(tmp_path / "model")
    neighbours = LeafRegressor(1, local_model=KNeighborsRegressor(algorithm="kd_tree")).fit(
        X, Y, GROUPS
    )
    with pytest.raises(
        ValueError,
        match=(
            r"^local_model holds .*KDTree, which is not trusted in a model folder; choose"
            r" algorithm='brute'.$"
        ),
    ):
        neighbours.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_a_model_takes_the_place_of_another(fitted, tmp_path):
    for name in ("network", "linear"):
        leaf, X, _ = fitted(name)
        same(reload(leaf, tmp_path).predict(X), leaf.predict(X))
    assert sorted(os.listdir(tmp_path / "model")) == [
        "fitted.safetensors",
        "local-models.skops",
        "model.json",
    ]


def test_the_folder_says_what_it_holds(fitted, tmp_path):
    leaf, *_ = fitted("logistic")
    leaf.save(tmp_path / "model")
    section = read_model(tmp_path / "model").sections["estimator"]
    assert (
        section["class"],
        section["parameters"]["n_contexts"],
        section["fitted"]["n_contexts_"],
    ) == ("LeafClassifier", 2, 2)
    assert section["data"]["rows"] == 120
    assert section["data"]["groups"] == 12
    assert re.fullmatch("[0-9a-f]{64}", section["data"]["sha256"])
    again = quietly(deepcopy(leaf).set_params(random_state=5).fit, X, NAMES, GROUPS)
    again.save(tmp_path / "again")
    assert (
        read_model(tmp_path / "again").sections["estimator"]["data"] == section["data"]
    )  # the same data, whatever the seed
