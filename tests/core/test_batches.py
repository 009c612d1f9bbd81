import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaflearn.core.batches import Batches, GroupedExamples, balance


@st.composite
def grouped(draw):
    """Groups of different sizes, rows in random order; x is the number of the row."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=12))
    group = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    group = group[
        torch.randperm(
            len(group), generator=torch.Generator().manual_seed(draw(st.integers(0, 99)))
        )
    ]
    rows = torch.arange(len(group)).float()[:, None]
    return GroupedExamples(rows, rows, group, rows[:, 0] + 1.0)


@given(data=grouped(), groups_per_step=st.integers(1, 15), seed=st.integers(0, 9))
@settings(deadline=None, max_examples=60)
def test_an_epoch_has_every_row_once_with_its_own_group(data, groups_per_step, seed):
    seen_rows, seen_groups = [], []
    for batches in data.meta_batches(groups_per_step, torch.Generator().manual_seed(seed)):
        assert 1 <= batches.n_groups <= groups_per_step
        assert torch.equal(data.group[batches.index], batches.group_id[batches.group])
        assert torch.equal(batches.x[:, 0].long(), batches.index)
        seen_rows += batches.index.tolist()
        seen_groups += batches.group_id.tolist()
    assert sorted(seen_rows) == list(range(len(data.group)))
    assert sorted(seen_groups) == list(range(data.n_groups))


@given(data=grouped(), cap=st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_large_groups_are_subsampled_and_weights_sum_to_the_sample_size(data, cap):
    for batches in data.meta_batches(3, torch.Generator().manual_seed(0), rows_per_group=cap):
        assert torch.equal(batches.sizes.long(), data.sizes[batches.group_id].clamp(max=cap))
        assert len(set(batches.index.tolist())) == len(batches.index)
        total = torch.zeros(batches.n_groups).index_add_(0, batches.group, batches.weight)
        torch.testing.assert_close(total, batches.sizes)


def test_the_sample_of_a_large_group_changes_with_the_epoch():
    data = GroupedExamples(
        torch.zeros(100, 1), torch.zeros(100, 1), torch.zeros(100, dtype=torch.long)
    )
    generator = torch.Generator().manual_seed(0)
    first, second = (
        next(data.meta_batches(1, generator, rows_per_group=10)).index.tolist() for _ in range(2)
    )
    assert set(first) != set(second)


def test_groups_are_shuffled_in_each_epoch():
    data = GroupedExamples(torch.zeros(50, 1), torch.zeros(50, 1), torch.arange(50))
    generator = torch.Generator().manual_seed(0)
    first, second = (
        [b.group_id.tolist() for b in data.meta_batches(8, generator)] for _ in range(2)
    )
    assert first != second
    assert [len(ids) for ids in first] == [8, 8, 8, 8, 8, 8, 2]


@given(data=grouped(), rows_at_once=st.integers(1, 30))
@settings(deadline=None, max_examples=30)
def test_chunks_have_all_rows_in_order_with_the_weights_of_whole_groups(data, rows_at_once):
    chunks = list(data.chunks(rows_at_once))
    assert torch.equal(torch.cat([c.group_id[c.group] for c in chunks]), data.group)
    torch.testing.assert_close(
        torch.cat([c.weight for c in chunks]), balance(data.weight, data.group, data.n_groups)
    )
    assert max(len(c.x) for c in chunks) <= rows_at_once


def test_a_batch_has_no_field_for_the_domain():
    assert set(Batches.__dataclass_fields__) == {
        "x",
        "y",
        "group",
        "group_id",
        "index",
        "weight",
        "n_groups",
    }


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_balance_is_invariant_to_the_scale_of_the_weights(scale):
    weight, group = torch.tensor([1.0, 2.0, 5.0]), torch.tensor([0, 0, 1])
    torch.testing.assert_close(balance(scale * weight, group, 2), balance(weight, group, 2))


def test_every_row_of_a_large_group_is_equally_likely_to_be_sampled():
    data = GroupedExamples(torch.zeros(7, 1), torch.zeros(7, 1), torch.zeros(7, dtype=torch.long))
    generator = torch.Generator().manual_seed(0)
    seen = torch.zeros(7)
    for _ in range(7000):
        seen[next(data.meta_batches(1, generator, rows_per_group=3)).index] += 1
    standard_error = (7000 * 3 / 7 * 4 / 7) ** 0.5
    torch.testing.assert_close(seen, torch.full((7,), 3000.0), atol=4 * standard_error, rtol=0)
