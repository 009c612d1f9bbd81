import numpy as np
import pytest

from leaflearn import Identification
from leaflearn.estimators.identification import posterior

GROUPS = np.array(["sure", "torn", "strange"])
EVIDENCE = np.array([[1.0, 9.0], [5.0, 5.1], [90.0, 700.0]])  # minus log-likelihood


def identify(abstain):
    return Identification.from_scores(GROUPS, EVIDENCE, np.array([0.1, 0.1, 3.0]), np.full(3, 0.5), abstain)


def test_the_most_probable_context_is_named():
    found = identify(abstain=False)
    assert found.context.tolist() == [0, 0, 0]
    assert found.margin.tolist() == pytest.approx([8.0, 0.1, 610.0])
    assert found.is_new.tolist() == [False, False, True]
    assert len(found) == 3


def test_abstaining_leaves_open_what_is_doubtful_or_new():
    assert identify(abstain=True).context.tolist() == [0, -1, -1]


def test_the_posterior_survives_large_evidence():
    probability = posterior(np.array([[1e5, 1e5 + 1], [0.0, 1e308]]))
    np.testing.assert_allclose(probability[0], [1 / (1 + np.exp(-1)), 1 / (1 + np.e)])
    np.testing.assert_allclose(probability[1], [1.0, 0.0])
