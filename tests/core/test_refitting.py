"""The refit engine: what must hold for any local model, checked with small models that can be looked into."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import ExtraTreeRegressor

from leaflearn.core.allocation import Annealed, Given, Hard, Sampled, Soft
from leaflearn.core.batches import balance
from leaflearn.core.refitting import refit
from leaflearn.core.row_losses import ClassRowLoss, ConstantModel, Fitted, SquaredRowLoss
from leaflearn.core.training import NonFiniteLossError

SQUARED = SquaredRowLoss()


def linear(seed):
    return LinearRegression()


def lines(seed, sizes, n_contexts=2, noise=0.1, n_features=2):
    """Groups of the given sizes on random linear functions, rows in random order: x, y, group, domain."""
    rng = np.random.default_rng(seed)
    domain = rng.permutation(np.arange(len(sizes)) % n_contexts)
    group = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    x = rng.normal(size=(len(group), n_features))
    slopes = 3 * rng.normal(size=(n_contexts, n_features))
    return x, (x * slopes[domain[group]]).sum(1) + noise * rng.normal(size=len(group)), group, domain


def rules(y):
    return [Hard(), Sampled(0.1), Soft(0.1), Annealed(0.5 * y.var())]


class Spy:
    """Least squares without an intercept that remembers the rows it saw and the rows and weights it was given."""

    log: list = []

    def __init__(self, seed=0):
        self.seed = seed

    def fit(self, x, y, sample_weight=None):
        self.saw, self.weight = x[:, 0].astype(int), sample_weight  # the first column is the number of the row
        root = np.ones(len(y)) if sample_weight is None else np.sqrt(sample_weight)
        self.coef = np.linalg.lstsq(x[:, 1:] * root[:, None], y * root, rcond=None)[0]
        Spy.log.append(("fit", self, self.saw))
        return self

    def predict(self, x):
        Spy.log.append(("predict", self, x[:, 0].astype(int)))
        return x[:, 1:] @ self.coef


class PlainSpy(Spy):
    def fit(self, x, y):
        return super().fit(x, y)


@pytest.fixture
def spied():
    """The log of what spies did, and a maker of numbered rows for them."""
    Spy.log = []
    return Spy.log


def numbered(x):
    return np.column_stack([np.arange(len(x)), x])


@pytest.mark.parametrize("seed", range(3))
def test_names_of_groups_do_not_matter(seed):
    x, y, group, _ = lines(seed, sizes=[3, 5, 1, 4, 2, 6, 3, 3, 4, 2])
    rng = np.random.default_rng(seed)
    renamed, start = rng.permutation(10), np.arange(10) % 2  # group i is now called renamed[i]
    new_start = np.empty(10, dtype=int)
    new_start[renamed] = start
    options = {"n_init": 1, "out_of_fold": False}
    for rule in [Hard(), Soft(0.1), Annealed(0.5 * y.var())]:
        a = refit(linear, x, y, group, SQUARED, rule, 2, start=start, rng=np.random.default_rng(0), **options)
        b = refit(linear, x, y, renamed[group], SQUARED, rule, 2, start=new_start, rng=np.random.default_rng(0), **options)
        np.testing.assert_array_equal(a.contexts, b.contexts[renamed])
        np.testing.assert_allclose(a.scores, b.scores[renamed], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_hard_refits_of_least_squares_never_raise_the_loss(seed):
    x, y, group, _ = lines(seed, sizes=[1, 2, 3, 4, 5] * 8, n_contexts=4, noise=1.0)
    weight = np.random.default_rng(seed).uniform(0.5, 2, size=len(y))
    losses = []
    refit(
        linear, x, y, group, SQUARED, Hard(), 4, out_of_fold=False, sample_weight=weight, n_init=3, rng=np.random.default_rng(seed),
        on_iteration=lambda start, row: losses.append((start, row["loss"])),
    )  # fmt: skip
    for start in range(3):
        of_start = [loss for i, loss in losses if i == start]
        assert len(of_start) > 1
        assert np.all(np.diff(of_start) <= 1e-9)


def test_same_seed_same_answer_and_another_seed_another_start():
    x, y, group, _ = lines(0, sizes=[4] * 30, n_contexts=3, noise=1.0)

    def histories(seed, rule):
        def make(model_seed):
            return ExtraTreeRegressor(random_state=model_seed)

        return refit(make, x, y, group, SQUARED, rule, 3, n_init=2, max_iter=4, rng=np.random.default_rng(seed))

    def errors(found):
        return [(start["error"], start["curve"].tolist(), start["contexts"].tolist()) for start in found.restarts]

    for rule in rules(y):
        a, b, c = histories(1, rule), histories(1, rule), histories(2, rule)
        np.testing.assert_array_equal(a.scores, b.scores)
        np.testing.assert_array_equal(a.contexts, b.contexts)
        assert errors(a) == errors(b)
        assert errors(a) != errors(c)


@pytest.mark.parametrize("out_of_fold", [False, True])
def test_shapes_and_bookkeeping_with_ragged_groups_under_every_rule(out_of_fold):
    x, y, group, _ = lines(0, sizes=[1, 7, 2, 9, 3, 1, 5, 5, 12, 4])
    for rule in rules(y):
        found = refit(linear, x, y, group, SQUARED, rule, 2, out_of_fold=out_of_fold, n_init=3, max_iter=8, rng=np.random.default_rng(0))
        n_iter = len(found.history["epoch"])
        assert found.scores.shape == (10, 2)
        assert found.contexts.shape == (10,)
        assert len(found.models) == len(found.n_rows) == 2
        assert found.history["usage"].shape == (n_iter, 2)
        np.testing.assert_allclose(found.history["usage"].sum(1), 1.0)
        assert {name: len(column) for name, column in found.history.items()} == dict.fromkeys(found.history, n_iter)
        assert set(found.history) == {"epoch", "loss", "changed", "usage", "temperature", "seconds"}
        assert len(found.restarts) == 3
        assert found.out_of_fold is out_of_fold
        assert found.n_rows.sum() == pytest.approx(len(y))


def test_best_start_wins_and_models_belong_to_their_groups():
    x, y, group, _ = lines(0, sizes=[3] * 20, n_contexts=3, noise=1.0)
    found = refit(linear, x, y, group, SQUARED, Hard(), 3, n_init=6, out_of_fold=False, rng=np.random.default_rng(0))
    assert len({restart["error"] for restart in found.restarts}) > 1
    chosen = found.scores[np.arange(20), found.contexts]
    assert (chosen / 3).mean() == pytest.approx(min(restart["error"] for restart in found.restarts))
    for k, model in enumerate(found.models):
        rows = found.contexts[group] == k
        np.testing.assert_allclose(model.coef_, LinearRegression().fit(x[rows], y[rows]).coef_)


def test_scores_are_weighted_sums_over_the_group():
    x, y, group, _ = lines(0, sizes=[1, 4, 2, 5])
    weight = np.random.default_rng(0).uniform(0.1, 3, size=len(y))
    found = refit(linear, x, y, group, SQUARED, Hard(), 2, out_of_fold=False, sample_weight=weight, rng=np.random.default_rng(0))
    assert found.converged  # so that the last models are those that gave the scores
    balanced = balance(torch.from_numpy(weight), torch.from_numpy(group), 4).numpy()
    for k, model in enumerate(found.models):
        by_hand = [(balanced * (model.predict(x) - y) ** 2)[group == g].sum() for g in range(4)]
        np.testing.assert_allclose(found.scores[:, k], by_hand, atol=1e-9)


def test_a_stand_still_is_a_fixed_point():
    x, y, group, _ = lines(1, sizes=[3] * 20, n_contexts=3, noise=1.0)
    first = refit(linear, x, y, group, SQUARED, Hard(), 3, n_init=1, out_of_fold=False, rng=np.random.default_rng(0))
    assert first.converged
    again = refit(linear, x, y, group, SQUARED, Hard(), 3, n_init=1, start=first.contexts, out_of_fold=False, rng=np.random.default_rng(9))
    np.testing.assert_array_equal(first.contexts, again.contexts)
    assert again.restarts[0]["n_iter"] == 1


def test_annealing_does_not_stop_before_the_temperature_is_zero():
    x, y, group, _ = lines(0, sizes=[10] * 10)
    rule = Annealed(1e6 * y.var(), until=0.5)  # so hot that all groups are shared evenly, and nothing moves, for ten iterations
    found = refit(linear, x, y, group, SQUARED, rule, 2, n_init=1, max_iter=20, rng=np.random.default_rng(0))
    assert found.converged
    assert 11 <= len(found.history["epoch"]) < 20
    temperature = found.history["temperature"]
    assert temperature[0] == pytest.approx(rule.start)
    assert np.all(np.diff(temperature[:11]) < 0)
    assert np.all(temperature[10:] == 0)


def test_annealing_cut_short_still_ends_hard(spied):
    x, y, group, _ = lines(0, sizes=[3] * 8, noise=1.0)
    rule = Annealed(y.var())
    found = refit(Spy, numbered(x), y, group, SQUARED, rule, 2, out_of_fold=False, n_init=1, max_iter=2, rng=np.random.default_rng(0))
    assert found.history["temperature"][-1] > 0
    for k, model in enumerate(found.models):
        assert model.weight is None
        assert set(group[model.saw]) == set(np.flatnonzero(found.contexts == k))


def test_equal_groups_and_a_hard_rule_pass_no_weights(spied):
    x, y, group, _ = lines(0, sizes=[3] * 8)
    refit(Spy, numbered(x), y, group, SQUARED, Hard(), 2, out_of_fold=False, rng=np.random.default_rng(0))
    fits = [model for event, model, _ in spied if event == "fit"]
    assert fits
    assert all(model.weight is None for model in fits)


def test_every_group_counts_once_however_large(spied):
    x, y, group, _ = lines(0, sizes=[1, 8, 2, 5, 3, 3])
    weight = np.random.default_rng(0).uniform(0.5, 2, size=len(y))
    refit(Spy, numbered(x), y, group, SQUARED, Hard(), 2, out_of_fold=False, sample_weight=weight, rng=np.random.default_rng(0))
    several = [model for event, model, saw in spied if event == "fit" and len(set(group[saw])) > 1]
    assert several
    for model in several:
        assert model.weight.mean() == pytest.approx(1.0)
        mass = np.bincount(group[model.saw], model.weight)
        np.testing.assert_allclose(mass[mass > 0], mass.max())
        inside = model.weight / weight[model.saw]  # inside a group the user's weights keep their proportions
        for g in set(group[model.saw]):
            assert np.ptp(inside[group[model.saw] == g]) < 1e-9


def test_soft_rules_pass_the_posterior_as_weights(spied):
    x, y, group, _ = lines(0, sizes=[2] * 8, noise=1.0)
    rule = Soft(5.0)
    found = refit(Spy, numbered(x), y, group, SQUARED, rule, 2, out_of_fold=False, n_init=1, max_iter=3, rng=np.random.default_rng(0))
    posterior = rule(torch.from_numpy(found.scores), torch.full((8,), 2.0)).numpy()
    for k, model in enumerate(found.models):
        expected = posterior[group[model.saw], k]
        np.testing.assert_allclose(model.weight, expected / expected.mean())
        assert np.ptp(model.weight) > 0.01


def test_models_without_weights_get_whole_groups_drawn_from_the_weights(spied):
    x, y, group, _ = lines(0, sizes=[2] * 400)

    def rule(scores, sizes, group_id, progress, generator):
        return torch.tensor([0.8, 0.2], dtype=scores.dtype).expand_as(scores).clone()

    refit(PlainSpy, numbered(x), y, group, SQUARED, rule, 2, out_of_fold=False, n_init=1, max_iter=3, rng=np.random.default_rng(0))
    fits = [set(group[saw]) for event, _, saw in spied if event == "fit"]
    for a, b in zip(fits[::2], fits[1::2], strict=True):  # the two contexts of an iteration: a partition of the groups
        assert a | b == set(range(400))
        assert not a & b
    assert fits[2] != fits[4]  # drawn anew
    assert all(abs(len(a) - 320) < 5 * np.sqrt(400 * 0.8 * 0.2) for a in fits[2::2])  # the first fit is the start's


@pytest.mark.parametrize("make", [lambda seed: KNeighborsRegressor(2), lambda seed: make_pipeline(StandardScaler(), LinearRegression())])
def test_models_whose_fit_names_no_sample_weight(make):
    x, y, group, _ = lines(0, sizes=[2, 4, 6, 3, 5, 4])
    for rule in rules(y):
        found = refit(make, x, y, group, SQUARED, rule, 2, sample_weight=np.arange(1.0, 25), max_iter=4, rng=np.random.default_rng(0))
        assert np.isfinite(found.scores).all()


@pytest.mark.parametrize("rule", [Hard(), Soft(0.5), Annealed(1.0)])
def test_out_of_fold_no_group_is_scored_by_a_model_that_saw_it(spied, rule):
    x, y, group, _ = lines(0, sizes=[1, 2, 3, 4, 5, 6, 2, 3])
    refit(Spy, numbered(x), y, group, SQUARED, rule, 3, out_of_fold=True, n_folds=4, max_iter=6, rng=np.random.default_rng(0))
    scored = [(set(group[model.saw]), set(group[rows])) for event, model, rows in spied if event == "predict"]
    assert scored
    assert all(saw.isdisjoint(judged) for saw, judged in scored)
    assert set().union(*(judged for _, judged in scored)) == set(range(8))


def test_auto_scores_out_of_fold_what_learns_by_heart_and_only_that():
    x, y, group, _ = lines(0, sizes=[10] * 300)
    makers = {True: lambda seed: KNeighborsRegressor(1), False: linear}
    for expected, make in makers.items():
        for seed in range(3):
            found = refit(make, x, y, group, SQUARED, Hard(), 2, n_init=1, max_iter=1, rng=np.random.default_rng(seed))
            assert found.out_of_fold is expected


def classes(seed, n_groups=24, size=5):
    """Context 0 names the classes 0 and 1, context 1 the same things 2 and 3."""
    rng = np.random.default_rng(seed)
    domain, group = np.arange(n_groups) % 2, np.repeat(np.arange(n_groups), size)
    x = rng.normal(size=(len(group), 2))
    return x, (x[:, 0] > 0).astype(int) + 2 * domain[group], group, domain


@pytest.mark.parametrize("out_of_fold", [False, True])
def test_classes_a_context_never_met_cost_much_but_not_everything(out_of_fold):
    x, y, group, domain = classes(0)
    options = {"start": domain, "n_init": 1, "out_of_fold": out_of_fold, "rng": np.random.default_rng(0)}
    found = refit(lambda seed: LogisticRegression(), x, y, group, ClassRowLoss(4), Hard(), 2, **options)
    np.testing.assert_array_equal(found.contexts, domain)
    np.testing.assert_array_equal(found.models[1].classes_, [2, 3])
    wrong = found.scores[np.arange(24), 1 - domain]
    assert np.all(wrong / 5 > 2.0)
    assert np.all(wrong / 5 <= np.log(4 * (60 + 1)) + 1e-9)  # one pseudo-count over four classes, models of at most 60 rows


def test_columns_are_aligned_by_class():
    x, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([3, 3, 1, 1])
    model = LogisticRegression().fit(x, y)
    p = model.predict_proba(x)
    losses = ClassRowLoss(n_classes=4)(Fitted(model, 4), x, y)
    expected = np.array([p[0, 1], p[1, 1], p[2, 0], p[3, 0]])
    np.testing.assert_allclose(losses, -np.log((4 * expected + 0.25) / 5))


def test_a_model_without_probabilities_is_scored_by_its_errors():
    x, y, group, domain = classes(0)
    found = refit(lambda seed: LinearSVC(), x, y, group, ClassRowLoss(4), Hard(), 2, start=domain, n_init=1, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found.contexts, domain)
    np.testing.assert_array_equal(found.scores[np.arange(24), 1 - domain], 5)  # all five rows wrong
    assert np.all(found.scores == found.scores.round())


def test_a_context_with_a_single_class_gets_a_constant_model_that_pickles():
    x, group, domain = np.random.default_rng(0).normal(size=(40, 2)), np.repeat(np.arange(10), 4), np.arange(10) % 2
    y = np.where(domain[group] == 0, 2, (x[:, 0] > 0).astype(int))
    options = {"start": domain, "n_init": 1, "out_of_fold": False, "rng": np.random.default_rng(0)}
    found = refit(lambda seed: LogisticRegression(), x, y, group, ClassRowLoss(3), Hard(), 2, **options)
    constant = pickle.loads(pickle.dumps(found.models[0]))
    assert isinstance(constant, ConstantModel)
    np.testing.assert_array_equal(constant.predict(x), np.full(40, 2))
    np.testing.assert_array_equal(constant.predict_proba(x), np.ones((40, 1)))
    np.testing.assert_array_equal(constant.classes_, [2])
    assert isinstance(found.models[1], LogisticRegression)


def test_several_outputs_sparse_input_and_a_scale():
    x, y, group, domain = lines(0, sizes=[4] * 10)
    y = np.column_stack([y, 100 * y])
    loss = SquaredRowLoss(scale=y.std(0))
    options = {"start": domain, "n_init": 1, "out_of_fold": False}
    dense = refit(linear, x, y, group, loss, Hard(), 2, rng=np.random.default_rng(0), **options)
    sparse = refit(linear, scipy.sparse.csr_matrix(x), y, group, loss, Hard(), 2, rng=np.random.default_rng(0), **options)
    np.testing.assert_array_equal(dense.contexts, sparse.contexts)
    prediction = dense.models[0].predict(x)
    by_hand = (((prediction - y) / y.std(0)) ** 2).mean(1)
    np.testing.assert_allclose(loss(Fitted(dense.models[0], 1), x, y), by_hand)


def test_frames_are_read_through_take():
    pandas = pytest.importorskip("pandas")
    x, y, group, _ = lines(0, sizes=[4] * 10)
    frame = pandas.DataFrame(x, columns=["a", "b"], index=np.arange(40)[::-1])
    a = refit(linear, x, y, group, SQUARED, Hard(), 2, out_of_fold=True, rng=np.random.default_rng(0))
    b = refit(
        linear, frame, y, group, SQUARED, Hard(), 2, out_of_fold=True, take=lambda f, rows: f.iloc[rows], rng=np.random.default_rng(0)
    )
    np.testing.assert_allclose(a.scores, b.scores)


@pytest.mark.parametrize("n_groups", [1, 2, 3, 4])
@pytest.mark.parametrize("out_of_fold", [False, True, "auto"])
def test_few_groups(n_groups, out_of_fold):
    x, y, group, _ = lines(0, sizes=[5] * n_groups)
    for rule in rules(y):
        found = refit(linear, x, y, group, SQUARED, rule, 3, out_of_fold=out_of_fold, n_init=1, max_iter=5, rng=np.random.default_rng(0))
        assert len(found.models) == 3
        assert found.contexts.shape == (n_groups,)


def test_as_many_groups_as_contexts_start_one_each(spied):
    x, y, group, _ = lines(0, sizes=[4, 4, 4])
    refit(Spy, numbered(x), y, group, SQUARED, Hard(), 3, out_of_fold=False, n_init=1, max_iter=1, rng=np.random.default_rng(0))
    first = [set(group[saw]) for event, _, saw in spied if event == "fit"][:3]
    assert sorted(first, key=min) == [{0}, {1}, {2}]


def test_an_idle_context_is_revived_on_the_worst_served_groups(spied):
    x, y, group, domain = lines(3, sizes=[6] * 16, n_contexts=4)
    start = np.where(domain < 3, domain, 0)  # nobody starts in context 3, whose groups context 0 must serve
    options = {"out_of_fold": False, "n_init": 1, "rng": np.random.default_rng(0)}
    found = refit(linear, x, y, group, SQUARED, Hard(), 4, start=start, **options)
    assert np.all(found.history["usage"][-1] > 0)


def test_an_idle_context_gets_the_worst_served_groups_once_and_then_keeps_its_model(spied):
    x, y, group, _ = lines(0, sizes=[6] * 8)
    start, nobody_in_1 = np.arange(8) % 2, Given(torch.zeros(8, dtype=torch.long))
    options = {"out_of_fold": False, "start": start, "n_init": 1, "rng": np.random.default_rng(0)}
    found = refit(Spy, numbered(x), y, group, SQUARED, nobody_in_1, 2, **options)
    even = start[group] == 0
    residual = (y - x @ np.linalg.lstsq(x[even], y[even], rcond=None)[0]) ** 2
    worst = np.argmax(np.bincount(group, residual))
    assert found.converged
    assert found.restarts[0]["n_iter"] == 3  # on its start, on the worst-served group, idle
    np.testing.assert_array_equal(found.contexts, 0)
    assert set(group[found.models[1].saw]) == {worst}
    assert sum(set(group[saw]) == {worst} for event, _, saw in spied if event == "fit") == 1


def test_a_listener_can_end_the_search():
    x, y, group, _ = lines(0, sizes=[4] * 10)
    heard = []

    def listen(start, row):
        heard.append((start, row["epoch"]))
        return len(heard) == 2

    rule = Annealed(0.5 * y.var())
    found = refit(linear, x, y, group, SQUARED, rule, 2, rng=np.random.default_rng(0), on_iteration=listen)
    assert heard == [(0, 1), (0, 2)]
    assert len(found.restarts) == 1
    assert not found.converged


def test_non_finite_losses_are_refused_in_one_sentence():
    class Broken(LinearRegression):
        def predict(self, x):
            return np.full(len(x), np.nan)

    x, y, group, _ = lines(0, sizes=[4] * 10)
    text = (
        "The loss became non-finite at iteration 1; the likely cause is a local model that predicts infinite or missing values for some "
        "rows: look at the scale of X and y, or regularise the local model."
    )
    with pytest.raises(NonFiniteLossError, match=f"^{re.escape(text)}$"):
        refit(lambda seed: Broken(), x, y, group, SQUARED, Hard(), 2, rng=np.random.default_rng(0))
