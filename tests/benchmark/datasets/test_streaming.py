"""Meta-batches: every row once per epoch, new groups each epoch, reproducible, no domains."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sources import Examples, Images
from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.core.batches import Batches

X = np.arange(103.0)[:, None]
ROW = np.arange(103)
SHARED = DomainSet(
    "shared",
    (
        Domain("a", Examples(X, ROW % 3), Examples(X, ROW % 3)),
        Domain("b", Examples(X, 3 + ROW % 5), Examples(X, 3 + ROW % 5)),
    ),
    n_groups=10,
    group_size=4,
    classes=tuple("abcdefgh"),
)
APART = DomainSet(
    "apart",
    tuple(
        Domain(name, table := Examples(X[:50] + 1000 * d, np.full(50, d)), table)
        for d, name in enumerate("ab")
    ),
    n_groups=10,
    group_size=5,
    classes=("no", "yes"),
)


def gather(sampler, number=0):
    """The whole epoch: rows, targets, group ids and true domains, flat."""
    steps = list(sampler.epoch(number))
    x = torch.cat([batches.x for batches, _ in steps])
    y = torch.cat([batches.y for batches, _ in steps])
    group = torch.cat([batches.group_id[batches.group] for batches, _ in steps])
    return (
        x[:, 0].numpy(),
        y.numpy(),
        group.numpy(),
        np.concatenate([truth.domain for _, truth in steps]),
    )


def test_an_epoch_uses_every_shared_input_once():
    x, _, group, domain = gather(BilevelSampler(SHARED, groups_per_step=7))
    assert sorted(x) == list(range(103))
    assert np.bincount(group).tolist() == [4] * 25 + [3]  # 103 rows in groups of 4
    assert len(domain) == 26


def test_targets_are_those_of_the_groups_domain():
    x, y, group, domain = gather(BilevelSampler(SHARED))
    row = x.astype(int)
    assert np.array_equal(y, np.where(domain[group] == 0, row % 3, 3 + row % 5))
    assert set(domain) == {0, 1}


def test_no_row_is_repeated_before_all_rows_of_its_table_are_used():
    x, y, _, _ = gather(BilevelSampler(APART))
    assert np.array_equal(x >= 1000, y == 1)
    for d in (0, 1):
        _, counts = np.unique(x[y == d], return_counts=True)
        assert counts.max() - (counts.min() if (y == d).sum() >= 50 else 0) <= 1


def test_epochs_differ_and_can_be_drawn_in_any_order():
    sampler = BilevelSampler(SHARED, random_state=3)
    first, second = gather(sampler, 0), gather(sampler, 1)
    assert not np.array_equal(first[0], second[0])
    assert all(
        np.array_equal(a, b)
        for a, b in zip(second, gather(BilevelSampler(SHARED, random_state=3), 1), strict=True)
    )
    assert not np.array_equal(first[0], gather(BilevelSampler(SHARED, random_state=4), 0)[0])
    assert set(first[2]).isdisjoint(second[2])  # a fresh group is a new group


def test_rows_are_repeated_with_replacement():
    x, *_ = gather(BilevelSampler(SHARED, replacement=True))
    assert len(x) == 104
    assert len(set(x)) < 90


def test_steps_are_counted_and_of_the_requested_size():
    sampler = BilevelSampler(SHARED, group_size=2, groups_per_step=10, groups_per_epoch=25)
    assert len(sampler) == 3
    assert [batches.n_groups for batches, _ in sampler.epoch(0)] == [10, 10, 5]


def test_unlimited_sources_have_the_default_number_of_groups():
    sampler = BilevelSampler(DATASETS["functions"](), groups_per_step=100)
    steps = list(sampler.epoch(0))
    assert [batches.n_groups for batches, _ in steps] == [100, 100, 50]
    assert steps[0][0].y.shape == (200, 1)
    assert steps[0][0].y.dtype == torch.float32


def test_images_become_numbers_when_they_are_drawn():
    images = Images(np.full((6, 3, 2, 2), 255, dtype=np.uint8))
    table = Examples(images, np.zeros(6, dtype=np.int64))
    data = DomainSet(
        "white", (Domain("a", table, table),), n_groups=1, group_size=1, classes=("x",)
    )
    for batches, _ in BilevelSampler(data).epoch(0):
        assert batches.x.dtype == torch.float32
        assert torch.equal(batches.x, torch.ones(6, 3, 2, 2))
        assert batches.y.dtype == torch.int64


@pytest.mark.parametrize("data", [SHARED, APART], ids=["shared", "apart"])
def test_an_input_keeps_its_number_and_the_number_does_not_reveal_the_domain(data):
    sampler, input_of = BilevelSampler(data, mixing=0.3), {}
    numbers, domains = [], []
    for batches, truth in itertools.chain(sampler.epoch(0), sampler.epoch(1)):
        for number, x in zip(batches.index.tolist(), batches.x[:, 0].tolist(), strict=True):
            assert input_of.setdefault(number, x) == x
        numbers += batches.index.tolist()
        domains += truth.row_domain.tolist()
    assert len(set(input_of.values())) == len(input_of)  # nor do two inputs share a number
    assert set(input_of) <= set(range(sampler.n_rows))
    assert abs(np.corrcoef(numbers, domains)[0, 1]) < 0.3


def test_inputs_of_unlimited_sources_have_no_number():
    batches, _ = next(BilevelSampler(DATASETS["functions"]()).epoch(0))
    assert batches.index is None


OPPOSITE = dataclasses.replace(
    APART,
    domains=tuple(
        Domain(domain.name, table := Examples(domain.train.x, (ROW[:50] + d) % 2), table)
        for d, domain in enumerate(APART)
    ),
)


@pytest.mark.parametrize("data", [SHARED, OPPOSITE], ids=["shared", "apart"])
def test_wrong_labels_are_the_same_in_all_epochs_and_as_frequent_as_requested(data):
    sampler, wrong = BilevelSampler(data, mixing=0.2, label_noise=0.2, random_state=1), {}
    for batches, truth in itertools.chain(*(sampler.epoch(number) for number in range(20))):
        keys = zip(batches.index.tolist(), truth.row_domain.tolist(), strict=True)
        for key, is_wrong, y in zip(
            keys, truth.mislabelled.tolist(), batches.y.tolist(), strict=True
        ):
            assert wrong.setdefault(key, (is_wrong, y)) == (is_wrong, y)
    assert np.mean([is_wrong for is_wrong, _ in wrong.values()]) == pytest.approx(0.2, abs=0.02)


def test_noise_does_not_change_what_else_is_drawn():
    clean, noisy = (
        gather(BilevelSampler(SHARED)),
        gather(BilevelSampler(SHARED, mixing=0.5, label_noise=0.5)),
    )
    assert np.array_equal(clean[0], noisy[0])
    assert np.array_equal(clean[3], noisy[3])
    assert not np.array_equal(clean[1], noisy[1])


def test_a_domain_of_share_zero_does_not_count_in_the_epoch():
    data = dataclasses.replace(APART, shares=(1.0, 0.0))
    x, *_ = gather(BilevelSampler(data))
    assert sorted(x) == list(range(50))


def test_invalid_options_are_refused_before_the_first_step():
    with pytest.raises(ValueError, match=r"^`mixing` is the probability"):
        BilevelSampler(SHARED, mixing=2)
    with pytest.raises(
        ValueError, match=r"^`group_size` must be an integer of at least 1; it is \(1, 4\)\.$"
    ):
        BilevelSampler(SHARED, group_size=(1, 4))


def test_the_truth_is_not_in_the_batches():
    batches, _ = next(iter(BilevelSampler(SHARED).epoch(0)))
    assert type(batches) is Batches
    assert not {"domain", "truth", "label_sets"} & {
        field.name for field in dataclasses.fields(batches)
    }


@pytest.mark.parametrize("name", ["group_size", "groups_per_step", "groups_per_epoch"])
def test_empty_streams_are_refused(name):
    with pytest.raises(
        ValueError, match=rf"^`{name}` must be an integer of at least 1; it is 0\.$"
    ):
        BilevelSampler(SHARED, **{name: 0})


@pytest.mark.parametrize("name", ["functions", "colored-digits"])
def test_groups_that_are_not_redrawn_are_repeated_in_another_order(name):
    sampler = BilevelSampler(DATASETS[name](), group_size=3, groups_per_step=50, redraw=False)
    seen = []
    for epoch in (0, 1):
        groups = {}
        for batches, truth in sampler.epoch(epoch):
            for place, group_id in enumerate(batches.group_id.tolist()):
                here = batches.group == place
                groups[group_id] = (
                    batches.x[here].flatten().tolist(),
                    batches.y[here].flatten().tolist(),
                    int(truth.domain[place]),
                )
        seen.append(groups)
    assert seen[0] == seen[1]
    assert list(seen[0]) != list(seen[1])
    assert len(seen[0]) == sampler.n_groups
