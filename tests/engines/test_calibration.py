"""Contexts are right about as often as their probabilities say, also for overfitted networks."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from leaflearn import LeafRegressor
from leaflearn.engines import settings
from leaflearn.engines.calibration import find_evidence_factor, posterior


def test_evidence_that_held_out_rows_confirm_is_not_scaled():
    evidence = np.array([[0.0, 9.0], [9.0, 0.0], [0.0, 5.0]])
    assert find_evidence_factor(evidence, np.array([0, 1, 0])) == 1.0


def test_uninformative_rows_leave_the_unit_as_it_is():
    assert find_evidence_factor(np.zeros((5, 2)), np.zeros(5, dtype=int)) == 1.0
    assert find_evidence_factor(np.ones((5, 1)), np.zeros(5, dtype=int)) == 1.0


def test_the_factor_grows_with_the_share_of_misleading_rows():
    evidence = np.tile([0.0, 30.0], (20, 1))
    factors = [
        find_evidence_factor(evidence, (np.arange(20) < wrong).astype(int))
        for wrong in (0, 1, 4, 8)
    ]
    assert factors == sorted(set(factors))


def test_settings_are_read_at_call_time(monkeypatch):
    changed = replace(settings.HELD_OUT, max_evidence_factor=4.0)
    monkeypatch.setattr(settings, "HELD_OUT", changed)
    evidence, context = np.tile([0.0, 20.0], (10, 1)), np.array([0] * 9 + [1])
    assert find_evidence_factor(evidence, context) == 4.0


def test_the_posterior_survives_large_evidence():
    probability = posterior(np.array([[1e5, 1e5 + 1], [0.0, 1e308]]))
    np.testing.assert_allclose(probability[0], [1 / (1 + np.exp(-1)), 1 / (1 + np.e)])
    np.testing.assert_allclose(probability[1], [1.0, 0.0])


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X, source = rng.normal(size=(300, 1)), np.repeat(np.arange(30), 10)
    y = np.where(source % 2 == 0, 1.0, -1.0) * X[:, 0] + rng.normal(0.0, 0.5, 300)
    return LeafRegressor(2, local_model=LinearRegression(), random_state=0).fit(X, y, groups=source)


def test_the_evidence_factor_scales_the_margin(fitted):
    rows = [[0.5], [1.0]], [0.4, 1.1]
    before = fitted.identify(*rows).margin
    scaled, factor = copy.copy(fitted), fitted.fitted_state_.held_out.evidence_factor
    held_out = replace(fitted.fitted_state_.held_out, evidence_factor=10.0 * factor)
    scaled.fitted_state_ = replace(fitted.fitted_state_, held_out=held_out)
    assert scaled.identify(*rows).margin == pytest.approx(before / 10.0)


def test_the_probabilities_of_the_training_groups_have_the_same_unit(fitted):
    unit = fitted.fitted_state_.temperature * fitted.fitted_state_.held_out.evidence_factor
    assert fitted.probabilities_ == pytest.approx(posterior(fitted.fitted_state_.scores / unit))


def test_linear_models_hardly_need_calibration(fitted):
    assert fitted.fitted_state_.held_out.evidence_factor < 2.0
