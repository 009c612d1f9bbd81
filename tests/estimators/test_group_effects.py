"""Group effects: predictions for known and new groups, intervals, messages, files."""

import numpy as np
import pytest

import leaflearn
from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.engines import settings
from leaflearn.messages import LeafWarning

M, N = 40, 20


def clinics(seed=0, m=M, n=N):
    """Groups that differ in their intercept and slope, and a nonlinear mean."""
    rng = np.random.default_rng(seed)
    group, X = np.repeat(np.arange(m), n), rng.normal(size=(m * n, 2))
    effect = rng.normal(size=(m, 2)) * [1.0, 0.5]
    y = np.sin(X[:, 1]) + X[:, 0] + effect[group, 0] + effect[group, 1] * X[:, 0]
    return X, y + rng.normal(0, 0.3, m * n), group


@pytest.fixture(scope="module")
def fitted():
    X, y, group = clinics()
    is_train = np.arange(len(y)) % 2 == 0
    leaf = LeafRegressor(local_model="smooth", random_state=0)
    return leaf.fit(X[is_train], y[is_train], groups=group[is_train]), X, y, group, is_train


def rmse(prediction, y):
    return float(np.sqrt(np.mean((prediction - y) ** 2)))


def test_known_groups_are_predicted_with_their_effects(fitted):
    leaf, X, y, group, is_train = fitted
    assert leaf.n_contexts_ == 1
    left = ~is_train
    with_effects = rmse(leaf.predict(X[left], groups=group[left]), y[left])
    assert with_effects < 0.4  # the noise alone is 0.3
    assert rmse(leaf.predict(X[left]), y[left]) > 1.0


def test_attributes_have_the_documented_shapes(fitted):
    leaf = fitted[0]
    n_effects = leaf.group_effects_.shape[2]
    assert leaf.group_effects_.shape == (M, 1, n_effects)
    assert leaf.effect_variances_.shape == (1, 1, n_effects)
    assert leaf.priors_.tolist() == [1.0]
    assert leaf.noise_.shape == (1, 1)
    assert leaf.noise_[0, 0] == pytest.approx(0.09, rel=0.3)


@pytest.mark.parametrize("n_labels", [1, 5, 10])
def test_a_few_labels_of_a_new_group_help(fitted, n_labels):
    leaf = fitted[0]
    X, y, group = clinics(seed=1)
    position = np.tile(np.arange(N), M)
    few, rest = position < n_labels, position >= n_labels
    found = leaf.identify(X[few], y[few], group[few])
    error = rmse(leaf.predict(X[rest], context=found, groups=group[rest]), y[rest])
    assert error < {1: 0.95, 5: 0.6, 10: 0.5}[n_labels]


def test_ninety_percent_intervals_cover(fitted):
    leaf, X, y, group, is_train = fitted
    left = ~is_train
    covered = []
    mean, std = leaf.predict(X[left], groups=group[left], return_std=True)
    covered.append(np.mean(np.abs(y[left] - mean) < 1.645 * std))
    new_X, new_y, new_group = clinics(seed=2, m=300)
    few = np.tile(np.arange(N), 300) < 5
    found = leaf.identify(new_X[few], new_y[few], new_group[few])
    mean, std = leaf.predict(new_X[~few], context=found, groups=new_group[~few], return_std=True)
    covered.append(np.mean(np.abs(new_y[~few] - mean) < 1.645 * std))
    mean, std = leaf.predict(new_X, return_std=True)  # groups of which nothing is known
    covered.append(np.mean(np.abs(new_y - mean) < 1.645 * std))
    known, few_labels, no_labels = covered
    assert 0.86 < known < 0.94, covered
    assert 0.86 < few_labels < 0.94, covered
    # The variances come from 40 groups only.
    assert 0.83 < no_labels < 0.97, covered


def test_unknown_groups_are_counted_in_one_warning(fitted):
    leaf, X, *_ = fitted
    with pytest.warns(LeafWarning) as caught:
        answers = leaf.predict(X[:3], groups=[0, 900, 901])
    (warning,) = caught
    assert str(warning.message) == (
        "2 groups are not known; 2 rows were predicted without group effects. Identify such groups "
        "from a few labelled rows first: predict(X, context=identify(...), groups=...)."
    )
    np.testing.assert_allclose(answers[1:], leaf.predict(X[1:3]))


def test_contexts_of_kind_are_separated_from_effects_of_degree():
    rng = np.random.default_rng(0)
    group, X = np.repeat(np.arange(60), 15), rng.normal(size=(900, 1))
    y = np.where(group % 3, 1.0, -2.0) * X[:, 0] + rng.normal(0, 0.5, 60)[group]
    y = y + rng.normal(0, 0.2, 900)
    leaf = LeafRegressor(local_model="linear", random_state=0).fit(X, y, groups=group)
    assert leaf.n_contexts_ == 2
    assert (leaf.contexts_ == (np.arange(60) % 3 == 0)).all()
    assert leaf.probabilities_.max(1).min() > 0.9
    np.testing.assert_allclose(leaf.predict_each([[1.0]])[0], [1, -2], atol=0.3)
    assert leaf.selection_["n_contexts"].max() >= 3


@pytest.mark.parametrize("local_model", ["linear", "smooth"])
def test_more_contexts_than_the_data_fill_leave_finite_models(local_model):
    rng = np.random.default_rng(0)
    group, X = np.repeat(np.arange(24), 2), rng.normal(size=(48, 3))
    y = np.where(group % 2, 1.0, -1.0) * X[:, 0]
    leaf = LeafRegressor(6, local_model=local_model, random_state=0).fit(X, y, groups=group)
    assert leaf.n_contexts_ == 6
    for values in (leaf.predict_each(X), leaf.probabilities_, leaf.noise_, leaf.group_effects_):
        assert np.isfinite(values).all()


def test_one_group_that_differs_is_no_context():
    X, y, group = clinics(m=30, n=10)
    y = np.where(group == 7, 30 - y, y)
    leaf = LeafRegressor(local_model="linear", random_state=0).fit(X, y, groups=group)
    assert leaf.n_contexts_ == 1


def test_a_context_of_few_groups_has_the_variances_of_all():
    X, y, group = clinics(m=40, n=10)
    y = np.where(group < 3, 20 - 3 * y, y)
    leaf = LeafRegressor(2, local_model="linear", random_state=0).fit(X, y, groups=group)
    assert leaf.contexts_[:3].tolist() == [1, 1, 1]
    assert leaf.usage_[1] < 0.15
    relative = leaf.effect_variances_[:, 0] / leaf.noise_
    assert relative.max() < 1e3


def test_as_many_contexts_as_groups_can_be_requested():
    X, y, group = clinics(m=4, n=5)
    leaf = LeafRegressor(4, local_model="linear", random_state=0).fit(X, y, groups=group)
    assert leaf.n_contexts_ == 4
    assert np.isfinite(leaf.predict(X, groups=group)).all()


def test_only_ratios_of_weights_matter_and_rows_of_weight_zero_are_left_out():
    X, y, group = clinics(m=20, n=10)
    weight = np.where(np.arange(len(y)) % 5, 1.0, 0.0)
    left = weight > 0

    def fit(X, y, group, weight=None):
        leaf = LeafRegressor(1, local_model="linear", group_effects="intercept")
        return leaf.fit(X, y, groups=group, sample_weight=weight).predict(X[:9], groups=group[:9])

    np.testing.assert_allclose(fit(X, y, group, weight), fit(X, y, group, 7 * weight))
    np.testing.assert_allclose(fit(X, y, group), fit(X, y, group, np.full(len(y), 3.0)))
    zero = LeafRegressor(1, local_model="linear").fit(X, y, groups=group, sample_weight=weight)
    none = LeafRegressor(1, local_model="linear").fit(X[left], y[left], groups=group[left])
    np.testing.assert_allclose(zero.group_effects_, none.group_effects_)


def test_units_of_the_target_do_not_matter():
    X, y, group = clinics(m=20, n=10)
    one, other = (
        LeafRegressor(local_model="linear", random_state=0).fit(X, values, groups=group)
        for values in (y, 1000 * y - 5)
    )
    np.testing.assert_allclose(
        other.predict(X, groups=group), 1000 * one.predict(X, groups=group) - 5, rtol=1e-4
    )


def test_several_targets_have_effects_of_their_own():
    X, y, group = clinics()
    both = np.c_[y, -2 * y]
    leaf = LeafRegressor(1, local_model="linear").fit(X, both, groups=group)
    answers = leaf.predict(X, groups=group)
    assert answers.shape == both.shape
    np.testing.assert_allclose(answers[:, 1], -2 * answers[:, 0], rtol=1e-3, atol=1e-3)


def test_effects_stay_where_few_rows_speak_for_them():
    rng = np.random.default_rng(1)
    group, X = np.repeat(np.arange(20), 2), rng.normal(size=(40, 1))
    y = X[:, 0] + rng.normal(0, 0.7, 20)[group] + rng.normal(size=40)
    for kind in ("auto", "intercept", "slopes"):
        leaf = LeafRegressor(local_model="linear", group_effects=kind, random_state=0)
        leaf.fit(X, y, groups=group)
        assert leaf.effect_variances_.shape[2] == (2 if kind == "slopes" else 1), kind


def test_without_group_effects_groups_have_none():
    X, y, group = clinics()
    leaf = LeafRegressor(1, local_model="linear", group_effects=None).fit(X, y, groups=group)
    assert leaf.group_effects_.shape == (M, 1, 0)
    np.testing.assert_allclose(leaf.predict(X, groups=group), leaf.predict(X))


def test_it_comes_back_from_a_folder(fitted, tmp_path):
    leaf, X, y, group, _ = fitted
    leaf.save(tmp_path / "model")
    again = leaflearn.load(tmp_path / "model")
    np.testing.assert_array_equal(
        again.predict(X, groups=group, return_std=True),
        leaf.predict(X, groups=group, return_std=True),
    )
    np.testing.assert_array_equal(again.group_effects_, leaf.group_effects_)
    found = [each.identify(X[:4], y[:4]).effects for each in (leaf, again)]
    np.testing.assert_array_equal(*found)


def test_score_identifies_groups_with_their_effects(fitted):
    leaf = fitted[0]
    X, y, group = clinics(seed=3)
    assert leaf.score(X, y, groups=group) > 0.9


REFUSED = {
    "an unknown kind": (
        {"group_effects": "many"},
        "group_effects='many' is not known; choose one of None, 'intercept', 'slopes', 'auto'.",
    ),
    "a network": (
        {"group_effects": "slopes", "local_model": "mlp"},
        "group_effects='slopes', but only local_model='linear', 'smooth' and 'boosting', or None, "
        "have group effects; choose one of these, or group_effects=None.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_parameters_get_one_sentence(name):
    parameters, sentence = REFUSED[name]
    X, y, group = clinics(m=6, n=4)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        LeafRegressor(**{"local_model": "linear", **parameters}).fit(X, y, groups=group)
    assert str(error.value) == sentence


def voters(n_classes, seed=0, m=60, n=15):
    """Groups that differ in how much they like each class, beside what the inputs say."""
    rng = np.random.default_rng(seed)
    group, X = np.repeat(np.arange(m), n), rng.normal(size=(m * n, 2))
    logits = X @ rng.normal(size=(2, n_classes)) + 2 * rng.normal(size=(m, n_classes))[group]
    y = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    return X, np.array(["red", "green", "blue", "white"])[y], group


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_are_predicted_with_the_effects_of_their_group(n_classes):
    X, y, group = voters(n_classes)
    is_train = np.arange(len(y)) % 2 == 0
    leaf = LeafClassifier(1, local_model="linear")
    leaf.fit(X[is_train], y[is_train], groups=group[is_train])
    left = ~is_train
    with_effects = np.mean(leaf.predict(X[left], groups=group[left]) != y[left])
    without = np.mean(leaf.predict(X[left]) != y[left])
    assert with_effects < 0.75 * without
    probabilities = leaf.predict_proba(X[left], groups=group[left])
    np.testing.assert_allclose(probabilities.sum(1), 1)
    assert probabilities.min() > 0
    log_loss = -np.log(
        probabilities[np.arange(left.sum()), np.searchsorted(leaf.classes_, y[left])]
    )
    assert log_loss.mean() < np.log(n_classes)


def test_labels_that_are_not_known_are_no_evidence():
    X, y, group = voters(4)
    leaf = LeafClassifier(1, local_model="linear").fit(X, y, groups=group)
    known = leaf.identify(X[:5], y[:5])
    more = leaf.identify(X[:6], [*y[:5], "purple"])
    np.testing.assert_allclose(more.effects, known.effects)
    assert leaf.identify(X[:1], ["purple"]).is_new.tolist() == [True]


SAVED = {
    "classes": (LeafClassifier, "linear", 2),
    "several classes": (LeafClassifier, "smooth", 3),
    "boosting": (LeafRegressor, "boosting", 2),
    "boosting of classes": (LeafClassifier, "boosting", 2),
}


@pytest.mark.parametrize("name", SAVED)
def test_closed_form_models_come_back_from_a_folder(name, tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "BOOSTING", settings.BoostingSettings(max_trees=10, n_folds=2))
    kind, local_model, n_classes = SAVED[name]
    X, y, group = voters(n_classes, m=20, n=20)
    y = y if kind is LeafClassifier else X[:, 0] + (y == "red")
    leaf = kind(2, local_model=local_model, group_effects="intercept", random_state=0)
    leaf.fit(X, y, groups=group).save(tmp_path / "model")
    assert (tmp_path / "model" / "local-models.skops").exists() == (local_model == "boosting")
    again = leaflearn.load(tmp_path / "model")
    predict = "predict_proba" if kind is LeafClassifier else "predict"
    new = leaf.identify(X[:9], y[:9]), again.identify(X[:9], y[:9])
    np.testing.assert_array_equal(new[0].probability, new[1].probability)
    for where in ({"groups": group}, {"context": new[0]}, {"context": 1}):
        found, expected = (getattr(each, predict)(X, **where) for each in (again, leaf))
        np.testing.assert_array_equal(found, expected)
    for each in (leaf, again):
        each.partial_fit(X[:9], y[:9], groups=np.repeat([0, 98, 99], 3))
        each.merge(0, 1)
    last = [getattr(each, predict)(X, groups=group) for each in (leaf, again)]
    np.testing.assert_array_equal(*last)


def test_standard_deviations_need_a_model_of_the_noise():
    X, y, group = clinics(m=6, n=4)
    leaf = LeafRegressor(1, max_epochs=1).fit(X, y, groups=group)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        leaf.predict(X, return_std=True)
    assert str(error.value) == (
        "return_std=True needs a model of the noise; fit with local_model='linear' or 'smooth'."
    )
