"""Mean answers to items: what they say of a group is what they would say had it not been there."""

import numpy as np
import pytest

from leaflearn.estimators.item_means import DRAWN, HELD_DOWN, ItemMeans
from leaflearn.estimators.item_reading import ItemReading, find_items, start_from_items
from leaflearn.evaluation import allocation_agreement

RNG = np.random.default_rng(0)
GROUP = np.repeat(np.arange(8), 6)
ITEM = np.concatenate([RNG.integers(10, size=6) for _ in range(8)])  # a group may answer an item twice
Y = RNG.normal(size=(48, 2))


def predict_without(row, members, ridge):
    """The mean of the members' answers to the row's item without the row's own group, drawn to that of all and to 0, by hand."""
    others = (ITEM[row] == ITEM) & (GROUP[row] != GROUP)
    pooled = Y[others].sum(0) / (others.sum() + ridge)
    own = others & np.isin(GROUP, members)
    return (Y[own].sum(0) + DRAWN * pooled) / (own.sum() + DRAWN + ridge)


def test_a_group_is_judged_by_what_others_said():
    contexts = np.array([0, 1, 0, 0, 1, 1, 0, 1])
    means = ItemMeans(ITEM, Y, GROUP, seed=0)
    found = means.judge(contexts, 2)
    expected = np.zeros((2, 8))
    for row in range(48):
        for k in range(2):
            expected[k, GROUP[row]] += np.square(Y[row] - predict_without(row, np.flatnonzero(contexts == k), means.ridge)).sum() / 6
    np.testing.assert_allclose(found.losses, expected)
    assert found.error == pytest.approx(expected[contexts, np.arange(8)].mean())


def test_answers_that_contradict_each_other_are_held_down_most():
    item, group = np.tile(np.arange(10), 8), np.repeat(np.arange(8), 10)
    assert ItemMeans(item, np.where(item % 2, 1.0, -1.0)[:, None], group, seed=0).ridge == min(HELD_DOWN)
    assert ItemMeans(item, np.random.default_rng(0).normal(size=(80, 1)), group, seed=0).ridge == max(HELD_DOWN)


def test_rows_are_held_out_before_the_search():
    """Groups that answer at random can be sorted so that they seem to agree, but the rows that were held out do not."""
    rng = np.random.default_rng(0)
    item, group = np.tile(np.arange(30), 40), np.repeat(np.arange(40), 30)
    means = ItemMeans(item, rng.normal(size=(1200, 1)), group, seed=0)
    assert means.search(4).error < 0.99 * means.search(1).error
    assert means.foretell(4).mean() > 0.99 * means.foretell(1).mean()


def test_what_a_group_says_itself_does_not_matter_to_its_losses_but_for_the_answers_themselves():
    """Were it left in, a context that a group dominates would explain it perfectly."""
    means = ItemMeans(np.arange(6), np.ones((6, 1)), np.repeat([0, 1], 3), seed=0)
    np.testing.assert_allclose(means.judge(np.array([0, 1]), 2).losses, 1.0)  # nobody else answered: nothing is foretold


def test_rows_without_an_item_have_no_say():
    with_holes = np.where(np.arange(48) % 5 == 0, -1, ITEM)
    rows = np.flatnonzero(with_holes >= 0)
    all_rows = ItemMeans(with_holes, Y, GROUP, seed=0).judge(np.zeros(8, dtype=int), 1)
    some_rows = ItemMeans(ITEM[rows], Y[rows], GROUP[rows], seed=0).judge(np.zeros(8, dtype=int), 1)
    np.testing.assert_allclose(all_rows.losses, some_rows.losses)


def answers(n_conventions, n_groups=40, n_items=200, n_each=30, differ=0.4, wrong=0.0, seed=0):
    """Items, labels and groups, and the convention that each group follows."""
    rng = np.random.default_rng(seed)
    labels = np.tile(rng.random(n_items) < 0.5, (n_conventions, 1))
    labels[1:] ^= rng.random((n_conventions - 1, n_items)) < differ
    item = np.concatenate([rng.permutation(n_items)[:n_each] for _ in range(n_groups)])
    group, truth = np.repeat(np.arange(n_groups), n_each), np.arange(n_groups) % n_conventions
    return item, (labels[truth[group], item] ^ (rng.random(len(item)) < wrong)).astype(int), group, truth


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
    "case", [{}, {"wrong": 0.1}, {"wrong": 0.3}, {"wrong": 0.3, "n_each": 10}, {"wrong": 0.3, "n_groups": 100, "n_each": 15}]
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
    reading = ItemReading.of_items(np.eye(200)[item], item, y, group, n_classes=2, seed=0)
    right, wrong = reading.judge(truth, 2, 0), reading.judge(np.arange(40) // 20, 2, 0)
    assert right.error == pytest.approx(reading.find(2).error)
    assert 2 * right.error < wrong.error
    assert reading.find(2).held_out.mean() < reading.find(1).held_out.mean()
    answer = reading.answer(right)[:, :, 0].numpy()
    np.testing.assert_array_equal(answer[truth[group], np.arange(1200)] > 0, y == 0)  # the first class is the first column


# Which inputs are items


def test_items_are_known_by_their_columns_of_zeros_and_ones():
    item, _, group, _ = answers(2, n_items=60)
    x = np.eye(60)[item]
    found = find_items(x, group)
    assert len(set(zip(found.tolist(), item.tolist(), strict=True))) == len(set(item.tolist()))
    description = np.random.default_rng(0).normal(size=(60, 2))[item]
    is_long = (item % 3 == 0)[:, None]
    for described in (np.hstack([x, description]), np.hstack([is_long, x]), np.hstack([x, np.where(is_long, 0.0, -0.0)])):
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
        np.hstack([x, rng.normal(size=(1200, 1))]),  # something varies beside the item, and may matter
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
