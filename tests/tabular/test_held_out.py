"""Held-out errors: the comparison with a pooled model, the errors of contexts, and intervals."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.tabular import settings
from leaflearn.tabular.held_out import (
    HeldOutErrors,
    are_needed,
    choose_rows,
    compare_with_pooled_model,
    count_folds,
    find_interval,
    find_interval_of_ratio,
    measure_errors,
    read_errors,
)

LEAF = LeafRegressor(2, local_model=LinearRegression())


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 2)), np.repeat(np.arange(15), 20), rng


def test_contexts_in_conflict_beat_the_pooled_model(rows):
    X, group, rng = rows
    contexts = np.arange(15) % 2
    y = np.where(contexts[group] == 0, 1.0, -1.0) * X[:, 0] + 0.1 * rng.normal(size=300)
    errors = compare_with_pooled_model(LEAF, X, y, group, contexts, seed=0)
    assert errors.metric == "RMSE"
    assert errors.contexts < 0.3 * errors.one_model
    assert (errors.n_rows, errors.n_groups, errors.has_effects) == (300, 15, False)


def test_random_contexts_do_not_beat_the_pooled_model(rows):
    X, group, rng = rows
    y = X[:, 0] + rng.normal(size=300)
    errors = compare_with_pooled_model(LEAF, X, y, group, rng.integers(0, 2, 15), seed=0)
    assert errors.contexts > 0.95 * errors.one_model


def test_one_context_has_the_error_of_the_pooled_model(rows):
    X, group, _ = rows
    errors = compare_with_pooled_model(LEAF, X, X[:, 0] * 2, group, np.zeros(15, dtype=int), seed=0)
    assert errors.contexts == errors.one_model


def test_single_rows_cannot_be_held_out(rows):
    X, _, _ = rows
    assert (
        compare_with_pooled_model(
            LEAF, X, X[:, 0], np.arange(300), np.zeros(300, dtype=int), seed=0
        )
        is None
    )


def test_a_context_with_one_label_predicts_it(rows):
    X, group, _ = rows
    contexts = np.arange(15) % 2
    y = np.where(contexts[group] == 0, "always", np.where(X[:, 0] > 0, "up", "down"))
    leaf = LeafClassifier(2, local_model=LogisticRegression())
    errors = compare_with_pooled_model(leaf, X, y, group, contexts, seed=0)
    assert errors.metric == "error rate"
    assert errors.contexts < 0.1 < errors.one_model


def test_large_groups_all_take_part_and_the_pooled_model_learns_from_all_other_rows():
    """Forty large groups: held-out rows of few of them would say little about the others."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(40), 1000)
    X, contexts = rng.normal(size=(40_000, 1)), (np.arange(40) < 13).astype(int)
    y = X[:, 0] + np.where(contexts[group] == 1, 32.0, 0.0) + rng.normal(0, 1.0, 40_000)
    n_learned = []

    class Counting(LinearRegression):
        def fit(self, X, y, sample_weight=None):
            n_learned.append(len(y))
            return super().fit(X, y)

    leaf = LeafRegressor(2, local_model=Counting())
    errors = compare_with_pooled_model(leaf, X, y, group, contexts, seed=0)
    assert (errors.n_groups, errors.n_rows) == (40, 20_000)
    assert max(n_learned) == 36_000  # all rows but those of a fold
    assert errors.contexts == pytest.approx(1.0, rel=0.05)
    assert errors.one_model == pytest.approx(32 * np.sqrt(13 / 40 * 27 / 40), rel=0.05)


def test_contexts_that_were_chosen_with_the_held_out_rows_in_view_do_not_look_better():
    """Noise in groups of three rows: each group in the context that is closer to its mean."""
    rng = np.random.default_rng(0)
    group, y = np.repeat(np.arange(200), 3), rng.normal(size=600)
    contexts = (y.reshape(200, 3).mean(1) > 0).astype(int)
    in_view = np.sqrt(np.square(y - np.where(contexts[group] == 1, 0.46, -0.46)).mean())
    assert in_view < 0.92
    errors = compare_with_pooled_model(LEAF, np.zeros((600, 1)), y, group, contexts, seed=0)
    assert errors.contexts > errors.one_model > 0.97


def test_the_number_of_rows_is_limited_but_not_that_of_groups(rows, monkeypatch):
    X, group, _ = rows
    monkeypatch.setattr(settings, "TABLES", replace(settings.TABLES, held_out_rows=100))
    errors = compare_with_pooled_model(LEAF, X, X[:, 0], group, np.zeros(15, dtype=int), seed=0)
    assert (errors.n_rows, errors.n_groups) == (90, 15)


def test_of_many_groups_at_least_some_hundreds_are_held_out():
    chosen = np.repeat(np.arange(9000), 30)[choose_rows(np.repeat(np.arange(9000), 30), 5000, 0)]
    assert len(np.unique(chosen)) == 500
    assert set(np.bincount(chosen)) == {0, 10}
    few = np.repeat(np.arange(9000), 30)[choose_rows(np.repeat(np.arange(9000), 30), 100, 0)]
    assert len(np.unique(few)) == settings.TABLES.min_held_out_groups


def test_the_work_is_counted():
    assert [count_folds(n, are_networks=False) for n in (100, 50_000, 80_000, 10**7)] == [
        5,
        5,
        3,
        2,
    ]
    assert count_folds(10**7, are_networks=True) == count_folds(10, are_networks=True) == 3


def test_group_effects_are_found_from_the_other_rows(rows):
    X, group, rng = rows
    y = X[:, 0] + rng.normal(0, 2.0, 15)[group] + 0.1 * rng.normal(size=300)
    leaf = LeafRegressor(1, local_model="linear", random_state=0).fit(X, y, groups=group)
    errors = compare_with_pooled_model(leaf, X, y, group, leaf.contexts_, seed=0)
    assert errors.has_effects
    assert errors.contexts == pytest.approx(0.1, rel=0.2)
    assert errors.one_model > 1.0
    assert leaf.n_contexts == 1


def test_networks_learn_the_known_contexts_again(rows):
    X, group, rng = rows
    contexts = np.arange(15) % 2
    y = np.where(contexts[group] == 0, 1.0, -1.0) * X[:, 0] + 0.1 * rng.normal(size=300)
    for kind, target in ((LeafRegressor, y), (LeafClassifier, np.where(y > 0, "b", "a"))):
        leaf = kind(1, max_epochs=2, random_state=0).fit(X[:60], target[:60], groups=group[:60])
        leaf.set_params(max_epochs=200)  # the networks of the folds train for a tenth
        errors = compare_with_pooled_model(leaf, X, target, group, contexts, seed=0)
        assert errors.n_rows == 300
        assert errors.contexts < 0.6 * errors.one_model


def test_a_feature_that_matters_in_one_context_only_is_needed(rows):
    X, group, rng = rows
    contexts = np.arange(15) % 2
    y = np.where(contexts[group] == 0, X[:, 0], X[:, 1]) + 0.1 * rng.normal(size=300)
    assert are_needed(X, np.array([0]), y, group, contexts, seed=0)
    assert not are_needed(
        np.column_stack([X, rng.normal(size=300)]), np.array([0, 1]), y, group, contexts, seed=0
    )


# ---- errors -------------------------------------------------------------------------------------


@pytest.fixture(params=[True, False])
def errors(request):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 15, 200)
    one, each = (rng.integers(0, 2, 200) * weight for weight in (1.0, rng.integers(0, 2, 200)))
    return measure_errors(one, each, group, group % 3, is_rate=request.param), one, each


def test_the_errors_of_the_contexts_add_up(errors):
    found, one, each = errors
    power = 1 if found.is_rate else 2
    rows = np.array([part.n_rows for part in found.by_context])
    assert ([part.context for part in found.by_context], rows.sum(), found.n_rows) == (
        [0, 1, 2],
        200,
        200,
    )
    assert sum(part.n_groups for part in found.by_context) == found.n_groups == 15
    assert found.one_model**power == pytest.approx(one.mean())
    assert found.contexts**power == pytest.approx(each.mean())
    assert (rows * [part.own**power for part in found.by_context]).sum() / 200 == pytest.approx(
        each.mean()
    )
    assert (
        rows * [part.one_model**power for part in found.by_context]
    ).sum() / 200 == pytest.approx(one.mean())


def test_the_interval_of_all_rows_is_narrower_than_those_of_contexts(errors):
    found, *_ = errors
    assert found.contexts_interval[0] < found.contexts < found.contexts_interval[1]
    assert all(
        np.ptp(part.own_interval) > np.ptp(found.contexts_interval) for part in found.by_context
    )
    assert found.ratio_interval[0] < found.contexts / found.one_model < found.ratio_interval[1]


def test_a_context_of_few_groups_has_an_error_and_no_interval():
    group = np.repeat(np.arange(9), 4)
    found = measure_errors(np.ones(36), np.zeros(36), group, (group > 6).astype(int), is_rate=True)
    assert [part.own_interval is None for part in found.by_context] == [False, True]
    assert found.by_context[1].own == 0.0


def test_errors_survive_json(errors):
    found, *_ = errors
    assert read_errors(json.loads(json.dumps(asdict(found)))) == found
    assert read_errors(None) is None


def test_errors_of_older_versions_have_no_intervals():
    old = {"metric": "error rate", "one_model": 0.5, "contexts": 0.1, "n_rows": 200}
    assert read_errors(old) == HeldOutErrors("error rate", 0.5, 0.1, 200)


@pytest.mark.parametrize(
    "malformed",
    [
        {"one_model": "half"},
        {"n_rows": None},
        {"contexts_interval": [0.1]},
        {"contexts_interval": [0.1, "a"]},
        {"contexts_interval": 7},
        {"by_context": 7},
        {"by_context": [{"context": "a"}]},
        {"more": 1},
    ],
)
def test_malformed_errors_are_refused(malformed):
    saved = {"metric": "error rate", "one_model": 0.5, "contexts": 0.1, "n_rows": 200, **malformed}
    with pytest.raises((TypeError, IndexError, AttributeError)):  # `saving` makes it one sentence
        read_errors(saved)


# ---- intervals ----------------------------------------------------------------------------------


def draw_rate(rng, m, share, correlation):
    """Wrong rows of m groups, and their sizes; rows of a group have this correlation."""
    rows = rng.integers(3, 8, m)
    own = (
        rng.beta(share * (1 / correlation - 1), (1 - share) * (1 / correlation - 1), m)
        if correlation
        else np.full(m, share)
    )
    return rng.binomial(rows, own).astype(float), rows.astype(float)


def covered(draw, truth, is_rate, n=400):
    ends = [find_interval(*draw(), is_rate) for _ in range(n)]
    return np.mean([low <= truth <= high for low, high in ends])


@pytest.mark.parametrize(
    ("share", "correlation"), [(0.3, 0.0), (0.3, 0.3), (0.05, 0.0), (0.05, 0.2)]
)
@pytest.mark.parametrize("m", [5, 8, 30])
def test_coverage_of_error_rates(m, share, correlation):
    rng = np.random.default_rng(m)
    assert covered(lambda: draw_rate(rng, m, share, correlation), share, is_rate=True) > 0.9


@pytest.mark.parametrize("m", [5, 8, 30])
def test_coverage_of_root_mean_squared_errors(m):
    rng = np.random.default_rng(m)

    def draw():
        rows = rng.integers(3, 8, m)
        return np.array([np.square(rng.normal(0, 2, n)).sum() for n in rows]), rows.astype(float)

    assert covered(draw, 2.0, is_rate=False) > 0.88


def test_bootstrap_over_few_groups_covers_much_less():
    """The reason for not using the bootstrap."""
    rng = np.random.default_rng(0)
    ours, bootstrap = [], []
    for _ in range(300):
        wrong, rows = draw_rate(rng, 6, 0.05, 0.2)
        low, high = find_interval(wrong, rows, is_rate=True)
        ours.append(low <= 0.05 <= high)
        times = rng.multinomial(6, np.full(6, 1 / 6), 200)
        low, high = np.quantile(times @ wrong / (times @ rows), [0.025, 0.975])
        bootstrap.append(low <= 0.05 <= high)
    assert np.mean(bootstrap) < 0.8 < 0.9 < np.mean(ours)


def test_too_few_groups_have_no_interval():
    for m in range(2, settings.TABLES.min_interval_groups):
        assert find_interval(np.ones(m), np.full(m, 9.0), is_rate=True) is None
        assert find_interval_of_ratio(np.ones(m), np.ones(m), is_rate=True) is None


@pytest.mark.parametrize("wrong", [0.0, 4.0])
def test_intervals_of_zero_and_all_errors_have_a_width(wrong):
    low, high = find_interval(np.full(10, wrong), np.full(10, 4.0), is_rate=True)
    assert (low, high) == pytest.approx((0.0, 0.113) if wrong == 0 else (0.887, 1.0), abs=0.001)


def test_correlated_errors_widen_the_interval():
    rows, spread, together = np.full(20, 5.0), np.ones(20), np.repeat([5.0, 0.0], [4, 16])
    wide, narrow = (
        np.ptp(find_interval(wrong, rows, is_rate=True)) for wrong in (together, spread)
    )
    assert wide > 1.5 * narrow


@pytest.mark.parametrize("is_rate", [True, False])
def test_the_error_is_inside_and_more_groups_narrow_the_interval(is_rate):
    rng = np.random.default_rng(0)
    wrong, rows = rng.integers(0, 5, 12).astype(float), np.full(12, 5.0)
    error = wrong.sum() / rows.sum() if is_rate else np.sqrt(wrong.sum() / rows.sum())
    few, many = (find_interval(np.tile(wrong, n), np.tile(rows, n), is_rate) for n in (1, 9))
    assert 0 <= few[0] < many[0] < error < many[1] < few[1]
    order = rng.permutation(12)
    assert find_interval(wrong[order], rows[order], is_rate) == pytest.approx(few)


def test_intervals_scale_with_the_unit():
    rng = np.random.default_rng(0)
    losses, rows = rng.gamma(2.0, size=8), np.full(8, 3.0)
    small, large = (find_interval(unit**2 * losses, rows, is_rate=False) for unit in (1.0, 1000.0))
    assert large == pytest.approx([1000.0 * end for end in small])


@pytest.mark.parametrize("is_rate", [True, False])
def test_the_inverse_ratio_has_the_inverse_interval(is_rate):
    rng = np.random.default_rng(0)
    losses, others = rng.gamma(2.0, size=9), 3 * rng.gamma(2.0, size=9)
    low, high = find_interval_of_ratio(losses, others, is_rate)
    assert find_interval_of_ratio(others, losses, is_rate) == pytest.approx((1 / high, 1 / low))
    assert find_interval_of_ratio(losses, losses, is_rate) == (1.0, 1.0)
    assert find_interval_of_ratio(losses, np.zeros(9), is_rate) is None


def test_difficult_groups_do_not_widen_the_interval_of_the_ratio():
    """Errors on the same rows are paired: the ratio is certain although the intervals overlap."""
    hard = np.array([1.0, 2.0, 9.0, 1.0, 30.0, 2.0, 1.0, 12.0])
    one, each = (
        find_interval(4 * hard, np.full(8, 5.0), is_rate=False),
        find_interval(hard, np.full(8, 5.0), is_rate=False),
    )
    assert one[0] < each[1]
    assert find_interval_of_ratio(hard, 4 * hard, is_rate=False) == pytest.approx((0.5, 0.5))


def test_zero_and_infinite_losses_have_no_interval():
    assert find_interval(np.zeros(9), np.full(9, 5.0), is_rate=False) is None
    assert find_interval(np.array([1e300] + [0.0] * 8), np.full(9, 5.0), is_rate=False) is not None
    assert find_interval(np.array([np.inf] + [0.0] * 8), np.full(9, 5.0), is_rate=False) is None
