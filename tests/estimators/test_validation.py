"""Every kind of input that users have.

And one exact sentence for every kind that cannot be used.
"""

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from torch import nn

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.engines.local_models import Scaling

QUICK = {"max_epochs": 3, "n_init": 1, "random_state": 0}
CONTAINERS = {
    "lists": (np.ndarray.tolist, np.ndarray.tolist),
    "pandas": (lambda X: pd.DataFrame(X, columns=["a", "b"]), pd.Series),
    "polars": (lambda X: pl.DataFrame(X, schema=["a", "b"]), pl.Series),
    "torch": (torch.as_tensor, lambda y: torch.as_tensor(y) if y.dtype.kind != "U" else y),
}


@pytest.fixture(scope="module", params=[None, LinearRegression()], ids=["networks", "lines"])
def regression(request, same_conflict):
    """A fit of plain arrays, and its local model."""
    data = same_conflict
    return request.param, LeafRegressor(2, local_model=request.param, **QUICK).fit(
        data.X, data.y, data.groups
    )


@pytest.fixture(scope="module", params=[None, LogisticRegression()], ids=["networks", "lines"])
def classification(request, same_conflict):
    """A fit of plain arrays, and its local model."""
    data = same_conflict
    return request.param, LeafClassifier(2, local_model=request.param, **QUICK).fit(
        data.X, data.labels, data.groups
    )


@pytest.mark.parametrize("container", CONTAINERS)
def test_regression_answers_do_not_depend_on_the_container(conflict, container, regression):
    (local_model, plain), (as_X, as_y) = regression, CONTAINERS[container]
    other = LeafRegressor(2, local_model=local_model, **QUICK).fit(
        as_X(conflict.X), as_y(conflict.y), as_y(conflict.groups)
    )
    np.testing.assert_allclose(
        other.predict_each(as_X(conflict.X)), plain.predict_each(conflict.X), atol=1e-12
    )
    assert (
        other.identify(as_X(conflict.X), as_y(conflict.y), as_y(conflict.groups)).context.tolist()
        == plain.contexts_.tolist()
    )
    assert other.score(as_X(conflict.X), as_y(conflict.y), as_y(conflict.groups)) == pytest.approx(
        plain.score(conflict.X, conflict.y, conflict.groups)
    )
    if container in ("pandas", "polars"):
        assert other.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize("container", CONTAINERS)
def test_classification_answers_do_not_depend_on_the_container(conflict, container, classification):
    (local_model, plain), (as_X, as_y) = classification, CONTAINERS[container]
    other = LeafClassifier(2, local_model=local_model, **QUICK).fit(
        as_X(conflict.X), as_y(conflict.labels), as_y(conflict.groups)
    )
    assert other.predict_each(as_X(conflict.X)).tolist() == plain.predict_each(conflict.X).tolist()


@pytest.mark.parametrize("labels", [["no", "yes"], [3, 7], [False, True], [0.0, 1.0]])
def test_labels_come_back_as_they_were(conflict, labels):
    y = np.where(conflict.labels == "good", labels[1], labels[0])
    leaf = LeafClassifier(local_model=LogisticRegression(), **QUICK).fit(
        conflict.X, y, conflict.groups
    )
    assert leaf.classes_.tolist() == labels
    assert set(leaf.predict(conflict.X).tolist()) == set(labels)


@pytest.mark.parametrize(
    "rename",
    [
        lambda g: f"site {g:02d}",
        lambda g: ("site", g),
        lambda g: 100 - g,
        lambda g: np.datetime64("2026-01-01") + g,
        lambda g: g if g % 2 else f"site {g}",  # mixed types have no order
        lambda g: frozenset([g]),
    ],
)
def test_groups_may_have_labels_of_any_hashable_type(conflict, regressor, rename):
    renamed = [rename(g) for g in conflict.groups.tolist()]
    leaf = LeafRegressor(local_model=LinearRegression(), random_state=0).fit(
        conflict.X, conflict.y, renamed
    )
    before = dict(
        zip(
            [rename(g) for g in regressor.groups_.tolist()],
            regressor.contexts_.tolist(),
            strict=True,
        )
    )
    assert dict(zip(leaf.groups_, leaf.contexts_.tolist(), strict=True)) == before
    np.testing.assert_allclose(
        leaf.predict(conflict.X, groups=renamed),
        regressor.predict(conflict.X, groups=conflict.groups),
        atol=1e-9,
    )


def test_rows_of_a_group_need_not_be_neighbours(conflict, regressor):
    order = np.random.default_rng(1).permutation(120)
    leaf = LeafRegressor(local_model=LinearRegression(), random_state=0).fit(
        conflict.X[order], conflict.y[order], conflict.groups[order]
    )
    assert leaf.contexts_.tolist() == regressor.contexts_.tolist()


@pytest.mark.parametrize("local_model", [None, LinearRegression()])
def test_groups_may_be_of_any_size(local_model):
    rng = np.random.default_rng(0)
    sizes = [1, 1, 2, 900, 3, 1, 40, 7]
    groups = np.repeat(np.arange(8), sizes)
    X = rng.normal(size=(len(groups), 1))
    y = np.where(groups % 2 == 0, 1.0, -1.0) * X[:, 0]
    leaf = LeafRegressor(local_model=local_model, **QUICK).fit(X, y, groups)
    assert len(leaf.contexts_) == 8
    assert np.isfinite(leaf.predict(X, groups=groups)).all()


def test_rows_of_weight_zero_are_as_if_they_were_not_there(conflict):
    weight = np.ones(120)
    weight[::4] = 0.0
    weight[:10] = 0.0  # the whole first group
    keep = weight > 0
    leaf = LeafRegressor(**QUICK).fit(conflict.X, conflict.y, conflict.groups, sample_weight=weight)
    other = LeafRegressor(**QUICK).fit(
        conflict.X[keep], conflict.y[keep], conflict.groups[keep], sample_weight=weight[keep]
    )
    assert leaf.groups_.tolist() == list(range(1, 12))
    np.testing.assert_allclose(leaf.predict_each(conflict.X), other.predict_each(conflict.X))


def test_weights_act_inside_a_group():
    """One context; every group says 0 once and 1 once, and trusts the 1 nine times as much."""
    X, y, groups = np.zeros((20, 1)), np.tile([0.0, 1.0], 10), np.repeat(np.arange(10), 2)
    leaf = LeafRegressor(1, local_model=LinearRegression()).fit(
        X, y, groups, sample_weight=np.tile([1.0, 9.0], 10)
    )
    assert leaf.predict([[0.0]])[0] == pytest.approx(0.9)
    scaled = LeafRegressor(1, local_model=LinearRegression()).fit(
        X, y, groups, sample_weight=np.tile([1.0, 9.0], 10) * np.repeat([1, 50], 10)
    )
    assert scaled.predict([[0.0]])[0] == pytest.approx(0.9)  # a heavier group is not heavier


@pytest.mark.parametrize("local_model", [None, LinearRegression()])
def test_several_outputs(conflict, local_model):
    Y = np.stack([conflict.y, -1000 * conflict.y], 1)
    leaf = LeafRegressor(local_model=local_model, **QUICK).fit(conflict.X, Y, conflict.groups)
    assert leaf.predict(conflict.X).shape == (120, 2)
    assert leaf.predict_each(conflict.X).shape == (120, 2, 2)
    rows = np.square(leaf.predict(conflict.X, groups=conflict.groups) - Y).mean(1)
    assert leaf.empirical_error_ == pytest.approx(rows.reshape(12, 10).mean(1).mean())
    assert np.isfinite(leaf.score(conflict.X, Y, conflict.groups))


def test_images_go_through_a_module_factory():
    rng = np.random.default_rng(0)
    X, y, groups = (
        rng.random((40, 3, 6, 6)).astype(np.float32),
        rng.integers(3, size=40),
        np.repeat(np.arange(10), 4),
    )
    seen = []

    def factory(input_shape, n_outputs):
        seen.append((tuple(input_shape), n_outputs))
        return nn.Sequential(
            nn.Conv2d(input_shape[0], 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, n_outputs)
        )

    leaf = LeafClassifier(2, local_model=factory, max_epochs=2, random_state=0).fit(X, y, groups)
    assert set(seen) == {((3, 6, 6), 3)}
    assert leaf.predict_proba_each(X).shape == (40, 2, 3)
    np.testing.assert_allclose(leaf.predict_proba(X).sum(1), 1.0)


@pytest.mark.parametrize("sparse", [scipy.sparse.csr_array, scipy.sparse.csc_matrix])
def test_sparse_matrices_go_to_local_models_that_take_them(conflict, regressor, sparse):
    leaf = LeafRegressor(local_model=LinearRegression(), random_state=0).fit(
        sparse(conflict.X), conflict.y, conflict.groups
    )
    assert leaf.contexts_.tolist() == regressor.contexts_.tolist()
    assert leaf.identify(sparse(conflict.X[:5]), conflict.y[:5]).context[0] == leaf.contexts_[0]


def test_frames_with_text_reach_a_pipeline_by_their_column_names(conflict):
    frame = pd.DataFrame(
        {
            "a": conflict.X[:, 0],
            "b": conflict.X[:, 1],
            "shop": np.where(conflict.X[:, 0] > 0, "north", "south"),
        }
    )
    local_model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["shop"]), ("passthrough", ["a", "b"])),
        LinearRegression(),
    )
    leaf = LeafRegressor(local_model=local_model, random_state=0).fit(
        frame, conflict.y, conflict.groups
    )
    assert (leaf.contexts_ == conflict.truth).all()


def test_missing_values_go_to_local_models_that_take_them(conflict):
    X = conflict.X.copy()
    X[::7, 1] = np.nan
    leaf = LeafRegressor(
        local_model=HistGradientBoostingRegressor(max_iter=3), max_epochs=3, n_init=1
    ).fit(X, conflict.y, conflict.groups)
    assert np.isfinite(leaf.predict(X)).all()


def test_the_unit_of_y_does_not_matter(conflict):
    plain = LeafRegressor(**QUICK).fit(conflict.X, conflict.y, conflict.groups)
    large = LeafRegressor(**QUICK).fit(conflict.X, 1e6 * conflict.y + 1e9, conflict.groups)
    np.testing.assert_allclose(
        (large.predict(conflict.X) - 1e9) / 1e6, plain.predict(conflict.X), atol=1e-4
    )
    assert large.empirical_error_ == pytest.approx(1e12 * plain.empirical_error_, rel=1e-3)


def test_a_constant_column_is_left_in_its_unit():
    scaling = Scaling.of(np.array([[0.1, 5.0], [0.1, 7.0], [0.1, 9.0]]))
    assert scaling.scale[0] == 1.0
    np.testing.assert_allclose(scaling.undo(scaling.apply(np.array([[0.3, 4.0]]))), [[0.3, 4.0]])


X, Y, GROUPS = np.arange(12.0).reshape(6, 2), np.arange(6.0), np.array([0, 0, 1, 1, 2, 2])
NAN = np.where(X == 5.0, np.nan, X)
REFUSED = {
    "NaN in X": (
        NAN,
        Y,
        GROUPS,
        (
            "X holds 1 NaN or infinite values, the first in row 2, column 1; impute them or leave"
            " these rows out."
        ),
    ),
    "NaN in y": (
        X,
        [0, 1, 2, np.inf, 4, 5],
        GROUPS,
        (
            "y holds 1 NaN or infinite values, the first in row 3; impute them or leave these rows"
            " out."
        ),
    ),
    "text as y": (
        X,
        list("abcdef"),
        GROUPS,
        "y holds 'a', but LeafRegressor needs numbers; use LeafClassifier for labels.",
    ),
    "no y": (X, None, GROUPS, "LeafRegressor requires y to be passed, but the target y is None."),
    "y in three dimensions": (
        X,
        np.zeros((6, 1, 1)),
        GROUPS,
        (
            "y has shape (6, 1, 1), but numbers of shape (n_samples,) or (n_samples, n_outputs)"
            " were expected."
        ),
    ),
    "groups too short": (
        X,
        Y,
        [1, 2],
        "groups has 2 entries, but X has 6 rows; give one group label for every row.",
    ),
    "groups in two dimensions": (
        X,
        Y,
        np.zeros((6, 2)),
        "groups has shape (6, 2), but one label for every row was expected, shape (n_samples,).",
    ),
    "a missing group": (
        X,
        Y,
        [None, 1, 1, 2, 2, 2],
        "groups holds 1 missing values; give these rows a group of their own or leave them out.",
    ),
    "one group": (
        X,
        Y,
        np.zeros(6),
        (
            "there are fewer groups (1, n_samples=6) than contexts (n_contexts=2); give more groups"
            " or ask for fewer contexts."
        ),
    ),
    "a column name as groups": (
        X,
        Y,
        "site",
        (
            "groups='site' is a single string, but one label for every row was expected; pass the"
            " column itself."
        ),
    ),
    "text columns": (
        pd.DataFrame({"a": Y, "shop": list("nsnsns"), "when": pd.date_range("2026", periods=6)}),
        Y,
        GROUPS,
        (
            "X holds columns that are not numbers ('shop', 'when'); encode them as numbers or leave"
            " them out."
        ),
    ),
    "NaN in a named column": (
        pd.DataFrame(NAN, columns=["a", "b"]),
        Y,
        GROUPS,
        (
            "X holds 1 NaN or infinite values, the first in row 2, column 'b'; impute them or leave"
            " these rows out."
        ),
    ),
    "no columns": (
        pd.DataFrame(index=range(6)),
        Y,
        GROUPS,
        (
            "X is a frame of shape (6, 0) without columns, but at least one column of numbers was"
            " expected."
        ),
    ),
    "images": (
        np.zeros((6, 3, 8, 8)),
        Y,
        GROUPS,
        (
            "X has shape (6, 3, 8, 8), but the default local model takes rows of features; pass a"
            " module factory as local_model, or reshape X to (n_samples, n_features)."
        ),
    ),
    "zero rows": (
        X[:0],
        Y[:0],
        GROUPS[:0],
        (
            "Found array with 0 sample(s) (shape=(0, 2)) while a minimum of 1 is required by"
            " LeafRegressor."
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_gets_one_sentence(case):
    x, y, groups, message = REFUSED[case]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        LeafRegressor(2, max_epochs=1).fit(x, y, groups)


def test_one_class_only_gets_one_sentence():
    with pytest.raises(
        ValueError,
        match=r"^y holds one class only, 'a', but a classifier needs at least two classes\.$",
    ):
        LeafClassifier().fit(X, ["a"] * 6, GROUPS)


def test_weights_that_are_all_zero_get_one_sentence():
    message = (
        "sample_weight is zero for every row, so there is nothing to learn from; give at least one"
        " row a positive weight."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        LeafRegressor().fit(X, Y, GROUPS, sample_weight=np.zeros(6))


def test_another_number_of_features_gets_one_sentence(regressor):
    with pytest.raises(
        ValueError,
        match=r"^X has 3 features, but LeafRegressor is expecting 2 features as input\.$",
    ):
        regressor.predict(np.zeros((4, 3)))


def test_labels_of_another_type_get_one_sentence(classifier, conflict):
    message = (
        "y holds 1, but the labels in training were ['bad', 'good']; give labels of the same type."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        classifier.identify(conflict.X[:1], [1])


PARAMETERS = {
    "n_contexts": (0, "n_contexts=0, but a whole number of at least 1, or 'auto', was expected."),
    "n_init": ("many", "n_init='many', but a whole number of at least 1 was expected."),
    "groups_per_step": (
        "auto",
        "groups_per_step='auto', but a whole number of at least 1 was expected.",
    ),
    "learning_rate": (-1, "learning_rate=-1, but a positive number was expected."),
    "temperature": (0, "temperature=0, but a positive number was expected."),
    "rows_per_group": (2.5, "rows_per_group=2.5, but a whole number of at least 1 was expected."),
    "n_iter_no_change": (0, "n_iter_no_change=0, but a whole number of at least 1 was expected."),
    "max_grad_norm": (-1, "max_grad_norm=-1, but a positive number was expected."),
    "out_of_fold": (3, "out_of_fold=3 is not known; choose one of True, False, 'auto'."),
    "callbacks": (
        [print],
        (
            "callbacks holds something that is not a leaflearn.core.training.Callback; pass a list"
            " of such objects."
        ),
    ),
    "optimizer": ("magic", "optimizer='magic' is not known; choose one of 'adam', 'adamw', 'sgd'."),
    "schedule": (
        "magic",
        "schedule='magic' is not known; choose one of 'constant', 'linear', 'cosine'.",
    ),
    "init": (
        "magic",
        "init='magic' is not known; choose one of 'auto', 'conflict', 'seeded', 'random'.",
    ),
    "allocation": (
        "magic",
        (
            "allocation='magic' is not known; choose one of 'hard', 'sampled', 'soft', 'annealed',"
            " or pass a rule object."
        ),
    ),
    "loss": (
        "gce",
        (
            "loss='gce' exists, but not for regression; choose one of 'auto', 'squared', 'robust',"
            " or pass a loss object."
        ),
    ),
    "trim": (0.5, "trim=0.5, but a number of at least 0 and less than 0.5 was expected."),
    "local_model": (
        LogisticRegression(),
        (
            "local_model=LogisticRegression() is not a regressor, but LeafRegressor needs"
            " regressors as local models."
        ),
    ),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_wrong_parameter_gets_one_sentence(name):
    value, message = PARAMETERS[name]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        LeafRegressor(**{name: value}).fit(X, Y, GROUPS)


def test_a_device_that_is_not_there_gets_one_sentence():
    with pytest.raises(
        ValueError, match=r"^device='cuda:99' cannot be used here \(.*\); use 'auto' or 'cpu'\.$"
    ):
        LeafRegressor(device="cuda:99").fit(X, Y, GROUPS)


def test_a_module_of_the_wrong_shape_gets_one_sentence():
    message = (
        "the module of local_model((2,), 1) maps one row to shape (1, 5), but (1, 1) was expected;"
        " let its last layer have n_outputs units."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        LeafRegressor(local_model=lambda shape, n_outputs: nn.Linear(2, 5)).fit(X, Y, GROUPS)


LOCAL_MODELS = {
    "text": (
        "tree",
        (
            "local_model='tree' is neither None, 'linear', 'smooth', 'boosting', 'mlp', a factory "
            "(input_shape, n_outputs) -> torch.nn.Module, nor a scikit-learn estimator object; "
            "pass one of these."
        ),
    ),
    "a class": (
        LinearRegression,
        (
            "local_model=LinearRegression is a class, but an object was expected; write"
            " LinearRegression()."
        ),
    ),
    "a module": (
        nn.Linear(2, 1),
        (
            "local_model is a torch module, but every context needs one of its own; pass a function"
            " or class that makes one."
        ),
    ),
}


@pytest.mark.parametrize("kind", LOCAL_MODELS)
def test_a_local_model_that_is_none_of_the_three_kinds_gets_one_sentence(kind):
    local_model, message = LOCAL_MODELS[kind]
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        LeafRegressor(local_model=local_model).fit(X, Y, GROUPS)


class Net(nn.Module):
    def __init__(self, input_shape, n_outputs):
        super().__init__()
        self.layer = nn.Linear(input_shape[0], n_outputs)

    def forward(self, x):
        return self.layer(x)


def test_a_module_class_is_a_factory():
    leaf = LeafRegressor(local_model=Net, **QUICK).fit(X, Y, GROUPS)
    assert all(isinstance(model, Net) for model in leaf.local_models_)
    assert np.isfinite(pickle.loads(pickle.dumps(leaf)).predict(X)).all()


def test_a_module_that_cannot_take_a_row_gets_one_sentence():
    message = (
        "the module of local_model((2,), 1) cannot take one row of X: mat1 and mat2 shapes cannot"
        " be multiplied (1x2 and 9x1)."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        LeafRegressor(local_model=lambda shape, n_outputs: nn.Linear(9, n_outputs)).fit(
            X, Y, GROUPS
        )


@pytest.mark.parametrize(
    "labels",
    [["a", None, "b", "a", "b", "a"], pd.Series(["a", np.nan, "b", "a", "b", "a"], dtype=object)],
)
def test_missing_labels_get_one_sentence(labels):
    with pytest.raises(
        ValueError,
        match=(
            r"^y holds 1 missing labels; leave these rows out, or give them a label of their own\.$"
        ),
    ):
        LeafClassifier().fit(X, labels, GROUPS)
