"""Preferences: tastes come apart, rankings are right, and what to offer to somebody unknown."""

import warnings

import numpy as np
import pytest

from leaflearn import RecoveryWarning
from leaflearn.estimators.ranker import LeafRanker

N_ITEMS, N_WORKERS = 8, 60


def answers(seed, n_each=20, n_tastes=2, features=None):
    """Comparisons by workers of some tastes that take turns, with the truth."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(n_tastes, N_ITEMS if features is None else features.shape[1]))
    weights -= weights.mean(axis=0)  # the tastes are as unlike as can be
    utilities = 3 * weights @ (np.eye(N_ITEMS) if features is None else features).T
    worker = np.repeat(np.arange(N_WORKERS), n_each)
    first = rng.integers(N_ITEMS, size=len(worker))
    second = (first + rng.integers(1, N_ITEMS, size=len(worker))) % N_ITEMS
    taste = np.arange(N_WORKERS) % n_tastes
    gain = utilities[taste[worker], first] - utilities[taste[worker], second]
    won = rng.random(len(worker)) < 1 / (1 + np.exp(-gain))
    return np.where(won, first, second), np.where(won, second, first), worker, taste, utilities


def agreement(contexts, taste):
    return max(np.mean(contexts == taste), np.mean(contexts == 1 - taste))


@pytest.fixture(scope="module")
def fitted():
    winner, loser, worker, taste, utilities = answers(0)
    return LeafRanker(n_contexts=2, random_state=0).fit(winner, loser, worker), taste, utilities


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_workers_of_one_taste_share_a_context(seed):
    winner, loser, worker, taste, utilities = answers(seed)
    ranker = LeafRanker(n_contexts=2, random_state=seed).fit(winner, loser, worker)
    assert agreement(ranker.contexts_, taste) > 0.95
    order = [0, 1] if np.mean(ranker.contexts_ == taste) > 0.5 else [1, 0]
    for context, true in enumerate(utilities[order]):
        assert np.corrcoef(ranker.utilities_[context], true)[0, 1] > 0.9


def test_features_rank_items_that_nobody_compared():
    features = np.random.default_rng(5).normal(size=(N_ITEMS, 2))
    winner, loser, worker, taste, _ = answers(5, features=features)
    described = {item: features[item] for item in range(N_ITEMS)} | {99: [0.0, 0.0]}
    ranker = LeafRanker(n_contexts=2, random_state=0).fit(winner, loser, worker, items=described)
    assert agreement(ranker.contexts_, taste) > 0.95
    assert 99 in ranker.ranking(0)
    assert ranker.utilities_.shape == (2, N_ITEMS + 1)


def test_a_new_worker_is_identified(fitted):
    ranker, _, _ = fitted
    for context in range(2):
        order = ranker.ranking(context)
        assert ranker.identify(order[:4], order[-4:]).context[0] == context


def test_disagreement_is_symmetric_and_of_opposites_large(fitted):
    ranker, _, _ = fitted
    between = ranker.disagreement()
    assert between.shape == (2, 2)
    np.testing.assert_array_equal(between, between.T)
    np.testing.assert_array_equal(np.diag(between), 0)
    assert between[0, 1] > 0.3


def test_who_does_not_know_the_context_offers_what_is_bad_for_nobody():
    ranker = LeafRanker()
    ranker.items_ = np.array(["loved or hated", "fine", "hated or loved"])
    ranker.utilities_ = np.array([[3.0, 1.0, -3.0], [-3.0, 1.0, 3.0]])
    assert ranker.choose() == "fine"
    assert ranker.regrets().min() == 0
    assert ranker.regrets().max() < 0.5


def test_too_few_yes_or_no_answers_are_warned_about():
    winner, loser, worker, _, _ = answers(0, n_each=2)
    with pytest.warns(
        RecoveryWarning,
        match=(
            r"^Half of the workers gave at most 2 answers\. From yes or no alone, 2 contexts"
            r" cannot "
            r"be identified with fewer than 3 per worker; "
        ),
    ):
        LeafRanker(n_contexts=2, random_state=0).fit(winner, loser, worker)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            ([1], [2, 3], [0]),
            (
                r"^winner, loser and workers need one entry for each answer, and at least one"
                r" answer; they have 1, 2 and 1 entries\.$"
            ),
        ),
        (([], [], []), r"they have 0, 0 and 0 entries\.$"),
        (([1, 4], [2, 4], [0, 0]), r"^Answer 1 compares 4 with itself; leave such answers out\.$"),
    ],
)
def test_answers_that_are_none_are_refused(columns, sentence):
    with pytest.raises(ValueError, match=sentence):
        LeafRanker().fit(*columns)


def test_an_unknown_item_is_refused(fitted):
    ranker, _, _ = fitted
    with pytest.raises(
        ValueError,
        match=(
            r"^Item 77 is not known; items are those that were fitted, or described in `items`\.$"
        ),
    ):
        ranker.identify([77], [0])


def test_features_must_be_numbers_of_one_length():
    with (
        pytest.raises(
            ValueError, match=r"^items must give every item the same number of finite features\.$"
        ),
        warnings.catch_warnings(),
    ):
        LeafRanker().fit([0], [1], [0], items={0: [np.nan], 1: [1.0]})
