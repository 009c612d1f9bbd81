"""The number of contexts: gains by chance are distinguished from real ones; AIC, BIC and ICL."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from leaflearn.benchmark.datasets import functions
from leaflearn.benchmark.datasets.sampling import sample_groups
from leaflearn.initialization.n_contexts import (
    CandidateCount,
    choose,
    compute_criteria,
    count_down,
    is_significantly_better,
    mean_of_rows,
    standard_error,
)
from leaflearn.initialization.search import GroupTable, refine
from leaflearn.initialization.start import find_start
from leaflearn.initialization.surrogate import SmoothSurrogate


def count(n_contexts: int, held_out: np.ndarray) -> CandidateCount:
    return CandidateCount(n_contexts, float(mean_of_rows(held_out).mean()), held_out)


@pytest.mark.parametrize(("n_rows", "is_enough"), [(2, False), (20, True)])
def test_two_groups_of_twelve_are_enough_if_many_of_their_rows_gain_much(
    n_rows: int, is_enough: bool
) -> None:
    rng = np.random.default_rng(0)
    one, two = 1.0 + rng.uniform(0.0, 0.02, (2, 12, n_rows))
    one[:2] += 2.0
    assert is_significantly_better(count(2, two), count(1, one)) == is_enough


def test_a_few_groups_are_not_enough_if_single_rows_gain() -> None:
    rng = np.random.default_rng(0)
    one, two = rng.exponential(1.0, (2, 12, 4))
    one[:2, 0] += 3.0  # one row each
    assert not is_significantly_better(count(2, two), count(1, one))


def test_groups_that_all_gain_a_little_are_enough_even_if_their_rows_vary_much() -> None:
    noise = np.random.default_rng(0).normal(0.0, 5.0, (400, 2))
    noise -= noise.mean(1, keepdims=True)  # rows differ, groups do not
    assert is_significantly_better(count(2, 1.0 + noise), count(1, 1.5 - noise))


def test_the_standard_error_of_single_rows_is_that_of_their_mean() -> None:
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


def noisy_counts(true_number: int) -> dict[int, CandidateCount]:
    """Most of the loss is noise, each context saves 5 % of it, and superfluous ones nothing."""
    noise = np.random.default_rng(0).exponential(0.7, (500, 4))
    counts = {}
    for n in range(1, 5):
        own = np.random.default_rng(n).normal(0.0, 0.1, noise.shape)
        counts[n] = count(n, noise - 0.05 * min(n, true_number) + own)
    return counts


def test_requested_contexts_are_kept_if_they_save_little_but_significantly() -> None:
    counts = noisy_counts(true_number=3)
    # To choose the number, a larger gain is required.
    assert not is_significantly_better(counts[3], counts[2])
    assert count_down(counts.__getitem__, asked=3)[0] == 3


def test_requested_contexts_that_save_nothing_are_not_kept() -> None:
    assert count_down(noisy_counts(true_number=3).__getitem__, asked=4)[0] == 3
    assert count_down(noisy_counts(true_number=2).__getitem__, asked=4)[0] == 2


def labelled_sources(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, 12])
    group = np.repeat(np.arange(12), 15)
    x = rng.normal(size=(len(group), 1))
    yes = (x[:, 0] > 0) ^ (rng.random(len(group)) < 0.05) ^ (group < 2)
    return x, yes.astype(np.intp), group


def test_two_sources_of_twelve_with_opposite_labels_are_a_context() -> None:
    counted = [
        len(set(find_start(*labelled_sources(seed), None, 2, seed).contexts)) for seed in range(2)
    ]
    assert counted == [2, 2]


def test_criteria_of_one_constant_are_those_of_one_gaussian() -> None:
    y = np.random.default_rng(0).normal(size=40)
    table = GroupTable.of(
        torch.ones(40, 1, dtype=torch.float64), torch.as_tensor(y)[:, None], np.arange(40) // 2
    )
    found = refine(table, torch.zeros(1, 20, dtype=torch.long), 1, torch.full((1,), 0.5))
    criteria = compute_criteria(table, found)
    variance = y.var()
    deviance = 40 * np.log(2 * np.pi * variance) + 40
    assert criteria.train_error == pytest.approx(variance, rel=1e-4)
    assert criteria.aic == pytest.approx(deviance + 2 * 2, rel=1e-4)  # a mean and a variance
    assert criteria.bic == pytest.approx(deviance + 2 * np.log(40), rel=1e-4)
    assert criteria.icl == pytest.approx(criteria.bic)  # one context has no entropy


def test_criteria_fall_much_with_the_third_function_and_hardly_with_a_fourth_context() -> None:
    sample, _ = sample_groups(functions(), random_state=0)
    surrogate = SmoothSurrogate.of(sample.x, sample.y[:, None], sample.groups, 0, seed=0)
    scale = surrogate.find(3).scale
    criteria = [(surrogate.find(k, [scale]), surrogate.criteria(k))[1] for k in (1, 2, 3, 4)]
    for name in ("aic", "bic", "icl"):
        saved = -np.diff([getattr(c, name) for c in criteria])
        assert saved[2] < 0.05 * saved[1]
