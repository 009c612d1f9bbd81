"""Simulated groups differ as their scenario says."""

import numpy as np
import pytest

from leaflearn.benchmark.groups.settings import GROUPS
from leaflearn.benchmark.groups.simulation import SCENARIOS, simulate, simulate_for_cost


def group_means(rows, column):
    return np.array([column[rows.group == g].mean() for g in np.unique(rows.group)])


def test_two_hundred_data_sets_without_contexts_are_ten_seeds():
    assert sum(scenario.study == "degree" for scenario in SCENARIOS.values()) == 20
    assert all(name == scenario.name for name, scenario in SCENARIOS.items())


@pytest.mark.parametrize("seed", range(4))
def test_groups_are_ragged_and_their_number_follows_the_seed(seed):
    data = simulate(SCENARIOS["degree/intercepts/linear/values"], seed)
    sizes = np.bincount(data.train.group)
    assert len(sizes) == GROUPS.degree_groups[seed]
    assert (sizes.min() >= 6, sizes.max() <= 60, len(np.unique(sizes)) > 5) == (True, True, True)


def test_new_groups_are_not_learnt_from():
    data = simulate(SCENARIOS["kind/offset/3/values"], seed=0)
    assert set(data.known.group) == set(data.train.group)
    assert set(data.new.group) == set(data.labelled.group)
    assert not set(data.new.group) & set(data.train.group)


def test_a_seed_gives_the_same_data_and_scenarios_differ():
    first, second = (simulate(SCENARIOS["kind/slope/4/yes-no"], seed=3) for _ in range(2))
    other = simulate(SCENARIOS["kind/slope/5/yes-no"], seed=3)
    assert np.array_equal(first.train.X, second.train.X)
    assert np.array_equal(first.train.y, second.train.y)
    assert first.train.X.shape != other.train.X.shape or not np.allclose(
        first.train.X, other.train.X
    )


def test_offsets_are_so_many_deviations_apart():
    data = simulate(SCENARIOS["kind/offset/6/values"], seed=1)
    rows = data.train
    mean = np.sin(2 * rows.X[:, 0]) + 0.5 * rows.X[:, 1] ** 2 - 0.5 * rows.X[:, 2]
    offset = group_means(rows, rows.y - mean)
    distance = offset[data.truth == 1].mean() - offset[data.truth == 0].mean()
    assert distance / GROUPS.kind_deviation == pytest.approx(6, abs=0.8)


@pytest.mark.parametrize("answers", ["values", "yes-no"])
def test_who_knows_the_model_finds_contexts_that_are_far_apart(answers):
    near = simulate(SCENARIOS[f"kind/offset/1/{answers}"], seed=1)
    far = simulate(SCENARIOS[f"kind/offset/6/{answers}"], seed=1)
    share_near, share_far = ((data.best == data.truth).mean() for data in (near, far))
    assert share_far > 0.9
    assert share_near < share_far


def test_three_contexts_all_have_groups():
    assert set(simulate(SCENARIOS["kind/offset-of-3/2/values"], seed=0).truth) == {0, 1, 2}


def test_the_rows_of_a_cost_are_as_many_as_its_name_says():
    assert simulate_for_cost(SCENARIOS["cost/100000-rows"], seed=0).X.shape == (100_000, 8)
