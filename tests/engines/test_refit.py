"""The refit engine as a whole: what must hold for any local model and any rule."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import ExtraTreeRegressor

from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.core.allocation import Annealed, Given, Hard, Soft
from leaflearn.core.training import NonFiniteLossError
from leaflearn.engines.refit import refit
from linear_groups import SQUARED, PlainSpy, Spy, linear, lines, numbered, rules


def refit_hard(x, y, group, seed=0, **options):
    """Three lines by the hard rule, scored on the rows they were fitted to."""
    rng = np.random.default_rng(seed)
    return refit(linear, x, y, group, SQUARED, Hard(), 3, out_of_fold=False, rng=rng, **options)


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
    found = refit_hard(x, y, group, n_init=6)
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


@pytest.mark.parametrize("seed", range(5))
def test_hard_refits_of_least_squares_never_raise_the_loss(seed):
    x, y, group, _ = lines(seed, sizes=[1, 2, 3, 4, 5] * 8, n_contexts=4, noise=1.0)
    weight = np.random.default_rng(seed).uniform(0.5, 2, size=len(y))
    losses = []
    refit(
        linear,
        x,
        y,
        group,
        SQUARED,
        Hard(),
        4,
        out_of_fold=False,
        sample_weight=weight,
        n_init=3,
        rng=np.random.default_rng(seed),
        on_iteration=lambda start, row: losses.append((start, row["loss"])),
    )
    for start in range(3):
        of_start = [loss for i, loss in losses if i == start]
        assert len(of_start) > 1
        assert np.all(np.diff(of_start) <= 1e-9)


def test_a_stand_still_is_a_fixed_point():
    x, y, group, _ = lines(1, sizes=[3] * 20, n_contexts=3, noise=1.0)
    first = refit_hard(x, y, group, n_init=1)
    assert first.converged
    again = refit_hard(x, y, group, n_init=1, start=first.contexts, seed=9)
    np.testing.assert_array_equal(first.contexts, again.contexts)
    assert again.restarts[0]["n_iter"] == 1


def test_annealing_does_not_stop_before_the_temperature_is_zero():
    x, y, group, _ = lines(0, sizes=[10] * 10)
    rule = Annealed(
        1e6 * y.var(), until=0.5
    )  # so hot that all groups are shared evenly, and nothing moves, for ten iterations
    found = refit(
        linear, x, y, group, SQUARED, rule, 2, n_init=1, max_iter=20, rng=np.random.default_rng(0)
    )
    assert found.converged
    assert 11 <= len(found.history["epoch"]) < 20
    temperature = found.history["temperature"]
    assert temperature[0] == pytest.approx(rule.start)
    assert np.all(np.diff(temperature[:11]) < 0)
    assert np.all(temperature[10:] == 0)


def test_annealing_cut_short_still_ends_hard(spied):
    x, y, group, _ = lines(0, sizes=[3] * 8, noise=1.0)
    rule = Annealed(y.var())
    found = refit(
        Spy,
        numbered(x),
        y,
        group,
        SQUARED,
        rule,
        2,
        out_of_fold=False,
        n_init=1,
        max_iter=2,
        rng=np.random.default_rng(0),
    )
    assert found.history["temperature"][-1] > 0
    for k, model in enumerate(found.models):
        assert model.weight is None
        assert set(group[model.saw]) == set(np.flatnonzero(found.contexts == k))


def test_soft_rules_pass_the_posterior_as_weights(spied):
    x, y, group, _ = lines(0, sizes=[2] * 8, noise=1.0)
    rule = Soft(5.0)
    found = refit(
        Spy,
        numbered(x),
        y,
        group,
        SQUARED,
        rule,
        2,
        out_of_fold=False,
        n_init=1,
        max_iter=3,
        rng=np.random.default_rng(0),
    )
    posterior = rule(torch.from_numpy(found.scores), torch.full((8,), 2.0)).numpy()
    for k, model in enumerate(found.models):
        expected = posterior[group[model.saw], k]
        np.testing.assert_allclose(model.weight, expected / expected.mean())
        assert np.ptp(model.weight) > 0.01


def test_models_without_weights_get_whole_groups_drawn_from_the_weights(spied):
    x, y, group, _ = lines(0, sizes=[2] * 400)

    def rule(scores, sizes, group_id, progress, generator):
        return torch.tensor([0.8, 0.2], dtype=scores.dtype).expand_as(scores).clone()

    refit(
        PlainSpy,
        numbered(x),
        y,
        group,
        SQUARED,
        rule,
        2,
        out_of_fold=False,
        n_init=1,
        max_iter=3,
        rng=np.random.default_rng(0),
    )
    fits = [set(group[saw]) for event, _, saw in spied if event == "fit"]
    for a, b in zip(
        fits[::2], fits[1::2], strict=True
    ):  # the two contexts of an iteration: a partition of the groups
        assert a | b == set(range(400))
        assert not a & b
    assert fits[2] != fits[4]  # drawn again
    assert all(
        abs(len(a) - 320) < 5 * np.sqrt(400 * 0.8 * 0.2) for a in fits[2::2]
    )  # the first fit is the start's


def test_as_many_groups_as_contexts_start_one_each(spied):
    x, y, group, _ = lines(0, sizes=[4, 4, 4])
    refit(
        Spy,
        numbered(x),
        y,
        group,
        SQUARED,
        Hard(),
        3,
        out_of_fold=False,
        n_init=1,
        max_iter=1,
        rng=np.random.default_rng(0),
    )
    first = [set(group[saw]) for event, _, saw in spied if event == "fit"][:3]
    assert sorted(first, key=min) == [{0}, {1}, {2}]


def test_an_idle_context_is_revived_on_the_worst_served_groups(spied):
    x, y, group, domain = lines(3, sizes=[6] * 16, n_contexts=4)
    start = np.where(
        domain < 3, domain, 0
    )  # nobody starts in context 3, whose groups context 0 must serve
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
    found = refit(
        linear, x, y, group, SQUARED, rule, 2, rng=np.random.default_rng(0), on_iteration=listen
    )
    assert heard == [(0, 1), (0, 2)]
    assert len(found.restarts) == 1
    assert not found.converged


def test_non_finite_losses_are_refused_in_one_sentence():
    class Broken(LinearRegression):
        def predict(self, x):
            return np.full(len(x), np.nan)

    x, y, group, _ = lines(0, sizes=[4] * 10)
    text = (
        "The loss became non-finite at iteration 1; the likely cause is a local model that predicts"
        " infinite or missing values for some rows: check the scale of X and y, or regularise the"
        " local model."
    )
    with pytest.raises(NonFiniteLossError, match=f"^{re.escape(text)}$"):
        refit(lambda seed: Broken(), x, y, group, SQUARED, Hard(), 2, rng=np.random.default_rng(0))
