"""Contexts of answers to items: where they are found and where not, a second opinion on them, and which inputs are items at all."""

import numpy as np
import pytest

from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.initialization.item_surrogate import ItemSurrogate, find_items, start_from_items


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
def test_two_conventions_come_apart_whatever_number_is_asked_for(seed, case):
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
def test_one_convention_is_one_context(case):
    """However many answers are wrong."""
    for seed in range(4):
        item, y, group, _ = answers(1, seed=seed, **case)
        start = start_from_items(item, y, group, None, n_classes=2, seed=seed)
        assert (start.is_trusted, set(start.contexts)) == (False, {0})


def test_values_are_compared_like_labels():
    item, y, group, truth = answers(2)
    values = y[:, None] + np.random.default_rng(0).normal(0.0, 0.3, (len(y), 1))
    start = start_from_items(item, values, group, None, n_classes=0, seed=0)
    assert len(set(zip(start.contexts.tolist(), truth.tolist(), strict=True))) == 2


def test_a_second_opinion_knows_right_contexts_from_wrong_ones():
    item, y, group, truth = answers(2)
    reading = ItemSurrogate.of_items(np.eye(200)[item], item, y, group, n_classes=2, seed=0)
    right, wrong = reading.judge(truth, 2, 0), reading.judge(np.arange(40) // 20, 2, 0)
    assert right.error == pytest.approx(reading.find(2).error)
    assert 2 * right.error < wrong.error
    assert reading.find(2).held_out.mean() < reading.find(1).held_out.mean()
    answer = reading.answer(right)[:, :, 0].numpy()
    np.testing.assert_array_equal(
        answer[truth[group], np.arange(1200)] > 0, y == 0
    )  # the first class is the first column


# Which inputs are items


def test_items_are_known_by_their_columns_of_zeros_and_ones():
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


def test_rows_of_unnamed_items_have_none():
    item, _, group, _ = answers(2, n_items=60)
    found = find_items(np.eye(60)[item][:, :50], group)
    assert ((found == -1) == (item >= 50)).all()


def test_inputs_that_are_something_else():
    rng, (item, _, group, _) = np.random.default_rng(0), answers(2, n_items=60)
    x = np.eye(60)[item]
    for other in (
        rng.normal(size=(1200, 30)),
        rng.integers(2, size=(1200, 60)).astype(float),  # flags of which rows have many
        np.eye(20)[item % 20],  # an ordinary category
        np.hstack(
            [x, rng.normal(size=(1200, 1))]
        ),  # something varies beside the item, and may matter
        x[:, :, None],
        np.array([["a"] * 30] * 1200),
    ):
        assert find_items(other, group) is None
    assert find_items(x, np.arange(1200)) is None  # single rows
    assert find_items(np.eye(1200)[:, :1000], group) is None  # nobody shares one


def test_sparse_inputs_and_frames_are_read_like_arrays():
    pandas, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    item, _, group, _ = answers(2, n_items=60)
    x = np.eye(60)[item]
    assert (find_items(sparse.csr_matrix(x), group) == find_items(x, group)).all()
    assert (find_items(pandas.DataFrame(x).astype(bool), group) == find_items(x, group)).all()
