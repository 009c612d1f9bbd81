"""How many contexts there are: what chance can do is told from what it cannot."""

from __future__ import annotations

import numpy as np
import pytest

from leaflearn.initialization.n_contexts import (
    CandidateCount,
    choose,
    count_down,
    is_significantly_better,
    mean_of_rows,
    standard_error,
)
from leaflearn.initialization.start import find_start


def count(n_contexts: int, held_out: np.ndarray) -> CandidateCount:
    return CandidateCount(n_contexts, float(mean_of_rows(held_out).mean()), held_out)


@pytest.mark.parametrize(("n_rows", "is_enough"), [(2, False), (20, True)])
def test_two_groups_of_twelve_are_enough_where_they_have_many_rows_that_gain_much(
    n_rows: int, is_enough: bool
) -> None:
    rng = np.random.default_rng(0)
    one, two = 1.0 + rng.uniform(0.0, 0.02, (2, 12, n_rows))
    one[:2] += 2.0
    assert is_significantly_better(count(2, two), count(1, one)) == is_enough


def test_a_few_groups_whose_rows_do_not_agree_are_not() -> None:
    rng = np.random.default_rng(0)
    one, two = rng.exponential(1.0, (2, 12, 4))
    one[:2, 0] += 3.0  # one row each
    assert not is_significantly_better(count(2, two), count(1, one))


def test_groups_that_all_gain_a_little_are_enough_though_their_rows_differ_much() -> None:
    noise = np.random.default_rng(0).normal(0.0, 5.0, (400, 2))
    noise -= noise.mean(1, keepdims=True)  # rows differ, groups do not
    assert is_significantly_better(count(2, 1.0 + noise), count(1, 1.5 - noise))


def test_single_rows_are_compared_with_one_another() -> None:
    gain = np.random.default_rng(0).normal(2.0, size=(30, 1))
    assert standard_error(gain) == pytest.approx(gain.std(ddof=1) / np.sqrt(30))


def test_groups_without_held_out_rows_change_nothing() -> None:
    one, two = np.full((10, 3), 0.9), np.full((10, 3), 0.1)
    more = [np.concatenate([table, np.full((5, 3), np.nan)]) for table in (one, two)]
    assert count(1, one).mean == CandidateCount(1, 0.9, more[0]).mean
    assert (
        choose([CandidateCount(1, 0.9, more[0]), CandidateCount(2, 0.5, more[1])])
        == choose([CandidateCount(1, 0.9, one), CandidateCount(2, 0.5, two)])
        == 2
    )


def noisy_counts(truly: int) -> dict[int, CandidateCount]:
    """Most of the loss is noise, each context saves 5 % of it, and one too many saves nothing."""
    noise = np.random.default_rng(0).exponential(0.7, (500, 4))
    return {
        n: count(
            n, noise - 0.05 * min(n, truly) + np.random.default_rng(n).normal(0.0, 0.1, noise.shape)
        )
        for n in range(1, 5)
    }


def test_contexts_that_were_asked_for_are_kept_where_they_save_little_but_surely() -> None:
    counts = noisy_counts(truly=3)
    assert not is_significantly_better(
        counts[3], counts[2]
    )  # to find the number out, it has to be worth it
    assert count_down(counts.__getitem__, asked=3)[0] == 3


def test_contexts_that_were_asked_for_and_save_nothing_are_not() -> None:
    assert count_down(noisy_counts(truly=3).__getitem__, asked=4)[0] == 3
    assert count_down(noisy_counts(truly=2).__getitem__, asked=4)[0] == 2


def labelled_sources(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, 12])
    group = np.repeat(np.arange(12), 15)
    x = rng.normal(size=(len(group), 1))
    yes = (x[:, 0] > 0) ^ (rng.random(len(group)) < 0.05) ^ (group < 2)
    return x, yes.astype(np.intp), group


def test_two_sources_of_twelve_that_say_no_for_yes_are_a_context_of_their_own() -> None:
    counted = [
        len(set(find_start(*labelled_sources(seed), None, 2, seed).contexts)) for seed in range(2)
    ]
    assert counted == [2, 2]
