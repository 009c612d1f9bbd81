"""Three learners on one sample, compared with the truth."""

from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from leaflearn.benchmark.comparison import _follow_domains, compare
from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sources import Function
from leaflearn.engines.progress import ProgressBar

HIGH, LOW = Function(lambda x: 1.0 + 0 * x, 0.0, 1.0), Function(lambda x: -1.0 + 0 * x, 0.0, 1.0)
DATA = DomainSet(
    "levels",
    (Domain("high", HIGH, HIGH.grid(20)), Domain("low", LOW, LOW.grid(20))),
    n_groups=40,
    group_size=2,
)


@pytest.fixture(scope="module")
def result():
    names = []

    def watch(learner):
        names.append(learner)
        return ProgressBar(learner, Console(quiet=True))

    found = compare(DATA, 0, watch, max_epochs=30, n_init=1)
    assert names == ["ERM", "LEAF", "oracle"]
    return found


def test_every_learner_has_its_number_of_models(result):
    assert {name: learner.predictions.shape for name, learner in result.learners.items()} == {
        "ERM": (20, 1),
        "LEAF": (20, 2),
        "oracle": (20, 2),
    }


def test_a_pooled_model_matches_no_domain_and_other_models_one_each(result):
    assert result.learners["ERM"].domains.tolist() == [-1]
    assert sorted(result.learners["LEAF"].domains) == [0, 1]
    assert sorted(result.learners["oracle"].domains) == [0, 1]


def test_the_oracle_learns_both_levels_and_a_pooled_model_cannot(result):
    erm, oracle = result.learners["ERM"].errors.error, result.learners["oracle"].errors.error
    assert erm.sum() >= 2.0 - 1e-9  # the levels are 2 apart, so the errors of one model add up to 2
    assert oracle.max() < 0.5


def test_the_contexts_of_every_epoch_are_recorded(result):
    assert result.found.shape == (30, 40)
    assert set(np.unique(result.found)) <= {0, 1}


def test_the_same_seed_gives_the_same_comparison(result):
    again = compare(
        DATA, 0, lambda learner: ProgressBar(learner, Console(quiet=True)), max_epochs=30, n_init=1
    )
    assert np.array_equal(again.found, result.found)
    assert again.agreement == result.agreement


def test_recorded_contexts_of_the_best_start_are_renumbered():
    # Two epochs of two starts.
    recorded = [np.array([[0, 0, 0], [0, 1, 2]]), np.array([[0, 0, 0], [2, 2, 1]])]
    # Contexts 2, 0 and 1 of training became contexts 0, 1 and 2 of the fit, which match domains 1,
    # -1 and 0.
    estimator = SimpleNamespace(best_restart_=1, context_order_=np.array([2, 0, 1]))
    found = _follow_domains(recorded, estimator, np.array([1, -1, 0]))
    assert found.tolist() == [[-1, 0, 1], [1, 1, 0]]
