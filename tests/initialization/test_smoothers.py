"""Leaving a group out in closed form is the same as refitting without it."""

import numpy as np
import pytest
import torch

from leaflearn.initialization.smoothers import (
    MOST_ROWS_OF_A_GROUP,
    GroupTable,
    leave_group_out,
    solve,
)

GROUP = np.array([2, 0, 1, 1, 0, 2, 2, 3])  # ragged, in any order


@pytest.fixture
def table():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(len(GROUP), 3, generator=generator, dtype=torch.float64)
    features[:, 0] = 1.0
    return GroupTable.of(
        features, torch.randn(len(GROUP), 2, generator=generator, dtype=torch.float64), GROUP
    )


def refit_without(table, weights, ridge, row_weight, left_out):
    """The coefficients of every model that learns from all groups but one, by a plain least-squares solver."""
    rows = torch.ones_like(table.weight) if row_weight is None else row_weight
    coefficients = []
    for k in range(weights.shape[1]):
        keep = [g for g in range(len(table.y)) if g != left_out]
        root = (
            (weights[0, k, keep, None] * (rows[keep] if row_weight is None else rows[0, k, keep]))
            .sqrt()
            .reshape(-1, 1)
        )
        x, y = table.features[keep].reshape(-1, 3) * root, table.y[keep].reshape(-1, 2) * root
        held = torch.diag(torch.tensor([1e-6, 1.0, 1.0], dtype=x.dtype) * ridge).sqrt()
        stacked_x, stacked_y = (
            torch.cat([x, held]),
            torch.cat([y, torch.zeros(3, 2, dtype=y.dtype)]),
        )
        coefficients.append(torch.linalg.lstsq(stacked_x, stacked_y).solution)
    return coefficients


@pytest.mark.parametrize("with_row_weight", [False, True])
def test_closed_form_equals_refitting(table, with_row_weight):
    generator = torch.Generator().manual_seed(1)
    weights = torch.rand(1, 2, 4, generator=generator, dtype=torch.float64)
    row_weight = (
        torch.rand(1, 2, 4, 3, generator=generator, dtype=torch.float64)
        if with_row_weight
        else None
    )
    losses = leave_group_out(table, weights, torch.tensor([0.3], dtype=torch.float64), row_weight)
    for g in range(4):
        for k, coefficients in enumerate(refit_without(table, weights, 0.3, row_weight, g)):
            expected = (table.y[g] - table.features[g] @ coefficients).square().sum(
                -1
            ) * table.weight[g]
            torch.testing.assert_close(losses[0, k, g], expected)


def test_starts_do_not_disturb_each_other(table):
    weights = torch.rand(3, 2, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    ridge = torch.tensor([0.1, 1.0, 10.0], dtype=torch.float64)
    together = leave_group_out(table, weights, ridge)
    for r in range(3):
        torch.testing.assert_close(
            together[r : r + 1], leave_group_out(table, weights[r : r + 1], ridge[r : r + 1])
        )


def test_rows_are_laid_out_by_their_group(table):
    assert table.row.tolist() == [[1, 4, -1], [2, 3, -1], [0, 5, 6], [7, -1, -1]]
    assert table.sizes.tolist() == [2, 2, 3, 1]


def test_a_very_large_group_shows_a_part_of_its_rows():
    group = np.zeros(100, dtype=int)
    table = GroupTable.of(torch.ones(100, 1), torch.ones(100, 1), group)
    assert table.row.shape == (1, MOST_ROWS_OF_A_GROUP)


def test_a_group_that_a_model_never_learnt_from_is_judged_as_it_is(table):
    weights = torch.tensor([[[1.0, 1.0, 1.0, 0.0]]], dtype=torch.float64)
    ridge = torch.tensor([0.1], dtype=torch.float64)
    coefficients, *_ = solve(table, weights, ridge)
    expected = (table.y[3] - table.features[3] @ coefficients[0]).square().sum(-1) * table.weight[3]
    torch.testing.assert_close(leave_group_out(table, weights, ridge)[0, 0, 3], expected)
