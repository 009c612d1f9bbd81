"""Bilevel sampling: domains by their shares, pure groups, reproducible samples, and noise."""

import numpy as np
import pytest

from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sampling import draw_rows, mislabel, mix, sample_groups
from leaflearn.benchmark.datasets.sources import Examples, Function

N = 100_000


def labelled(name, label, n=50):
    """A domain whose rows have its label and distinct inputs."""
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


def test_domains_are_drawn_by_their_shares():
    domains = DomainSet("three", DOMAINS.domains, n_groups=1, group_size=1, shares=(8, 1, 1))
    _, truth = sample_groups(domains, n_groups=5000, random_state=0)
    assert np.bincount(truth.domain) / 5000 == pytest.approx([0.8, 0.1, 0.1], abs=0.03)


def test_a_domain_of_share_zero_is_never_drawn():
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


def test_a_generator_continues_its_stream():
    generator = np.random.default_rng(0)
    first, second = (sample_groups(DOMAINS, random_state=generator)[0].x for _ in range(2))
    assert not np.array_equal(first, second)


def test_a_pair_of_sizes_makes_ragged_groups():
    sample, truth = sample_groups(DOMAINS, n_groups=2000, group_size=(1, 4), random_state=0)
    sizes = np.bincount(sample.groups, minlength=2000)
    assert np.bincount(sizes)[1:] / 2000 == pytest.approx([0.25] * 4, abs=0.04)
    assert np.array_equal(sample.y, truth.domain[sample.groups])


@pytest.mark.parametrize("sizes", [(0, 1), (1, 0)])
def test_empty_samples_are_refused(sizes):
    with pytest.raises(
        ValueError,
        match=rf"^`n_groups` and `group_size` must be at least 1; they are {sizes[0]} and "
        rf"{sizes[1]}\.$",
    ):
        sample_groups(DOMAINS, *sizes)


def test_examples_are_drawn_in_the_given_order():
    domain = np.array([2, 0, 0, 1, 2, 0])
    assert draw_rows(DOMAINS, domain, np.random.default_rng(0)).y().tolist() == domain.tolist()


def test_rows_inside_a_domain_are_drawn_independently():
    drawn = draw_rows(DOMAINS, np.zeros(2000, dtype=int), np.random.default_rng(0))
    # 40 expected, a standard deviation of about 6
    counts = np.bincount(drawn.x()[:, 0].astype(int), minlength=50)
    assert counts.min() > 10
    assert counts.max() < 80


# Noise


def within_four_standard_errors(hits, probability):
    """Whether the share of hits agrees with the probability."""
    standard_error = np.sqrt(probability * (1 - probability) / len(hits))
    return abs(np.mean(hits) - probability) <= 4 * standard_error


def tables(*label_sets, n=5000, shares=None):
    """A domain for each set of labels; all share their inputs."""
    generator = np.random.default_rng(0)
    x = np.arange(float(n))[:, None]
    domains = [
        Domain(
            f"d{d}",
            Examples(x, generator.choice(labels, n)),
            Examples(x, generator.choice(labels, n)),
        )
        for d, labels in enumerate(label_sets)
    ]
    return DomainSet(
        "tables",
        tuple(domains),
        n_groups=10,
        group_size=2,
        shares=shares,
        classes=tuple("abcdefgh"),
    )


THREE = tables([0, 1], [2, 3, 4], [5, 6, 7], shares=(0.5, 0.3, 0.2))


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.2])
def test_rows_of_other_domains_are_as_frequent_as_requested(alpha, replacement):
    sample, truth = sample_groups(
        THREE, n_groups=N // 4, group_size=4, mixing=alpha, replacement=replacement, random_state=0
    )
    assert within_four_standard_errors(truth.row_domain != truth.domain[sample.groups], alpha)


def test_a_mixed_row_is_a_row_of_its_own_domain():
    sample, truth = sample_groups(THREE, n_groups=2000, group_size=4, mixing=0.3, random_state=0)
    x = sample.x[:, 0].astype(int)
    for d, domain in enumerate(THREE):
        rows = truth.row_domain == d
        assert np.array_equal(sample.y[rows], domain.train.y[x[rows]])


def test_other_domains_are_drawn_by_their_shares():
    moved = mix(THREE, np.zeros(N, dtype=int), 0.5, np.random.default_rng(0))
    assert within_four_standard_errors(moved[moved != 0] == 1, 0.6)  # shares .3 and .2


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("beta", [0.01, 0.05])
def test_wrong_labels_are_as_frequent_as_requested_and_from_the_same_domain(beta, replacement):
    sample, truth = sample_groups(
        THREE,
        n_groups=N // 2,
        group_size=2,
        label_noise=beta,
        replacement=replacement,
        random_state=1,
    )
    assert within_four_standard_errors(truth.mislabelled, beta)
    right = truth.label_sets[np.arange(N), truth.row_domain]
    assert np.array_equal(sample.y != right, truth.mislabelled)
    first_label = np.array([0, 2, 5, 8])
    assert np.all(
        (sample.y >= first_label[truth.row_domain]) & (sample.y < first_label[truth.row_domain + 1])
    )


def test_all_wrong_labels_are_equally_likely():
    domains = tables([0, 1, 2, 3], n=N)
    noisy = mislabel(domains, 0.5, np.random.default_rng(0))
    step = (noisy.domains[0].train.y - domains.domains[0].train.y) % 4
    wrong = step[step != 0]
    assert len(wrong) == N // 2
    for mistake in (1, 2, 3):
        assert within_four_standard_errors(wrong == mistake, 1 / 3)


def test_a_wrong_label_stays_with_its_row_and_the_test_part_stays_right():
    noisy = mislabel(THREE, 0.2, np.random.default_rng(0))
    sample, truth = sample_groups(noisy, n_groups=5000, group_size=2, random_state=0)
    answers = {}
    for key, y in zip(zip(sample.x[:, 0], truth.row_domain, strict=True), sample.y, strict=True):
        assert answers.setdefault(key, y) == y
    assert all(before.test is after.test for before, after in zip(THREE, noisy, strict=True))
    assert noisy.shares_inputs


def test_groups_are_drawn_by_their_shares():
    _, truth = sample_groups(THREE, n_groups=N, group_size=1, random_state=0)
    for d, share in enumerate(THREE.probabilities):
        assert within_four_standard_errors(truth.domain == d, share)


def test_the_same_seed_draws_the_same_groups_with_and_without_wrong_labels():
    (clean, _), (noisy, truth) = (
        sample_groups(THREE, n_groups=500, label_noise=beta, random_state=0) for beta in (0.0, 0.3)
    )
    assert np.array_equal(clean.x, noisy.x)
    assert np.array_equal(clean.y != noisy.y, truth.mislabelled)


def test_without_noise_all_labels_are_right():
    sample, truth = sample_groups(THREE, n_groups=100, random_state=0)
    assert not truth.mislabelled.any()
    assert np.array_equal(truth.row_domain, truth.domain[sample.groups])


@pytest.mark.parametrize("value", [-0.1, 1.0])
def test_probabilities_outside_their_range_are_refused(value):
    with pytest.raises(
        ValueError,
        match=rf"^`mixing` is the probability of a row from another domain and must be at least 0 "
        rf"and less than 1; it is {value}\.$",
    ):
        sample_groups(THREE, mixing=value)
    with pytest.raises(
        ValueError,
        match=rf"^`label_noise` is the share of wrong labels and must be at least 0 and less than "
        rf"1; it is {value}\.$",
    ):
        sample_groups(THREE, label_noise=value)


def test_noise_that_a_domain_set_does_not_support_is_refused():
    with pytest.raises(
        ValueError,
        match=r"^`mixing` needs two domains with a positive share, but 'tables' has only one; "
        r"leave `mixing` at 0\.$",
    ):
        sample_groups(tables([0, 1]), mixing=0.1)
    with pytest.raises(
        ValueError,
        match=r"^`label_noise` exchanges the labels of a table of examples, but 'functions' has "
        r"none; leave it at 0\.$",
    ):
        sample_groups(DATASETS["functions"](), label_noise=0.1)
    with pytest.raises(
        ValueError,
        match=r"^`label_noise` needs at least two labels, but a domain has only \[3\]; leave it at "
        r"0\.$",
    ):
        sample_groups(tables([3]), label_noise=0.1)


def test_functions_can_be_mixed():
    line = Function(lambda x: x, 0.0, 1.0)
    flat = Function(lambda x: 0 * x + 5, 0.0, 1.0)
    domains = DomainSet(
        "two",
        (Domain("line", line, line.grid(3)), Domain("flat", flat, flat.grid(3))),
        n_groups=200,
        group_size=3,
    )
    sample, truth = sample_groups(domains, mixing=0.3, random_state=0)
    assert np.array_equal(sample.y == 5, truth.row_domain == 1)
    assert truth.label_sets is None
