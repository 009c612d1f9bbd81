"""The search in closed form: left-out groups as if refitted, starts, and split and merge."""

import numpy as np
import pytest
import torch

from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.initialization import settings
from leaflearn.initialization.search import (
    GroupTable,
    leave_group_out,
    refine,
    search,
    search_seeded,
    solve,
    split_and_merge,
)

GROUP = np.array([2, 0, 1, 1, 0, 2, 2, 3])  # groups of different sizes, in any order


@pytest.fixture
def table():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(len(GROUP), 3, generator=generator, dtype=torch.float64)
    features[:, 0] = 1.0
    return GroupTable.of(
        features, torch.randn(len(GROUP), 2, generator=generator, dtype=torch.float64), GROUP
    )


def refit_without(table, weights, ridge, row_weight, left_out):
    """Coefficients of every model without one group, by a plain least-squares solver."""
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
        penalty = torch.diag(torch.tensor([1e-6, 1.0, 1.0], dtype=x.dtype) * ridge).sqrt()
        stacked_x, stacked_y = (
            torch.cat([x, penalty]),
            torch.cat([y, torch.zeros(3, 2, dtype=y.dtype)]),
        )
        coefficients.append(torch.linalg.lstsq(stacked_x, stacked_y).solution)
    return coefficients


@pytest.mark.parametrize("with_row_weight", [False, True])
def test_leaving_out_a_group_equals_refitting_without_it(table, with_row_weight):
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
            residual = table.y[g] - table.features[g] @ coefficients
            expected = residual.square().sum(-1) * table.weight[g]
            torch.testing.assert_close(losses[0, k, g], expected)


def test_starts_are_independent_of_each_other(table):
    weights = torch.rand(3, 2, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    ridge = torch.tensor([0.1, 1.0, 10.0], dtype=torch.float64)
    together = leave_group_out(table, weights, ridge)
    for r in range(3):
        torch.testing.assert_close(
            together[r : r + 1], leave_group_out(table, weights[r : r + 1], ridge[r : r + 1])
        )


def test_a_table_has_one_line_per_group(table):
    assert table.row.tolist() == [[1, 4, -1], [2, 3, -1], [0, 5, 6], [7, -1, -1]]
    assert table.sizes.tolist() == [2, 2, 3, 1]


def test_a_very_large_group_is_represented_by_some_of_its_rows():
    group = np.zeros(100, dtype=int)
    table = GroupTable.of(torch.ones(100, 1), torch.ones(100, 1), group)
    assert table.row.shape == (1, settings.SEARCH.max_rows_per_group)


def test_the_loss_of_a_group_with_weight_zero_needs_no_correction(table):
    weights = torch.tensor([[[1.0, 1.0, 1.0, 0.0]]], dtype=torch.float64)
    ridge = torch.tensor([0.1], dtype=torch.float64)
    coefficients, *_ = solve(table, weights, ridge)
    expected = (table.y[3] - table.features[3] @ coefficients[0]).square().sum(-1) * table.weight[3]
    torch.testing.assert_close(leave_group_out(table, weights, ridge)[0, 0, 3], expected)


def levels(values, repeats, noise=0.01, seed=0):
    """Groups of two rows at one of a few levels."""
    rng = np.random.default_rng(seed)
    truth = np.tile(np.arange(len(values)), repeats)
    y = np.repeat(np.array(values)[truth], 2) + noise * rng.normal(size=2 * len(truth))
    features = torch.ones(len(y), 1, dtype=torch.float64)
    return GroupTable.of(
        features, torch.as_tensor(y)[:, None], np.repeat(np.arange(len(truth)), 2)
    ), truth


@pytest.mark.parametrize("run", [search, search_seeded])
def test_starts_find_levels_that_are_far_apart(run):
    table, truth = levels([-1.5, 0.0, 1.5], 20)
    found = run(table, 3, 8, torch.Generator().manual_seed(0))
    best = found.contexts[int(found.error.argmin())].numpy()
    assert allocation_agreement(best, truth) == 1.0


def test_converged_contexts_stay_as_they_are():
    table, truth = levels([-1.0, 1.0], 20)
    found = refine(table, torch.as_tensor(truth)[None], 2, torch.full((1,), 0.01))
    assert found.contexts[0].tolist() == truth.tolist()
    again = refine(table, found.contexts, 2, found.error)
    torch.testing.assert_close(again.error, found.error, rtol=0.1, atol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_split_and_merge_leads_out_of_local_optima_and_never_increases_the_error(seed):
    table, truth = levels([-1.5, 0.0, 1.5], 20, seed=seed)
    # Two levels are in one context, and the groups of the third level are in two.
    local_optimum = np.where(truth == 2, 2 - (np.arange(len(truth)) // 3) % 2, 0)
    stuck = refine(table, torch.as_tensor(local_optimum)[None], 3, torch.full((1,), 0.01))
    out = split_and_merge(table, stuck, torch.Generator().manual_seed(seed))
    assert out.error <= stuck.error
    assert allocation_agreement(stuck.contexts[0].numpy(), truth) < 0.9
    assert allocation_agreement(out.contexts[0].numpy(), truth) == 1.0


def test_a_group_alone_in_its_context_is_not_explained():
    # If the group is left out, the model of its context has no rows to be fitted to.
    table, _ = levels([-1.0, 1.0], 1)
    found = refine(table, torch.tensor([[0, 1]]), 2, torch.full((1,), 0.01))
    assert found.error > 0.5
