"""Whoever is called sure is right about as often as that says, also where networks have learnt their rows by heart."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from leaflearn import LeafRegressor
from leaflearn.engines.calibration import find_evidence_factor, posterior


def test_what_is_clear_on_held_out_rows_is_not_doubted():
    evidence = np.array([[0.0, 9.0], [9.0, 0.0], [0.0, 5.0]])
    assert find_evidence_factor(evidence, np.array([0, 1, 0])) == 1.0


def test_rows_that_tell_nothing_leave_the_unit_as_it_is():
    assert find_evidence_factor(np.zeros((5, 2)), np.zeros(5, dtype=int)) == 1.0
    assert find_evidence_factor(np.ones((5, 1)), np.zeros(5, dtype=int)) == 1.0


def test_the_unit_grows_with_the_share_of_rows_that_mislead():
    evidence = np.tile([0.0, 30.0], (20, 1))
    problems = [
        find_evidence_factor(evidence, (np.arange(20) < wrong).astype(int))
        for wrong in (0, 1, 4, 8)
    ]
    assert problems == sorted(set(problems))


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X, source = rng.normal(size=(300, 1)), np.repeat(np.arange(30), 10)
    y = np.where(source % 2 == 0, 1.0, -1.0) * X[:, 0] + rng.normal(0.0, 0.5, 300)
    return LeafRegressor(2, local_model=LinearRegression(), random_state=0).fit(X, y, groups=source)


def test_doubt_stretches_the_unit_of_every_probability(fitted):
    rows = [[0.5], [1.0]], [0.4, 1.1]
    before = fitted.identify(*rows).margin
    doubting = copy.copy(fitted)
    doubting._held_out = replace(fitted._held_out, doubt=10.0 * fitted._held_out.doubt)
    assert doubting.identify(*rows).margin == pytest.approx(before / 10.0)


def test_what_a_fit_says_of_its_own_groups_is_in_the_same_unit(fitted):
    assert fitted.probabilities_ == pytest.approx(
        posterior(fitted._scores / (fitted._temperature * fitted._held_out.doubt))
    )


def test_straight_lines_that_cannot_learn_noise_by_heart_are_hardly_doubted(fitted):
    assert fitted._held_out.doubt < 2.0
