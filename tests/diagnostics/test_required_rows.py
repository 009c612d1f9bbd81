"""The reported number of rows is about the number that is really needed."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.diagnostics.required_rows import Sources, count_required_rows
from leaflearn.diagnostics.settings import DIAGNOSTICS

M, N = 30, 15


def draw(rng, n, context, case):
    """Rows of a source: two slopes, and an offset of its own where there are effects."""
    x = rng.normal(size=(n, 1))
    score = (1 if context == 0 else -1) * case["slope"] * x[:, 0]
    score = score + case.get("offset", 0.0) * rng.normal()
    if case.get("is_label"):
        return x, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    return x, score + rng.normal(size=n)


CASES = {
    "effects, clear": {"slope": 1.0, "offset": 1.0, "local_model": "linear"},
    "effects, close": {"slope": 0.7, "offset": 1.0, "local_model": "linear"},
    "without effects": {"slope": 0.6, "local_model": LinearRegression()},
    "labels": {"slope": 1.0, "is_label": True, "local_model": LogisticRegression()},
    "labels, effects": {"slope": 1.5, "offset": 0.5, "is_label": True, "local_model": "linear"},
}


def fit(rng, case, m=M, n=N):
    parts = [draw(rng, n, k % 2, case) for k in range(m)]
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    kind = LeafClassifier if case.get("is_label") else LeafRegressor
    group = np.repeat(np.arange(m), n)
    return kind(2, local_model=case["local_model"], random_state=0).fit(X, y, groups=group)


def count(leaf, found, X):
    sources = Sources(found.probability, found.is_new, found.effects, found.products)
    return count_required_rows(leaf.fitted_state_, sources, X, hasattr(leaf, "classes_"))


def count_until_identified(leaf, x, y, first):
    """Rows after the first ones until the context is identified."""
    sizes = np.arange(first, len(y) + 1)
    rows = np.concatenate([np.arange(size) for size in sizes])
    found = leaf.identify(x[rows], y[rows], np.repeat(sizes, sizes))
    is_identified = found.margin >= DIAGNOSTICS.identified_margin
    return float(np.argmax(is_identified)) if is_identified.any() else np.inf


@pytest.mark.filterwarnings("ignore::leaflearn.RecoveryWarning")
@pytest.mark.parametrize("name", CASES)
def test_the_number_is_within_a_factor_of_two_of_the_median(name):
    is_near, said = compare(CASES[name], seed=1)
    assert len(said) >= 4
    assert np.mean(is_near) >= 0.6, (said, is_near)


def compare(case, seed, n_trials=8):
    """Whether each number said is within a factor of two of the median needed; the numbers."""
    is_near, said = [], []
    rng = np.random.default_rng(seed)
    leaf = fit(rng, case, m=60)
    for trial in range(n_trials):
        # The same first rows, continued many times; the truth follows the posterior.
        x, y = draw(rng, 2, trial % 2, case)
        found = leaf.identify(x, y)
        (more,) = count(leaf, found, x)
        if more == 0 or found.is_new[0]:
            continue
        needed = continuations(rng, leaf, case, x, y)
        said.append(more)
        is_near.append(more / 2 <= needed <= more * 2)
    return is_near, said


def continuations(rng, leaf, case, x, y, n_max=60, n_draws=16):
    """Median number of further rows over sources that begin with these rows.

    Sources are drawn from both contexts, with all offsets; their weights are how probable the
    first rows are in them.
    """
    ends, weights = [], []
    for draw_number in range(300):
        context, offset = draw_number % 2, case.get("offset", 0.0) * rng.normal()
        slope = (1 if context == 0 else -1) * case["slope"]
        score = slope * x[:, 0] + offset
        if case.get("is_label"):
            chance = 1 / (1 + np.exp(-score))
            weights.append(np.prod(np.where(y == 1, chance, 1 - chance)))
        else:
            weights.append(np.exp(-0.5 * np.sum((y - score) ** 2)))
        ends.append((context, offset))
    weights = np.array(weights) / np.sum(weights)
    numbers = []
    for chosen in rng.choice(len(ends), n_draws, p=weights):
        context, offset = ends[chosen]
        further = rng.normal(size=(n_max, 1))
        score = (1 if context == 0 else -1) * case["slope"] * further[:, 0] + offset
        if case.get("is_label"):
            labels = (rng.random(n_max) < 1 / (1 + np.exp(-score))).astype(int)
        else:
            labels = score + rng.normal(size=n_max)
        rows, targets = np.concatenate([x, further]), np.concatenate([y, labels])
        numbers.append(count_until_identified(leaf, rows, targets, len(y)))
    return float(np.sort(numbers)[(n_draws - 1) // 2])


def test_an_identified_source_needs_no_rows_and_a_new_one_cannot_be_identified():
    leaf = fit(np.random.default_rng(0), CASES["effects, clear"])
    effects = leaf.fitted_state_.effects
    sources = Sources(
        np.array([[1.0, 0.0], [0.6, 0.4]]),
        np.array([False, True]),
        effects.effects[:2],
        effects.products[:2],
    )
    required = count_required_rows(leaf.fitted_state_, sources, np.zeros((1, 1)), False)
    assert required[0] == 0
    assert np.isnan(required[1])


def test_contexts_that_effects_make_alike_cannot_be_told_apart_by_more_rows():
    """Three rows in the middle show the offset of the group; it may come from either context."""
    rng = np.random.default_rng(0)
    group, X = np.repeat(np.arange(60), 10), rng.normal(size=(600, 1))
    offset = np.where(np.arange(60) % 2, 1.0, -1.0) + rng.normal(0, 0.9, 60)
    y = X[:, 0] + offset[group] + rng.normal(0, 0.1, 600)
    leaf = LeafRegressor(2, local_model="linear", group_effects="intercept", random_state=0)
    state = leaf.fit(X, y, groups=group).fitted_state_
    # The contexts differ in their offset only, and not by chance in slope and noise.
    models, effects = state.local_models, state.effects
    models.coefficients[:, 1:] = models.coefficients[:, 1:].mean(0)
    for variances in (effects.noise, effects.roots):
        variances[:] = variances.mean(0)
    middle = leaf.predict_each([[0.0]]).mean()
    found = leaf.identify(np.zeros((3, 1)), np.full(3, middle))
    assert np.isnan(count(leaf, found, X)).all()


def test_rows_that_happen_to_be_where_contexts_agree_do_not_ask_for_hundreds_more():
    rng = np.random.default_rng(0)
    leaf = fit(rng, {"slope": 3.0, "local_model": LinearRegression()})
    found = leaf.identify([[0.001]], [0.0])
    assert 1 <= count(leaf, found, np.array([[0.001]]))[0] <= 5


@pytest.mark.parametrize("local_model", [LinearRegression(), "linear"])
def test_without_stored_rows_further_rows_are_like_those_given(local_model):
    rng = np.random.default_rng(0)
    leaf = fit(rng, {"slope": 1.0, "local_model": local_model})
    leaf.replay_buffer_ = None
    far, near = (leaf.identify([[0.0]], [0.0]) for _ in range(2))
    X = rng.normal(size=(50, 1))
    assert count(leaf, far, 3 * X)[0] < count(leaf, near, X / 3)[0]
