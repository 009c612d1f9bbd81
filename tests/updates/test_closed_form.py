"""Models with group effects are updated as if all rows had come at once, and lose no context."""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest

import leaflearn
from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.updates.closed_form_means import NewContext, place_context

M, N = 40, 12


def sites(seed, slopes, first=0, m=M, n=N):
    """Groups in contexts of different slopes, with an offset of their own."""
    rng = np.random.default_rng(seed)
    group, X = np.repeat(np.arange(m), n), rng.normal(size=(m * n, 2))
    slope = np.asarray(slopes)[group % len(slopes)]
    y = slope * X[:, 0] + np.sin(X[:, 1]) + rng.normal(0, 0.4, m)[group]
    return X, y + rng.normal(0, 0.2, m * n), group + first


def fit(n_contexts=2, local_model="linear", slopes=(2.0, -2.0), **options):
    X, y, group = sites(0, slopes)
    leaf = LeafRegressor(n_contexts, local_model=local_model, random_state=0, **options)
    return leaf.fit(X, y, groups=group)


def check_attributes(leaf, m, n_contexts):
    assert leaf.n_contexts_ == n_contexts
    assert len(leaf.groups_) == len(leaf.contexts_) == len(leaf.group_effects_) == m
    assert leaf.probabilities_.shape == (m, n_contexts)
    assert leaf.priors_.shape == (n_contexts,)
    assert leaf.priors_.sum() == pytest.approx(1)
    assert leaf.effect_variances_.shape[0] == len(leaf.noise_) == n_contexts


@pytest.mark.parametrize("local_model", ["linear", "smooth"])
def test_new_groups_are_predicted_like_identified_ones(local_model, tmp_path):
    leaf = fit(local_model=local_model)
    X, y, group = sites(1, (2.0, -2.0), first=100, m=6)
    expected = leaf.predict(X, context=leaf.identify(X, y, group), groups=group)
    before = leaf.predict_each(X)
    leaf.partial_fit(X, y, groups=group)
    check_attributes(leaf, M + 6, 2)
    np.testing.assert_array_equal(leaf.contexts_[-6:], leaf.contexts_[:6])
    np.testing.assert_allclose(leaf.predict(X, groups=group), expected)
    np.testing.assert_array_equal(leaf.predict_each(X), before)  # means stay as they are
    leaf.save(tmp_path / "model")
    again = leaflearn.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X, groups=group), leaf.predict(X, groups=group))
    more = sites(2, (2.0, -2.0), first=100, m=6)
    both = [each.partial_fit(*more).predict(X, groups=group) for each in (leaf, again)]
    np.testing.assert_array_equal(*both)


def test_rows_of_a_known_group_add_up():
    at_once, in_parts = fit(), fit()
    X, y, group = sites(1, (2.0, -2.0), first=38, m=6)  # 38 and 39 are known
    at_once.partial_fit(X, y, groups=group)
    for part in (slice(0, 1), slice(1, 40), slice(40, None)):
        in_parts.partial_fit(X[part], y[part], groups=group[part])
    np.testing.assert_allclose(in_parts.group_effects_, at_once.group_effects_)
    np.testing.assert_allclose(in_parts.probabilities_, at_once.probabilities_)
    assert in_parts.fitted_state_.sizes[38] == 2 * N


def test_weights_of_a_fit_do_not_disturb_groups_without_new_rows():
    X, y, group = sites(0, (2.0, -2.0))
    weight = np.random.default_rng(0).uniform(1, 9, len(y))
    leaf = LeafRegressor(2, local_model="linear", random_state=0)
    leaf.fit(X, y, groups=group, sample_weight=weight)
    before = leaf.probabilities_, leaf.group_effects_
    # Of the most used context, which then stays the first.
    new = np.flatnonzero(group == leaf.groups_[leaf.contexts_ == 0][0])[:5]
    leaf.partial_fit(X[new], y[new], groups=[99] * 5)
    np.testing.assert_allclose(leaf.probabilities_[:M], before[0])
    np.testing.assert_allclose(leaf.group_effects_[:M], before[1])


@pytest.mark.parametrize("local_model", ["linear", "smooth"])
def test_groups_that_no_context_explains_open_one(local_model):
    leaf = fit(local_model=local_model)
    leaf.partial_fit(*sites(1, (9.0,), first=100, m=6))
    check_attributes(leaf, M + 6, 3)
    assert leaf.contexts_[-6:].tolist() == [2] * 6
    assert (leaf.contexts_[:M] < 2).all()
    assert not leaf.fitted_state_.is_unexplained.any()
    X, y, group = sites(2, (9.0,), first=200, m=3)
    assert leaf.identify(X, y, group).context.tolist() == [2] * 3
    rest = np.arange(len(y)) % N >= 4
    found = leaf.identify(X[~rest], y[~rest], group[~rest])
    assert np.std(y[rest] - leaf.predict(X[rest], context=found, groups=group[rest])) < 1.0


def test_groups_that_agree_on_no_context_stay_unexplained():
    leaf = fit()
    rng = np.random.default_rng(3)
    X, y, group = sites(1, (0.0,), first=100, m=2)
    leaf.partial_fit(X, rng.normal(0, 30, len(y)), groups=group)
    assert leaf.n_contexts_ == 2
    assert leaf.fitted_state_.is_unexplained[-2:].tolist() == [True, True]
    assert not leaf.fitted_state_.is_unexplained[:M].any()


def test_known_contexts_are_rarely_called_new():
    leaf = fit()
    n_contexts = []
    for seed in range(10):
        X, y, group = sites(seed + 1, (2.0, -2.0), first=100 * (seed + 1), m=20)
        n_contexts.append(leaf.partial_fit(X, y, groups=group).n_contexts_)
    assert n_contexts[-1] == 2
    assert leaf.fitted_state_.is_unexplained.mean() < 0.05


@pytest.mark.parametrize("local_model", ["linear", "smooth"])
def test_redundant_contexts_are_pruned_and_needed_ones_stay(local_model, tmp_path):
    X, y, group = sites(0, (2.0, -2.0))
    leaf = fit(4, local_model)
    assert leaf.prune().n_contexts_ == 2
    check_attributes(leaf, M, 2)
    kinds = leaf.contexts_ == leaf.contexts_[0]
    assert kinds.tolist() == [True, False] * (M // 2)
    assert np.std(y - leaf.predict(X, groups=group)) < 0.8
    assert leaf.prune().n_contexts_ == 2
    leaf.save(tmp_path / "model")
    again = leaflearn.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X, groups=group), leaf.predict(X, groups=group))
    assert again.identify(X[:9], y[:9]).context.tolist() == leaf.contexts_[:1].tolist()


def test_contexts_of_few_groups_are_pruned_by_their_usage():
    X, y, group = sites(0, (2.0, -2.0))
    y = np.where(group < 3, y + 30, y)
    leaf = LeafRegressor(3, local_model="linear", random_state=0).fit(X, y, groups=group)
    assert leaf.usage_[-1] == pytest.approx(3 / M)
    assert leaf.prune(min_usage=0.05, redundant=False).n_contexts_ == 3
    check_attributes(leaf.prune(min_usage=0.1, redundant=False), M, 2)


def test_contexts_that_conflict_are_merged_only_on_request():
    X, y, group = sites(0, (2.0, -2.0))
    leaf = fit()
    assert leaf.merge().n_contexts_ == 2
    leaf.merge(0, 1)
    check_attributes(leaf, M, 1)
    # What distinguished the contexts is now an effect of the groups.
    assert np.std(y - leaf.predict(X, groups=group)) < 1.2
    assert np.std(y - leaf.predict(X)) > 1.7


def test_groups_outside_the_replay_buffer_keep_their_own_line_when_contexts_merge():
    X, y, group = sites(0, (2.0, -2.0), m=60, n=60)
    y = y - np.sin(X[:, 1])
    leaf = LeafRegressor(2, local_model="linear", group_effects="slopes", random_state=0)
    leaf.fit(X, y, groups=group)
    stored = np.unique(leaf.replay_buffer_.group)
    assert len(stored) < 63
    leaf.replay_buffer_ = leaf.replay_buffer_.take(np.flatnonzero(leaf.replay_buffer_.group < 30))
    leaf.merge(0, 1)
    outside = group >= 30
    error = np.std(y[outside] - leaf.predict(X[outside], groups=group[outside]))
    assert error < 0.25  # the noise alone is 0.2


def test_a_classifier_is_updated_too():
    rng = np.random.default_rng(0)
    group, X = np.repeat(np.arange(60), 15), rng.normal(size=(900, 2))
    score = np.where(group % 2, 3.0, -3.0) * X[:, 0] + rng.normal(size=60)[group]
    y = np.where(score + rng.logistic(size=900) > 0, "yes", "no")
    known = group < 50
    leaf = LeafClassifier(3, local_model="linear", random_state=0)
    leaf.fit(X[known], y[known], groups=group[known])
    assert leaf.prune().n_contexts_ == 2
    leaf.partial_fit(X[~known], y[~known], groups=group[~known])
    check_attributes(leaf, 60, 2)
    odd = leaf.contexts_ == leaf.contexts_[1]
    assert np.mean(odd == np.arange(60) % 2) > 0.9
    assert np.mean(leaf.predict(X, groups=group) == y) > 0.8


def voters(seed, slopes=(3.0, -3.0), first=0, m=M, n=15, n_classes=2):
    """Classes that depend on slopes of contexts and on offsets of groups."""
    X, y, group = sites(seed, slopes, first, m, n)
    noise = np.random.default_rng(seed + 100).logistic(0, 0.7, len(y))
    return X, np.digitize(1.5 * y + noise, [0.0] if n_classes == 2 else [-1.0, 1.0]), group


@cache
def fit_once(n_classes, effects):
    leaf = LeafClassifier(2, local_model="linear", group_effects=effects, random_state=0)
    return leaf.fit(*voters(0, n_classes=n_classes))


def fit_voters(n_classes=2, effects="intercept"):
    return deepcopy(fit_once(n_classes, effects))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_new_groups_of_a_classifier_are_predicted_like_identified_ones(n_classes, tmp_path):
    leaf = fit_voters(n_classes=n_classes)
    X, y, group = voters(1, first=100, m=6, n_classes=n_classes)
    expected = leaf.predict_proba(X, context=leaf.identify(X, y, group), groups=group)
    before = leaf.predict_proba_each(X)
    leaf.partial_fit(X, y, groups=group)
    check_attributes(leaf, M + 6, 2)
    np.testing.assert_array_equal(leaf.contexts_[-6:], leaf.contexts_[:6])
    np.testing.assert_allclose(leaf.predict_proba(X, groups=group), expected)
    np.testing.assert_array_equal(leaf.predict_proba_each(X), before)  # means stay as they are
    leaf.save(tmp_path / "model")
    again = leaflearn.load(tmp_path / "model")
    more = voters(2, first=100, m=6, n_classes=n_classes)
    both = [each.partial_fit(*more).predict_proba(X, groups=group) for each in (leaf, again)]
    np.testing.assert_array_equal(*both)


def test_answers_of_a_stored_group_add_up():
    at_once, in_parts = fit_voters(), fit_voters()
    X, y, group = voters(1, first=38, m=4)  # 38 and 39 are known
    at_once.partial_fit(X, y, groups=group)
    for part in (slice(0, 1), slice(1, 40), slice(40, None)):
        in_parts.partial_fit(X[part], y[part], groups=group[part])
    np.testing.assert_allclose(in_parts.group_effects_, at_once.group_effects_)
    # Contexts are numbered by usage, which changed.
    found, expected = (np.sort(leaf.probabilities_, 1) for leaf in (in_parts, at_once))
    np.testing.assert_allclose(found, expected)
    assert in_parts.fitted_state_.sizes[38] == 30


def test_answers_of_a_group_that_is_not_stored_add_up_nearly():
    exact, nearly = fit_voters(), fit_voters()
    buffer = nearly.replay_buffer_
    nearly.replay_buffer_ = buffer.take(np.flatnonzero(buffer.group < 30))
    X, y, group = voters(1, first=30, m=10)
    untouched = nearly.group_effects_[:30]
    for leaf in (exact, nearly):
        leaf.partial_fit(X, y, groups=group)
    np.testing.assert_array_equal(nearly.group_effects_[:30], untouched)
    np.testing.assert_array_equal(nearly.contexts_, exact.contexts_)
    np.testing.assert_allclose(nearly.group_effects_, exact.group_effects_, atol=0.1)
    np.testing.assert_allclose(nearly.probabilities_, exact.probabilities_, atol=0.1)


def test_weights_of_a_fit_do_not_disturb_groups_of_a_classifier():
    X, y, group = voters(0)
    weight = np.random.default_rng(0).uniform(1, 9, len(y))
    leaf = LeafClassifier(2, local_model="linear", group_effects="intercept", random_state=0)
    leaf.fit(X, y, groups=group, sample_weight=weight)
    before = np.sort(leaf.probabilities_, 1), leaf.group_effects_
    leaf.partial_fit(X[:5], y[:5], groups=[99] * 5)
    np.testing.assert_array_equal(np.sort(leaf.probabilities_, 1)[:M], before[0])
    np.testing.assert_array_equal(leaf.group_effects_[:M], before[1])


def test_answers_that_no_context_explains_open_one():
    X, y, group = voters(1, slopes=(3.0,), first=100, m=16)
    leaf = LeafClassifier(1, local_model="linear", group_effects="intercept", random_state=0)
    leaf.fit(X, y, groups=group)
    X, y, group = voters(2, slopes=(-4.0,), first=200, m=8, n=40)
    leaf.partial_fit(X, y, groups=group)
    check_attributes(leaf, 24, 2)
    assert leaf.contexts_.tolist() == [0] * 16 + [1] * 8
    slope = leaf.predict_proba_each([[1.0, 0.0]])[0, :, 1]
    assert slope[0] > 0.7
    assert slope[1] < 0.3


def test_contexts_of_classes_that_conflict_are_merged_only_on_request():
    X, y, group = voters(0)
    leaf = fit_voters(effects="slopes")
    own = leaf.predict_proba(X, groups=group)
    assert leaf.merge().n_contexts_ == 2
    leaf.merge(0, 1)
    check_attributes(leaf, M, 1)
    # What distinguished the contexts is now an effect of the groups.
    assert np.mean(leaf.predict(X, groups=group) == y) > np.mean((own[:, 1] > 0.5) == y) - 0.05
    assert np.mean(leaf.predict(X) == y) < 0.7


def test_groups_that_are_not_stored_keep_their_log_odds_when_contexts_merge():
    X, y, group = voters(0)
    exact, nearly = (fit_voters(effects="slopes") for _ in range(2))
    buffer = nearly.replay_buffer_
    nearly.replay_buffer_ = buffer.take(np.flatnonzero(buffer.group < 30))
    found = [leaf.merge(0, 1).predict_proba(X, groups=group)[:, 1] for leaf in (exact, nearly)]
    outside = group >= 30
    assert np.abs(found[0] - found[1])[outside].mean() < 0.05
    assert np.mean((found[1] > 0.5) == y) > 0.8


def test_a_context_put_in_place_of_itself_changes_nothing():
    leaf = fit_voters(effects="slopes")
    state = leaf.fitted_state_
    models, effects = state.local_models, state.effects
    nobody = leaf.replay_buffer_.take(np.flatnonzero(leaf.replay_buffer_.group == 0)[:3])
    same = NewContext(models.coefficients[1], effects.roots[1], effects.noise[1], 1.0)
    again = place_context(state, same, 1, nobody, effects.priors)
    own = state.contexts == 1
    np.testing.assert_allclose(again.scores[own], state.scores[own])
    np.testing.assert_allclose(again.effects.effects[own], effects.effects[own], atol=1e-9)
    np.testing.assert_array_equal(again.effects.effects[:, 0], effects.effects[:, 0])
    np.testing.assert_array_equal(again.scores[:, 0], state.scores[:, 0])


def test_a_class_that_was_not_there_before_is_refused():
    leaf = fit_voters()
    with pytest.raises(ValueError) as error:  # noqa: PT011
        leaf.partial_fit([[0.0, 0.0]], [7], groups=[99])
    assert str(error.value) == (
        "y holds 7, a label that was not there before; known are [0, 1]. Name all labels with "
        "classes= in the first call of partial_fit."
    )


def test_a_model_without_stored_rows_cannot_be_updated():
    leaf = fit(1)
    leaf.replay_buffer_ = None
    X, y, group = sites(1, (2.0,), first=100, m=2)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        leaf.partial_fit(X, y, groups=group)
    assert str(error.value) == (
        "replay_buffer_ is empty, so there are no rows to update the contexts with; fit again."
    )
