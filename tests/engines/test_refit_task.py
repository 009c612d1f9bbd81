"""What a local model learns from and is scored on.

Checked with small models that can be looked into.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from leaflearn.core.allocation import Annealed, Hard, Soft
from leaflearn.core.batches import balance
from leaflearn.engines.refit import refit
from leaflearn.engines.refit_task import ClassRowLoss, ConstantModel, Fitted, SquaredRowLoss
from linear_groups import SQUARED, Spy, linear, lines, numbered, rules


def test_scores_are_weighted_sums_over_the_group():
    x, y, group, _ = lines(0, sizes=[1, 4, 2, 5])
    weight = np.random.default_rng(0).uniform(0.1, 3, size=len(y))
    found = refit(
        linear,
        x,
        y,
        group,
        SQUARED,
        Hard(),
        2,
        out_of_fold=False,
        sample_weight=weight,
        rng=np.random.default_rng(0),
    )
    assert found.converged  # so that the last models are those that gave the scores
    balanced = balance(torch.from_numpy(weight), torch.from_numpy(group), 4).numpy()
    for k, model in enumerate(found.models):
        by_hand = [(balanced * (model.predict(x) - y) ** 2)[group == g].sum() for g in range(4)]
        np.testing.assert_allclose(found.scores[:, k], by_hand, atol=1e-9)


def test_equal_groups_and_a_hard_rule_pass_no_weights(spied):
    x, y, group, _ = lines(0, sizes=[3] * 8)
    refit(
        Spy,
        numbered(x),
        y,
        group,
        SQUARED,
        Hard(),
        2,
        out_of_fold=False,
        rng=np.random.default_rng(0),
    )
    fits = [model for event, model, _ in spied if event == "fit"]
    assert fits
    assert all(model.weight is None for model in fits)


def test_every_group_counts_once_however_large(spied):
    x, y, group, _ = lines(0, sizes=[1, 8, 2, 5, 3, 3])
    weight = np.random.default_rng(0).uniform(0.5, 2, size=len(y))
    refit(
        Spy,
        numbered(x),
        y,
        group,
        SQUARED,
        Hard(),
        2,
        out_of_fold=False,
        sample_weight=weight,
        rng=np.random.default_rng(0),
    )
    several = [model for event, model, saw in spied if event == "fit" and len(set(group[saw])) > 1]
    assert several
    for model in several:
        assert model.weight.mean() == pytest.approx(1.0)
        mass = np.bincount(group[model.saw], model.weight)
        np.testing.assert_allclose(mass[mass > 0], mass.max())
        inside = (
            model.weight / weight[model.saw]
        )  # inside a group the user's weights keep their proportions
        for g in set(group[model.saw]):
            assert np.ptp(inside[group[model.saw] == g]) < 1e-9


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: KNeighborsRegressor(2),
        lambda seed: make_pipeline(StandardScaler(), LinearRegression()),
    ],
)
def test_models_whose_fit_names_no_sample_weight(make):
    x, y, group, _ = lines(0, sizes=[2, 4, 6, 3, 5, 4])
    for rule in rules(y):
        found = refit(
            make,
            x,
            y,
            group,
            SQUARED,
            rule,
            2,
            sample_weight=np.arange(1.0, 25),
            max_iter=4,
            rng=np.random.default_rng(0),
        )
        assert np.isfinite(found.scores).all()


@pytest.mark.parametrize("rule", [Hard(), Soft(0.5), Annealed(1.0)])
def test_out_of_fold_no_group_is_scored_by_a_model_that_saw_it(spied, rule):
    x, y, group, _ = lines(0, sizes=[1, 2, 3, 4, 5, 6, 2, 3])
    refit(
        Spy,
        numbered(x),
        y,
        group,
        SQUARED,
        rule,
        3,
        out_of_fold=True,
        n_folds=4,
        max_iter=6,
        rng=np.random.default_rng(0),
    )
    scored = [
        (set(group[model.saw]), set(group[rows]))
        for event, model, rows in spied
        if event == "predict"
    ]
    assert scored
    assert all(saw.isdisjoint(judged) for saw, judged in scored)
    assert set().union(*(judged for _, judged in scored)) == set(range(8))


def test_auto_scores_out_of_fold_what_learns_by_heart_and_only_that():
    x, y, group, _ = lines(0, sizes=[10] * 300)
    makers = {True: lambda seed: KNeighborsRegressor(1), False: linear}
    for expected, make in makers.items():
        for seed in range(3):
            found = refit(
                make,
                x,
                y,
                group,
                SQUARED,
                Hard(),
                2,
                n_init=1,
                max_iter=1,
                rng=np.random.default_rng(seed),
            )
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
    options = {
        "start": domain,
        "n_init": 1,
        "out_of_fold": out_of_fold,
        "rng": np.random.default_rng(0),
    }
    found = refit(
        lambda seed: LogisticRegression(), x, y, group, ClassRowLoss(4), Hard(), 2, **options
    )
    np.testing.assert_array_equal(found.contexts, domain)
    np.testing.assert_array_equal(found.models[1].classes_, [2, 3])
    wrong = found.scores[np.arange(24), 1 - domain]
    assert np.all(wrong / 5 > 2.0)
    assert np.all(
        wrong / 5 <= np.log(4 * (60 + 1)) + 1e-9
    )  # one pseudo-count over four classes, models of at most 60 rows


def test_a_model_without_probabilities_is_scored_by_its_errors():
    x, y, group, domain = classes(0)
    found = refit(
        lambda seed: LinearSVC(),
        x,
        y,
        group,
        ClassRowLoss(4),
        Hard(),
        2,
        start=domain,
        n_init=1,
        rng=np.random.default_rng(0),
    )
    np.testing.assert_array_equal(found.contexts, domain)
    np.testing.assert_array_equal(found.scores[np.arange(24), 1 - domain], 5)  # all five rows wrong
    assert np.all(found.scores == found.scores.round())


def test_a_context_with_a_single_class_gets_a_constant_model_that_pickles():
    x, group, domain = (
        np.random.default_rng(0).normal(size=(40, 2)),
        np.repeat(np.arange(10), 4),
        np.arange(10) % 2,
    )
    y = np.where(domain[group] == 0, 2, (x[:, 0] > 0).astype(int))
    options = {"start": domain, "n_init": 1, "out_of_fold": False, "rng": np.random.default_rng(0)}
    found = refit(
        lambda seed: LogisticRegression(), x, y, group, ClassRowLoss(3), Hard(), 2, **options
    )
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
    sparse = refit(
        linear,
        scipy.sparse.csr_matrix(x),
        y,
        group,
        loss,
        Hard(),
        2,
        rng=np.random.default_rng(0),
        **options,
    )
    np.testing.assert_array_equal(dense.contexts, sparse.contexts)
    prediction = dense.models[0].predict(x)
    by_hand = (((prediction - y) / y.std(0)) ** 2).mean(1)
    np.testing.assert_allclose(loss(Fitted(dense.models[0], 1), x, y), by_hand)


def test_frames_are_read_through_take():
    pandas = pytest.importorskip("pandas")
    x, y, group, _ = lines(0, sizes=[4] * 10)
    frame = pandas.DataFrame(x, columns=["a", "b"], index=np.arange(40)[::-1])
    a = refit(
        linear, x, y, group, SQUARED, Hard(), 2, out_of_fold=True, rng=np.random.default_rng(0)
    )
    b = refit(
        linear,
        frame,
        y,
        group,
        SQUARED,
        Hard(),
        2,
        out_of_fold=True,
        take=lambda f, rows: f.iloc[rows],
        rng=np.random.default_rng(0),
    )
    np.testing.assert_allclose(a.scores, b.scores)


def test_columns_are_aligned_by_class():
    x, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([3, 3, 1, 1])
    model = LogisticRegression().fit(x, y)
    p = model.predict_proba(x)
    losses = ClassRowLoss(n_classes=4)(Fitted(model, 4), x, y)
    expected = np.array([p[0, 1], p[1, 1], p[2, 0], p[3, 0]])
    np.testing.assert_allclose(losses, -np.log((4 * expected + 0.25) / 5))
