"""Bilevel sampling: domains by their shares, groups that never mix, the same sample for the same seed."""

import numpy as np
import pytest

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sampling import draw_rows
from leaflearn.benchmark.datasets.sampling import sample_groups
from leaflearn.benchmark.datasets.sources import Examples


def labelled(name, label, n=50):
    """A domain whose rows carry its label, and inputs that tell rows apart."""
    table = Examples(np.arange(n)[:, None] + 1000.0 * label, np.full(n, label))
    return Domain(name, train=table, test=table)


DOMAINS = DomainSet(
    "three", (labelled("a", 0), labelled("b", 1), labelled("c", 2)), n_groups=20, group_size=3
)


def test_every_row_comes_from_the_domain_of_its_group():
    (x, y, groups), truth = sample_groups(DOMAINS, n_groups=100, group_size=4, random_state=0)
    assert np.array_equal(y, truth.domain[groups])
    assert np.array_equal(x[:, 0] // 1000, y)
    assert set(truth.domain) == {0, 1, 2}


def test_groups_are_numbered_and_of_one_size():
    (x, _, groups), truth = sample_groups(DOMAINS, n_groups=7, group_size=5, random_state=0)
    assert np.bincount(groups).tolist() == [5] * 7
    assert len(x) == 35
    assert truth.domain.shape == (7,)
    assert truth.names == ("a", "b", "c")


def test_sizes_default_to_those_of_the_domain_set():
    (x, _, groups), _ = sample_groups(DOMAINS, random_state=0)
    assert len(np.unique(groups)) == 20
    assert len(x) == 60


def test_domains_come_up_by_their_shares():
    domains = DomainSet("three", DOMAINS.domains, n_groups=1, group_size=1, shares=(8, 1, 1))
    _, truth = sample_groups(domains, n_groups=5000, random_state=0)
    assert np.bincount(truth.domain) / 5000 == pytest.approx([0.8, 0.1, 0.1], abs=0.03)


def test_a_domain_of_share_zero_never_comes_up():
    domains = DomainSet("three", DOMAINS.domains, n_groups=1, group_size=1, shares=(1, 0, 1))
    _, truth = sample_groups(domains, n_groups=500, random_state=0)
    assert set(truth.domain) == {0, 2}


def test_the_same_seed_gives_the_same_sample_and_another_seed_another():
    (x, y, _), truth = sample_groups(DOMAINS, n_groups=50, random_state=3)
    (again_x, again_y, _), again = sample_groups(DOMAINS, n_groups=50, random_state=3)
    (other_x, _, _), _ = sample_groups(DOMAINS, n_groups=50, random_state=4)
    assert np.array_equal(x, again_x)
    assert np.array_equal(y, again_y)
    assert np.array_equal(truth.domain, again.domain)
    assert not np.array_equal(x, other_x)


def test_a_generator_goes_on_where_it_was():
    generator = np.random.default_rng(0)
    first, second = (sample_groups(DOMAINS, random_state=generator)[0].x for _ in range(2))
    assert not np.array_equal(first, second)


def test_a_pair_of_sizes_makes_ragged_groups():
    sample, truth = sample_groups(DOMAINS, n_groups=2000, group_size=(1, 4), random_state=0)
    sizes = np.bincount(sample.groups, minlength=2000)
    assert np.bincount(sizes)[1:] / 2000 == pytest.approx([0.25] * 4, abs=0.04)
    assert np.array_equal(sample.y, truth.domain[sample.groups])


@pytest.mark.parametrize("sizes", [(0, 1), (1, 0)])
def test_nothing_cannot_be_sampled(sizes):
    with pytest.raises(
        ValueError,
        match=rf"^`n_groups` and `group_size` must be at least 1; they are {sizes[0]} and {sizes[1]}\.$",
    ):
        sample_groups(DOMAINS, *sizes)


def test_examples_are_drawn_in_the_order_asked_for():
    domain = np.array([2, 0, 0, 1, 2, 0])
    assert draw_rows(DOMAINS, domain, np.random.default_rng(0)).y().tolist() == domain.tolist()


def test_rows_inside_a_domain_are_drawn_independently():
    drawn = draw_rows(DOMAINS, np.zeros(2000, dtype=int), np.random.default_rng(0))
    # 40 expected, a standard deviation of about 6
    counts = np.bincount(drawn.x()[:, 0].astype(int), minlength=50)
    assert counts.min() > 10
    assert counts.max() < 80
