"""Contexts of answers to items: where they are found, the surrogate, and which inputs are items."""

import numpy as np
import pytest

from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.initialization import settings
from leaflearn.initialization.items import ItemMeans, ItemSurrogate, find_items, start_from_items


def answers(n_conventions, n_groups=40, n_items=200, n_each=30, differ=0.4, wrong=0.0, seed=0):
    """Items, labels and groups, and the convention that each group follows."""
    rng = np.random.default_rng(seed)
    labels = np.tile(rng.random(n_items) < 0.5, (n_conventions, 1))
    labels[1:] ^= rng.random((n_conventions - 1, n_items)) < differ
    item = np.concatenate([rng.permutation(n_items)[:n_each] for _ in range(n_groups)])
    group, truth = np.repeat(np.arange(n_groups), n_each), np.arange(n_groups) % n_conventions
    return (
        item,
        (labels[truth[group], item] ^ (rng.random(len(item)) < wrong)).astype(int),
        group,
        truth,
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("case", [{}, {"wrong": 0.05}, {"n_items": 600}, {"differ": 0.2}])
def test_two_conventions_are_found_whether_their_number_is_given_or_not(seed, case):
    item, y, group, truth = answers(2, seed=seed, **case)
    for n_contexts in (None, 2):
        start = start_from_items(item, y, group, n_contexts, n_classes=2, seed=seed)
        assert (start.is_trusted, start.contexts.max()) == (True, 1)
        assert allocation_agreement(start.contexts, truth) >= 0.95


def test_three_conventions_are_three_contexts():
    item, y, group, truth = answers(3, n_groups=60, n_each=50)
    start = start_from_items(item, y, group, None, n_classes=2, seed=0)
    assert len(set(zip(start.contexts.tolist(), truth.tolist(), strict=True))) == 3


@pytest.mark.parametrize(
    "case",
    [
        {},
        {"wrong": 0.1},
        {"wrong": 0.3},
        {"wrong": 0.3, "n_each": 10},
        {"wrong": 0.3, "n_groups": 100, "n_each": 15},
    ],
)
def test_one_convention_is_one_context_even_with_many_wrong_answers(case):
    for seed in range(4):
        item, y, group, _ = answers(1, seed=seed, **case)
        start = start_from_items(item, y, group, None, n_classes=2, seed=seed)
        assert (start.is_trusted, set(start.contexts)) == (False, {0})


def test_values_are_compared_like_labels():
    item, y, group, truth = answers(2)
    values = y[:, None] + np.random.default_rng(0).normal(0.0, 0.3, (len(y), 1))
    start = start_from_items(item, values, group, None, n_classes=0, seed=0)
    assert len(set(zip(start.contexts.tolist(), truth.tolist(), strict=True))) == 2


def test_the_surrogate_distinguishes_right_contexts_from_wrong_ones():
    item, y, group, truth = answers(2)
    surrogate = ItemSurrogate.of(np.eye(200)[item], item, y, group, n_classes=2, seed=0)
    right, wrong = surrogate.judge(truth, 2, 0), surrogate.judge(np.arange(40) // 20, 2, 0)
    assert right.error == pytest.approx(surrogate.find(2).error)
    assert 2 * right.error < wrong.error
    assert surrogate.find(2).held_out.mean() < surrogate.find(1).held_out.mean()
    answer = surrogate.means.answer(right.contexts, 2, item)[:, :, 0]
    # The first class is the first column.
    np.testing.assert_array_equal(answer[truth[group], np.arange(1200)] > 0, y == 0)


# ---- mean answers -------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
GROUP = np.repeat(np.arange(8), 6)
ITEM = np.concatenate([RNG.integers(10, size=6) for _ in range(8)])  # some items occur twice
Y = RNG.normal(size=(48, 2))


def predict_without(row, members, ridge):
    """The members' mean answer to the row's item without the row's group, shrunk, by hand."""
    weight = settings.SEARCH.items.pooled_weight
    others = (ITEM[row] == ITEM) & (GROUP[row] != GROUP)
    pooled = Y[others].sum(0) / (others.sum() + ridge)
    own = others & np.isin(GROUP, members)
    return (Y[own].sum(0) + weight * pooled) / (own.sum() + weight + ridge)


def test_a_group_is_judged_by_the_answers_of_other_groups():
    contexts = np.array([0, 1, 0, 0, 1, 1, 0, 1])
    means = ItemMeans(ITEM, Y, GROUP, seed=0)
    found = means.judge(contexts, 2)
    expected = np.zeros((2, 8))
    for row in range(48):
        for k in range(2):
            predicted = predict_without(row, np.flatnonzero(contexts == k), means.ridge)
            expected[k, GROUP[row]] += np.square(Y[row] - predicted).sum() / 6
    np.testing.assert_allclose(found.losses, expected)
    assert found.error == pytest.approx(expected[contexts, np.arange(8)].mean())


def test_means_of_contradictory_answers_shrink_most():
    item, group = np.tile(np.arange(10), 8), np.repeat(np.arange(8), 10)
    consistent = np.where(item % 2, 1.0, -1.0)[:, None]
    random = np.random.default_rng(0).normal(size=(80, 1))
    ridges = settings.SEARCH.items.ridges
    assert ItemMeans(item, consistent, group, seed=0).ridge == min(ridges)
    assert ItemMeans(item, random, group, seed=0).ridge == max(ridges)


def test_rows_are_held_out_before_the_search():
    """Random answers can be sorted into contexts that agree, but held-out rows do not agree."""
    rng = np.random.default_rng(0)
    item, group = np.tile(np.arange(30), 40), np.repeat(np.arange(40), 30)
    means = ItemMeans(item, rng.normal(size=(1200, 1)), group, seed=0)
    assert means.search(4).error < 0.99 * means.search(1).error
    assert means.held_out_losses(4).mean() > 0.99 * means.held_out_losses(1).mean()


def test_answers_of_a_group_do_not_predict_the_group_itself():
    """Otherwise a context would explain perfectly a group that dominates it."""
    means = ItemMeans(np.arange(6), np.ones((6, 1)), np.repeat([0, 1], 3), seed=0)
    # No other group answered these items, so that nothing is predicted.
    np.testing.assert_allclose(means.judge(np.array([0, 1]), 2).losses, 1.0)


def test_rows_without_an_item_are_ignored():
    some_missing = np.where(np.arange(48) % 5 == 0, -1, ITEM)
    rows = np.flatnonzero(some_missing >= 0)
    all_rows = ItemMeans(some_missing, Y, GROUP, seed=0).judge(np.zeros(8, dtype=int), 1)
    some_rows = ItemMeans(ITEM[rows], Y[rows], GROUP[rows], seed=0).judge(np.zeros(8, dtype=int), 1)
    np.testing.assert_allclose(all_rows.losses, some_rows.losses)


# ---- which inputs are items ---------------------------------------------------------------------


def test_items_are_found_by_their_indicator_columns():
    item, _, group, _ = answers(2, n_items=60)
    x = np.eye(60)[item]
    found = find_items(x, group)
    assert len(set(zip(found.tolist(), item.tolist(), strict=True))) == len(set(item.tolist()))
    description = np.random.default_rng(0).normal(size=(60, 2))[item]
    is_long = (item % 3 == 0)[:, None]
    for described in (
        np.hstack([x, description]),
        np.hstack([is_long, x]),
        np.hstack([x, np.where(is_long, 0.0, -0.0)]),
    ):
        assert (find_items(described, group) == found).all()


def test_rows_of_items_without_an_indicator_column_have_none():
    item, _, group, _ = answers(2, n_items=60)
    found = find_items(np.eye(60)[item][:, :50], group)
    assert ((found == -1) == (item >= 50)).all()


def test_other_inputs_are_not_items():
    rng, (item, _, group, _) = np.random.default_rng(0), answers(2, n_items=60)
    x = np.eye(60)[item]
    for other in (
        rng.normal(size=(1200, 30)),
        rng.integers(2, size=(1200, 60)).astype(float),  # rows have many indicators
        np.eye(20)[item % 20],  # an ordinary category
        np.hstack([x, rng.normal(size=(1200, 1))]),  # another column varies within items
        x[:, :, None],
        np.array([["a"] * 30] * 1200),
    ):
        assert find_items(other, group) is None
    assert find_items(x, np.arange(1200)) is None  # single rows
    assert find_items(np.eye(1200)[:, :1000], group) is None  # no two groups share an item


def test_sparse_inputs_and_frames_give_the_same_items_as_arrays():
    pandas, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    item, _, group, _ = answers(2, n_items=60)
    x = np.eye(60)[item]
    assert (find_items(sparse.csr_matrix(x), group) == find_items(x, group)).all()
    assert (find_items(pandas.DataFrame(x).astype(bool), group) == find_items(x, group)).all()
