"""The search in closed form: its starts, and the way out of dead ends."""

import numpy as np
import pytest
import torch

from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.benchmark.recovery.tasks import TASKS
from leaflearn.initialization.search import exchange, refine, search, search_seeded
from leaflearn.initialization.smoothers import GroupTable
from leaflearn.initialization.surrogate import SmoothSurrogate


def levels(values, repeats, noise=0.01, seed=0):
    """Groups of two rows at one of a few levels."""
    rng = np.random.default_rng(seed)
    truth = np.tile(np.arange(len(values)), repeats)
    y = np.repeat(np.array(values)[truth], 2) + noise * rng.normal(size=2 * len(truth))
    features = torch.ones(len(y), 1, dtype=torch.float64)
    return GroupTable.of(
        features, torch.as_tensor(y)[:, None], np.repeat(np.arange(len(truth)), 2)
    ), truth


@pytest.mark.parametrize("look", [search, search_seeded])
def test_starts_find_levels_that_are_far_apart(look):
    table, truth = levels([-1.5, 0.0, 1.5], 20)
    found = look(table, 3, 8, torch.Generator().manual_seed(0))
    best = found.contexts[int(found.error.argmin())].numpy()
    assert allocation_agreement(best, truth) == 1.0


def test_what_is_settled_stays_so():
    table, truth = levels([-1.0, 1.0], 20)
    found = refine(table, torch.as_tensor(truth)[None], 2, torch.full((1,), 0.01))
    assert found.contexts[0].tolist() == truth.tolist()
    again = refine(table, found.contexts, 2, found.error)
    torch.testing.assert_close(again.error, found.error, rtol=0.1, atol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_an_exchange_never_makes_it_worse_and_leads_out_of_dead_ends(seed):
    table, truth = levels([-1.5, 0.0, 1.5], 20, seed=seed)
    dead_end = np.where(
        truth == 2, 2 - (np.arange(len(truth)) // 3) % 2, 0
    )  # two levels in one context, the third cut in two
    stuck = refine(table, torch.as_tensor(dead_end)[None], 3, torch.full((1,), 0.01))
    out = exchange(table, stuck, torch.Generator().manual_seed(seed))
    assert out.error <= stuck.error
    assert allocation_agreement(stuck.contexts[0].numpy(), truth) < 0.9
    assert allocation_agreement(out.contexts[0].numpy(), truth) == 1.0


def test_a_group_is_judged_by_models_that_have_not_seen_it_whatever_the_start():
    # With one group a context the model of a group has nothing to learn from when the group is left out.
    table, _ = levels([-1.0, 1.0], 1)
    found = refine(table, torch.tensor([[0, 1]]), 2, torch.full((1,), 0.01))
    assert found.error > 0.5


def test_contexts_that_differ_in_few_places_are_not_taken_for_rows_that_do_not_belong():
    task = TASKS["small-region"]
    right = []
    for seed in range(3):
        sample, truth = task.sample(seed)
        flat, bump = (domain.test for domain in task.make(seed))
        where = np.abs(flat.y - bump.y) > 0.3
        tells = np.unique(
            sample.groups[
                (sample.x[:, 0] > flat.x[where].min()) & (sample.x[:, 0] < flat.x[where].max())
            ]
        )
        reading = SmoothSurrogate.of(sample.x, sample.y[:, None], sample.groups, 0, seed)
        right.append(allocation_agreement(reading.find(2).contexts[tells], truth.domain[tells]))
    assert np.median(right) > 0.98
