"""The refit engine as a whole: what must hold for any local model and any rule."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import ExtraTreeRegressor

from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.core.allocation import Annealed, Hard, Soft
from leaflearn.engines.refitting import refit
from linear_groups import SQUARED, linear, lines, rules


@pytest.mark.parametrize("seed", range(3))
def test_names_of_groups_do_not_matter(seed):
    x, y, group, _ = lines(seed, sizes=[3, 5, 1, 4, 2, 6, 3, 3, 4, 2])
    rng = np.random.default_rng(seed)
    renamed, start = rng.permutation(10), np.arange(10) % 2  # group i is now called renamed[i]
    new_start = np.empty(10, dtype=int)
    new_start[renamed] = start
    options = {"n_init": 1, "out_of_fold": False}
    for rule in [Hard(), Soft(0.1), Annealed(0.5 * y.var())]:
        a = refit(
            linear,
            x,
            y,
            group,
            SQUARED,
            rule,
            2,
            start=start,
            rng=np.random.default_rng(0),
            **options,
        )
        b = refit(
            linear,
            x,
            y,
            renamed[group],
            SQUARED,
            rule,
            2,
            start=new_start,
            rng=np.random.default_rng(0),
            **options,
        )
        np.testing.assert_array_equal(a.contexts, b.contexts[renamed])
        np.testing.assert_allclose(a.scores, b.scores[renamed], rtol=1e-6, atol=1e-9)


def test_same_seed_same_answer_and_another_seed_another_start():
    x, y, group, _ = lines(0, sizes=[4] * 30, n_contexts=3, noise=1.0)

    def histories(seed, rule):
        def make(model_seed):
            return ExtraTreeRegressor(random_state=model_seed)

        return refit(
            make,
            x,
            y,
            group,
            SQUARED,
            rule,
            3,
            n_init=2,
            max_iter=4,
            rng=np.random.default_rng(seed),
        )

    def errors(found):
        return [
            (start["error"], start["curve"].tolist(), start["contexts"].tolist())
            for start in found.restarts
        ]

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
        found = refit(
            linear,
            x,
            y,
            group,
            SQUARED,
            rule,
            2,
            out_of_fold=out_of_fold,
            n_init=3,
            max_iter=8,
            rng=np.random.default_rng(0),
        )
        n_iter = len(found.history["epoch"])
        assert found.scores.shape == (10, 2)
        assert found.contexts.shape == (10,)
        assert len(found.models) == len(found.n_rows) == 2
        assert found.history["usage"].shape == (n_iter, 2)
        np.testing.assert_allclose(found.history["usage"].sum(1), 1.0)
        assert {name: len(column) for name, column in found.history.items()} == dict.fromkeys(
            found.history, n_iter
        )
        assert set(found.history) == {"epoch", "loss", "changed", "usage", "temperature", "seconds"}
        assert len(found.restarts) == 3
        assert found.out_of_fold is out_of_fold
        assert found.n_rows.sum() == pytest.approx(len(y))


def test_best_start_wins_and_models_belong_to_their_groups():
    x, y, group, _ = lines(0, sizes=[3] * 20, n_contexts=3, noise=1.0)
    found = refit(
        linear,
        x,
        y,
        group,
        SQUARED,
        Hard(),
        3,
        n_init=6,
        out_of_fold=False,
        rng=np.random.default_rng(0),
    )
    assert len({restart["error"] for restart in found.restarts}) > 1
    chosen = found.scores[np.arange(20), found.contexts]
    assert (chosen / 3).mean() == pytest.approx(min(restart["error"] for restart in found.restarts))
    for k, model in enumerate(found.models):
        rows = found.contexts[group] == k
        np.testing.assert_allclose(model.coef_, LinearRegression().fit(x[rows], y[rows]).coef_)


@pytest.mark.parametrize("n_groups", [1, 2, 3, 4])
@pytest.mark.parametrize("out_of_fold", [False, True, "auto"])
def test_few_groups(n_groups, out_of_fold):
    x, y, group, _ = lines(0, sizes=[5] * n_groups)
    for rule in rules(y):
        found = refit(
            linear,
            x,
            y,
            group,
            SQUARED,
            rule,
            3,
            out_of_fold=out_of_fold,
            n_init=1,
            max_iter=5,
            rng=np.random.default_rng(0),
        )
        assert len(found.models) == 3
        assert found.contexts.shape == (n_groups,)


@pytest.mark.parametrize("n_rare", [1, 2, 3])
def test_a_context_of_few_groups_that_was_given_is_not_lost_in_the_folds(n_rare):
    kept = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x, group = rng.uniform(-1, 1, (240, 1)), np.repeat(np.arange(12), 20)
        truth = (np.arange(12) < n_rare).astype(np.int64)
        y = np.where(truth[group] == 1, -3.0, 3.0) * x[:, 0]
        rule = Annealed(0.5 * y.var())
        found = refit(
            lambda _: KNeighborsRegressor(1),
            x,
            y,
            group,
            SQUARED,
            rule,
            2,
            out_of_fold=True,
            max_iter=4,
            start=truth,
            rng=rng,
        )
        kept.append(allocation_agreement(found.contexts, truth) == 1.0)
    assert all(kept), kept
