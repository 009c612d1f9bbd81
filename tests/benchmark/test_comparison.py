"""Three learners on one sample: the right ones, judged against the right truth."""

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
    asked = []

    def watch(learner):
        asked.append(learner)
        return ProgressBar(learner, Console(quiet=True))

    found = compare(DATA, 0, watch, max_epochs=30, n_init=1)
    assert asked == ["ERM", "LEAF", "oracle"]
    return found


def test_every_learner_has_its_number_of_models(result):
    assert {name: learnt.predictions.shape for name, learnt in result.learnt.items()} == {
        "ERM": (20, 1),
        "LEAF": (20, 2),
        "oracle": (20, 2),
    }


def test_one_model_stands_for_no_domain_and_the_others_for_one_each(result):
    assert result.learnt["ERM"].domains.tolist() == [-1]
    assert sorted(result.learnt["LEAF"].domains) == [0, 1]
    assert sorted(result.learnt["oracle"].domains) == [0, 1]


def test_the_oracle_learns_both_levels_and_one_model_cannot(result):
    erm, oracle = result.learnt["ERM"].errors.error, result.learnt["oracle"].errors.error
    assert (
        erm.sum() >= 2.0 - 1e-9
    )  # the levels are 2 apart: whatever one model says, its two errors add up to at least that
    assert oracle.max() < 0.5


def test_the_contexts_of_every_epoch_are_kept(result):
    assert result.found.shape == (30, 40)
    assert set(np.unique(result.found)) <= {0, 1}


def test_the_same_seed_gives_the_same_comparison(result):
    again = compare(
        DATA, 0, lambda learner: ProgressBar(learner, Console(quiet=True)), max_epochs=30, n_init=1
    )
    assert np.array_equal(again.found, result.found)
    assert again.agreement == result.agreement


def test_recorded_contexts_are_renumbered_and_those_of_the_kept_start():
    recorded = [
        np.array([[0, 0, 0], [0, 1, 2]]),
        np.array([[0, 0, 0], [2, 2, 1]]),
    ]  # two epochs of two starts
    # The fit called training's context 2 its context 0, training's 0 its 1, training's 1 its 2, which stand for domains 1, -1 and 0.
    estimator = SimpleNamespace(best_restart_=1, context_order_=np.array([2, 0, 1]))
    found = _follow_domains(recorded, estimator, np.array([1, -1, 0]))
    assert found.tolist() == [[-1, 0, 1], [1, 1, 0]]
