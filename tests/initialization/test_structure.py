"""Kind or degree: one context where groups differ by degree, several where they differ in kind."""

from dataclasses import replace

import numpy as np
import pytest

from leaflearn.effects.restricted_likelihood import fit_mixed_model
from leaflearn.initialization import settings
from leaflearn.initialization.noise_scales import shrink_variances
from leaflearn.initialization.structure import choose_structure
from leaflearn.moments.features import FeatureMap
from leaflearn.moments.group_moments import GroupMoments

M, N = 60, 15
GROUP = np.repeat(np.arange(M), N)
DEGREE = {
    "intercepts": lambda rng, x: x + rng.normal(size=M)[GROUP],
    "slopes": lambda rng, x: x * rng.normal(1, 1, M)[GROUP],
    "heavy tails": lambda rng, x: x + rng.standard_t(3, M)[GROUP],
    "unequal noise": lambda rng, x: (
        x + np.exp(rng.normal(0, 0.7, M))[GROUP] * rng.normal(size=M * N)
    ),
}
KIND = {
    "exact contexts": lambda rng, x: np.where(GROUP % 3, 1.0, -2.0) * x,
    "with intercepts": lambda rng, x: (
        np.where(GROUP % 3, 1.0, -2.0) * x + rng.normal(0, 0.5, M)[GROUP]
    ),
    "offsets six deviations apart": lambda rng, x: (
        x + 6.0 * (GROUP % 3 == 0) + rng.normal(size=M)[GROUP]
    ),
}


def structure_of(make, seed, n_contexts=None):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=M * N)
    y = make(rng, x) + rng.normal(0, 0.3, M * N)
    y = (y - y.mean()) / y.std()
    features = FeatureMap.of(x[:, None])
    moments = GroupMoments.of(features(x[:, None]), y[:, None], GROUP, M)
    is_shrunk = np.zeros(2, dtype=bool)
    model = fit_mixed_model(moments, np.array([0, 1]), is_shrunk)
    return choose_structure(moments, [model], is_shrunk, n_contexts, True, rng)


@pytest.mark.parametrize("name", DEGREE)
def test_differences_of_degree_are_one_context(name):
    found = [structure_of(DEGREE[name], seed).chosen.n_contexts for seed in range(4)]
    assert found.count(1) >= 3, found


@pytest.mark.parametrize("name", KIND)
def test_differences_of_kind_are_contexts(name):
    for seed in range(3):
        found = structure_of(KIND[name], seed)
        assert found.chosen.n_contexts == 2
        assert np.mean(found.contexts == found.contexts[0]) == pytest.approx(1 / 3, abs=0.05)


def test_a_given_number_is_kept_and_compared_with_one():
    found = structure_of(DEGREE["intercepts"], 0, n_contexts=3)
    assert found.chosen.n_contexts == 3
    assert {candidate.n_contexts for candidate in found.candidates} == {1, 3}


def test_all_groups_belong_to_one_context(monkeypatch):
    few = replace(settings.STRUCTURE, max_groups=20)
    monkeypatch.setattr(settings, "STRUCTURE", few)
    assert structure_of(DEGREE["intercepts"], 0, n_contexts=1).chosen.posterior.min() == 1.0
    two = structure_of(KIND["exact contexts"], 0, n_contexts=2).chosen.posterior
    assert (two.sum(0) > 0.5).sum() == 20  # the others are allocated afterwards


def test_the_choice_is_explained():
    assert structure_of(DEGREE["intercepts"], 0).explain() == (
        "groups differ by degree: more contexts do not explain them better"
    )
    assert (
        structure_of(KIND["exact contexts"], 0)
        .explain()
        .startswith("2 contexts raise the log density of a held-out group by ")
    )


def test_variances_of_groups_are_between_their_own_and_the_common_one():
    rng = np.random.default_rng(0)
    n_free = np.full(200, 10.0)
    true = np.repeat([1.0, 4.0], 100)
    squares = rng.chisquare(10, 200) * true
    variance, prior = shrink_variances(squares, n_free)
    assert 1 < prior < 20
    raw, common = squares / n_free, np.median(squares / n_free)
    assert (np.abs(variance - common) <= np.abs(raw - common) + 0.5).all()
    assert np.mean((np.log(variance) - np.log(true)) ** 2) < np.mean(
        (np.log(raw) - np.log(true)) ** 2
    )
