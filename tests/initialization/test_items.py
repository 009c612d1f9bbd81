"""Mean answers to items: what they say of a group is what they would say had it not been there."""

import numpy as np
import pytest

from leaflearn.initialization.items import DRAWN, HELD_DOWN, ItemMeans

RNG = np.random.default_rng(0)
GROUP = np.repeat(np.arange(8), 6)
ITEM = np.concatenate(
    [RNG.integers(10, size=6) for _ in range(8)]
)  # a group may answer an item twice
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
            expected[k, GROUP[row]] += (
                np.square(
                    Y[row] - predict_without(row, np.flatnonzero(contexts == k), means.ridge)
                ).sum()
                / 6
            )
    np.testing.assert_allclose(found.losses, expected)
    assert found.error == pytest.approx(expected[contexts, np.arange(8)].mean())


def test_answers_that_contradict_each_other_are_held_down_most():
    item, group = np.tile(np.arange(10), 8), np.repeat(np.arange(8), 10)
    assert ItemMeans(item, np.where(item % 2, 1.0, -1.0)[:, None], group, seed=0).ridge == min(
        HELD_DOWN
    )
    assert ItemMeans(
        item, np.random.default_rng(0).normal(size=(80, 1)), group, seed=0
    ).ridge == max(HELD_DOWN)


def test_rows_are_held_out_before_the_search():
    """Groups that answer at random can be sorted so that they seem to agree, but the rows that were held out do not."""
    rng = np.random.default_rng(0)
    item, group = np.tile(np.arange(30), 40), np.repeat(np.arange(40), 30)
    means = ItemMeans(item, rng.normal(size=(1200, 1)), group, seed=0)
    assert means.search(4).error < 0.99 * means.search(1).error
    assert means.held_out_losses(4).mean() > 0.99 * means.held_out_losses(1).mean()


def test_what_a_group_says_itself_does_not_matter_to_its_losses_but_for_the_answers_themselves():
    """Were it left in, a context that a group dominates would explain it perfectly."""
    means = ItemMeans(np.arange(6), np.ones((6, 1)), np.repeat([0, 1], 3), seed=0)
    np.testing.assert_allclose(
        means.judge(np.array([0, 1]), 2).losses, 1.0
    )  # nobody else answered: nothing is foretold


def test_rows_without_an_item_have_no_say():
    with_holes = np.where(np.arange(48) % 5 == 0, -1, ITEM)
    rows = np.flatnonzero(with_holes >= 0)
    all_rows = ItemMeans(with_holes, Y, GROUP, seed=0).judge(np.zeros(8, dtype=int), 1)
    some_rows = ItemMeans(ITEM[rows], Y[rows], GROUP[rows], seed=0).judge(np.zeros(8, dtype=int), 1)
    np.testing.assert_allclose(all_rows.losses, some_rows.losses)
