import numpy as np
import pytest

from leaflearn import Identification

GROUPS = np.array(["sure", "torn", "strange"])
EVIDENCE = np.array([[1.0, 9.0], [5.0, 5.1], [90.0, 700.0]])  # minus log-likelihood


def identify(abstain):
    return Identification.from_scores(
        GROUPS, EVIDENCE, np.array([0.1, 0.1, 3.0]), np.array([False, False, True]), abstain
    )


def test_the_most_probable_context_is_named():
    found = identify(abstain=False)
    assert found.context.tolist() == [0, 0, 0]
    assert found.margin.tolist() == pytest.approx([8.0, 0.1, 610.0])
    assert found.is_new.tolist() == [False, False, True]
    assert len(found) == 3


def test_abstaining_gives_uncertain_and_new_sources_no_context():
    assert identify(abstain=True).context.tolist() == [0, -1, -1]
