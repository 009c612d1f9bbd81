"""A third of the groups is altered, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest

from leaflearn.benchmark.altered.tasks import (
    TASKS,
    AlteredTask,
    change_unit,
    shift_threshold,
    swap_columns,
)


def make(pets, alter, seed=0):
    rows, truth = AlteredTask("task", pets, alter).make(seed)
    return rows, truth, truth[rows.group] == 1, pets.load()


def test_a_third_of_the_groups_is_altered_and_seeds_choose_which(pets):
    truths = [TASKS["pets-reversed"].make(seed)[1] for seed in range(3)]
    assert [truth.sum() for truth in truths] == [4, 4, 4]
    assert len({tuple(truth) for truth in truths}) > 1


def test_reversed_values_keep_their_range(pets):
    rows, truth = TASKS["pets-reversed"].make(0)
    data, is_altered = pets.load(), truth[rows.group] == 1
    assert np.array_equal(rows.y[~is_altered], data.y[~is_altered])
    assert np.allclose(rows.y[is_altered], data.y.max() + data.y.min() - data.y[is_altered])


def test_reversed_classes_stay_classes(pets):
    table = replace(pets, target="country")
    rows, _ = AlteredTask("task", table, TASKS["pets-reversed"].alter).make(0)
    assert (rows.n_classes, set(rows.y.tolist())) == (2, {0, 1})


def test_swapped_columns_keep_their_units(pets):
    rows, _, is_altered, data = make(pets, swap_columns("age", "length"))
    assert np.array_equal(rows.X[~is_altered], data.X[~is_altered])
    mean, std = data.X[:, :2].mean(0), data.X[:, :2].std(0)
    before, after = (data.X[:, :2] - mean) / std, (rows.X[:, :2] - mean) / std
    assert np.allclose(after[is_altered], before[is_altered][:, ::-1])


@pytest.mark.parametrize("column", [None, "age"])
def test_another_unit_is_an_affine_change(pets, column):
    rows, _, is_altered, data = make(pets, change_unit(column))
    before, after = (data.y, rows.y) if column is None else (data.X[:, 0], rows.X[:, 0])
    assert np.array_equal(after[~is_altered], before[~is_altered])
    slope, shift = np.polyfit(before[is_altered], after[is_altered], 1)
    mean = before.mean()
    assert slope == pytest.approx(1.8)
    assert shift + slope * mean == pytest.approx(mean + 2 * before.std())


def test_a_threshold_is_higher_in_altered_groups(pets):
    rows, _, is_altered, data = make(pets, shift_threshold)
    assert rows.n_classes == 2
    assert data.y[is_altered & (rows.y == 1)].min() > np.quantile(data.y, 0.74)
    assert data.y[~is_altered & (rows.y == 1)].min() < np.quantile(data.y, 0.5)


def test_a_hidden_column_is_the_truth_and_no_input(pets):
    rows, truth = TASKS["pets-country"].make(0)
    assert truth.tolist() == [1, 0, 0] * 4
    assert rows.X.shape[1] == pets.load().X.shape[1] - 1


def test_tasks_are_named_after_their_tables():
    assert len(TASKS) == 30
    assert all(name == task.name for name, task in TASKS.items())
    assert all((task.alter is None) == (task.hidden is not None) for task in TASKS.values())
